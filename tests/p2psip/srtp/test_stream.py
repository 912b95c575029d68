"""The keys of a call: each protects what its owner sends, and nothing is encrypted twice alike."""

import os

import pytest

from p2psip.errors import RemoteError
from p2psip.rtp.packet import RtpPacket
from p2psip.sdp.crypto import agreed_keys, cryptos
from p2psip.sdp.local_media import LocalTransport
from p2psip.sdp.sdes_transport import SECURE, SrtpTerms
from p2psip.sdp.session import (
    Attribute,
    Connection,
    MediaDescription,
    Origin,
    SessionDescription,
)
from p2psip.srtp.srtp import SrtpReceiver, SrtpSender
from p2psip.srtp.stream import SrtpStream
from p2psip.srtp.suites import AEAD_AES_128_GCM, AES_CM_128_HMAC_SHA1_80, SUITES

SHA80, SHA32 = "AES_CM_128_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_32"
KEY, OTHER = "inline:" + "A" * 40, "inline:" + "B" * 40
PACKET = bytes(RtpPacket(0, 1, 0, 7, b"sound"))


class End:
    """A phone with keys: its terms, what it has agreed on, and its packets."""

    def __init__(self, profile=SECURE[0]):
        self.terms, self.told = SrtpTerms(os.urandom, profile=profile), []
        self.stream = SrtpStream(self.told.append)
        self.keys = None

    def to_offer(self):
        return self.terms.to_offer(LocalTransport(5004), self.keys)


def line(*values):
    attributes = tuple(Attribute("crypto", each) for each in values)
    return MediaDescription("audio", 9000, "RTP/SAVP", ("0",), attributes=attributes)


def answered(end, *values):
    """Have it answer a line with these attributes; give what it answers."""
    offered = line(*values)
    origin, where = Origin.at("192.0.2.9", 1), Connection.to("192.0.2.9")
    offer = SessionDescription(origin, connection=where, media=(offered,))
    transport = next(end.terms.to_answer(LocalTransport(5004), offer, "audio", end.keys))
    (crypto,) = transport.cryptos
    end.keys = keys = agreed_keys(line(str(crypto)), offered)
    end.stream.use(keys.suite, keys.ours.keys[0].secrets, keys.theirs.keys[0].secrets)
    return crypto


@pytest.fixture
def ours():
    return End()


def peer(crypto):
    """What the peer opens our packets with."""
    return SrtpReceiver(*crypto.keys[0].secrets, SUITES[crypto.suite])


def test_another_suite_has_another_key(ours):
    """Covers RFC 3711 §4.1.1 [block-is-distinct] [index-is-distinct], §4.2 [tag-length-of-a-key]
    and §9.2 [distinct-packets] [used-key-is-not-used-again].

    Covers RFC 4568 §6.4 [keystream-is-used-once] and §7.1.4 [keys-again]: the index of reports
    begins anew.
    """
    first = answered(ours, f"1 {SHA80} {KEY}")
    report = bytes.fromhex("80c9000100000007")
    assert peer(first).open_rtcp(ours.stream.protect_rtcp(report)) == report
    second = answered(ours, f"1 {SHA32} {KEY}")
    assert second.suite == SHA32 and second.keys != first.keys
    assert peer(second).open_rtcp(ours.stream.protect_rtcp(report)) == report
    assert peer(second).open_rtp(ours.stream.protect_rtp(PACKET)) == PACKET
    assert (
        ours.to_offer().cryptos[0].keys == second.keys and ours.to_offer().cryptos[0].suite == SHA32
    )
    assert answered(ours, f"3 {SHA32} {OTHER}").keys == second.keys


