"""The keys of a call: each protects what its owner sends, and nothing is encrypted twice alike."""

import logging

import pytest

from p2psip.errors import RemoteError
from p2psip.net.media.media_security import MediaSecurity
from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.srtp import SrtpReceiver, SrtpSender
from p2psip.sdp.crypto import cryptos
from p2psip.sdp.session import (
    Attribute,
    Connection,
    MediaDescription,
    Origin,
    SessionDescription,
)

SHA80, SHA32 = "AES_CM_128_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_32"
KEY, OTHER = "inline:" + "A" * 40, "inline:" + "B" * 40
PACKET = bytes(RtpPacket(0, 1, 0, 7, b"sound"))


def line(*values):
    attributes = tuple(Attribute("crypto", each) for each in values)
    return MediaDescription("audio", 9000, "RTP/SAVP", ("0",), attributes=attributes)


def answered(ours, *values):
    """Have it answer a line with these attributes; give what it answers."""
    offered = line(*values)
    origin, where = Origin.at("192.0.2.9", 1), Connection.to("192.0.2.9")
    offer = SessionDescription(origin, connection=where, media=(offered,))
    transport = next(iter(ours.to_answer(offer)))
    ours.settle(transport, offered)
    return transport.crypto


@pytest.fixture
def ours():
    return MediaSecurity(5004, 5005, wanted=True)


def peer(crypto):
    """What the peer opens our packets with."""
    return SrtpReceiver(*crypto.keys[0].secrets, 4 if crypto.suite == SHA32 else 10)


def test_another_suite_has_another_key(ours):
    """Covers RFC 3711 §4.1.1 [block-is-distinct] [index-is-distinct], §4.2 [tag-length-of-a-key]
    and §9.2 [distinct-packets] [used-key-is-not-used-again].

    Covers RFC 4568 §6.4 [keystream-is-used-once] and §7.1.4 [keys-again]: the index of reports
    begins anew.
    """
    first = answered(ours, f"1 {SHA80} {KEY}")
    report = bytes.fromhex("80c9000100000007")
    assert peer(first).open_rtcp(ours.protect_rtcp(report)) == report
    second = answered(ours, f"1 {SHA32} {KEY}")
    assert second.suite == SHA32 and second.keys != first.keys
    assert peer(second).open_rtcp(ours.protect_rtcp(report)) == report
    assert peer(second).open_rtp(ours.protect_rtp(PACKET)) == PACKET
    assert ours.to_offer().crypto.keys == second.keys and ours.to_offer().crypto.suite == SHA32
    assert answered(ours, f"3 {SHA32} {OTHER}").keys == second.keys


def test_a_key_that_stays_goes_on_counting(ours):
    """Covers RFC 4568 §7.1.4 [keys-again]: and so does the peer's, whatever is said beside it."""
    first = answered(ours, f"1 {SHA80} {KEY}")
    theirs = SrtpSender(*cryptos(line(f"1 {SHA80} {KEY}"))[0].keys[0].secrets)
    protected = theirs.protect_rtp(PACKET)
    assert ours.open_rtp(protected) == PACKET
    before = ours.protect_rtcp(bytes.fromhex("80c9000100000007"))
    again = answered(ours, f"2 {SHA80} {KEY}|2^20")
    assert again.keys == first.keys == ours.to_offer().crypto.keys
    assert ours.to_offer().crypto.suite == SHA80
    after = ours.protect_rtcp(bytes.fromhex("80c9000100000007"))
    assert (before[-14:-10].hex(), after[-14:-10].hex()) == ("80000000", "80000001")
    assert ours.open_rtp(protected) is None


def test_each_side_sends_by_its_own_key(ours):
    """Covers RFC 4568 §6.4 [own-key-of-each] and §7.1.4 [new-key-begins-at-zero].

    Covers RFC 4568 §5.1.1 [ready-for-what-is-offered] and §7.1.2 [key-other-than-the-offers].
    Covers RFC 3711 §9.1 [keys-come-by-signalling].
    """
    for key in (KEY, OTHER):
        crypto = answered(ours, f"1 {SHA80} {key}")
        (theirs,) = cryptos(line(f"1 {SHA80} {key}"))
        assert peer(crypto).open_rtp(ours.protect_rtp(PACKET)) == PACKET
        with pytest.raises(RemoteError):
            peer(theirs).open_rtp(ours.protect_rtp(PACKET))
        assert ours.open_rtp(SrtpSender(*theirs.keys[0].secrets).protect_rtp(PACKET)) == PACKET


def test_keys_are_drawn_for_each_call(ours):
    """Covers RFC 3711 §4.3.1 [master-is-random], §9.2 [salt-is-random] and RFC 4568 §6.1
    [keys-are-random], §5.1.1 [offer-has-crypto].

    Covers RFC 3711 §3.2.1 [random-and-secret], §8 [key-of-one-stream], §9.1 [key-of-one-session].
    """
    drawn = [MediaSecurity(5004, 5005, wanted=True).to_offer().crypto.keys[0] for _ in range(9)]
    assert len({each.key for each in drawn}) == len({each.salt for each in drawn}) == 9
    assert MediaSecurity(5004, 5005, wanted=False).to_offer().protocol == "RTP/AVP"


def test_packets_that_are_refused_are_counted_and_the_first_is_told(ours, caplog):
    """Covers RFC 3711 §3.3 [replay-is-told] [failure-is-told]."""
    caplog.set_level(logging.INFO)
    answered(ours, f"1 {SHA80} {KEY}")
    theirs = SrtpSender(*cryptos(line(f"1 {SHA80} {KEY}"))[0].keys[0].secrets)
    protected, report = theirs.protect_rtp(PACKET), theirs.protect_rtcp(bytes(8))
    assert ours.open_rtp(protected) == PACKET and ours.open_rtcp(report) == bytes(8)
    assert ours.refused == 0 and not caplog.records
    assert ours.open_rtp(protected) is None and "came before" in caplog.text
    assert ours.open_rtcp(report) is ours.open_rtp(PACKET) is None
    assert ours.refused == 3 and len(caplog.records) == 1
