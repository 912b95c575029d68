"""Hostile peers at every port, while a call and a live stream go on as if nothing were.

Every test has an honest call between two rich clients, Speex both ways, and a published stream
with a player.  Whatever is thrown at the gateway meanwhile, their frames must arrive complete,
in order and bit by bit; afterwards nothing of the attack may be left: no state, no memory, no
traceback.
"""

import json
import os
import random
from contextlib import suppress
from functools import partial

import gevent
import pytest
from support.attacks.doors import by
from support.attacks.hostile import RtmpAttacker, chunk, dial, rest_of
from support.attacks.hostile_sip import SPEEX, SipAttacker, sdp
from support.gateway.richclient import RichClient, wait_for
from torture.test_rfc4475 import archive

from rtmplite.amf import amf0
from rtmplite.errors import RemoteError
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.rtmp.wire.message import Message


def test_rtmp_garbage_before_and_after_the_handshake(world):
    """What makes no sense is hung up on, what only takes long is left to its time-out."""
    rtmp = world.server.rtmp
    noise = random.Random(1)
    for data in (noise.randbytes(5000), b"GET / HTTP/1.1\r\n\r\n", b"\x06" + bytes(1536)):
        connection = dial(rtmp)
        connection.sendall(b"\xff" + data if data[0] < 32 and data[0] != 6 else data)
        assert rest_of(connection)[1]
    waiting = [dial(rtmp) for _ in range(4)]
    for connection, size in zip(waiting, (0, 1, 1000, 1537), strict=True):
        connection.sendall((b"\x03" + bytes(1536))[:size])
    for app in ("", "live"):
        for data in (
            noise.randbytes(5000),
            b"\xc3",  # a chunk stream that begins in its middle
            chunk(20, b"\x02\x00\x04"),  # half a chunk
            chunk(0xFFFFFF, b"x" * 128) + b"\xc3" + b"x" * 100,
            chunk(4, b"\0\0\0\0", 2, kind=1),  # a chunk size of nothing
            chunk(4, b"\xff\xff\xff\xff", 2, kind=1),
            chunk(2, b"\0\0", 2, kind=5),  # control messages that are too short
            chunk(1, b"\0", 2, kind=4),
            b"".join(chunk(200, b"x" * 128, number) for number in range(4, 64)),
        ):
            peer = RtmpAttacker(world.server, app)
            peer.socket.sendall(data)
            waiting.append(peer.socket)
    for connection in waiting:
        connection.close()


