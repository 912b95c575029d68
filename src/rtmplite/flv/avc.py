"""AVC in FLV: parameter sets, the record that a decoder gets them in, and NAL units.

Implements FLV 10.1 §E.4.3.2, which names the AVCDecoderConfigurationRecord of ISO 14496-15
(its clause 5.2.4.1, with the fields for High profiles).  Own design: the sets have the syntax of
ITU-T H.264 (clauses 7.3.2.1.1, 7.3.2.2, 7.3.3 and E.1.1), which is not in the catalogue; tests hold
it against recorded streams.

    >>> sps, pps = bytes.fromhex("6742c01eda0a0fd0"), bytes.fromhex("68ce3c80")
    >>> record = AvcConfig.of([sps], [pps])
    >>> bytes(record).hex(" ", -4)
    '0142c01e ffe10008 6742c01e da0a0fd0 01000468 ce3c80'
    >>> AvcConfig.parse(bytes(record)) == record
    True
    >>> join_units([pps]).hex(" ", 4), split_units(join_units([sps, pps])) == [sps, pps]
    ('00000004 68ce3c80', True)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from rtmplite.errors import LocalError, RemoteError

VERSION: Final = 1  # of the record
MAX_SPS, MAX_PPS = 31, 255  # sets that a record can count
LENGTH_SIZE: Final = 4  # octets of a NAL unit's length, as everybody writes it
_MAX_SET: Final = 0xFFFF  # octets of one set
_RESERVED_LENGTH, _RESERVED_SPS = 0xFC, 0xE0  # bits that are ones

SPS, PPS = 7, 8  # types of NAL units
# Profiles whose set tells chroma format and depths.
HIGH_PROFILES: Final = frozenset((100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135))
MAX_SPS_ID, MAX_PPS_ID = 31, 255
MAX_OCTETS: Final = 4096  # of a set that is read: ten times what anybody sends
_MAX_SIDE: Final = 16880  # luma samples, of the longest picture of level 6.2
_EXTENDED_SAR: Final = 255


class BitReader:
    """Reads bits of a NAL unit, but not those against start codes; RemoteError at the end."""

    def __init__(self, unit: bytes) -> None:
        body = unit[1 : MAX_OCTETS + 1].replace(b"\0\0\3", b"\0\0")
        self._bits, self._left = int.from_bytes(body, "big"), 8 * len(body)

    def read(self, count: int) -> int:
        """Take `count` bits as a number."""
        self._left -= count
        if self._left < 0:
            raise RemoteError("a parameter set is cut short")
        return self._bits >> self._left & (1 << count) - 1

    def exp_golomb(self) -> int:
        """Take an unsigned number of variable length, ue(v)."""
        zeros = 0
        while not self.read(1):
            zeros += 1
            if zeros > 32:
                raise RemoteError("a number without an end in a parameter set")
        return (1 << zeros) - 1 + self.read(zeros)

    def signed(self) -> int:
        """Take a signed number of variable length, se(v)."""
        number = self.exp_golomb()
        return (number + 1) // 2 if number & 1 else -(number // 2)


@dataclass(frozen=True, slots=True)
class SequenceParameters:
    """The fields of a sequence parameter set that a gateway needs.

    `width` and `height` are of the picture that is shown, in samples of luma; `reorder` is how many
    pictures may come before one that is shown earlier, None if the set does not say.
    """

    profile: int
    compatibility: int
    level: int
    set_id: int
    chroma_format: int
    luma_depth: int
    chroma_depth: int
    width: int
    height: int
    reorder: int | None = None

    @classmethod
    def parse(cls, unit: bytes | memoryview) -> Self:
        """Read a whole NAL unit; RemoteError if it makes no sense."""
        unit = bytes(unit)
        if len(unit) < 5 or unit[0] & 0x1F != SPS:
            raise RemoteError("no sequence parameter set")
        bits = BitReader(unit)
        profile, compatibility, level = bits.read(8), bits.read(8), bits.read(8)
        set_id = _limited(bits.exp_golomb(), MAX_SPS_ID)
        chroma_format, luma_depth, chroma_depth = 1, 8, 8
        separate_planes = False
        if profile in HIGH_PROFILES:
            chroma_format = _limited(bits.exp_golomb(), 3)
            separate_planes = chroma_format == 3 and bool(bits.read(1))
            luma_depth = 8 + _limited(bits.exp_golomb(), 6)
            chroma_depth = 8 + _limited(bits.exp_golomb(), 6)
            bits.read(1)
            if bits.read(1):
                _skip_scaling(bits, 8 if chroma_format != 3 else 12)
        _skip_order(bits)
        width, height = _size(bits, 0 if separate_planes else chroma_format)
        return cls(
            profile,
            compatibility,
            level,
            set_id,
            chroma_format,
            luma_depth,
            chroma_depth,
            width,
            height,
            _reorder(bits),
        )


def pps_ids(unit: bytes) -> tuple[int, int]:
    """Read a picture parameter set's id, and that of its sequence; RemoteError if it has none."""
    bits = BitReader(unit[:16])
    return _limited(bits.exp_golomb(), MAX_PPS_ID), _limited(bits.exp_golomb(), MAX_SPS_ID)


