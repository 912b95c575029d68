"""Hostile peers at every port, while a call and a live stream go on as if nothing were.

Every test has an honest call between two rich clients, Speex both ways, and a published stream
with a player.  Whatever is thrown at the gateway meanwhile, their frames must arrive complete,
in order and bit by bit; afterwards nothing of the attack may be left: no state, no memory, no
traceback.
"""

import os
import random
import re
import socket as plain
import struct

import gevent
import pytest
from gevent import socket
from interop.accounts import PASSWORD, users_file
from interop.richclient import RichClient, wait_for
from torture.test_rfc4475 import archive

from rtmplite.amf import amf0
from rtmplite.errors import RemoteError
from rtmplite.flv import file
from rtmplite.net.rtmp_client import RtmpClient
from rtmplite.rtmp.chunk_writer import ChunkWriter
from rtmplite.rtmp.command import Command
from rtmplite.rtmp.message import Message, MessageType

AUDIO = MessageType.AUDIO
GROWTH = 64 * 1024  # KiB of memory that an attack may cost for good
ENOUGH = 25  # frames in a flow that a test has disturbed
COUNTERS = {"sip_repeated", "sip_malformed"}  # the only figures that an attack may leave changed
SPEEX = "m=audio {port} RTP/AVP 96\r\na=rtpmap:96 speex/16000\r\n"


class Flow:
    """Numbered frames from one stream to another, 50 a second, until `finish`."""

    def __init__(self, source, sink, frames):
        self.source, self.sink, self.frames = source, sink, frames
        self.sent, self.heard, self._stopping = [], [], False
        self._greenlets = [gevent.spawn(self._hear), gevent.spawn(self._talk)]

    def _talk(self):
        while not self._stopping:
            frame = self.frames(len(self.sent))
            self.sent.append(frame)
            self.source.write(AUDIO, 20 * len(self.sent), frame)
            gevent.sleep(0.02)

    def _hear(self):
        while (message := self.sink.read(timeout=30)) is not None:
            if message.type_id == AUDIO:
                self.heard.append(message.payload)

    def finish(self):
        """Stop talking; everything said must have been heard, byte by byte."""
        wait_for(lambda: len(self.sent) > ENOUGH, "frames to be sent", 5)
        self._stopping = True
        self._greenlets[1].get(timeout=5)
        try:
            wait_for(lambda: len(self.heard) >= len(self.sent), "every frame to arrive", 5)
        except pytest.fail.Exception:
            lost = next((i for i, sent in enumerate(self.sent) if sent not in self.heard), -1)
            pytest.fail(f"{len(self.heard)} of {len(self.sent)} frames, from {lost} on")
        finally:
            self._greenlets[0].kill()
        assert self.heard == self.sent


