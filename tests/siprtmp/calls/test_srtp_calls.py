"""Calls by SRTP: who gets keys, what leaves and arrives, and what is dropped."""

import pytest
from support.gateway.gateway_world import AUDIO, BOB, PCMU, Desk, GatewayWorld, sdp

from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.reporter import UDP_IP_OCTETS
from p2psip.sdp.crypto import CryptoAttribute, SrtpKey, cryptos
from p2psip.sdp.session import SessionDescription
from p2psip.sip.message import parse_message
from p2psip.sip.uri import Uri
from p2psip.srtp.srtp import SrtpReceiver, SrtpSender
from p2psip.srtp.suites import AES_CM_128_HMAC_SHA1_80, SUITES
from p2psip.transaction.flow import LOCAL, Flow
from siprtmp.calls import srtp_use
from siprtmp.calls.srtp_use import Privacy, srtp_terms

SOUND = b"\x82" + b"s" * 160
TALK = b"p" * 160
SUITE = AES_CM_128_HMAC_SHA1_80
FIRST, SECOND = SrtpKey(bytes([1]) * 16, bytes(14)), SrtpKey(bytes([2]) * 16, bytes(14))


def keyed(key=FIRST, tag=1, profile="RTP/SAVP", suite=SUITE, at="10.0.0.3", more=()):
    """A phone's description with a key in its line of audio."""
    crypto = CryptoAttribute(tag, suite.name, (key,))
    text = sdp(PCMU, at=at, more=(f"crypto:{crypto}", *more))
    return text.replace(b"RTP/AVP", profile.encode())


def line_of(description):
    return SessionDescription.parse(description).media[0]


def opener(description, suite=SUITE):
    """What opens the packets of whoever wrote a description with one key."""
    (crypto,) = cryptos(line_of(description))
    return SrtpReceiver(*crypto.keys[0].secrets, suite)


def said(number, ssrc=7):
    return bytes(RtpPacket(0, number, 160 * number, ssrc, TALK))


def worded(word, answers=None):
    world = GatewayWorld(srtp=word)
    desk, alice = Desk(world.link, answers=answers), world.rich("alice@home")
    return world, desk, alice


def called(desk, alice, world, *offer):
    """The phone calls alice, who takes it; gives the call."""
    desk.ring("alice", world.now, *offer)
    world.wait()
    alice.call("accept", "pcmu")
    world.wait()
    return desk.calls[-1]


def publish(alice, at=0):
    local = alice.peer.publish("local")
    alice.peer.write(AUDIO, at, local, SOUND)
    return local


def hear(world, *datagrams):
    for data in datagrams:
        world.gateway.media.on_rtp(data, world.now)
    world.run()


def lines(world, what):
    return [values for name, values in world.gateway.log.lines if name == what]


def test_a_phone_that_needs_srtp_is_refused_where_others_could_read_the_keys():
    """Covers RFC 3261 §13.3.1.3 [warning-says-why] [488-for-the-offer]."""
    world, desk, _ = worded("auto")
    desk.ring("alice", world.now, keyed())
    world.wait()
    assert desk.events() == ["rejected"] and world.gateway.log.ends() == ["488 SRTP Keys Need TLS"]
    [refusal] = [data for *_, (_, data) in world.link.sent if data.startswith(b"SIP/2.0 488")]
    response = parse_message(refusal)
    assert response.reason == "SRTP Keys Need TLS"
    assert response.headers["Warning"] == '399 p2psip "SRTP Keys Need TLS"'
    assert world.is_clean()


@pytest.mark.parametrize("word", ["auto", "never"])
def test_keys_beside_plain_rtp_are_passed_over_there(word):
    """Covers RFC 8643 §3.2 [declined-by-silence]: as it was for phones that ask in vain."""
    world, desk, alice = worded(word)
    call = called(desk, alice, world, keyed(profile="RTP/AVP"))
    ours = line_of(call.remote_sdp)
    assert ours.protocol == "RTP/AVP" and not cryptos(ours)
    publish(alice)
    assert world.gateway.media.sent[0][1].endswith(SOUND[1:])
    audio = world.gateway.audio
    assert audio.way is audio.transport  # what a plain call costs is what it cost
    assert "srtp" not in lines(world, "call-answer")[0]


