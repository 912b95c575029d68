"""The RTCP that the target sends.

Implements RFC 3550 §6 and RFC 5761, from the receiver's side.
"""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Final

from p2psip.rtp.rtcp import Bye, ReceiverReport, SenderReport
from p2psip.rtp.source_description import SourceDescription
from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.rtp.peer import LONGEST, RtpPeer
from rtclab.conform.rtp.talk import RATE, Talk, control

cases: Cases[RtpPeer] = Cases()
must = partial(cases.case, role="phone", alone=True)
should = partial(cases.case, role="phone", level="SHOULD", alone=True)
SOONEST: Final = 5 * 0.5 / 1.21828 - 0.1  # s between two reports: §6.3.1, and for our own clock
FIRST_SOONEST: Final = SOONEST / 2  # s after the call began (§6.2)
AT_ONCE: Final = 3  # packets that may be on their way, or counted before they are sent
CLOCKS: Final = 0.1  # s by which two clocks of a report may differ


@should("RFC 3550 §6", "reports-everywhere")
def reports_are_sent(peer: RtpPeer) -> None:
    """In a call with sound RTCP arrives, at the port for it (§6.1, §11)."""
    if not peer.plain().rtcp:
        raise Unmet("RTCP", f"none in {LONGEST:g} s")


@must("RFC 3550 §6.1", "whole-words")
def compounds_are_well_formed(peer: RtpPeer) -> None:
    """Each datagram is a compound whose lengths agree (§6.1, §A.2)."""
    for each in _compounds(peer.plain()):
        assert each


@must("RFC 3550 §6.1", "report-first")
def compound_begins_with_a_report(peer: RtpPeer) -> None:
    """The first packet of a compound is a sender or receiver report (§6.1)."""
    for each in _compounds(peer.plain()):
        if not isinstance(each[0], SenderReport | ReceiverReport):
            raise Unmet("SR or RR", type(each[0]).__name__)


@must("RFC 3550 §6.1", "cname-in-each")
def compound_has_a_cname(peer: RtpPeer) -> None:
    """Each compound describes its source by a CNAME (§6.1, §6.5.1)."""
    if not all(any(_cnames(each)) for each in _compounds(peer.plain())):
        raise Unmet("SDES with a CNAME", "none")


@should("RFC 3550 §6.5.1", "cname-stays")
def cname_is_of_the_sound(peer: RtpPeer) -> None:
    """The CNAME describes the SSRC of the sound, and stays the same (§6.5.1)."""
    talk = peer.plain()
    found = {name for each in _compounds(talk) for name in _cnames(each)}
    expect_equal("number of sources and names", 1, len(found))
    expect_equal("SSRC", talk.rtp[0].packet.ssrc, next(iter(found))[0])


@must("RFC 3550 §6.4", "reports-as-it-sends")
def sender_sends_sender_reports(peer: RtpPeer) -> None:
    """A sender of audio reports as a sender, with the SSRC of its audio (§6.4)."""
    talk = peer.plain()
    found = _sender_reports(talk)
    expect_equal("SSRCs", {talk.rtp[0].packet.ssrc}, {report.ssrc for _, report in found})


@must("RFC 3550 §6.4.1", "packets-since-the-beginning")
def packets_are_counted(peer: RtpPeer) -> None:
    """A sender report has the number of packets so far (§6.4.1)."""
    talk = peer.plain()
    for when, report in _sender_reports(talk):
        came = sum(each.time <= when for each in talk.rtp)
        if abs(report.packets - came) > AT_ONCE:
            raise Unmet(f"{came} packets", str(report.packets))


@must("RFC 3550 §6.4.1", "octets-of-payloads")
def octets_are_counted(peer: RtpPeer) -> None:
    """A sender report has the octets of the payloads so far, no headers (§6.4.1)."""
    talk = peer.plain()
    for when, report in _sender_reports(talk):
        came = [len(each.packet.payload) for each in talk.rtp if each.time <= when]
        if abs(report.octets - sum(came)) > AT_ONCE * max(came, default=0):
            raise Unmet(f"{sum(came)} octets", str(report.octets))


