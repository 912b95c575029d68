"""The packets of sound that the target sends.

Implements RFC 3550 §5.1, RFC 3551 §4 and RFC 4961, from the receiver's side.
"""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Final

from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.payload.duration import ticks
from p2psip.sdp.attributes import DEFAULT_PTIME, ptime
from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.rtp.peer import RtpPeer
from rtclab.conform.rtp.talk import Talk, encoding

cases: Cases[RtpPeer] = Cases()
must = partial(cases.case, role="phone", alone=True)
should = partial(cases.case, role="phone", level="SHOULD", alone=True)
NEAR: Final = 0.1  # of the packet rate, beside which a clock is wrong
STOPPED: Final = 0.2  # s: what was on its way when the call ended
NEXT_SECOND: Final = 8000  # ticks: nearer than that, two timestamps may be one clock's
FEW: Final = (1 << 16) + NEXT_SECOND  # ticks that a first packet of 16 random bits stays below
VERSION: Final = 2


@must("RFC 3550 §5.1", "version-2")
def version_is_two(peer: RtpPeer) -> None:
    """Every packet has version 2 (§5.1)."""
    for each in peer.plain().rtp:
        if not each.data or each.data[0] >> 6 != VERSION:
            raise Unmet("version 2", each.data[:12].hex(" "))


@must("RFC 3550 §5.1", "extension-when-x")
def packets_are_well_formed(peer: RtpPeer) -> None:
    """Padding, CSRCs and extension end within the packet (§5.1, §A.1)."""
    for each in peer.plain().rtp:
        _ = each.packet


@must("RFC 3550 §5.1", "ssrc-names-the-source")
def ssrc_stays_the_same(peer: RtpPeer) -> None:
    """All packets of a call have one SSRC (§8)."""
    found = {each.ssrc for each in _packets(peer.plain())}
    expect_equal("number of SSRCs", 1, len(found))


@should("RFC 3550 §5.1", "ssrc-is-drawn")
def ssrc_is_random(peer: RtpPeer) -> None:
    """Two calls have two SSRCs, neither of them small (§8.1)."""
    one, two = _packets(peer.plain())[0].ssrc, _packets(peer.lossy())[0].ssrc
    if one == two or min(one, two) < 1 << 16:
        raise Unmet("two random SSRCs", f"{one:#x} and {two:#x}")


@should("RFC 3550 §5.1", "sequence-is-drawn")
def sequence_begins_anywhere(peer: RtpPeer) -> None:
    """Two calls begin with two sequence numbers (§5.1)."""
    one, two = _packets(peer.plain())[0].sequence, _packets(peer.lossy())[0].sequence
    if abs(one - two) < 5:
        raise Unmet("two random numbers", f"{one} and {two}")


@should("RFC 3550 §5.1", "timestamp-is-drawn")
def timestamp_begins_anywhere(peer: RtpPeer) -> None:
    """Two calls begin with two timestamps, drawn from more than 16 of their 32 bits (§5.1)."""
    one, two = _packets(peer.plain())[0].timestamp, _packets(peer.lossy())[0].timestamp
    if abs(one - two) < NEXT_SECOND or max(one, two) < FEW:
        raise Unmet("two random timestamps", f"{one} and {two}")


@must("RFC 3550 §5.1", "sequence-by-one")
def sequence_steps_by_one(peer: RtpPeer) -> None:
    """Each packet has the sequence number of the one before plus one (§5.1)."""
    for before, after in pairwise(_packets(peer.plain())):
        expect_equal("sequence", (before.sequence + 1) & 0xFFFF, after.sequence)


@must("RFC 3550 §5.1", "clock-is-even")
def timestamp_steps_by_the_sound(peer: RtpPeer) -> None:
    """The timestamp grows by the sound of the packet before, more behind silence (§5.1)."""
    for before, after, length in _steps(peer.plain()):
        step = (after.timestamp - before.timestamp) & 0xFFFFFFFF
        if step < length or (step > length and not after.marker):
            raise Unmet(f"a step of {length}", str(step))


@must("RFC 3551 §4.1", "else-no-marker")
def marker_is_for_the_start_of_talk(peer: RtpPeer) -> None:
    """No packet but the first after silence has the marker (RFC 3551 §4.1)."""
    for before, after, length in _steps(peer.plain()):
        step = (after.timestamp - before.timestamp) & 0xFFFFFFFF
        if after.marker and step == length:
            raise Unmet("no marker within talk", f"one at {after.sequence}")


