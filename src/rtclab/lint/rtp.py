"""RTP streams of a capture: what was lost, and whether numbers and types are as they must be.

Implements RFC 3550 §5.1 and §A.8 as a rule book, with the payload types of RFC 3551 §6 and of the
descriptions that were exchanged.
"""

from dataclasses import dataclass, field
from typing import Final

from p2psip.rtp import fast
from p2psip.sdp.attributes import STATIC, RtpMap
from rtclab.explain.fields.field import counted
from rtclab.lint.findings.finding import Findings
from rtclab.lint.findings.packet import SeenPacket
from rtclab.lint.sip_offers import MediaPlace

RESERVED: Final = frozenset({1, 2, 19, *range(20, 25), 27, 29, 30, *range(35, 64), *range(64, 96)})
ENOUGH: Final = 5  # packets in sequence make a stream where no description told of one
MOST_MISORDER: Final = 3000  # numbers behind which a packet is a restart, not late
ONE_TICK_AN_OCTET: Final = ("pcmu", "pcma", "g722")
NO_SOUND: Final = ("telephone-event", "cn", "red")
JITTERY: Final = 0.1  # s
LATE_AFTER_BYE: Final = 1.0  # s: what is on its way when the BYE is answered
FEW: Final = 3


@dataclass(slots=True)
class _Count:
    """How often something was seen, and its first packet."""

    first: SeenPacket
    times: int = 0
    what: str = ""