def slice_pps_id(unit: bytes) -> int:
    """Read the id of the picture parameter set of a slice; RemoteError if it has none."""
    bits = BitReader(unit[:24])
    bits.exp_golomb()  # the first macroblock
    bits.exp_golomb()  # the type
    return _limited(bits.exp_golomb(), MAX_PPS_ID)


def _limited(number: int, most: int) -> int:
    if number > most:
        raise RemoteError(f"{number} in a parameter set, where {most} is the most")
    return number


def _skip_scaling(bits: BitReader, lists: int) -> None:
    """Skip the matrices of quantization, which are differences in zigzag order."""
    for at in range(lists):
        last = following = 8
        for _ in range(0 if not bits.read(1) else 16 if at < 6 else 64):
            if following:
                following = (last + bits.signed()) % 256
            last = following or last


def _skip_order(bits: BitReader) -> None:
    """Skip the numbering of frames, and the order in which they are shown."""
    bits.exp_golomb()
    kind = _limited(bits.exp_golomb(), 2)
    if kind == 0:
        bits.exp_golomb()
    elif kind == 1:
        bits.read(1)
        bits.signed()
        bits.signed()
        for _ in range(_limited(bits.exp_golomb(), 255)):
            bits.signed()
    bits.exp_golomb()  # the number of reference frames
    bits.read(1)


def _size(bits: BitReader, chroma_format: int) -> tuple[int, int]:
    """Read width and height in macroblocks, less the cropping."""
    across, down = bits.exp_golomb() + 1, bits.exp_golomb() + 1
    is_progressive = bits.read(1)
    if not is_progressive:
        bits.read(1)
    bits.read(1)
    width, height = 16 * across, 16 * down * (2 - is_progressive)
    if max(width, height) > _MAX_SIDE:
        raise RemoteError("a picture beyond the limits of H.264")
    if bits.read(1):
        step_x = 2 if chroma_format in (1, 2) else 1
        step_y = (2 if chroma_format == 1 else 1) * (2 - is_progressive)
        width -= step_x * (bits.exp_golomb() + bits.exp_golomb())
        height -= step_y * (bits.exp_golomb() + bits.exp_golomb())
        if min(width, height) <= 0:
            raise RemoteError("a picture that is cropped to nothing")
    return width, height


def _reorder(bits: BitReader) -> int | None:
    """Read how far frames are reordered, at the end of the usability information, if whole."""
    try:
        if not bits.read(1):
            return None
        if bits.read(1) and bits.read(8) == _EXTENDED_SAR:
            bits.read(32)
        if bits.read(1):
            bits.read(1)  # overscan
        if bits.read(1):  # the kind of signal
            bits.read(4)
            if bits.read(1):
                bits.read(24)
        if bits.read(1):
            bits.exp_golomb()  # where chroma lies
            bits.exp_golomb()
        if bits.read(1):
            bits.read(65)  # the rate of pictures
        has_decoder_models = [_skip_decoder_model(bits) for _ in range(2)]
        if any(has_decoder_models):
            bits.read(1)
        bits.read(1)
        if not bits.read(1):
            return None
        bits.read(1)
        for _ in range(4):
            bits.exp_golomb()
        return _limited(bits.exp_golomb(), 16)
    except RemoteError:
        return None


def _skip_decoder_model(bits: BitReader) -> bool:
    if not bits.read(1):
        return False
    count = _limited(bits.exp_golomb(), 31) + 1
    bits.read(8)
    for _ in range(count):
        bits.exp_golomb()
        bits.exp_golomb()
        bits.read(1)
    bits.read(20)
    return True


