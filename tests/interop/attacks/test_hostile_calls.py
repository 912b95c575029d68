"""Hostile callers and phones: what they say in a call, or instead of one, costs nobody else.

Meanwhile honest users talk and watch, as in `test_garbage`.
"""

import random
import re
import struct
from functools import partial

import gevent
from gevent import socket
from support.attacks.doors import by
from support.attacks.hostile import ports_of, speex_frames
from support.attacks.hostile_sip import NO_CALL, SPEEX, Callee, Caller, SipAttacker, sdp
from support.gateway.accounts import PASSWORD
from support.gateway.richclient import RichClient, wait_for
from support.peers.process import PATIENCE


def test_sip_requests_get_the_error_that_is_owed(guarded, door):
    """Covers RFC 3261 §8.2 and §16.3; no request is let through to another domain."""
    server = guarded.server
    carol = RichClient(server.rtmp, "carol@127.0.0.1", "", PASSWORD)
    peer, ours = by(door, SipAttacker)(server), "sip:127.0.0.1"
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


def test_garbage_within_a_call_changes_nothing_of_it(world, corpus, door):
    """Covers RFC 3261 §14.2 and §8.2.2: a refused offer leaves the session as it was."""
    speex = speex_frames(corpus)
    carol = RichClient(world.server.rtmp, "carol@127.0.0.1")
    enter = partial(by(door, Caller), world.server)
    peer = enter("carol")
    peer.call(carol)
    carol.open_streams()
    for name, (body, right) in NO_CALL.items():
        assert peer.ask_raw(peer.within("INVITE", body=body)) in right, name
        assert peer.ask_raw(peer.within("UPDATE", body=body)) in right, name
    assert peer.ask_raw(peer.within("NOTIFY")) == 481  # of no transfer that we asked for
    assert peer.ask_raw(peer.within("INVITE", body=peer.offer, Require="nothing")) == 420
    assert peer.ask_raw(peer.within("INFO", CSeq="0 INFO")) == 500
    hearing = gevent.spawn(carol.heard, 50)
    for number in range(50):
        peer.say(number, speex[number][1:])
        gevent.sleep(0.002)
    assert hearing.get(timeout=PATIENCE) == speex[:50]
    assert peer.ask_raw(peer.within("BYE")) == 200
    carol.expect("byed")
    # An offer of ours that the phone answers with nonsense ends that call, and its line hears it.
    again = enter("carol")
    again.call(carol)
    again.send(again.within("INVITE"))
    while not again.heard().startswith(b"SIP/2.0 200"):
        pass
    again.send(again.within("ACK", body=sdp("")))
    carol.expect("byed")
    carol.close()


def test_media_of_strangers_and_of_other_streams(world, corpus):
    """Covers RFC 3550 §A.1: only the peer is heard, and of it only the stream that was agreed."""
    speex = speex_frames(corpus)
    noise = random.Random(3)
    stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    stranger.bind(("127.0.0.2", 0))
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
    assert hearing.get(timeout=PATIENCE) == speex[:100]
    assert peer.ask_raw(peer.within("BYE")) == 200
    carol.expect("byed")
    carol.close()


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


def called(phone, dave, calls):
    """The INVITE of a new call of dave's, who has heard all about those before it by then."""
    dave.call("invite", f"sip:phone@127.0.0.1:{phone.port}")
    while (call := re.search(rb"\r\nCall-ID: ([^\r]*)", invite := phone.invite())[1]) in calls:
        continue
    calls.add(call)
    while dave.calls.qsize():
        dave.calls.get()
    return invite


def over(phone, dave, told):
    """Whether the caller is told an end; until then the phone is a good one to whatever comes."""
    while request := phone.heard(0.01):
        phone.settle(request)
    told |= {dave.calls.get()[0] for _ in range(dave.calls.qsize())}
    return told & {"rejected", "byed", "accepted"}


def test_a_hostile_phone_costs_its_caller_only_the_call(world):
    """Covers RFC 3261 §13.2.2: any answer ends in a call or in its refusal, and leaves nothing."""
    phone, calls = Callee(world.server), set()
    world.slow.add("transactions")  # one that was refused waits 32 s: RFC 3261 §17.1.1.2, timer D
    for password in ("", PASSWORD):
        dave = RichClient(world.server.rtmp, "dave@127.0.0.1", "", password)
        for name, answer in ANSWERS.items():
            invite, told = called(phone, dave, calls), set()
            early_noise(phone, invite)
            answer(phone, invite)
            ended = partial(over, phone, dave, told)
            wait_for(ended, f"what comes of {name}")
            phone.drain()
            if "accepted" in told:  # harmless after all
                dave.call("bye")
                phone.drain()
        # Many phones pick up; one call comes of it, and only that one.
        invite = called(phone, dave, calls)
        for number in range(50):
            phone.respond(invite, "200 OK", tag=f"fork{number}", body=GOOD)
        dave.expect("accepted")
        phone.drain()
        dave.call("bye")
        phone.drain()
        dave.close()