class World:
    """A gateway with honest users."""

    def __init__(self, server, speex, password):
        self.server, self.idle, self.slow = server, server.status(), set()
        self.alice = RichClient(server.rtmp, "alice@127.0.0.1", "", password)
        self.bob = RichClient(server.rtmp, "bob@127.0.0.1", "", password)
        self.alice.call("invite", "bob@127.0.0.1")
        self.bob.expect("invited")
        self.bob.call("accept")
        self.alice.expect("ringing")
        self.alice.expect("accepted")
        self.bob.expect("accepted")
        self.alice.open_streams()
        self.bob.open_streams()
        self.publisher = RtmpClient.connect(server.url("live"))
        self.player = RtmpClient.connect(server.url("live"))
        watched = self.player.create_stream()
        watched.play("honest")
        published = self.publisher.create_stream()
        published.publish("honest")
        gevent.sleep(0.05)

        def spoken(number):
            return speex[number % len(speex)]

        self.flows = [
            Flow(self.alice.local, self.bob.remote, spoken),
            Flow(self.bob.local, self.alice.remote, spoken),
            Flow(published, watched, lambda number: b"\x2f" + number.to_bytes(300, "big")),
        ]
        self.busy = server.status()
        self.memory = self._memory()

    def _memory(self):
        with open(f"/proc/{self.server.child.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])

    def finish(self):
        """The honest users were not disturbed, and nothing is left of anybody."""
        for flow in self.flows:
            flow.finish()
        for client in (self.alice, self.bob, self.publisher, self.player):
            client.close()
        self.server.wait_status(
            {k: v for k, v in self.idle.items() if k not in COUNTERS | self.slow}
        )
        assert "Traceback" not in self.server.output
        assert self._memory() - self.memory < GROWTH


@pytest.fixture
def speex(corpus):
    """Tags of real wideband Speex, one 20 ms frame each, no two alike."""
    data = (corpus / "flv" / "audio_speex16k.flv").read_bytes()
    tags = [tag.data for tag in file.tags(data) if tag.tag_type == AUDIO]
    whole = [tag for tag in tags if len(tag) == len(tags[10])]
    return [b"\xb2" + tag[1:] for tag in dict.fromkeys(whole)][:200]


@pytest.fixture
def world(gateway, speex):
    """Honest users of a gateway where everybody may speak for anybody."""
    world = World(gateway("--sip-t1", "20"), speex, "")
    yield world
    world.finish()


@pytest.fixture
def guarded(gateway, speex, tmp_path):
    """Honest users of a gateway where alice, bob and carol have passwords."""
    server = gateway("--sip-t1", "20", "--users", users_file(tmp_path, "alice", "bob", "carol"))
    world = World(server, speex, PASSWORD)
    yield world
    world.finish()


def dial(address):
    """A TCP connection to host:port."""
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), 5)


def rest_of(connection, seconds=2.0):
    """What the gateway still says, and whether it hung up."""
    connection.settimeout(seconds)
    said = b""
    try:
        while data := connection.recv(65536):
            said += data
    except ConnectionResetError:
        pass
    except TimeoutError:
        return said, False
    return said, True


# RTMP


class RtmpAttacker:
    """A client that has shaken hands and may then say anything."""

    def __init__(self, server, app="live"):
        self.socket, self._writer = dial(server.rtmp), ChunkWriter()
        self.socket.sendall(b"\x03" + bytes(1536))
        while len(self.socket.recv(4096, plain.MSG_PEEK)) < 3073:
            gevent.sleep(0.001)
        self.socket.sendall(self.socket.recv(3073)[1:1537])
        if app:
            self.say("connect", {"app": app, "tcUrl": server.url(app)}, number=1.0)

    def say(self, name, *values, number=0.0, stream=0):
        """Send a command; the first value is the command object."""
        first, rest = (values[0], values[1:]) if values else (None, ())
        self.send(Command(name, number, first, rest).message(stream))

    def send(self, message):
        """Send any message."""
        self.socket.sendall(self._writer.write(message, 3))

    def send_at_once(self, message):
        """Send a message as one chunk."""
        self.socket.sendall(self._writer.set_chunk_size(0xFFFFFF))
        self.send(message)


def chunk(length=5, payload=b"", stream=3, kind=20):
    """A chunk with a type 0 header that promises `length` octets."""
    return (
        bytes((stream, 0, 0, 0)) + length.to_bytes(3, "big") + bytes((kind, 0, 0, 0, 0)) + payload
    )


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
    answers = rest_of(peer.socket, 0.5)[0]
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
    """A few hundred connections that say nothing, or a byte now and then, starve nobody."""
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
        connection.sendall(openings[number % 3])
    for _ in range(10):
        for connection in crowd:
            connection.sendall(b"x")
        gevent.sleep(0.05)
    assert server.status()["calls"] == world.busy["calls"]
    peer = SipAttacker(server)
    assert peer.ask("OPTIONS", "sip:127.0.0.1") == 200
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


# SIP