def test_a_key_that_stays_goes_on_counting(ours):
    """Covers RFC 4568 §7.1.4 [keys-again]: and so does the peer's, whatever is said beside it."""
    first = answered(ours, f"1 {SHA80} {KEY}")
    theirs = SrtpSender(*cryptos(line(f"1 {SHA80} {KEY}"))[0].keys[0].secrets)
    protected = theirs.protect_rtp(PACKET)
    assert ours.stream.open_rtp(protected) == PACKET
    before = ours.stream.protect_rtcp(bytes.fromhex("80c9000100000007"))
    again = answered(ours, f"2 {SHA80} {KEY}|2^20")
    assert again.keys == first.keys == ours.to_offer().cryptos[0].keys
    assert ours.to_offer().cryptos[0].suite == SHA80
    after = ours.stream.protect_rtcp(bytes.fromhex("80c9000100000007"))
    counts = [int.from_bytes(each[-14:-10], "big") for each in (before, after)]
    assert counts[1] == counts[0] + 1 and counts[0] >> 31
    assert ours.stream.open_rtp(protected) is None


def test_each_side_sends_by_its_own_key(ours):
    """Covers RFC 4568 §6.4 [own-key-of-each] and §7.1.4 [new-key-begins-at-zero].

    Covers RFC 4568 §5.1.1 [ready-for-what-is-offered] and §7.1.2 [key-other-than-the-offers].
    Covers RFC 3711 §9.1 [keys-come-by-signalling].
    """
    for key in (KEY, OTHER):
        crypto = answered(ours, f"1 {SHA80} {key}")
        (theirs,) = cryptos(line(f"1 {SHA80} {key}"))
        assert peer(crypto).open_rtp(ours.stream.protect_rtp(PACKET)) == PACKET
        with pytest.raises(RemoteError):
            peer(theirs).open_rtp(ours.stream.protect_rtp(PACKET))
        assert (
            ours.stream.open_rtp(SrtpSender(*theirs.keys[0].secrets).protect_rtp(PACKET)) == PACKET
        )


def test_keys_are_drawn_for_each_call(ours):
    """Covers RFC 3711 §4.3.1 [master-is-random], §9.2 [salt-is-random] and RFC 4568 §6.1
    [keys-are-random].

    Covers RFC 3711 §3.2.1 [random-and-secret], §8 [key-of-one-stream], §9.1 [key-of-one-session].
    """
    drawn = [End().to_offer().cryptos[0].keys[0] for _ in range(9)]
    assert len({each.key for each in drawn}) == len({each.salt for each in drawn}) == 9
    assert End("").to_offer().protocol == "RTP/AVP"


def test_packets_that_are_refused_are_counted_and_the_first_is_told(ours):
    """Covers RFC 3711 §3.3 [replay-is-told] [failure-is-told]."""
    answered(ours, f"1 {SHA80} {KEY}")
    theirs = SrtpSender(*cryptos(line(f"1 {SHA80} {KEY}"))[0].keys[0].secrets)
    protected, report = theirs.protect_rtp(PACKET), theirs.protect_rtcp(bytes(8))
    assert ours.stream.open_rtp(protected) == PACKET and ours.stream.open_rtcp(report) == bytes(8)
    assert ours.stream.refused == 0 and not ours.told
    assert ours.stream.open_rtp(protected) is None and ours.told == ["SRTP packet that came before"]
    assert ours.stream.open_rtcp(report) is ours.stream.open_rtp(PACKET) is None
    assert ours.stream.refused == 3 and len(ours.told) == 1


def test_without_keys_all_passes_as_it_is():
    """Own design: plain RTP goes by the same object."""
    stream = SrtpStream()
    assert not stream.is_on and stream.report_octets == 0
    for way in (stream.protect_rtp, stream.protect_rtcp, stream.open_rtp, stream.open_rtcp):
        assert way(PACKET) == PACKET


@pytest.mark.parametrize("suite", [AES_CM_128_HMAC_SHA1_80, AEAD_AES_128_GCM])
def test_reports_are_longer_by_what_the_suite_adds(suite):
    """Covers RFC 3711 §3.4: by flag, index and tag."""
    stream = SrtpStream()
    key = bytes(suite.key_octets), bytes(suite.salt_octets)
    stream.use(suite, key, key)
    report = bytes.fromhex("80c9000100000007")
    assert len(stream.protect_rtcp(report)) == len(report) + stream.report_octets
