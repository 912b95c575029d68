"""HEVC in FLV: parameter sets, and the record that a decoder gets them in.

Implements E-RTMP v2 §"Enhanced Video", which names the HEVCDecoderConfigurationRecord of
ISO 14496-15 (its clause 8.3.3.1); E-RTMP v1 §"Defining Additional Video Codecs" has it too.  NAL
units follow their lengths as those of AVC do: `avc.split_units`.  Own design: the sets have the
syntax of ITU-T H.265 (clauses 7.3.2.2, 7.3.2.3, 7.3.3 and 7.3.6.1), which is not in the catalogue;
tests hold it against an encoder's.

    >>> sets = HevcArray(34, (bytes.fromhex("4401c172b46240"),))
    >>> record = HevcConfig(bytes.fromhex("016000000090000000000078"), (sets,))
    >>> HevcConfig.parse(bytes(record)) == record, record.units(34) == sets.units
    (True, True)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final, Self

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv.avc import BitReader

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
    """The fields of a sequence parameter set that a gateway needs.

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


VERSION: Final = 1  # of the record
LENGTH_SIZE: Final = 4  # octets of a NAL unit's length, as everybody writes it
MAX_SETS: Final = 0xFFFF  # of one type
_MAX_SET: Final = 0xFFFF  # octets of one set
# Version, general octets, segmentation, parallelism, chroma, two depths, rate, layers, arrays
_HEAD: Final = Struct(f"!B{GENERAL_OCTETS}sHBBBBHBB")
_ARRAY: Final = Struct("!BH")


@dataclass(frozen=True, slots=True)
class HevcArray:
    """NAL units of one type; if `complete`, the stream has no others: §"Enhanced Video"."""

    kind: int
    units: tuple[bytes, ...]
    complete: bool = True


@dataclass(frozen=True, slots=True)
class HevcConfig:
    """The contents of a sequence header: §"Enhanced Video".

    `general` are twelve octets of profile, compatibility, constraints and level, as a sequence
    parameter set has them.  The rest repeats fields of the sets, or means nothing where it is 0.
    `frame_rate` is in pictures per 256 seconds.
    """

    general: bytes
    arrays: tuple[HevcArray, ...]
    segmentation: int = 0
    parallelism: int = 0
    chroma_format: int = 1
    luma_depth: int = 8
    chroma_depth: int = 8
    frame_rate: int = 0
    constant_rate: int = 0
    temporal_layers: int = 1
    nested: bool = True
    length_size: int = LENGTH_SIZE

    @classmethod
    def of(cls, vps: Sequence[bytes], sps: Sequence[bytes], pps: Sequence[bytes]) -> Self:
        """Make the record of NAL units: §"Enhanced Video".  RemoteError, LocalError without one."""
        if not sps:
            raise LocalError("a record needs a sequence parameter set")
        read = HevcParameters.parse(sps[0])
        return cls(
            read.general,
            tuple(HevcArray(*each) for each in ((VPS, tuple(vps)), (SPS, tuple(sps)),
                                                (PPS, tuple(pps)))),
            chroma_format=read.chroma_format,
            luma_depth=read.luma_depth,
            chroma_depth=read.chroma_depth,
            temporal_layers=read.sub_layers,
            nested=read.nested,
        )  # fmt: skip

    @classmethod
    def parse(cls, data: bytes | memoryview) -> Self:
        """Read a sequence header's body: §"Enhanced Video".  RemoteError if wrong or cut."""
        data = bytes(data)
        if len(data) < _HEAD.size:
            raise RemoteError(f"an HEVC record of {len(data)} octets")
        version, general, segments, *fields, rate, layers, count = _HEAD.unpack_from(data)
        # Own design: some encoders write 0 for a version that was not final
        if version not in (0, VERSION):
            raise RemoteError(f"an HEVC record of version {version}")
        parallelism, chroma, luma_depth, chroma_depth = fields
        return cls(
            general,
            tuple(_read_arrays(data, count)),
            segments & 0x0FFF,
            parallelism & 3,
            chroma & 3,
            8 + (luma_depth & 7),
            8 + (chroma_depth & 7),
            rate,
            layers >> 6,
            layers >> 3 & 7,
            bool(layers & 4),
            (layers & 3) + 1,
        )

    def __bytes__(self) -> bytes:
        """Write a sequence header's body: §"Enhanced Video".  LocalError if a set is too long."""
        if len(self.general) != GENERAL_OCTETS or not 1 <= self.length_size <= 4:
            raise LocalError("an HEVC record of another form")
        layers = self.constant_rate << 6 | self.temporal_layers << 3
        head = _HEAD.pack(
            VERSION,
            self.general,
            0xF000 | self.segmentation,
            0xFC | self.parallelism,
            0xFC | self.chroma_format,
            0xF8 | self.luma_depth - 8,
            0xF8 | self.chroma_depth - 8,
            self.frame_rate,
            layers | self.nested << 2 | self.length_size - 1,
            len(self.arrays),
        )
        return head + b"".join(map(_written, self.arrays))

    def units(self, kind: int) -> tuple[bytes, ...]:
        """The NAL units of one type: §"Enhanced Video"."""
        return tuple(unit for each in self.arrays if each.kind == kind for unit in each.units)


def _read_arrays(data: bytes, count: int) -> list[HevcArray]:
    arrays, at = [], _HEAD.size
    for _ in range(count):
        if at + _ARRAY.size > len(data):
            raise RemoteError("an HEVC record is cut short")
        first, number = _ARRAY.unpack_from(data, at)
        at += _ARRAY.size
        units: list[bytes] = []
        for _ in range(number):
            size = int.from_bytes(data[at : at + 2], "big")
            unit, at = data[at + 2 : at + 2 + size], at + 2 + size
            if not unit or at > len(data):
                raise RemoteError("a parameter set is empty or cut short")
            units.append(unit)
        arrays.append(HevcArray(first & 0x3F, tuple(units), bool(first & 0x80)))
    return arrays


def _written(array: HevcArray) -> bytes:
    if len(array.units) > MAX_SETS or any(not 0 < len(each) <= _MAX_SET for each in array.units):
        raise LocalError(f"parameter sets of type {array.kind} that do not fit")
    head = _ARRAY.pack(array.complete << 7 | array.kind, len(array.units))
    return head + b"".join(len(each).to_bytes(2, "big") + each for each in array.units)
