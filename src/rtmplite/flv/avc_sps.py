"""The fields of H.264's parameter sets that a gateway needs: the picture's size, and ids.

Own design: the syntax is that of ITU-T H.264 (clauses 7.3.2.1.1, 7.3.2.2, 7.3.3 and E.1.1), which
is not in the catalogue; tests hold it against recorded streams.  Width and height go to
FLV 10.1 §E.5.

    >>> sps = bytes.fromhex("6742c00cda0507ec0440000003004000000603c50aa8")
    >>> read = SequenceParameters.parse(sps)
    >>> read.set_id, read.width, read.height, read.reorder
    (0, 320, 240, 0)
"""

from dataclasses import dataclass
from typing import Final, Self

from rtmplite.errors import RemoteError

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
    """The fields of a sequence parameter set.

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