@must("RFC 3550 §6.4.1", "timestamp-of-the-report")
def timestamp_is_that_of_the_sound(peer: RtpPeer) -> None:
    """A sender report's timestamp is of its own time, on the clock of the sound (§6.4.1)."""
    talk = peer.plain()
    for when, report in _sender_reports(talk):
        last = [each for each in talk.rtp if each.time <= when][-1]
        ticks = (report.timestamp - last.packet.timestamp + (1 << 31)) % (1 << 32) - (1 << 31)
        if abs(ticks / RATE - (when - last.time)) > CLOCKS:
            raise Unmet(f"{when - last.time:.2f} s behind the last packet", f"{ticks / RATE:.2f} s")


@must("RFC 3550 §6.4.1", "time-of-day")
def wall_clock_goes_on(peer: RtpPeer) -> None:
    """The NTP time of sender reports advances as time does (§6.4.1)."""
    for (before, one), (after, two) in pairwise(_sender_reports(peer.plain(), 2)):
        told = (two.ntp - one.ntp) / 2**32
        if abs(told - (after - before)) > CLOCKS:
            raise Unmet(f"{after - before:.2f} s later", f"{told:.2f} s")


@should("RFC 3550 §6.2", "waits-first")
def first_report_waits(peer: RtpPeer) -> None:
    """The first report comes half an interval after the beginning, at random (§6.2)."""
    talk = peer.plain()
    found = _sender_reports(talk)
    if (waited := found[0][0] - talk.began) < FIRST_SOONEST:
        raise Unmet(f"{FIRST_SOONEST:.1f} s at least", f"{waited:.1f} s")


@should("RFC 3550 §6.2", "lower-bound")
def reports_are_not_too_many(peer: RtpPeer) -> None:
    """Between two reports there are 2.05 s at least: 5 s, at random (§6.3.1)."""
    talk = peer.plain()
    during = [
        each
        for each in talk.rtcp
        if each.time < talk.ended and not any(map(_leaving, control(each)))
    ]
    for before, after in pairwise(during):
        if after.time - before.time < SOONEST:
            raise Unmet(f"{SOONEST:.1f} s at least", f"{after.time - before.time:.1f} s")


@should("RFC 3550 §6.3.7", "bye-is-sent")
def bye_is_sent_at_the_end(peer: RtpPeer) -> None:
    """A participant that leaves says BYE, with the SSRC of its audio (§6.3.7)."""
    talk = peer.plain()
    left = {ssrc for each in _compounds(talk) for packet in each for ssrc in _leaving(packet)}
    expect_equal("sources that leave", {talk.rtp[0].packet.ssrc}, left)


@should("RFC 4961 §4", "always-symmetric")
def reports_come_from_where_they_are_received(peer: RtpPeer) -> None:
    """The source of RTCP is where the target receives it: symmetric RTCP (RFC 4961 §3)."""
    talk = peer.plain()
    _ = _compounds(talk)
    wanted = talk.control_place[1] if talk.control_place else talk.place[1] + 1
    expect_equal("source", {wanted}, {each.source[1] for each in talk.rtcp})


@must("RFC 5761 §5.1.1", "mux-is-answered")
def reports_share_the_port(peer: RtpPeer) -> None:
    """Where `rtcp-mux` was agreed, reports arrive at the port of the sound (RFC 5761 §5.1.1)."""
    talk = peer.call("a=rtcp-mux")
    if not talk.shares_a_port:
        raise NotApplicable("the target does not agree to rtcp-mux")
    peer.stream(LONGEST / 2, lambda: bool(talk.rtcp), peer.even)
    if not talk.rtcp:
        raise Unmet("RTCP at the port of the sound", "none")
    if talk.rtcp[0].is_beside:
        raise Unmet("RTCP at the port of the sound", "at the port behind it")


def _compounds(talk: Talk) -> list[list[object]]:
    if not talk.rtcp:
        raise NotApplicable("the target sends no RTCP")
    return [control(each) for each in talk.rtcp]


def _sender_reports(talk: Talk, least: int = 1) -> list[tuple[float, SenderReport]]:
    found = [
        (each.time, packet)
        for each in talk.rtcp
        for packet in control(each)
        if isinstance(packet, SenderReport) and each.time < talk.ended
    ]
    _ = talk.rtp
    if len(found) < least:
        raise NotApplicable(f"{len(found)} sender reports in the call")
    return found


def _cnames(compound: list[object]) -> Iterator[tuple[int, str]]:
    for packet in compound:
        if isinstance(packet, SourceDescription):
            yield from ((each.ssrc, each.cname) for each in packet.chunks if each.cname)


def _leaving(packet: object) -> tuple[int, ...]:
    return packet.ssrcs if isinstance(packet, Bye) else ()