def test_a_phone_and_a_client_hear_each_other_by_srtp():
    """Covers RFC 4568 §5.1.2 [tag-and-suite-kept] [key-in-each-direction] and §6.4
    [own-key-of-each].

    Covers RFC 3711 §3.4 [first-size-with-srtcp] [sizes-with-srtcp].
    """
    world, desk, alice = worded("any")
    call = called(desk, alice, world, keyed(tag=5))
    ours = line_of(call.remote_sdp)
    assert ours.protocol == "RTP/SAVP" and cryptos(ours)[0].tag == 5
    publish(alice)
    (_, sent), *_ = world.gateway.media.sent
    assert SOUND[1:] not in sent
    assert RtpPacket.parse(opener(call.remote_sdp).open_rtp(sent)).payload == SOUND[1:]
    theirs = SrtpSender(*FIRST.secrets)
    hear(world, *(theirs.protect_rtp(said(number)) for number in range(3)))
    assert world.gateway.audio.received == 3
    assert lines(world, "call-answer")[0]["srtp"] == SUITE.name
    assert world.gateway.audio._reporter._below == UDP_IP_OCTETS + 4 + 10
    world.wait(8.0)
    (report, *_) = world.gateway.media.reports
    assert opener(call.remote_sdp).open_rtcp(report)[1] in (200, 201)
    before = world.gateway.audio._reporter.invalid
    world.gateway.media.on_rtcp(theirs.protect_rtcp(bytes.fromhex("80c9000100000007")), world.now)
    assert world.gateway.audio._reporter.invalid == before


def test_what_is_forged_or_repeated_is_dropped_and_counted_and_the_call_goes_on():
    """Covers RFC 3711 §3.3 [replayed-is-dropped] [forged-is-dropped] [failure-is-told]."""
    world, desk, alice = worded("any")
    call = called(desk, alice, world, keyed())
    theirs, stranger = SrtpSender(*FIRST.secrets), SrtpSender(*SECOND.secrets)
    good = theirs.protect_rtp(said(1))
    forged = good[:-1] + bytes([good[-1] ^ 1])
    stun = bytes.fromhex("000100002112a442") + bytes(12)  # of linphone, which is no attack
    hear(world, forged, good, good, said(2), stranger.protect_rtp(said(2)), stun, b"")
    world.gateway.media.on_rtcp(stun, world.now)
    assert world.gateway.audio.received == 1
    assert world.gateway.audio.refused == 4
    assert len(lines(world, "srtp-refused")) == 1
    hear(world, theirs.protect_rtp(said(2)))
    assert world.gateway.audio.received == 2
    call.bye(world.now)
    world.wait()
    assert lines(world, "call-end")[0]["srtp_refused"] == 4 and world.is_clean()


def test_no_key_is_in_a_line_of_the_log():
    """Covers RFC 7714 §13.1 [keys-are-secret]: neither ours nor the phone's."""
    world, desk, alice = worded("any")
    call = called(desk, alice, world, keyed())
    hear(world, b"nonsense")
    call.bye(world.now)
    world.wait()
    text = repr(world.gateway.log.lines)
    assert "call-end" in text
    for description in (call.remote_sdp, keyed()):
        (crypto,) = cryptos(line_of(description))
        assert str(crypto.keys[0]) not in text and crypto.keys[0].key.hex() not in text


@pytest.mark.parametrize("answer", ["keys", "none", "wrong"])
def test_srtp_is_offered_beside_plain_rtp(answer):
    """Covers RFC 8643 §3.1 [keys-beside-plain-rtp], §3.3 [clear-without-keys] [failure-ends-it]."""
    answers = {
        "keys": keyed(profile="RTP/AVP"),
        "none": sdp(PCMU),
        "wrong": keyed(profile="RTP/AVP", tag=7),
    }
    world, desk, alice = worded("any", answers[answer])
    alice.call("invite", BOB, "pcmu")
    world.wait()
    call = desk.calls[-1]
    offered = line_of(call.remote_sdp)
    assert offered.protocol == "RTP/AVP"
    assert [each.suite for each in cryptos(offered)] == [SUITE.name]
    if answer == "wrong":
        assert alice.heard()[-1] == ("rejected", "488 Not Acceptable Here") and world.is_clean()
        return
    publish(alice)
    (_, sent), *_ = world.gateway.media.sent
    if answer == "keys":
        sent = opener(call.remote_sdp).open_rtp(sent)
    assert RtpPacket.parse(sent).payload == SOUND[1:]


