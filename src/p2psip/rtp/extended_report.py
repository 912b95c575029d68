"""XR: what a listener knows of a call beyond loss and jitter.

Implements RFC 3611 §2 and §3, with the VoIP metrics of §4.7.

    >>> metrics = VoipMetrics(0xCAFE, loss_rate=12, burst_duration=120, r_factor=91)
    >>> report = ExtendedReport(7, (metrics,))
    >>> ExtendedReport.parse(bytes(report)) == report
    True
    >>> metrics.mos_lq is None, round(metrics.loss, 3)
    (True, 0.047)
"""

import struct
from dataclasses import dataclass, field
from struct import Struct
from typing import Final, Self, TypeAlias

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp import rtcp_frame
from p2psip.rtp.rtcp_frame import XR, RtcpForm, unpack_from

VOIP_METRICS: Final = 7  # Source: §4.7, the block type
UNAVAILABLE: Final = 127  # Source: §4.7.4 and §4.7.5, a value that is not known
GMIN: Final = 16  # packets. Source: §4.7.2
MAX_BLOCKS: Final = 64  # Own design: of one packet; memory must be bounded
_SSRC: Final = Struct("!I")
_BLOCK: Final = Struct("!BBH")
# Source: §4.7, the words of the block behind its header
_VOIP: Final = Struct("!I4B4Hbb2B4BBx3H")
_VOIP_WORDS: Final = 8


@dataclass(frozen=True, slots=True)
class VoipMetrics:
    """How a voice arrives: §4.7.  Rates and densities are in 1/256, times in ms.

    Levels are in dBm0 (§4.7.4), qualities as §4.7.5 has them, the MOS in tenths; None is unknown.
    `rx_config` and the jitter buffer's delays are of §4.7.6 and §4.7.7.
    """

    ssrc: int
    loss_rate: int = 0
    discard_rate: int = 0
    burst_density: int = 0
    gap_density: int = 0
    burst_duration: int = 0
    gap_duration: int = 0
    round_trip: int = 0
    end_system_delay: int = 0  # §4.7.3 [unknown-delay-is-zero]
    signal_level: int | None = None
    noise_level: int | None = None
    echo_return_loss: int | None = None
    gmin: int = GMIN
    r_factor: int | None = None
    external_r_factor: int | None = None
    mos_lq: int | None = None
    mos_cq: int | None = None
    rx_config: int = 0
    jitter_nominal: int = 0
    jitter_maximum: int = 0
    jitter_absolute: int = 0

    @property
    def loss(self) -> float:
        """The share of packets that were lost, 0 to 1: §4.7.1."""
        return self.loss_rate / 256

    @classmethod
    def _read(cls, body: bytes) -> Self:
        ssrc, *rest = _VOIP.unpack(body)
        values: list[int | None] = list(rest)
        for place in _MAY_BE_UNKNOWN:  # §4.7 [unknown-has-a-value]
            if values[place] == UNAVAILABLE:
                values[place] = None
        for place, valid in _QUALITIES.items():
            if values[place] not in valid:  # §4.7.5 [invalid-ignored]
                values[place] = None
        return cls(ssrc, *values)  # type: ignore[arg-type]

    def __bytes__(self) -> bytes:
        """Write the block, its header included: §4.7.  LocalError if a value does not fit."""
        values = [getattr(self, name) for name in self.__slots__]
        for place, valid in _QUALITIES.items():
            # §4.7.5 [invalid-never-sent]
            if values[place + 1] is not None and values[place + 1] not in valid:
                raise LocalError("a quality is not in its range")
        # §4.7 [unknown-has-a-value] [all-fields-have-values]
        values = [UNAVAILABLE if value is None else value for value in values]
        try:
            # §4.7 [reserved-is-zero], §4.7.6 [reserved-octet-is-zero]
            return _BLOCK.pack(VOIP_METRICS, 0, _VOIP_WORDS) + _VOIP.pack(*values)
        except struct.error as error:
            raise LocalError("a VoIP metric does not fit its field") from error


# The places of signal, noise and echo, and of the four qualities, behind the SSRC.
_MAY_BE_UNKNOWN: Final = (8, 9, 10, 12, 13, 14, 15)
# Source: §4.7.5, both R factors and both scores by their places, with their values
_QUALITIES: Final = {12: range(101), 13: range(101), 14: range(10, 51), 15: range(10, 51)}


@dataclass(frozen=True, slots=True)
class OtherBlock:
    """A report block of another type: §3; `content` is whole words."""

    kind: int
    specific: int
    content: bytes = field(repr=False, default=b"")

    def __post_init__(self) -> None:
        if len(self.content) % 4:  # §3 [contents-of-words]
            raise LocalError("a report block is whole words")

    def __bytes__(self) -> bytes:
        return _BLOCK.pack(self.kind, self.specific, len(self.content) // 4) + self.content


ReportExtension: TypeAlias = VoipMetrics | OtherBlock
"""Any report block of an extended report: §3."""


@dataclass(frozen=True, slots=True)
class ExtendedReport(RtcpForm):
    """One XR packet: §2."""

    packet_type = XR
    ssrc: int
    blocks: tuple[ReportExtension, ...] = ()

    @classmethod
    def _read(cls, count: int, body: bytes) -> Self:
        (ssrc,) = unpack_from(_SSRC, body)  # §2 [reserved-is-zero]: `count` is of no use
        blocks: list[ReportExtension] = []
        at = _SSRC.size
        while at < len(body):
            kind, specific, length = unpack_from(_BLOCK, body, at)
            at, end = at + _BLOCK.size, at + _BLOCK.size + 4 * length
            # §2 [blocks-of-words]
            if end > len(body) or len(blocks) == MAX_BLOCKS:
                raise RemoteError("extended report of blocks beyond the end, or of too many")
            content = body[at:end]
            if kind == VOIP_METRICS and length == _VOIP_WORDS:
                blocks.append(VoipMetrics._read(content))
            else:
                # §3 [unknown-blocks-skipped], §4 [others-are-passed-on]
                blocks.append(OtherBlock(kind, specific, content))
            at = end
        return cls(ssrc, tuple(blocks))

    def __bytes__(self) -> bytes:
        # §2 [reserved-is-zero]
        return rtcp_frame.write(XR, 0, _SSRC.pack(self.ssrc) + b"".join(map(bytes, self.blocks)))