def test_rtmp_commands_that_come_too_early_too_often_or_too_big(world):
    """Covers RTMP 1.0 §7.2.1.2: an error where one is owed, a closed connection where none can be.

    The bombs would each take seconds to read, in which no packet of the call would be served.
    """
    server = world.server
    for name in ("publish", "play", "createStream", "invite"):
        peer = RtmpAttacker(server, "")
        peer.say(name, None, "honest")
        assert rest_of(peer.socket) == (b"", True)
    size = 16_000_000
    bombs = (
        b"\x0a\0\0\0\1" * 100,  # deeper than anybody may go
        b"\x0a\xff\xff\xff\xff\x05",  # a count that nobody can keep
        b"\x03\0\x01a" * 1000,
        b"\x0c\xff\xff\xff\xff",
        b"\x05" * size,
        b"\x02\0\0" * (size // 3),
    )
    for body in bombs:
        peer = RtmpAttacker(server)
        peer.send_at_once(Message(20, 0, 0, amf0.encode("connect", 2.0) + body))
        assert rest_of(peer.socket)[1]
    peer = RtmpAttacker(server)
    peer.send_at_once(Message(22, 0, 0, (b"\x08" + bytes(14)) * (size // 15)))
    assert rest_of(peer.socket)[1]

    peer = RtmpAttacker(server)
    for _ in range(1000):
        peer.say("createStream", number=2.0)
    answers = b""
    while answers.count(b"_result") + answers.count(b"_error") < 1 + 1000:
        answers += peer.socket.recv(65536)
    assert answers.count(b"_result") == 1 + 32 and answers.count(b"_error") == 1000 - 32
    odd = (float("nan"), float("inf"), -1.0, 1e300, "1", None, {}, [1.0])
    for value in odd:
        for name in ("deleteStream", "closeStream", "publish", "play", "pause", "seek", "connect"):
            peer.say(name, None, value, value, stream=1)
            peer.say(name, number=value if isinstance(value, float) else 0.0, stream=77)
    for number in range(100):
        peer.say("deleteStream", None, float(number))  # ours, and not those of others
    peer.socket.close()

    stranger = RtmpClient.connect(server.url("live"))
    with pytest.raises(RemoteError) as refused:
        stranger.create_stream().publish("honest")
    assert refused.value.code == "NetStream.Publish.BadName"
    stranger.create_stream().play("unknown")
    stranger.close()
    for application, code in (("nothing", "InvalidApp"), ("sip/nobody", "Rejected")):
        with pytest.raises(RemoteError) as refused:
            RtmpClient.connect(server.url(application))
        assert refused.value.code == f"NetConnection.Connect.{code}"


def test_what_rich_clients_say_never_breaks_out_of_a_header(world):
    """Covers RFC 3261 §7.3.1: a line break in a name would be a header of the client's choice."""
    injected = "x\r\nRoute: <sip:127.0.0.1:9>\r\n"
    for identity in ("mallory@127.0.0.1", f"mal{injected}@127.0.0.1", "mallory@127.0.0.1;x=%0d%0a"):
        for display in ("", injected, "\x00" * 9, "d" * 60_000):
            peer = RtmpAttacker(world.server, "")
            place = {"app": f"sip/{identity}", "tcUrl": ""}
            peer.say("connect", place, "", "", display, number=1.0)
            for dest in (
                "alice@127.0.0.1",
                f'"{injected}" <sip:alice@127.0.0.1>',
                injected,
                "<",
                7.0,
            ):
                peer.say("invite", None, dest)
                peer.say("reject", None, "4" * 5000)
                peer.say("bye")
            gevent.sleep(0.02)
            peer.socket.close()


def test_floods_of_connections(world):
    """A few hundred connections that say nothing, or a byte now and then, starve nobody.

    Those that have said no whole message give way to newcomers, and may be closed already.
    """
    server = world.server
    crowd = []
    for _ in range(150):
        for name in ("rtmp", "sip", "http"):
            crowd.append(dial(server.listeners[name]))
    openings = (
        b"\x03",
        b"OPTIONS sip:a@b SIP/2.0\r\nVia: ",
        b"GET /status HTTP/1.1\r\nHost: a\r\n",
    )
    for number, connection in enumerate(crowd):
        with suppress(OSError):
            connection.sendall(openings[number % 3])
    peer = SipAttacker(server)
    for _ in range(10):
        for connection in crowd:
            with suppress(OSError):
                connection.sendall(b"x")
        assert peer.ask("OPTIONS", "sip:127.0.0.1") == 200  # it has looked at them meanwhile
    assert server.status()["calls"] == world.busy["calls"]
    for connection in crowd:
        connection.close()
    for data in (
        os.urandom(3000),
        b"GET " + b"x" * 100_000,
        b"POST /status HTTP/1.1\r\n\r\n",
        b"\r\n",
    ):
        connection = dial(server.listeners["http"])
        connection.sendall(data)
        rest_of(connection, 0.2)
        connection.close()


def test_the_torture_archive_and_noise(guarded, specs):
    """Covers RFC 4475 §3 on the wire: by datagrams, and by streams that break off."""
    server = guarded.server
    peer, noise = SipAttacker(server), random.Random(2)
    messages = list(archive(specs).values())
    for data in messages:
        peer.send(data)
        peer.send(data.replace(b"example.com", b"127.0.0.1"))
        peer.send(data[: noise.randrange(len(data))])
    for size in (1, 2, 100, 1400, 60_000):
        for _ in range(10):
            peer.send(noise.randbytes(size))
            peer.send(bytes([noise.randrange(256)]) * size)
            peer.send(peer.request("OPTIONS", "sip:127.0.0.1")[: noise.randrange(300)])
    for data in [*messages, noise.randbytes(70_000), b"\r\n" * 5000, b"x" * 70_000]:
        connection = dial(server.sip)
        connection.sendall(data)
        if noise.random() < 0.5:
            gevent.sleep(0.001)
        connection.close()
    connection = dial(server.sip)
    connection.sendall(peer.request("OPTIONS", "sip:127.0.0.1").replace(b"h: 0", b"h: 99999999"))
    said, closed = rest_of(connection)
    assert said.startswith((b"SIP/2.0 400 ", b"SIP/2.0 513 ")) and closed
    assert peer.ask("OPTIONS", "sip:127.0.0.1", Call_ID="alive") == 200


@pytest.mark.parametrize("door", [pytest.param("TLS", marks=pytest.mark.needs("openssl")), "WS"])
def test_the_torture_archive_and_noise_in_records_and_frames(guarded, specs, door):
    """Covers RFC 4475 §3 on the wire: one connection each, and many that break off."""
    enter, noise = partial(by(door, SipAttacker), guarded.server), random.Random(4)
    messages = list(archive(specs).values())
    damaged = [data[: noise.randrange(len(data))] for data in messages]
    for data in [*messages, *damaged, noise.randbytes(70_000), b"\r\n" * 5000, b"x" * 70_000]:
        peer = enter()
        peer.send(data)
        if noise.random() < 0.5:
            gevent.sleep(0.001)
        peer.socket.close()
    for size in (1, 2, 100, 1400, 60_000):  # after the handshake neither a record nor a frame
        peer = enter()
        peer.socket.sendall(noise.randbytes(size))
        peer.socket.close()
    assert enter().ask("OPTIONS", "sip:127.0.0.1", Call_ID="alive") == 200


def test_floods_of_registrations_calls_and_messages(world, door):
    """Covers RFC 3261 §10.3 and §16.3: limits, loops, and a stop to hops."""
    server = world.server
    enter = partial(by(door, SipAttacker), server)
    peer, ours, times = enter(), "sip:127.0.0.1", 300 if door == "UDP" else 60
    many = ", ".join(f"<sip:{number}@127.0.0.1:{peer.port}>" for number in range(200))
    assert peer.ask("REGISTER", ours, To="<sip:dave@127.0.0.1>", Contact=many) in (403, 413, 513)
    for number in range(times):
        to = f"<sip:user{number}@127.0.0.1>"
        assert peer.ask("REGISTER", ours, To=to, Call_ID=f"flood{number}", Expires="60") == 200
    assert server.status()["registrations"] == world.busy["registrations"] + times
    here = "sip:user1@127.0.0.1"
    assert peer.ask("INVITE", here, body=sdp(), Max_Forwards="0") == 483
    assert peer.ask("INVITE", here, body=sdp(), Proxy_Require="nothing") == 420
    for number in range(times):
        to = f"<sip:user{number}@127.0.0.1>"
        fields = {"To": to, "Contact": "*", "Expires": "0", "Call_ID": f"flood{number}"}
        assert peer.ask("REGISTER", ours, CSeq="2 REGISTER", **fields) == 200
    big = peer.request("OPTIONS", ours, Subject="x" * 60_000)
    for number in range(times):
        enter().send(big.replace(b";branch=z9hG4bK", b";branch=z9hG4bK%d" % number, 1))
        peer.send(peer.request("INVITE", "sip:alice@127.0.0.1", body=sdp()))
        if number % 10 == 0:
            gevent.sleep(0.001)


def test_messages_that_take_long_to_read(world, door):
    """Covers RFC 3261 §21.5.7: what is large for a head is refused unread, what is not is read.

    A stream is hung up on before such a head is read to its end.
    """
    enter, ours = partial(by(door, SipAttacker), world.server), "sip:127.0.0.1"
    refused = (400, 513, None) if door == "TLS" else (400, 513)
    heads = {
        "X-From": '"' + "\\a" * 25_000 + '" <sip:m@evil.invalid>',
        "Contact": "<sip:a@b>," * 5000 + "<sip:a@b>",
        "Subject": "%61" * 18_000,
        "Supported": "a," * 25_000 + "a",
        "Route": "<sip:192.0.2.1;lr>," * 3000 + "<sip:192.0.2.1;lr>",
    }
    for number, (name, value) in enumerate(heads.items()):
        peer = enter()
        data = peer.request("OPTIONS", ours, Call_ID=f"slow{number}")
        slow = data.replace(b"Content-Length", f"{name}: {value}\r\nContent-Length".encode())
        assert peer.ask_raw(slow) in refused
        for _ in range(10):
            enter().send(slow)
    peer, lines = enter(), sdp() + b"a=rtpmap:97 x/1\r\n" * 3000
    assert peer.ask("INVITE", "sip:alice@127.0.0.1", body=lines) in (400, 480, 488, 513)
    assert peer.ask("OPTIONS", ours, Call_ID="alive") == 200


def test_floods_from_many_hosts(guarded, door):
    """Own design: two thousand requests a second, some hundred of each kind."""
    enter = partial(by(door, SipAttacker), guarded.server)
    hosts = [enter(f"127.1.0.{number + 1}") for number in range(20)]
    alice = "sip:alice@127.0.0.1"
    for method, uri in (
        ("OPTIONS", "sip:127.0.0.1"),
        ("INVITE", alice),
        ("REGISTER", "sip:127.0.0.1"),
        ("BYE", alice),
    ):
        for number in range(300):
            peer, call = hosts[number % 20], f"{method}{number}"
            peer.send(peer.request(method, uri, To=f"<{alice}>", Call_ID=call))
            if number % 10 == 0:
                gevent.sleep(0.005)
    for each in hosts:
        each.socket.close()
    # What the system had no room for is lost, as UDP may, and asked again.
    peer = enter()
    alive = (peer.request("OPTIONS", "sip:127.0.0.1", Call_ID=f"alive{i}") for i in range(10))
    again = (peer.ask_raw(data, seconds=2.0) for data in alive)
    assert 200 in again


def test_an_octet_that_is_no_text_leaves_logs_and_records_readable(gateway, tmp_path):
    """Own design: strict readers of JSON stop at a surrogate that stands alone."""
    path = tmp_path / "calls.jsonl"
    server = gateway("--log-format", "json", "--call-records", str(path))
    line, caller = RichClient(server.rtmp, "bob@127.0.0.1"), SipAttacker(server)
    body = sdp(SPEEX.format(port=40000))
    invite = caller.request("INVITE", "sip:bob@127.0.0.1", body=body, Call_ID="a-here-b")
    caller.send(invite.replace(b"here", b"\x85"))
    line.expect("invited")
    line.call("reject", "486 Busy Here")
    wait_for(lambda: path.read_text().endswith("\n"), "the record")
    [record] = path.read_text("ascii").splitlines()
    ids = [json.loads(record)["id"]]
    lines = [each for each in server.output.splitlines() if each.startswith("{")]
    ids += [entry["call"] for entry in map(json.loads, lines) if "call" in entry]
    assert len(ids) > 1 and set(ids) == {"a-\ufffd-b"}
    line.close()