class SipAttacker:
    """One UDP socket that says what it likes, and hears what becomes of it."""

    def __init__(self, server):
        host, _, port = server.sip.rpartition(":")
        self.gateway, self.uri = (host, int(port)), f"sip:{server.sip}"
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.number = 0

    def request(self, method, uri, *, body=b"", without=(), **fields):
        """A request as bytes; `fields` replace or add headers, underscores for hyphens."""
        self.number += 1
        branch = fields.pop("branch", f"z9hG4bK{self.port}{method}{self.number}")
        headers = {
            "Via": f"SIP/2.0/UDP 127.0.0.1:{self.port};branch={branch};rport",
            "Max-Forwards": "70",
            "From": f"<sip:mallory@evil.invalid>;tag={self.number}",
            "To": f"<{uri}>",
            "Call-ID": f"{self.port}-{self.number}",
            "CSeq": f"1 {method}",
            "Contact": f"<sip:mallory@127.0.0.1:{self.port}>",
        }
        if body:
            headers["Content-Type"] = "application/sdp"
        headers |= {name.replace("_", "-"): value for name, value in fields.items()}
        lines = [f"{name}: {value}" for name, value in headers.items() if name not in without]
        head = "\r\n".join([f"{method} {uri} SIP/2.0", *lines, f"Content-Length: {len(body)}"])
        return head.encode() + b"\r\n\r\n" + body

    def send(self, data):
        """Send a datagram."""
        self.socket.sendto(data, self.gateway)

    def heard(self, seconds=2.0):
        """The next message, or None."""
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(65536)
        except TimeoutError:
            return None

    def ask(self, method, uri, **fields):
        """Send a request; the status of its final response, or None if there is none."""
        return self.ask_raw(self.request(method, uri, **fields))

    def ask_raw(self, data, seconds=2.0):
        """Send a message; the status of the next final response; failures get their ACK."""
        self.send(data)
        branch = re.search(rb"branch=[^;\r]*", data)[0]
        while answer := self.heard(seconds):
            status = int(answer[8:11]) if answer.startswith(b"SIP/2.0 ") else 0
            if status >= 200 and branch + b";" in answer:
                if data.startswith(b"INVITE") and status >= 300:
                    self.acknowledge(data, answer)
                return status
        return None

    def acknowledge(self, invite, answer):
        """The ACK of a failure: of the same branch, with the tag of the answer."""
        to = re.search(rb"\r\nTo: ([^\r]*)", answer)[0]
        head = invite.partition(b"\r\nContent-Length")[0].replace(b"INVITE", b"ACK")
        self.send(re.sub(rb"\r\nTo: [^\r]*", lambda _: to, head) + b"\r\nContent-Length: 0\r\n\r\n")


def sdp(media="m=audio 40000 RTP/AVP 0\r\n", address="127.0.0.1"):
    """A session description."""
    kind = "IP6" if ":" in address else "IP4"
    top = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\n"
    return f"{top}c=IN {kind} {address}\r\nt=0 0\r\n{media}".encode()


NO_CALL = {  # what no call can come of: name, the body, the answers that would be right
    "nothing to hear": (sdp(""), {488}),
    "no port": (sdp("m=audio 0 RTP/AVP 0\r\n"), {488}),
    "port 99999": (sdp("m=audio 99999 RTP/AVP 0\r\n"), {400, 488}),
    "a group": (sdp(address="224.2.1.1/127"), {488}),
    "a name": (sdp(address="phone.invalid"), {488}),
    "another family": (sdp(address="::1"), {488}),
    "type 200": (sdp("m=audio 40000 RTP/AVP 200\r\n"), {400, 488}),
    "type x": (sdp("m=audio 40000 RTP/AVP x\r\n"), {400, 488}),
    "not SDP": (b"\x00\xff" * 500, {400, 488}),
    "no lines": (b"v=0", {400, 488}),
    "long": (sdp() + b"a=" + b"x" * 60_000 + b"\r\n" + b"m=\r\n", {400, 488, 513}),
    "many lines": (sdp("m=audio 40000 RTP/AVP 99\r\n" * 2000), {400, 488, 513}),
}