@dataclass(frozen=True, slots=True)
class AvcConfig:
    """The contents of a sequence header: §E.4.3.2.

    `profile`, `compatibility` and `level` are the three octets that a sequence parameter set begins
    with; `sps` and `pps` are whole NAL units; `extension` is what follows them, as it is: chroma
    format and depths of High profiles.
    """

    profile: int
    compatibility: int
    level: int
    sps: tuple[bytes, ...]
    pps: tuple[bytes, ...]
    length_size: int = LENGTH_SIZE
    extension: bytes = b""

    @classmethod
    def of(cls, sps: Sequence[bytes], pps: Sequence[bytes]) -> Self:
        """Make the record of these NAL units, its extension included: §E.4.3.2.

        The first sequence parameter set tells profile and level.  LocalError without one,
        RemoteError if it is of a High profile and makes no sense.
        """
        if not sps or len(sps[0]) < 4:
            raise LocalError("a record needs a sequence parameter set")
        profile, compatibility, level = sps[0][1:4]
        extension = b""
        if profile in HIGH_PROFILES:
            read = SequenceParameters.parse(sps[0])
            depths = 0xF8 | read.luma_depth - 8, 0xF8 | read.chroma_depth - 8
            extension = bytes((0xFC | read.chroma_format, *depths, 0))
        return cls(profile, compatibility, level, tuple(sps), tuple(pps), extension=extension)

    @classmethod
    def parse(cls, data: bytes | memoryview) -> Self:
        """Read a sequence header behind its five octets: §E.4.3.2.  RemoteError if malformed."""
        data = bytes(data)
        if len(data) < 6:
            raise RemoteError(f"an AVC record of {len(data)} octets")
        if data[0] != VERSION:
            raise RemoteError(f"an AVC record of version {data[0]}")
        # §E.4.3.2 [decoder-configuration]
        sps, at = _read_sets(data, 6, data[5] & ~_RESERVED_SPS)
        if at == len(data):
            raise RemoteError("an AVC record without picture parameter sets")
        pps, at = _read_sets(data, at + 1, data[at])
        return cls(data[1], data[2], data[3], sps, pps, (data[4] & 3) + 1, data[at:])

    def __bytes__(self) -> bytes:
        """Write the body of a sequence header: §E.4.3.2.  LocalError if a set does not fit."""
        if len(self.sps) > MAX_SPS or len(self.pps) > MAX_PPS:
            raise LocalError(f"{len(self.sps)} and {len(self.pps)} parameter sets")
        if not 1 <= self.length_size <= 4:
            raise LocalError(f"lengths of {self.length_size} octets")
        # §E.4.3.2 [decoder-configuration]
        head = VERSION, self.profile, self.compatibility, self.level
        counts = _RESERVED_LENGTH | self.length_size - 1, _RESERVED_SPS | len(self.sps)
        parts = [bytes((*head, *counts)), *map(_written, self.sps), bytes((len(self.pps),))]
        return b"".join((*parts, *map(_written, self.pps), self.extension))


def _read_sets(data: bytes, at: int, count: int) -> tuple[tuple[bytes, ...], int]:
    """Read `count` parameter sets; the second result is where the rest begins."""
    sets: list[bytes] = []
    for _ in range(count):
        size = int.from_bytes(data[at : at + 2], "big")
        unit, at = data[at + 2 : at + 2 + size], at + 2 + size
        if not unit or at > len(data):
            raise RemoteError("a parameter set is empty or cut short")
        sets.append(unit)
    return tuple(sets), at


def _written(unit: bytes) -> bytes:
    if not 0 < len(unit) <= _MAX_SET:
        raise LocalError(f"a parameter set of {len(unit)} octets")
    return len(unit).to_bytes(2, "big") + unit


def split_units(data: bytes | memoryview, length_size: int = LENGTH_SIZE) -> list[bytes]:
    """Split a tag into NAL units that are not empty: §E.4.3.2.  RemoteError if cut short."""
    data, at, end = bytes(data), 0, len(data)
    units: list[bytes] = []
    while at < end:
        begin = at + length_size
        at = begin + int.from_bytes(data[at:begin], "big")
        if at > end or begin > end:
            raise RemoteError("a NAL unit is cut short")
        if at > begin:
            units.append(data[begin:at])
    return units


def join_units(units: Iterable[bytes]) -> bytes:
    """Write NAL units, each after its length in four octets: §E.4.3.2."""
    parts: list[bytes] = []
    for unit in units:
        parts += len(unit).to_bytes(LENGTH_SIZE, "big"), unit
    return b"".join(parts)
