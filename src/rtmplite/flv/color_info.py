"""colorInfo: the data a display needs for high dynamic range, sent before the frames.

Implements E-RTMP v2 §"Metadata Frame"; E-RTMP v1 §"Metadata Frame" says the same.

    >>> hlg = ColorInfo(config={"bitDepth": 10.0, "transferCharacteristics": 18.0})
    >>> ColorInfo.parse(bytes(hlg)) == hlg, bytes(ColorInfo())[-1:]
    (True, b'\\x06')
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from rtmplite.amf import amf0
from rtmplite.amf.values import UNDEFINED, Value, is_number
from rtmplite.errors import LocalError
from rtmplite.flv.enhanced_video import ExVideoTag, VideoPacketType, VideoTrack
from rtmplite.flv.video import FrameType

NAME: Final = "colorInfo"

# Source: §"Metadata Frame" [color-info-members], with the bounds that each has there.
_COUNTS: Final = (0.0, 255.0)
_LIGHT: Final = (0.0001, 10000.0)  # cd/m2
_X: Final = (0.0001, 0.74)
_Y: Final = (0.0001, 0.84)
_CONFIG: Final[Mapping[str, tuple[float, float]]] = {
    "bitDepth": (8.0, 12.0),  # and no odd number of bits
    "colorPrimaries": _COUNTS,
    "transferCharacteristics": _COUNTS,
    "matrixCoefficients": _COUNTS,
}
_CLL: Final[Mapping[str, tuple[float, float]]] = {"maxFall": _LIGHT, "maxCLL": _LIGHT}
_MDCV: Final[Mapping[str, tuple[float, float]]] = {
    "redX": _X,
    "redY": _Y,
    "greenX": _X,
    "greenY": _Y,
    "blueX": _X,
    "blueY": _Y,
    "whitePointX": _X,
    "whitePointY": _Y,
    "maxLuminance": (5.0, 10000.0),
    "minLuminance": (0.0001, 5.0),
}


@dataclass(frozen=True, slots=True)
class ColorInfo:
    """Its members, under the names of the text: §"Metadata Frame".

    `config` is colorConfig, `light` hdrCll in cd/m2, `mastering` hdrMdcv; what is left out is
    unknown.  With nothing at all it resets to the original colors.
    """

    config: dict[str, float] = field(default_factory=dict)
    light: dict[str, float] = field(default_factory=dict)
    mastering: dict[str, float] = field(default_factory=dict)

    @classmethod
    def mastered(
        cls,
        bit_depth: int,
        indices: tuple[int, int, int],
        mastering: Mapping[str, float],
        light: Mapping[str, float] | None = None,
    ) -> Self:
        """Make it with all that the text recommends to a publisher.

        The `indices` of primaries, transfer characteristics and matrix in the tables of H.273
        (§"Metadata Frame"), and the screen that the video was mastered on.
        """
        primaries, transfer, matrix = indices
        # §"Metadata Frame" [indices-told]
        config = {
            "bitDepth": float(bit_depth),
            "colorPrimaries": float(primaries),
            "transferCharacteristics": float(transfer),
            "matrixCoefficients": float(matrix),
        }
        # §"Metadata Frame" [mastering-told]
        return cls(config, dict(light or {}), dict(mastering))

    @classmethod
    def parse(cls, data: bytes | memoryview) -> "Self | None":
        """Read colors from a metadata packet, None for others: §"Metadata Frame".  RemoteError."""
        values = amf0.decode(data)
        # §"Metadata Frame" [name-and-value], E-RTMP v1 §"Metadata Frame" [name-and-value]
        pairs = dict(zip(map(str, values[::2]), values[1::2], strict=False))
        if NAME not in pairs:
            return None
        info = pairs[NAME]
        told = info if isinstance(info, dict) else {}
        return cls(
            _numbers(told.get("colorConfig"), _CONFIG),
            _numbers(told.get("hdrCll"), _CLL),
            _numbers(told.get("hdrMdcv"), _MDCV),
        )

    def payload(self, four_cc: int) -> bytes:
        """Write the message that goes before the frames it is about, for a FourCC's track."""
        # §"Metadata Frame" [by-video-message]
        track = VideoTrack(four_cc, bytes(self))
        return bytes(ExVideoTag(FrameType.INFO_OR_COMMAND, VideoPacketType.METADATA, (track,)))

    def __bytes__(self) -> bytes:
        """Write it, undefined if empty: §"Metadata Frame".  LocalError beyond its bounds."""
        # §"Metadata Frame" [color-info-members]
        groups = {
            "colorConfig": _config(self.config),
            "hdrCll": _checked(self.light, _CLL),
            "hdrMdcv": _mastering(self.mastering),
        }
        told: dict[str, Value] = {name: group for name, group in groups.items() if group}
        # §"Metadata Frame" [reset-by-undefined], E-RTMP v1 §"Metadata Frame" [reset-by-undefined]
        return amf0.encode(NAME, told or UNDEFINED)


def _numbers(group: Value, known: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    if not isinstance(group, dict):
        return {}
    return {
        name: float(value) for name, value in group.items() if name in known and is_number(value)
    }


def _checked(
    group: Mapping[str, float], known: Mapping[str, tuple[float, float]]
) -> dict[str, Value]:
    for name, value in group.items():
        low, high = known.get(name, (1.0, 0.0))
        if not low <= value <= high:
            raise LocalError(f"{name} of {value}")
    return dict(group)


def _config(group: Mapping[str, float]) -> dict[str, Value]:
    """§"Metadata Frame"."""
    if group.get("bitDepth", 8.0) % 2:  # §"Metadata Frame" [bit-depth]
        raise LocalError(f"a bit depth of {group['bitDepth']}")
    return _checked(group, _CONFIG)


def _mastering(group: Mapping[str, float]) -> dict[str, Value]:
    """§"Metadata Frame"."""
    # §"Metadata Frame" [four-decimals]
    rounded = {
        name: round(value, 4) if name[-1] in "XY" else value for name, value in group.items()
    }
    return _checked(rounded, _MDCV)  # §"Metadata Frame" [chromaticity-range]