def test_sip_requests_get_the_error_that_is_owed(guarded):
    """Covers RFC 3261 §8.2 and §16.3; no request is let through to another domain."""
    server = guarded.server
    peer, ours = SipAttacker(server), "sip:127.0.0.1"
    carol = RichClient(server.rtmp, "carol@127.0.0.1", "", PASSWORD)
    victim = "sip:carol@127.0.0.1"
    raw = peer.request
    for name in ("From", "To", "Call-ID", "CSeq"):
        assert peer.ask("OPTIONS", ours, without=(name,)) == 400, name
    for field, value in {"From": "<sip:", "CSeq": "99999999999 OPTIONS", "To": '"x'}.items():
        assert peer.ask("OPTIONS", ours, **{field: value}) == 400, field
    assert peer.ask("OPTIONS", ours, CSeq="1 INVITE") == 400
    assert peer.ask_raw(raw("OPTIONS", ours).replace(b"SIP/2.0\r\n", b"SIP/7.0\r\n", 1)) == 505
    assert peer.ask("OPTIONS", "soap.beep://192.0.2.1/") == 416
    assert peer.ask("INVITE", victim, body=sdp(), Require="nothing") == 420
    assert peer.ask("INVITE", victim, body=b"hello", Content_Type="text/plain") == 415
    assert peer.ask("INVITE", victim, body=sdp(), without=("Contact",)) == 400
    for name, (body, right) in NO_CALL.items():
        assert peer.ask("INVITE", victim, body=body) in right, name
    for method in ("BYE", "INFO", "INVITE", "UPDATE"):
        assert peer.ask(method, victim, To=f"<{victim}>;tag=none") == 481, method
    assert peer.ask("CANCEL", victim) == 481
    call_id = re.search(r"call-start call=(\S+)", server.output)[1]
    for caller, callee in (("alice", "bob"), ("bob", "alice")):
        assert peer.ask(
            "BYE",
            f"sip:{callee}@{server.sip}",
            From=f"<sip:{caller}@127.0.0.1>;tag=guess",
            To=f"<sip:{callee}@127.0.0.1>;tag=guess",
            Call_ID=call_id,
            CSeq="77 BYE",
        ) == 481  # fmt: skip

    abroad = "sip:someone@192.0.2.1"
    for routes in (
        {},
        {"Route": f"<{peer.uri};lr>"},
        {"Route": f"<{peer.uri};lr>," * 30 + "<sip:192.0.2.9;lr>"},
    ):
        assert peer.ask("INVITE", abroad, body=sdp(), **routes) == 403
        assert peer.ask("MESSAGE", abroad, **routes) == 403
    assert peer.ask("REGISTER", "sip:192.0.2.1") == 403
    for target in (victim, abroad):
        assert peer.ask("INVITE", target, body=sdp(), From="<sip:bob@127.0.0.1>;tag=1") == 407
    assert peer.ask("REGISTER", ours, To="<sip:bob@127.0.0.1>") == 401

    for method in ("ACK", "RESPONSE"):  # these are owed nothing
        peer.send(raw(method, victim))
    for status in ("100", "180", "200", "487", "999", "0"):
        peer.send(raw("INVITE", victim).replace(b"INVITE ", b"SIP/2.0 %s OK" % status.encode(), 1))
    peer.send(raw("OPTIONS", ours, without=("Via",)))
    peer.heard(0.3)
    assert carol.calls.empty()  # nothing of all that rang
    carol.close()


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


