"""RTCP: reports on reception and on time, and the names of sources.

Implements RFC 3550 §6.1: a datagram is a sender's or a receiver's report, then the rest.

    >>> report = SenderReport(0xCAFE, ntp_time(0.5), timestamp=160, packets=2, octets=320)
    >>> name = SourceDescription.of_cname(0xCAFE, "alice@example.org")
    >>> parse_compound(compound(report, name)) == [report, name]
    True
"""

import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Self, TypeAlias

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp import feedback, rtcp_frame
from p2psip.rtp.extended_report import ExtendedReport
from p2psip.rtp.feedback import Feedback, Fir, Nack, OtherFeedback, Pli
from p2psip.rtp.rtcp_frame import APP, BYE, PSFB, RR, RTPFB, SDES, SR, XR, RtcpForm, unpack_from
from p2psip.rtp.source_description import SdesChunk, SourceDescription

__all__ = [
    "App",
    "Bye",
    "ExtendedReport",
    "Feedback",
    "Fir",
    "Nack",
    "OtherFeedback",
    "Pli",
    "ReceiverReport",
    "ReportBlock",
    "RtcpPacket",
    "SdesChunk",
    "SenderReport",
    "SourceDescription",
    "UnknownPacket",
    "compound",
    "ntp_time",
    "parse_compound",
    "parse_readable",
    "unix_time",
]

NTP_EPOCH: Final = 2_208_988_800  # Source: §4, seconds from 1900 to 1970
_SSRC: Final = struct.Struct("!I")
_SENDER: Final = struct.Struct("!IQIII")
_BLOCK: Final = struct.Struct("!IIIIII")
_LOST_MAX, _LOST_MIN = 0x7FFFFF, -0x800000  # Source: §A.3, 24 bits that clamp and never wrap


def ntp_time(unix_seconds: float) -> int:
    """Turn Unix time into the 64-bit NTP format, 32 bits of them a fraction: §4."""
    return int((unix_seconds + NTP_EPOCH) * 4294967296.0) & 0xFFFFFFFFFFFFFFFF


def unix_time(ntp: int) -> float:
    """Turn the 64-bit NTP format into Unix time: §4.

    >>> unix_time(ntp_time(1.5))
    1.5
    """
    return ntp / 4294967296.0 - NTP_EPOCH


@dataclass(frozen=True, slots=True)
class ReportBlock:
    """A report on the reception of one source: §6.4.1.

    `fraction_lost` is in 1/256 since the last report, `lost` in packets since the start
    (24 bits signed, clamped when written), `jitter` in clock ticks.  `last_sr` is the
    middle of the last sender report's NTP time, `delay` the time since it in 1/65536 s.
    """

    ssrc: int
    fraction_lost: int
    lost: int
    highest_sequence: int
    jitter: int
    last_sr: int = 0
    delay: int = 0

    @classmethod
    def parse(cls, data: bytes | memoryview) -> Self:
        """Read 24 octets, or raise RemoteError: §6.4.1."""
        ssrc, losses, *rest = unpack_from(_BLOCK, bytes(data))
        lost = losses & 0xFFFFFF
        return cls(ssrc, losses >> 24, lost - (lost >> 23 << 24), *rest)

    def __bytes__(self) -> bytes:
        """Write 24 octets: §6.4.1."""
        lost = min(max(self.lost, _LOST_MIN), _LOST_MAX) & 0xFFFFFF
        losses = self.fraction_lost << 24 | lost
        rest = (self.highest_sequence, self.jitter, self.last_sr, self.delay)
        return _BLOCK.pack(self.ssrc, losses, *rest)


@dataclass(frozen=True, slots=True)
class SenderReport(RtcpForm):
    """The counts of a sender, and its time by the wall clock and by the media clock: §6.4.1.

    `ntp` and `timestamp` are the same instant, in NTP format (64 bits) and on the media
    clock.  `octets` counts payload alone.  `extension` is what a profile may append.
    """

    packet_type = SR
    ssrc: int
    ntp: int
    timestamp: int
    packets: int
    octets: int
    reports: tuple[ReportBlock, ...] = ()
    extension: bytes = b""

    @classmethod
    def _read(cls, count: int, body: bytes) -> Self:
        ssrc, ntp, timestamp, packets, octets = unpack_from(_SENDER, body)
        blocks, extension = _read_blocks(count, body, _SENDER.size)
        return cls(ssrc, ntp, timestamp, packets, octets, blocks, extension)

    def __bytes__(self) -> bytes:
        """Write the packet, counters modulo 32 bits: §6.4.1."""
        counters = (self.packets & 0xFFFFFFFF, self.octets & 0xFFFFFFFF)
        body = _SENDER.pack(self.ssrc, self.ntp, self.timestamp, *counters)
        return rtcp_frame.write(SR, *_write_blocks(body, self.reports, self.extension))


@dataclass(frozen=True, slots=True)
class ReceiverReport(RtcpForm):
    """The report of a member that has not sent lately: §6.4.2.  Fields as in `SenderReport`."""

    packet_type = RR
    ssrc: int
    reports: tuple[ReportBlock, ...] = ()
    extension: bytes = b""

    @classmethod
    def _read(cls, count: int, body: bytes) -> Self:
        (ssrc,) = unpack_from(_SSRC, body)
        return cls(ssrc, *_read_blocks(count, body, _SSRC.size))

    def __bytes__(self) -> bytes:
        body = _SSRC.pack(self.ssrc)
        return rtcp_frame.write(RR, *_write_blocks(body, self.reports, self.extension))