def test_a_new_key_of_the_phone_replaces_the_old_one_and_ours_stays():
    """Covers RFC 4568 §7.1.4 [new-key-begins-at-zero]."""
    world, desk, alice = worded("any")
    call = called(desk, alice, world, keyed())
    receiver, first = opener(call.remote_sdp), cryptos(line_of(call.remote_sdp))
    local = publish(alice)
    receiver.open_rtp(world.gateway.media.sent[-1][1])
    hear(world, SrtpSender(*FIRST.secrets).protect_rtp(said(9)))
    call.reinvite(keyed(SECOND, tag=2), world.now)
    world.wait()
    (again,) = cryptos(line_of(call.remote_sdp))
    assert again.tag == 2 and again.keys == first[0].keys
    hear(world, SrtpSender(*SECOND.secrets).protect_rtp(said(10)))
    assert world.gateway.audio.received == 2
    alice.peer.write(AUDIO, 100, local, SOUND)
    receiver.open_rtp(world.gateway.media.sent[-1][1])  # goes on counting by the same key
    call.reinvite(sdp(PCMU), world.now)  # in clear: refused, and all stays
    world.wait()
    assert desk.events()[-1] == "reoffer failed" and world.gateway.audio.refused == 0
    hear(world, SrtpSender(*SECOND.secrets).protect_rtp(said(11)))
    assert world.gateway.audio.received == 3


def test_another_suite_has_another_key_of_ours():
    """Covers RFC 3711 §4.2 [tag-length-of-a-key] and RFC 4568 §6.4 [keystream-is-used-once]."""
    world, desk, alice = worded("any")
    call = called(desk, alice, world, keyed())
    first = cryptos(line_of(call.remote_sdp))[0]
    suite = SUITES["AEAD_AES_256_GCM"]
    key = SrtpKey(bytes(32), bytes(12))
    call.reinvite(keyed(key, suite=suite), world.now)
    world.wait()
    second = cryptos(line_of(call.remote_sdp))[0]
    assert second.suite == suite.name and second.keys != first.keys
    publish(alice)
    opener(call.remote_sdp, suite).open_rtp(world.gateway.media.sent[-1][1])


def test_our_hold_keeps_the_keys():
    """Covers RFC 4568 §7.1.4 [keys-again]: an offer of ours within the call has the same key."""
    world, desk, alice = worded("any")
    call = called(desk, alice, world, keyed())
    before = cryptos(line_of(call.remote_sdp))[0]
    desk.reply_to_offer = keyed()
    alice.call("hold", True)
    world.wait()
    after = cryptos(line_of(call.remote_sdp))
    assert [each.keys for each in after] == [before.keys]
    assert line_of(call.remote_sdp).protocol == "RTP/SAVP"
    hear(world, SrtpSender(*FIRST.secrets).protect_rtp(said(1)))
    assert world.gateway.audio.received == 1


def test_srtp_can_be_demanded():
    """Covers RFC 8643 §4 [not-where-srtp-is-needed]: both ways, and nothing is in clear."""
    world, desk, alice = worded("always", keyed())
    desk.ring("alice", world.now, sdp(PCMU))
    world.wait()
    assert desk.events() == ["rejected"] and world.gateway.log.ends() == ["488 SRTP Is Required"]
    alice.call("invite", BOB, "pcmu")
    world.wait()
    assert line_of(desk.calls[-1].remote_sdp).protocol == "RTP/SAVP"
    assert alice.heard()[-1][0] == "accepted"


def test_srtp_can_be_off():
    world, desk, alice = worded("never")
    desk.ring("alice", world.now, keyed())
    world.wait()
    assert world.gateway.log.ends() == ["488 SRTP Is Off"]
    alice.call("invite", BOB, "pcmu")
    world.wait()
    assert not cryptos(line_of(desk.calls[-1].remote_sdp))