@dataclass(slots=True)
class RtpStream:
    """One SSRC from one address to another: §8.1."""

    first: SeenPacket
    ssrc: int
    place: MediaPlace | None
    last: SeenPacket
    packets: int = 0
    types: dict[int, int] = field(default_factory=dict)
    is_open: bool = False  # SRTP whose key is known
    jitter: float = 0.0  # s
    _seen: set[int] = field(default_factory=set)
    _lowest: int = 0
    _highest: int = 0
    _header: fast.Header | None = None
    counts: dict[str, _Count] = field(default_factory=dict)

    @property
    def lost(self) -> int:
        """How many sequence numbers never came: §6.4.1."""
        return self._highest - self._lowest + 1 - len(self._seen)

    @property
    def heard_numbers(self) -> int:
        """How many sequence numbers came since the source began: §5.1."""
        return len(self._seen)

    @property
    def way(self) -> tuple[str, str]:
        """From where to where: §8.1."""
        return self.first.source, self.first.target

    @property
    def label(self) -> str:
        """What a diagram and the list of streams call it, by its formats: RFC 3551 §6."""
        names = []
        for each in sorted(self.types, key=lambda kind: -self.types[kind]):
            known = self.format(each)
            names.append(f"{known.encoding}/{known.clock_rate}" if known else f"type {each}")
        relay = f" by TURN, {self.first.carrier}" if self.first.carrier else ""
        return f"RTP {', '.join(names)}, {counted(self.packets, 'packet')}{relay}"

    def format(self, payload_type: int) -> RtpMap | None:
        """What a payload type is: RFC 3264 §5.1, RFC 3551 §6."""
        if self.place is not None and payload_type in self.place.formats:
            return self.place.formats[payload_type]
        return STATIC.get(payload_type)

    def heard(self, packet: SeenPacket, header: fast.Header) -> None:
        """Take a packet: §A.1, §A.3, §A.8."""
        kind, _, sequence = header[:3]
        self.types[kind] = self.types.get(kind, 0) + 1
        self.packets += 1
        if not self._seen:
            self._lowest = self._highest = sequence
            self._keep(packet, header, sequence)
            return
        ahead = (sequence - self._highest + 0x8000) % 0x10000 - 0x8000
        extended = self._highest + ahead
        if extended in self._seen:
            self._count("rtp-duplicate", packet, f"sequence number {sequence} again")
        elif ahead < -MOST_MISORDER:
            self._seen = set()
            self._lowest = self._highest = sequence  # began anew
            self._keep(packet, header, sequence)
        elif ahead < 0:
            self._seen.add(extended)
            self._lowest = min(self._lowest, extended)
            self._count("rtp-reordered", packet, f"{sequence} behind {self._highest % 0x10000}")
        else:
            self._follow(packet, header, is_next=ahead == 1)
            self._highest = extended
            self._keep(packet, header, extended)

    def _keep(self, packet: SeenPacket, header: fast.Header, extended: int) -> None:
        self._seen.add(extended)
        self._header, self.last = header, packet

    def _follow(self, packet: SeenPacket, header: fast.Header, *, is_next: bool) -> None:
        """Judge the step from the packet before."""
        before = self._header
        known = self.format(header[0])
        if before is None or known is None or before[0] != header[0]:
            return
        step = (header[3] - before[3] + (1 << 31)) % (1 << 32) - (1 << 31)
        rate, name = known.clock_rate, known.encoding.lower()
        elapsed = packet.time - self.last.time
        if name not in NO_SOUND and rate:
            deviation = abs(elapsed - step / rate)
            if deviation < 10:
                self.jitter += (deviation - self.jitter) / 16  # §A.8
        if not is_next:
            return
        if name in ONE_TICK_AN_OCTET and not self._is_sealed:
            self._sound(packet, before, header, elapsed)
        elif name in ("h264", "vp8") and step and not before[1]:
            citation = "a picture ends without the marker"
            self._count("rtp-marker-missing", packet, citation)

    @property
    def _is_sealed(self) -> bool:
        is_secure = self.place is not None and "SAVP" in self.place.protocol
        return is_secure and not self.is_open

    def _sound(
        self, packet: SeenPacket, before: fast.Header, header: fast.Header, elapsed: float
    ) -> None:
        """Check timestamps of sound with one octet for each clock tick: RFC 3551 §4.5.14, §4.1."""
        made, step = before[6] - before[5], header[3] - before[3]
        step = (step + (1 << 31)) % (1 << 32) - (1 << 31)
        if step == made:
            if header[1]:
                self._count("rtp-marker-extra", packet, "the marker, and no silence before")
        elif step < made or elapsed * 8000 < made * 2:
            what = f"the timestamp grows by {step}, after {made} octets"
            self._count("rtp-timestamp", packet, what)
        elif not header[1]:
            self._count("rtp-marker-missing", packet, "sound after silence without the marker")

    def _count(self, rule: str, packet: SeenPacket, what: str) -> None:
        self.counts.setdefault(rule, _Count(packet, 0, what)).times += 1


