"""RTCP of a capture: the shape of each packet, and how often reports come.

Implements RFC 3550 §6 as a rule book.
"""

from dataclasses import dataclass, field
from typing import Final

from p2psip.errors import SipError
from p2psip.rtp.rtcp import Bye, ReceiverReport, RtcpPacket, SenderReport, parse_compound
from p2psip.rtp.source_description import SourceDescription
from rtclab.lint.findings.finding import Findings
from rtclab.lint.findings.packet import SeenPacket
from rtclab.lint.sip_offers import MediaPlace
from rtclab.unwrap.address import host_of

LEAST: Final = 5.0  # s, Source: RFC 3550 §6.2
SHORTEST: Final = 0.5 / 1.21828  # of the interval, Source: RFC 3550 §6.3.1
FEW: Final = 3
ON_ITS_WAY: Final = 1.0  # s in which RTP may still come after the BYE


@dataclass(slots=True)
class _Reporter:
    """A source of RTCP, from one address to another."""

    first: SeenPacket
    place: MediaPlace | None
    times: list[float] = field(default_factory=list)
    packets: list[SeenPacket] = field(default_factory=list)
    named: bool = False
    left: SeenPacket | None = None
    compounds: int = 0


class RtcpReports:
    """All RTCP of a capture: §6."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._all: dict[tuple[str, str, str, int], _Reporter] = {}
        self._left: dict[int, list[SeenPacket]] = {}  # BYEs by their SSRC

    def heard(self, packet: SeenPacket, place: MediaPlace | None, *, is_open: bool = False) -> str:
        """Take a datagram; the types of its packets, in short, "" if it cannot be read: §6.4.

        It was SRTCP if it `is_open`.
        """
        if place is not None and "SAVP" in place.protocol and not is_open:
            return "SRTCP"
        try:
            packets = parse_compound(packet.data)
        except SipError as error:
            what = f"to {packet.target}: {error}"
            self._findings.add("rtcp-syntax", packet, what)
            return ""
        # feedback may stand alone, as it does of the browsers whose description is not here
        if not (is_open if place is None else place.has_reduced_size):
            self._shape(packet, packets)
        for each in packets:
            self._source(packet, each, place)
        return " ".join(_SHORT.get(type(each).__name__, "APP") for each in packets)

    def rtp(self, packet: SeenPacket, ssrc: int) -> None:
        """Take the SSRC of an RTP packet: none comes after BYE, §6.3.7."""
        host = host_of(packet.source)  # RTCP may go to the port above RTP's
        for left in self._left.get(ssrc, ()):
            if packet.time - left.time > ON_ITS_WAY and host_of(left.source) == host:
                what = f"RTP of {ssrc:#010x} after its BYE"
                self._findings.add("rtcp-after-bye", packet, what)

    def finish(self) -> None:
        """Report on each source: §6.2, §6.5.1."""
        for (*_, ssrc), reporter in self._all.items():
            if not reporter.named and reporter.compounds >= FEW:
                what = f"{reporter.compounds} reports of {ssrc:#010x}, and no CNAME"
                self._findings.add("rtcp-unnamed", reporter.first, what)
            self._pace(ssrc, reporter)

    def _shape(self, packet: SeenPacket, packets: list[RtcpPacket]) -> None:
        if not isinstance(packets[0], SenderReport | ReceiverReport):
            kind = _SHORT.get(type(packets[0]).__name__, "APP")
            self._findings.add("rtcp-no-report", packet, f"the first packet is {kind}")
        named = any(
            chunk.cname
            for each in packets
            if isinstance(each, SourceDescription)
            for chunk in each.chunks
        )
        if not named:
            kinds = " ".join(_SHORT.get(type(each).__name__, "APP") for each in packets)
            self._findings.add("rtcp-no-cname", packet, f"{kinds} to {packet.target}")

    def _source(self, packet: SeenPacket, each: RtcpPacket, place: MediaPlace | None) -> None:
        match each:
            case SenderReport() | ReceiverReport():
                reporter = self._reporter(packet, each.ssrc, place)
                if reporter.left is not None:
                    what = f"a report of {each.ssrc:#010x} after its BYE"
                    self._findings.add("rtcp-after-bye", packet, what)
                reporter.times.append(packet.time)
                reporter.packets.append(packet)
                reporter.compounds += 1
            case SourceDescription():
                for chunk in each.chunks:
                    if chunk.cname:
                        self._reporter(packet, chunk.ssrc, place).named = True
            case Bye():
                for ssrc in each.ssrcs:
                    self._reporter(packet, ssrc, place).left = packet
                    self._left.setdefault(ssrc, []).append(packet)
            case _:
                pass

    def _reporter(self, packet: SeenPacket, ssrc: int, place: MediaPlace | None) -> _Reporter:
        key = packet.source, packet.target, packet.carrier, ssrc
        return self._all.setdefault(key, _Reporter(packet, place))

    def _pace(self, ssrc: int, reporter: _Reporter) -> None:
        """Regular reports of an AVP session without a bandwidth: §6.2, §6.3.1.

        Feedback (RFC 4585 §3.5) and a smaller minimum for a given bandwidth may come sooner.
        """
        place = reporter.place
        if place is None or "AVPF" in place.protocol or place.has_bandwidth:
            return
        least = LEAST * SHORTEST
        gaps = [
            after - before
            for before, after in zip(reporter.times, reporter.times[1:], strict=False)
        ]
        early = [at for at, gap in enumerate(gaps) if at > 0 and gap < least]
        if len(early) >= FEW:
            packet = reporter.packets[early[0] + 1]
            what = f"{len(early)} reports of {ssrc:#010x} within less than {least:.1f} s"
            self._findings.add("rtcp-often", packet, what)


_SHORT: Final = {
    "SenderReport": "SR",
    "ReceiverReport": "RR",
    "SourceDescription": "SDES",
    "Bye": "BYE",
    "App": "APP",
    "UnknownPacket": "FB",
}