def test_floods_of_registrations_calls_and_datagrams(world):
    """Covers RFC 3261 §10.3 and §16.3: limits, loops, and a stop to hops."""
    server = world.server
    peer, ours = SipAttacker(server), "sip:127.0.0.1"
    many = ", ".join(f"<sip:{number}@127.0.0.1:{peer.port}>" for number in range(200))
    assert peer.ask("REGISTER", ours, To="<sip:dave@127.0.0.1>", Contact=many) in (403, 413, 513)
    for number in range(300):
        to = f"<sip:user{number}@127.0.0.1>"
        assert peer.ask("REGISTER", ours, To=to, Call_ID=f"flood{number}", Expires="60") == 200
    assert server.status()["registrations"] == world.busy["registrations"] + 300
    here = "sip:user1@127.0.0.1"
    assert peer.ask("INVITE", here, body=sdp(), Max_Forwards="0") == 483
    assert peer.ask("INVITE", here, body=sdp(), Proxy_Require="nothing") == 420
    for number in range(300):
        to = f"<sip:user{number}@127.0.0.1>"
        fields = {"To": to, "Contact": "*", "Expires": "0", "Call_ID": f"flood{number}"}
        assert peer.ask("REGISTER", ours, CSeq="2 REGISTER", **fields) == 200
    big = peer.request("OPTIONS", ours, Subject="x" * 60_000)
    for number in range(300):
        peer.send(big.replace(b";branch=z9hG4bK", b";branch=z9hG4bK%d" % number, 1))
        peer.send(peer.request("INVITE", "sip:alice@127.0.0.1", body=sdp()))
        if number % 10 == 0:
            gevent.sleep(0.001)


# A call that the attacker is part of


class Caller(SipAttacker):
    """An attacker in a call of its own, with one RTP and one RTCP port."""

    def __init__(self, server, user):
        super().__init__(server)
        self.rtp, self.rtcp = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in "ab")
        self.rtp.bind(("127.0.0.1", 0))
        self.rtcp.bind(("127.0.0.1", 0))
        port, reports = (each.getsockname()[1] for each in (self.rtp, self.rtcp))
        self.offer = sdp(SPEEX.format(port=port) + f"a=rtcp:{reports}\r\n")
        self.user, self.tag, self.cseq = f"sip:{user}@127.0.0.1", "", 0
        self.where = ("127.0.0.1", 0)

    def within(self, method, **fields):
        """A request of the dialog."""
        if method != "ACK":
            self.cseq += 1
        to = f"<{self.user}>" + (f";tag={self.tag}" if self.tag else "")
        fixed = {"From": "<sip:mallory@evil.invalid>;tag=m", "To": to, "Call_ID": f"{self.port}"}
        fixed["CSeq"] = f"{self.cseq} {method}"
        return self.request(method, self.user, **fixed | fields)

    def call(self, client):
        """Call a rich client, who accepts."""
        self.invite = self.within("INVITE", body=self.offer)
        self.send(self.invite)
        client.expect("invited")
        merged = self.invite.replace(b"branch=z9hG4bK", b"branch=z9hG4bKother", 1)
        self.send(merged)
        while not (answer := self.heard()).startswith(b"SIP/2.0 482"):
            assert answer[8:9] == b"1"
        self.acknowledge(merged, answer)
        client.call("accept")
        while not (answer := self.heard()).startswith(b"SIP/2.0 200"):
            assert answer[8:9] == b"1"
        self.tag = re.search(rb"\r\nTo: [^\r]*tag=([^\r;]*)", answer)[1].decode()
        self.where = ("127.0.0.1", int(re.search(rb"m=audio (\d+)", answer)[1]))
        self.send(self.within("ACK"))
        client.expect("accepted")

    def say(self, sequence, payload, *, ssrc=7, kind=96, version=2, via=None):
        """Send one RTP packet."""
        head = struct.pack(">BBHII", version << 6, kind, sequence, sequence * 320, ssrc)
        (via or self.rtp).sendto(head + payload, self.where)

    def report(self, data, via=None):
        """Send what may be RTCP."""
        (via or self.rtcp).sendto(data, (self.where[0], self.where[1] + 1))