@must("RFC 3264 §6.1", "sends-what-both-list")
def payload_type_was_agreed(peer: RtpPeer) -> None:
    """Packets have a payload type of the answer that the offer has as well (RFC 3264 §6.1)."""
    talk = peer.plain()
    for packet in _packets(talk):
        if str(packet.payload_type) not in ({"0", "8"} & set(talk.media.formats)):
            raise Unmet("a payload type of the answer", str(packet.payload_type))


@should("RFC 3551 §4.2", "default-20-ms")
def packets_have_the_agreed_length(peer: RtpPeer) -> None:
    """A packet holds 20 ms, or what the answer's ptime says (RFC 3551 §4.2)."""
    talk = peer.plain()
    wanted = ptime(talk.media) or DEFAULT_PTIME
    first = _packets(talk)[0]
    expect_equal("ms a packet", wanted, _ticks(talk, first) * 1000 // _rate(talk, first))


@must("RFC 3550 §5.1", "clock-is-even")
def sound_comes_in_real_time(peer: RtpPeer) -> None:
    """As much sound arrives as time goes by (§5.1: the clock is the sampling clock)."""
    talk = peer.plain()
    first, last = talk.rtp[0], talk.rtp[-1]
    clock = (last.packet.timestamp - first.packet.timestamp) & 0xFFFFFFFF
    told, real = clock / _rate(talk, first.packet), last.time - first.time
    if real < 1:
        raise NotApplicable("too little sound to tell")
    if abs(told / real - 1) > NEAR:
        raise Unmet(f"{real:.1f} s of sound", f"{told:.1f} s")


@should("RFC 4961 §4", "always-symmetric")
def sound_comes_from_where_it_is_received(peer: RtpPeer) -> None:
    """The source of RTP is the address of the answer: symmetric RTP (RFC 4961 §3)."""
    talk = peer.plain()
    expect_equal("source", {talk.place[1]}, {each.source[1] for each in talk.rtp})


@should("RFC 3261 §15.1.2", "bye-ends-the-session")
def sound_ends_with_the_call(peer: RtpPeer) -> None:
    """After its answer to BYE the target sends no sound (RFC 3261 §15.1.2)."""
    talk = peer.plain()
    late = [each for each in talk.heard if not each.is_control and each.time > talk.ended + STOPPED]
    expect_equal("number of packets behind the end", 0, len(late))


@should("RFC 3264 §6.1", "ptime-of-the-offer")
def packet_time_of_the_offer_is_followed(peer: RtpPeer) -> None:
    """An offer with `ptime:40` gets packets of 40 ms (RFC 8866 §6.4)."""
    talk = peer.call("a=ptime:40")
    peer.stream(0.5, lambda: False, peer.even)
    first = _packets(talk)[0]
    expect_equal("ms a packet", 40, _ticks(talk, first) * 1000 // _rate(talk, first))


@must("RFC 3264 §6.1", "sends-by-the-offers-numbers")
def number_of_the_offer_is_used(peer: RtpPeer) -> None:
    """PCMU that is offered as 101 is sent as 101 (RFC 3264 §5.1)."""
    talk = peer.call("a=rtpmap:101 PCMU/8000", formats="101")
    peer.stream(0.3, lambda: False, peer.even)
    expect_equal("payload types", {101}, {each.payload_type for each in _packets(talk)})


@must("RFC 3264 §6.1", "answers-inactive")
def nothing_is_sent_where_nothing_is_wanted(peer: RtpPeer) -> None:
    """An offer `inactive` gets no sound (RFC 3264 §5.1)."""
    talk = peer.call("a=inactive")
    if not any(talk.media.attribute(way) is not None for way in ("inactive", "recvonly")):
        raise Unmet("a=inactive", "another direction")
    peer.stream(0.5, lambda: False, lambda _: None)
    found = sum(not each.is_control for each in talk.heard)
    expect_equal("number of packets", 0, found)


def _packets(talk: Talk) -> list[RtpPacket]:
    return [each.packet for each in talk.rtp]


def _steps(talk: Talk) -> Iterator[tuple[RtpPacket, RtpPacket, int]]:
    """Packets that follow each other, and the ticks of sound in the first of both."""
    for before, after in pairwise(_packets(talk)):
        if (before.sequence + 1) & 0xFFFF == after.sequence:
            yield before, after, _ticks(talk, before)


def _ticks(talk: Talk, packet: RtpPacket) -> int:
    found = encoding(talk, packet.payload_type)
    if found is None:
        raise NotApplicable(f"payload type {packet.payload_type} is not in the answer")
    return ticks(found.encoding, packet.payload, found.clock_rate, found.channels)


def _rate(talk: Talk, packet: RtpPacket) -> int:
    found = encoding(talk, packet.payload_type)
    return found.clock_rate if found else 8000