class RtpStreams:
    """All RTP streams of a capture: §8."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._all: dict[tuple[str, str, str, int], RtpStream] = {}
        self._latest: dict[tuple[str, str, bool], RtpStream] = {}
        self.ended: dict[str, float] = {}  # when calls ended, by Call-ID

    def heard(self, packet: SeenPacket, place: MediaPlace | None, *, is_open: bool = False) -> bool:
        """Take a datagram, which was SRTP if it `is_open`; False if it is no RTP: §5.1."""
        header = fast.unpack(packet.data)
        if header is None:
            if place is not None:
                what = f"{len(packet.data)} octets that are no RTP"
                self._findings.add("rtp-syntax", packet, what, once=packet.target)
            return place is not None
        key = packet.source, packet.target, packet.carrier, header[4]
        stream = self._all.get(key)
        if stream is None:
            stream = RtpStream(packet, header[4], place, packet)
            self._all[key] = stream
        if stream.place is None:
            stream.place = place
        stream.is_open |= is_open
        stream.heard(packet, header)
        return True

    def streams(self) -> list[RtpStream]:
        """Those that are streams for certain, and no datagrams that happen to look so: §A.1."""
        return [each for each in self._all.values() if _is_stream(each)]

    def finish(self) -> None:
        """Report on each stream: §5.1, §6.4.1, §8."""
        streams = self.streams()
        for stream in streams:
            self._types(stream)
            self._figures(stream)
            self._late(stream)
        self._sources(streams)

    def one_way(self, places: dict[str, MediaPlace]) -> None:
        """Report media that one end of a call gets, and the other does not: RFC 3264 §5.1."""
        streams = self.streams()
        into = {each.first.target: each for each in streams}
        calls: dict[tuple[str, str], dict[str, list[str]]] = {}
        for address, place in places.items():
            ends = calls.setdefault((place.call_id, place.kind), {})
            ends.setdefault(place.owner, []).append(address)
        for (_, kind), ends in calls.items():
            everywhere = [address for each in ends.values() for address in each]
            if len(ends) != 2 or not all(places[each].wants for each in everywhere):
                continue
            one, other = ends.values()  # an end with ICE has more than one address
            for silent, loud in ((one, other), (other, one)):
                stream = next((into[each] for each in loud if each in into), None)
                is_loud = stream is not None and stream.packets >= 10 * ENOUGH
                if stream and is_loud and not any(each in into for each in silent):
                    heard = stream.first.target
                    what = f"{kind} comes to {heard}, and none to {silent[-1]}"
                    self._findings.add("rtp-one-way", stream.first, what, who=heard)

    def _types(self, stream: RtpStream) -> None:
        place = stream.place
        who = stream.first.source
        for kind, times in stream.types.items():
            what = f"payload type {kind} to {stream.first.target}, {counted(times, 'packet')}"
            if place is not None and place.types:
                if kind not in place.types:
                    allowed = ", ".join(map(str, sorted(place.types)))
                    what += f"; agreed on: {allowed}"
                    self._findings.add("rtp-payload-type", stream.first, what, who=who)
            elif kind in RESERVED:
                self._findings.add("rtp-reserved-type", stream.first, what, who=who)

    def _figures(self, stream: RtpStream) -> None:
        to = f"to {stream.first.target}"
        if stream.lost:
            share = 100 * stream.lost / (stream.lost + stream.packets)
            what = f"{counted(stream.lost, 'packet')} missing {to}, {share:.1f} %"
            self._findings.add("rtp-lost", stream.last, what)
        for rule, count in stream.counts.items():
            if rule == "rtp-marker-extra" and count.times < FEW:
                continue  # a phone that begins anew after hold or ringing
            self._findings.add(rule, count.first, f"{count.what}, {to}", times=count.times)
        if stream.jitter > JITTERY:
            what = f"jitter of {stream.jitter * 1000:.0f} ms {to}"
            self._findings.add("rtp-jitter", stream.last, what)

    def _late(self, stream: RtpStream) -> None:
        if stream.place is None or stream.place.call_id not in self.ended:
            return
        late = stream.last.time - self.ended[stream.place.call_id]
        if late > LATE_AFTER_BYE and stream.first.time < self.ended[stream.place.call_id]:
            what = f"RTP to {stream.first.target} until {late:.1f} s after the BYE was answered"
            self._findings.add("rtp-after-bye", stream.last, what)

    def _sources(self, streams: list[RtpStream]) -> None:
        """A new SSRC where the old one has stopped for good: §8.1, §8.2."""
        before: dict[tuple[str, str, str, int], RtpStream] = {}
        for stream in sorted(streams, key=lambda each: each.first.number):
            main = max(stream.types, key=lambda kind: stream.types[kind])
            key = *stream.way, stream.first.carrier, main
            old = before.get(key)
            if old is not None and old.last.number < stream.first.number:
                what = f"SSRC {stream.ssrc:#010x} after {old.ssrc:#010x}, to {stream.first.target}"
                self._findings.add("rtp-ssrc", stream.first, what)
            before[key] = stream


def _is_stream(stream: RtpStream) -> bool:
    if stream.place is not None:
        return True
    return stream.heard_numbers >= ENOUGH and stream.lost < stream.packets