def test_garbage_within_a_call_changes_nothing_of_it(world, speex):
    """Covers RFC 3261 §14.2 and §8.2.2: a refused offer leaves the session as it was."""
    carol = RichClient(world.server.rtmp, "carol@127.0.0.1")
    peer = Caller(world.server, "carol")
    peer.call(carol)
    carol.open_streams()
    for name, (body, right) in NO_CALL.items():
        assert peer.ask_raw(peer.within("INVITE", body=body)) in right, name
        assert peer.ask_raw(peer.within("UPDATE", body=body)) in right, name
    assert peer.ask_raw(peer.within("NOTIFY")) == 405
    assert peer.ask_raw(peer.within("INVITE", body=peer.offer, Require="nothing")) == 420
    assert peer.ask_raw(peer.within("INFO", CSeq="0 INFO")) == 500
    gevent.sleep(0.05)
    hearing = gevent.spawn(carol.heard, 50)
    for number in range(50):
        peer.say(number, speex[number][1:])
        gevent.sleep(0.002)
    assert hearing.get(timeout=5) == speex[:50]
    assert peer.ask_raw(peer.within("BYE")) == 200
    carol.expect("byed")
    # An offer of ours that the phone answers with nonsense ends that call, and its line hears it.
    again = Caller(world.server, "carol")
    again.call(carol)
    again.send(again.within("INVITE"))
    while not again.heard().startswith(b"SIP/2.0 200"):
        pass
    again.send(again.within("ACK", body=sdp("")))
    carol.expect("byed")
    carol.close()


def ports_of(server):
    """The UDP ports that a process has open."""
    folder = f"/proc/{server.child.pid}/fd"
    links = {os.readlink(f"{folder}/{name}") for name in os.listdir(folder)}
    with open("/proc/net/udp") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return [int(row[1][-4:], 16) for row in rows if f"socket:[{row[9]}]" in links]


def test_media_of_strangers_and_of_other_streams(world, speex):
    """Covers RFC 3550 §A.1: only the peer is heard, and of it only the stream that was agreed."""
    noise = random.Random(3)
    stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    everywhere = ports_of(world.server)
    assert len(everywhere) >= 5
    for port in everywhere:
        for number in range(20):
            packet = struct.pack(">BBHII", 0x80, 0x60, number, 320 * number, 7)
            stranger.sendto(packet + speex[number][1:], ("127.0.0.1", port))
            stranger.sendto(noise.randbytes(noise.randrange(200)), ("127.0.0.1", port))
            stranger.sendto(bytes.fromhex("81cb000100000007"), ("127.0.0.1", port))

    carol = RichClient(world.server.rtmp, "carol@127.0.0.1")
    peer = Caller(world.server, "carol")
    peer.call(carol)
    carol.open_streams()
    gevent.sleep(0.05)
    hearing = gevent.spawn(carol.heard, 100)
    bye_of_us = bytes.fromhex("80c90001 00000007 81cb0001 00000007")
    bye_of_another = bytes.fromhex("80c90001 00000008 81cb0001 00000008")
    for number in range(100):
        other = speex[100 + number % 50][1:]
        peer.say(number + 1, other, via=stranger)
        peer.say(number, speex[number][1:])
        peer.say(number + 1, other, ssrc=9, kind=0)
        peer.say(number * 7919 % 65536, other, ssrc=8)
        peer.say(number + 1, other, version=number % 2)
        peer.rtp.sendto(noise.randbytes(number % 12), peer.where)
        peer.rtp.sendto(bytes.fromhex("8f600001") + noise.randbytes(20), peer.where)
        peer.rtp.sendto(bytes.fromhex("b0600001") + noise.randbytes(20), peer.where)
        peer.report(noise.randbytes(noise.randrange(100)))
        peer.report(bye_of_another)
        peer.report(bye_of_us, via=stranger)
        gevent.sleep(0.002)
    assert hearing.get(timeout=5) == speex[:100]
    assert peer.ask_raw(peer.within("BYE")) == 200
    carol.expect("byed")
    carol.close()


# A call to the attacker