@dataclass(frozen=True, slots=True)
class Bye(RtcpForm):
    """Sources that leave, and why: §6.6.  `reason` is UTF-8 of up to 255 octets, or empty."""

    packet_type = BYE
    ssrcs: tuple[int, ...]
    reason: bytes = b""

    def __post_init__(self) -> None:
        if len(self.ssrcs) > 31 or len(self.reason) > 255:
            raise LocalError("at most 31 sources and 255 octets of reason")

    @classmethod
    def _read(cls, count: int, body: bytes) -> Self:
        ssrcs = unpack_from(struct.Struct(f"!{count}I"), body)
        rest = body[4 * count :]
        if rest and rest[0] >= len(rest):
            raise RemoteError("reason for leaving beyond the end")
        return cls(ssrcs, rest[1 : 1 + rest[0]] if rest else b"")

    def __bytes__(self) -> bytes:
        """Write the packet, the reason padded to whole words: §6.6."""
        reason = bytes([len(self.reason)]) + self.reason if self.reason else b""
        body = struct.pack(f"!{len(self.ssrcs)}I", *self.ssrcs) + reason
        # §6.6 [reason-is-padded]
        return rtcp_frame.write(BYE, len(self.ssrcs), body + bytes(-len(body) % 4))


@dataclass(frozen=True, slots=True)
class App(RtcpForm):
    """A packet of an application: §6.7; `name` of four octets, `subtype` of five bits."""

    packet_type = APP
    subtype: int
    ssrc: int
    name: bytes
    data: bytes = b""

    def __post_init__(self) -> None:
        if self.subtype >> 5 or len(self.name) != 4 or len(self.data) % 4:  # §6.7 [app-in-words]
            raise LocalError("an APP packet has a name of four octets and whole words of data")

    @classmethod
    def _read(cls, count: int, body: bytes) -> Self:
        if len(body) < 8:
            raise RemoteError("APP packet without a name")
        (ssrc,) = unpack_from(_SSRC, body)
        return cls(count, ssrc, body[4:8], body[8:])

    def __bytes__(self) -> bytes:
        return rtcp_frame.write(APP, self.subtype, _SSRC.pack(self.ssrc) + self.name + self.data)


@dataclass(frozen=True, slots=True)
class UnknownPacket:
    """A packet of an unknown type, kept whole; §6.1 tells receivers to ignore it."""

    packet_type: int
    count: int
    body: bytes = field(repr=False, default=b"")

    def __bytes__(self) -> bytes:
        return rtcp_frame.write(self.packet_type, self.count, self.body)


RtcpPacket: TypeAlias = (
    SenderReport
    | ReceiverReport
    | SourceDescription
    | Bye
    | App
    | Feedback
    | ExtendedReport
    | UnknownPacket
)
"""Any packet of a compound: §6.1."""


def parse_compound(data: bytes | memoryview, *, strict: bool = False) -> list[RtcpPacket]:
    """Read a datagram, or raise RemoteError: §6.1, with the checks of §A.2.

    Only if `strict`, a report must come first: senders of reduced-size RTCP leave it out, and
    the other checks are strong enough.
    """
    packets = [_read(*framed) for framed in rtcp_frame.read_all(data)]
    if strict and not isinstance(packets[0], SenderReport | ReceiverReport):
        raise RemoteError("compound that does not begin with a report")
    return packets


def parse_readable(data: bytes | memoryview) -> list[RtcpPacket]:
    """Read those packets of a datagram that can be read: Field §"Compounds with a packet amiss".

    Raises RemoteError where the lengths do not add up (§A.2), or where none can be read.
    """
    packets: list[RtcpPacket] = []
    for framed in list(rtcp_frame.read_all(data)):
        with suppress(RemoteError):
            packets.append(_read(*framed))
    if not packets:
        raise RemoteError("RTCP of nothing that can be read")
    return packets


def compound(*packets: RtcpPacket) -> bytes:
    """Write a datagram; LocalError unless a report comes first: §6.1."""
    if not packets or not isinstance(packets[0], SenderReport | ReceiverReport):
        raise LocalError("a compound begins with a report")  # §6.1 [report-in-each] [report-first]
    return b"".join(map(bytes, packets))


_READERS: Final[Mapping[int, Callable[[int, bytes], RtcpPacket]]] = {
    SR: SenderReport._read,
    RR: ReceiverReport._read,
    SDES: SourceDescription._read,
    BYE: Bye._read,
    APP: App._read,
    XR: ExtendedReport._read,
}


def _read(packet_type: int, count: int, body: bytes) -> RtcpPacket:
    if packet_type in (RTPFB, PSFB):
        return feedback.read(packet_type, count, body)
    reader = _READERS.get(packet_type)
    return UnknownPacket(packet_type, count, body) if reader is None else reader(count, body)


def _read_blocks(count: int, body: bytes, at: int) -> tuple[tuple[ReportBlock, ...], bytes]:
    """Parse `count` report blocks from `at`; return them and the rest of the packet: §6.4.3."""
    end = at + count * _BLOCK.size
    if end > len(body):
        raise RemoteError("report blocks beyond the end")
    blocks = (ReportBlock.parse(body[i : i + _BLOCK.size]) for i in range(at, end, _BLOCK.size))
    return tuple(blocks), body[end:]  # §6.4.3 [extension-at-the-end]


def _write_blocks(
    body: bytes, reports: tuple[ReportBlock, ...], extension: bytes
) -> tuple[int, bytes]:
    return len(reports), body + b"".join(map(bytes, reports)) + extension
