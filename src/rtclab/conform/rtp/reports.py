"""What the target reports of the packets that we send, of which some are lost.

Implements RFC 3550 §6.4.1 and §A.8, from the sender's side.
"""

from functools import partial
from typing import Final

from p2psip.rtp.packet import RtpPacket
from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.rtp.peer import FIRST, RtpPeer, blocks, last_block
from rtclab.conform.rtp.talk import RATE, TICKS, Sent, Talk

cases: Cases[RtpPeer] = Cases()
must = partial(cases.case, role="phone", alone=True)
UNSURE: Final = 4  # of 256, of a fraction
ON_THE_WAY: Final = 0.1  # s between a report's making and its arrival, and back
ROUGH: Final = 0.5  # of a jitter: the network adds its own


@must("RFC 3550 §6.4.1", "block-of-each-source")
def our_packets_are_reported(peer: RtpPeer) -> None:
    """Reports have a block about the sound that the target receives (§6.4.1)."""
    last_block(peer.lossy())


@must("RFC 3550 §6.4.1", "highest-with-cycles")
def highest_number_is_told(peer: RtpPeer) -> None:
    """A report block has the highest sequence number sent before the report (§6.4.1)."""
    talk = peer.lossy()
    when, block = last_block(talk)
    last = [each for each in talk.sent if each.time <= when][-1]
    if (last.packet.sequence - block.highest_sequence) & 0xFFFF > 3:
        raise Unmet(str(last.packet.sequence), str(block.highest_sequence & 0xFFFF))


@must("RFC 3550 §6.4.1", "highest-with-cycles")
def wraps_are_counted(peer: RtpPeer) -> None:
    """After 65535 the highest sequence number has a cycle more (§6.4.1)."""
    _, block = last_block(peer.lossy())
    low = block.highest_sequence & 0xFFFF
    expect_equal("cycles", 1 if low < FIRST else 0, block.highest_sequence >> 16)


@must("RFC 3550 §6.4.1", "lost-since-the-beginning")
def lost_packets_are_counted(peer: RtpPeer) -> None:
    """A block has the number of packets that were never sent (§6.4.1)."""
    talk = peer.lossy()
    _, block = last_block(talk)
    expected, received = _counts(talk, block.highest_sequence)
    expect_equal("lost", expected - received, block.lost)


@must("RFC 3550 §6.4.1", "fraction-since-the-last")
def fraction_is_of_the_lost(peer: RtpPeer) -> None:
    """The fraction lost is that of the packets since the block before (§6.4.1, §A.3)."""
    talk = peer.lossy()
    when, block = last_block(talk)
    expected, received = _counts(talk, block.highest_sequence)
    for earlier in [each for at, each in blocks(talk) if at < when][-1:]:
        expected_before, received_before = _counts(talk, earlier.highest_sequence)
        expected, received = expected - expected_before, received - received_before
    wanted = 256 * (expected - received) // max(1, expected)
    if abs(wanted - block.fraction_lost) > UNSURE:
        raise Unmet(f"{wanted} of 256", str(block.fraction_lost))


@must("RFC 3550 §6.4.1", "jitter-by-formula")
def jitter_is_measured(peer: RtpPeer) -> None:
    """The jitter of a block is that with which our packets came, in ticks (§A.8)."""
    talk = peer.lossy()
    _, block = last_block(talk)
    wanted = _jitter(_until(talk, block.highest_sequence))
    if abs(block.jitter - wanted) > wanted * ROUGH:
        raise Unmet(f"some {wanted:.0f} ticks", str(block.jitter))


@must("RFC 3550 §6.4.1", "last-sr")
def our_report_is_named(peer: RtpPeer) -> None:
    """A block has the time of our last sender report (§6.4.1)."""
    _, wanted, told = _echo(peer.lossy())
    expect_equal("last SR", f"{wanted:#x}", f"{told:#x}")


@must("RFC 3550 §6.4.1", "delay-since-last-sr")
def delay_since_our_report_is_told(peer: RtpPeer) -> None:
    """A block has the time since our last sender report arrived (§6.4.1)."""
    talk = peer.lossy()
    when, block = last_block(talk)
    sent, wanted, told = _echo(talk)
    if wanted != told:
        raise NotApplicable("the block names another report")
    if abs(block.delay / 65536 - (when - sent)) > ON_THE_WAY:
        raise Unmet(f"{when - sent:.2f} s", f"{block.delay / 65536:.2f} s")


def _echo(talk: Talk) -> tuple[float, int, int]:
    """When we sent our last report before the block, its name, and the name in the block."""
    when, block = last_block(talk)
    before = [(sent, report) for sent, report in talk.reports if sent < when]
    if not before:
        raise NotApplicable("no report of ours came before")
    sent, report = before[-1]
    return sent, report.ntp >> 16 & 0xFFFFFFFF, block.last_sr


def _number(packet: RtpPacket) -> int:
    return packet.timestamp // TICKS


def _until(talk: Talk, highest: int) -> list[Sent]:
    """The packets that were sent up to a sequence number."""
    last = (highest - FIRST) & 0xFFFF
    return [each for each in talk.sent if _number(each.packet) <= last]


def _counts(talk: Talk, highest: int) -> tuple[int, int]:
    """How many packets were due up to a sequence number, and how many were sent."""
    sent = _until(talk, highest)
    return _number(sent[-1].packet) + 1, len(sent)


def _jitter(sent: list[Sent]) -> float:
    """The jitter of packets that arrive as they are sent, in ticks: §A.8."""
    jitter, before = 0.0, None
    for each in sent:
        transit = each.time * RATE - each.packet.timestamp
        if before is not None:
            jitter += (abs(transit - before) - jitter) / 16
        before = transit
    return jitter
