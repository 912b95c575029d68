"""The fields of H.265's parameter sets that a gateway needs: profile, size, ids.

Own design: the syntax is that of ITU-T H.265 (clauses 7.3.2.2, 7.3.2.3, 7.3.3 and 7.3.6.1), which
is not in the catalogue; tests hold it against an encoder's.  Width and height go to FLV 10.1 §E.5,
the rest into the record of E-RTMP v2 §"Enhanced Video".
"""

from dataclasses import dataclass
from typing import Final, Self

from rtmplite.errors import RemoteError
from rtmplite.flv.avc_sps import BitReader

VPS, SPS, PPS = 32, 33, 34  # types of NAL units
INTRA: Final = range(16, 24)  # of slices where a decoder can begin
GENERAL_OCTETS: Final = 12  # of profile, compatibility, constraints and level
MAX_SPS_ID, MAX_PPS_ID = 15, 63
_MAX_SIDE: Final = 16888  # luma samples, of the longest picture of level 6.2
_MOST_SUB_LAYERS: Final = 7


def kind_of(unit: bytes) -> int:
    """The type of a NAL unit, 0 of none."""
    return unit[0] >> 1 & 0x3F if unit else 0


@dataclass(frozen=True, slots=True)
class HevcParameters:
    """The fields of a sequence parameter set.

    `general` are the octets of profile, compatibility, constraints and level; `width` and `height`
    are of the picture that is shown, in samples of luma; `reorder` is how many pictures may come
    before one that is shown earlier.  `sub_layers` counts temporal ones, `nested` says that each
    may be left out anywhere.
    """

    general: bytes
    sub_layers: int
    nested: bool
    set_id: int
    chroma_format: int
    luma_depth: int
    chroma_depth: int
    width: int
    height: int
    reorder: int

    @classmethod
    def parse(cls, unit: bytes | memoryview) -> Self:
        """Read a whole NAL unit; RemoteError if it makes no sense."""
        unit = bytes(unit)
        if kind_of(unit) != SPS:
            raise RemoteError("no sequence parameter set of H.265")
        bits = BitReader(unit[1:])
        bits.read(4)  # the video parameter set
        more, nested = bits.read(3), bool(bits.read(1))
        general = bits.read(8 * GENERAL_OCTETS).to_bytes(GENERAL_OCTETS, "big")
        _skip_sub_layers(bits, more)
        set_id = _limited(bits.exp_golomb(), MAX_SPS_ID)
        chroma_format = _limited(bits.exp_golomb(), 3)
        separate_planes = chroma_format == 3 and bool(bits.read(1))
        width, height = _size(bits, 0 if separate_planes else chroma_format)
        luma_depth = 8 + _limited(bits.exp_golomb(), 7)
        chroma_depth = 8 + _limited(bits.exp_golomb(), 7)
        bits.exp_golomb()  # the size of picture counts
        reorder = 0
        for _ in range(more + 1 if bits.read(1) else 1):
            bits.exp_golomb()
            reorder = _limited(bits.exp_golomb(), 15)
            bits.exp_golomb()
        depths = luma_depth, chroma_depth
        return cls(
            general, more + 1, nested, set_id, chroma_format, *depths, width, height, reorder
        )


def pps_ids(unit: bytes) -> tuple[int, int]:
    """Read a picture parameter set's id, and that of its sequence; RemoteError if it has none."""
    bits = BitReader(unit[1:17])
    return _limited(bits.exp_golomb(), MAX_PPS_ID), _limited(bits.exp_golomb(), MAX_SPS_ID)


def slice_pps_id(unit: bytes) -> int:
    """Read the id of the picture parameter set of a slice; RemoteError if it has none."""
    bits = BitReader(unit[1:17])
    bits.read(1)  # whether it begins a picture
    if kind_of(unit) in INTRA:
        bits.read(1)
    return _limited(bits.exp_golomb(), MAX_PPS_ID)


def vps_id(unit: bytes) -> int:
    """Read the id of a video parameter set; RemoteError if it has none."""
    return BitReader(unit[1:4]).read(4)


def sps_vps_id(unit: bytes) -> int:
    """Read the id of a sequence's video parameter set; RemoteError if it has none."""
    return BitReader(unit[1:4]).read(4)


def _limited(number: int, most: int) -> int:
    if number > most:
        raise RemoteError(f"{number} in a parameter set, where {most} is the most")
    return number


def _skip_sub_layers(bits: BitReader, more: int) -> None:
    """Skip profiles and levels of `more` temporal layers."""
    if more >= _MOST_SUB_LAYERS:
        raise RemoteError(f"{more + 1} temporal layers in a parameter set")
    present = [(bits.read(1), bits.read(1)) for _ in range(more)]
    if more:
        bits.read(2 * (8 - more))
    for has_profile, has_level in present:
        bits.read(88 * has_profile + 8 * has_level)


def _size(bits: BitReader, chroma_format: int) -> tuple[int, int]:
    """Read width and height in samples, less the cropping."""
    width, height = bits.exp_golomb(), bits.exp_golomb()
    if bits.read(1):
        step_x = 2 if chroma_format in (1, 2) else 1
        step_y = 2 if chroma_format == 1 else 1
        width -= step_x * (bits.exp_golomb() + bits.exp_golomb())
        height -= step_y * (bits.exp_golomb() + bits.exp_golomb())
    if not (0 < width <= _MAX_SIDE and 0 < height <= _MAX_SIDE):
        raise RemoteError("a picture beyond the limits of H.265, or cropped to nothing")
    return width, height