def test_video_is_encrypted_by_a_key_of_its_own():
    """Covers RFC 3711 §8 [key-of-one-stream]."""
    video = (
        "m=video 5006 RTP/SAVP 99\r\na=rtpmap:99 H264/90000\r\n"
        f"a=crypto:{CryptoAttribute(3, SUITE.name, (SECOND,))}\r\n"
    )
    world, desk, alice = worded("any")
    desk.ring("alice", world.now, keyed() + video.encode())
    world.wait()
    alice.call("accept", "pcmu", "h264")
    world.wait()
    audio, shown = SessionDescription.parse(desk.calls[-1].remote_sdp).media
    assert shown.protocol == "RTP/SAVP" and cryptos(shown)[0].tag == 3
    assert cryptos(shown)[0].keys != cryptos(audio)[0].keys
    [stream] = world.gateway.videos
    assert stream._to_phone.way is stream.way is not stream.transport
    packet = bytes(RtpPacket(99, 1, 0, 9, b"\x65\x88\x80"))
    stream.way.send_run([packet, packet[:4] + b"1" + packet[5:]])
    receiver = SrtpReceiver(*cryptos(shown)[0].keys[0].secrets)
    assert receiver.open_rtp(stream.transport.sent[0][1]) == packet


HERE, OUTSIDE = ("127.0.0.1", 5060), ("192.0.2.9", 5060)


@pytest.mark.parametrize(
    ("flow", "via", "privacy"),
    [
        (Flow("TLS", OUTSIDE), "", Privacy.TLS),
        (Flow("WSS", OUTSIDE), "", Privacy.TLS),
        (Flow("WS", OUTSIDE), "", Privacy.NONE),
        (Flow("UDP", OUTSIDE), "", Privacy.NONE),
        (Flow("UDP", HERE), "", Privacy.HERE),
        (Flow(LOCAL, HERE), "", Privacy.HERE),
        (Flow(LOCAL, HERE), "SIP/2.0/TLS 192.0.2.9;branch=z9hG4bK2", Privacy.TLS),
        (Flow(LOCAL, HERE), "SIP/2.0/UDP 192.0.2.9;branch=z9hG4bK2", Privacy.NONE),
        (Flow(LOCAL, HERE), "SIP/2.0/UDP a;received=127.0.0.1;branch=z9hG4bK2", Privacy.HERE),
    ],
)
def test_who_can_read_a_request(flow, via, privacy):
    """Covers RFC 8643 §4 [signalling-is-encrypted]: also behind our own proxy."""
    second = f"Via: {via}\r\n" if via else ""
    request = parse_message(
        (
            "INVITE sip:bob@home SIP/2.0\r\nVia: SIP/2.0/UDP home;branch=z9hG4bK1\r\n"
            f"{second}From: <sip:a@home>;tag=1\r\nTo: <sip:bob@home>\r\nCall-ID: 1\r\n"
            "CSeq: 1 INVITE\r\nContent-Length: 0\r\n\r\n"
        ).encode()
    )
    assert srtp_use.of_request(request, flow) is privacy


@pytest.mark.parametrize(
    ("uri", "privacy"),
    [
        ("sips:bob@example.org", Privacy.TLS),
        ("sip:bob@example.org;transport=tls", Privacy.TLS),
        ("sip:bob@example.org", Privacy.NONE),
        ("sip:bob@127.0.0.1", Privacy.HERE),
        ("sip:bob@[::1]:5070", Privacy.HERE),
        ("tel:+4930123", Privacy.NONE),
    ],
)
def test_who_can_read_what_is_sent_to_a_uri(uri, privacy):
    """Covers RFC 8643 §4 [signalling-is-encrypted]."""
    assert srtp_use.of_uri(Uri.parse(uri)) is privacy


@pytest.mark.parametrize(
    ("word", "privacy", "answers", "profile", "plain"),
    [
        ("auto", Privacy.NONE, False, "", True),
        ("auto", Privacy.HERE, True, "", True),
        ("auto", Privacy.TLS, True, "RTP/AVP", True),
        ("any", Privacy.NONE, True, "RTP/AVP", True),
        ("always", Privacy.NONE, True, "RTP/SAVP", False),
        ("never", Privacy.TLS, False, "", True),
    ],
)
def test_the_operators_words(word, privacy, answers, profile, plain):
    """Covers RFC 8643 §4 [signalling-is-encrypted]."""
    terms = srtp_terms(word, privacy, bytes)
    assert (terms.answers, terms.profile, terms.plain) == (answers, profile, plain)
    assert (len(terms.suites) > 1) == (privacy is Privacy.TLS and word != "never")