class Callee(SipAttacker):
    """A phone that answers an INVITE as it likes."""

    def invite(self):
        """The next new INVITE; whatever else comes is answered with 200, or is an ACK."""
        while True:
            request = self.heard(5)
            assert request is not None
            if request.startswith(b"INVITE"):
                return request
            self.settle(request)

    def settle(self, request):
        """Answer what wants an answer, as a good phone would."""
        if not request.startswith((b"ACK", b"SIP/2.0")):
            self.respond(request, "200 OK")

    def respond(self, request, status, *, tag="p", contact=True, body=b"", more=""):
        """Send a response; with the headers of the request that belong there."""
        text = request.partition(b"\r\n\r\n")[0].decode()
        lines = text.split("\r\n")[1:]
        copied = [line for line in lines if line.startswith(("Via", "From", "Call-ID", "CSeq"))]
        to = next(line for line in lines if line.startswith("To:"))
        copied.append(to if "tag=" in to else f"{to};tag={tag}")
        if contact:
            copied.append(f"Contact: <sip:phone@127.0.0.1:{self.port}>")
        if body:
            copied.append("Content-Type: application/sdp")
        head = "\r\n".join([f"SIP/2.0 {status}", *copied])
        self.send(f"{head}\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def drain(self):
        """Answer what is still coming, until nothing is."""
        while request := self.heard(0.1):
            self.settle(request)


GOOD = sdp(SPEEX.format(port=40000))
ANSWERS = {  # what a hostile phone may answer; each ends the call, sooner or later
    "no contact": lambda phone, invite: phone.respond(invite, "200 OK", contact=False, body=GOOD),
    "no answer in it": lambda phone, invite: phone.respond(invite, "200 OK"),
    "garbage in it": lambda phone, invite: phone.respond(invite, "200 OK", body=b"\xff\0" * 9),
    "another family": lambda phone, invite: phone.respond(
        invite, "200 OK", body=sdp(address="::1")
    ),
    "more lines than asked for": lambda phone, invite: phone.respond(
        invite, "200 OK", body=sdp("m=video 4000 RTP/AVP 96\r\n" * 60)
    ),
    "a challenge of nonsense": lambda phone, invite: phone.respond(
        invite, "401 Unauthorized", more='WWW-Authenticate: Digest ="\r\n' * 20
    ),
    "a challenge again and again": lambda phone, invite: phone.respond(
        invite, "407 No", more='Proxy-Authenticate: Digest realm="x", nonce="y", stale=true\r\n'
    ),
    "somewhere else": lambda phone, invite: phone.respond(
        invite, "302 Gone", more=f"Contact: <{phone.uri}>\r\n" * 20
    ),
    "an unknown failure": lambda phone, invite: phone.respond(invite, "699 " + "x" * 5000),
}


def early_noise(phone, invite):
    """Progress that makes no sense, and more of it than a network would make."""
    for number in range(50):
        phone.respond(invite, "183 Progress", tag=f"fork{number}", body=b"v=0\r\nm=" * (number % 3))
    phone.respond(invite, "199", contact=False)
    phone.send(b"SIP/2.0 180 Ringing\r\n\r\n")


def test_a_hostile_phone_costs_its_caller_only_the_call(world):
    """Covers RFC 3261 §13.2.2: any answer ends in a call or in its refusal, and leaves nothing."""
    phone = Callee(world.server)
    world.slow.add("transactions")  # one that was refused waits 32 s: RFC 3261 §17.1.1.2, timer D
    for password in ("", PASSWORD):
        dave = RichClient(world.server.rtmp, "dave@127.0.0.1", "", password)
        for name, answer in ANSWERS.items():
            dave.call("invite", f"sip:phone@127.0.0.1:{phone.port}")
            told = set()
            for challenges in range(6):
                invite = phone.invite()
                if not challenges:
                    early_noise(phone, invite)
                answer(phone, invite)
                phone.drain()
                told |= {dave.calls.get(timeout=0)[0] for _ in range(dave.calls.qsize())}
                if told & {"rejected", "byed", "accepted"}:
                    break
            assert told & {"rejected", "byed", "accepted"}, name
            if "accepted" in told:  # harmless after all
                dave.call("bye")
                phone.drain()
        # Many phones pick up; one call comes of it, and only that one.
        dave.call("invite", f"sip:phone@127.0.0.1:{phone.port}")
        invite = phone.invite()
        for number in range(50):
            phone.respond(invite, "200 OK", tag=f"fork{number}", body=GOOD)
        dave.expect("accepted")
        phone.drain()
        dave.call("bye")
        phone.drain()
        dave.close()
