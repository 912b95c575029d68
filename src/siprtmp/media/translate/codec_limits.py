"""The most that one end takes of video: a level of H.264, a size, a rate, and bits a second.

Own design: what a phone says (RFC 6184 §8.1, RFC 8866 §5.8) and what an operator wants are limits
of one kind, and the lower of both holds.  The table of levels is Table A-1 of ITU-T H.264, which is
not in the catalogue.

    >>> phone = h264_limits(H264Parameters.parse("profile-level-id=42e00c"), 256_000)
    >>> phone.level, phone.blocks, phone.bits
    (1.2, 396, 256000)
    >>> phone.fitted(1280, 720)
    (412, 232, 15.3)
    >>> phone.excess(VideoProperties(1280, 720, 3.1, "H"))
    'level 3.1'
"""

from dataclasses import astuple, dataclass, replace
from typing import Any, Final, NamedTuple, Self

from p2psip.sdp.h264_parameters import LEVEL_1B, H264Parameters

MOST: Final = 30.0  # frames a second that are made, where nobody asks for fewer
LEAST: Final = 15.0  # that a level has to leave room for, at the cost of the size
SIDE: Final = 16  # pixels of a macroblock
BITS_PER_PIXEL: Final = 0.1  # of a frame: half a megabit a second at 640x360 and 24 frames
MIN_BITS: Final = 48_000  # a second
SPARE: Final = 0.9  # of the bits that are allowed, since encoders keep to them on average

# Macroblocks a second, macroblocks of a frame, and kilobits a second, by level.
_LEVELS: Final[dict[float, tuple[int, int, int]]] = {
    1.0: (1485, 99, 64),
    LEVEL_1B: (1485, 99, 128),
    1.1: (3000, 396, 192),
    1.2: (6000, 396, 384),
    1.3: (11_880, 396, 768),
    2.0: (11_880, 396, 2000),
    2.1: (19_800, 792, 4000),
    2.2: (20_250, 1620, 4000),
    3.0: (40_500, 1620, 10_000),
    3.1: (108_000, 3600, 14_000),
    3.2: (216_000, 5120, 20_000),
    4.0: (245_760, 8192, 20_000),
    4.1: (245_760, 8192, 50_000),
    4.2: (522_240, 8704, 50_000),
    5.0: (589_824, 22_080, 135_000),
    5.1: (983_040, 36_864, 240_000),
    5.2: (2_073_600, 36_864, 240_000),
}


class VideoProperties(NamedTuple):
    """A publisher's video, as far as it is known; 0 and "" where it is not."""

    width: int = 0
    height: int = 0
    level: float = 0.0
    profile: str = ""
    rate: float = 0.0
    bits: float = 0.0


@dataclass(frozen=True, slots=True)
class CodecLimits:
    """The most that may be sent; 0 is no limit.

    `width` and `height` are in pixels, `rate` in frames a second, `bits` a second; `blocks` are
    macroblocks of a frame, `block_rate` of a second.  With `baseline` only the Constrained
    Baseline profile is sent.
    """

    width: int = 0
    height: int = 0
    rate: float = 0.0
    bits: int = 0
    baseline: bool = False
    level: float = 0.0
    blocks: int = 0
    block_rate: int = 0

    def lower(self, other: Self) -> Self:
        """Combine two sets of limits: the lower value of each."""
        return type(self)(*map(_lower, astuple(self), astuple(other)))

    def excess(self, seen: VideoProperties) -> str:
        """The limit that this video exceeds, "" if it may be sent unchanged."""
        if self.level and seen.level > self.level:
            return f"level {seen.level:g}"
        if self.baseline and seen.profile and seen.profile != "CB":
            return f"profile {seen.profile}"
        blocks = _blocks(seen.width, seen.height)
        if (
            (self.width and seen.width > self.width)
            or (self.height and seen.height > self.height)
            or (self.blocks and blocks > self.blocks)
        ):
            return f"size {seen.width}x{seen.height}"
        # Rates are measured, and a phone has room for a little more
        if self.rate and seen.rate > 1.1 * self.rate:
            return f"{seen.rate:.0f} pictures a second"
        if self.bits and seen.bits > 1.1 * self.bits:
            return f"{seen.bits / 1000:.0f} kbit/s"
        return ""

    def fitted(self, width: int, height: int) -> tuple[int, int, float]:
        """The size and rate to make of frames of this size, in their shape and never larger."""
        scale = min(1.0, (self.width or width) / width, (self.height or height) / height)
        most = self.blocks or _blocks(width, height)
        if self.block_rate:
            most = min(most, int(self.block_rate / LEAST))
        while True:
            sides = _even(width * scale), _even(height * scale)
            blocks = _blocks(*sides)
            if blocks <= max(most, 1):
                break
            scale *= 0.98
        rate = self.rate or MOST
        if self.block_rate:
            rate = min(rate, int(10 * self.block_rate / blocks) / 10)
        return *sides, rate

    def bits_for(self, width: int, height: int, rate: float) -> int:
        """How many bits a second to encode with."""
        wanted = max(MIN_BITS, int(BITS_PER_PIXEL * width * height * rate))
        return min(wanted, int(SPARE * self.bits)) if self.bits else wanted


def h264_limits(theirs: H264Parameters, bits: int = 0) -> CodecLimits:
    """The limits of a phone's H.264: RFC 6184 §8.1; `bits` a second are those of its line.

    `max-fs`, `max-mbps` and `max-br` raise those of the level.
    """
    level = theirs.profile_level.level
    known = max((each for each in _LEVELS if each <= level), default=1.0)
    block_rate, blocks, kilobits = _LEVELS[known]
    more = dict(theirs.others)
    block_rate = max(block_rate, _number(more.get("max-mbps", "")))
    blocks = max(blocks, _number(more.get("max-fs", "")))
    kilobits = max(kilobits, _number(more.get("max-br", "")))
    rows = _LEVELS.items()
    able = block_rate, blocks, kilobits
    high = max(each for each, row in rows if all(map(int.__le__, row, able)))
    limits = CodecLimits(level=high, blocks=blocks, block_rate=block_rate)
    return replace(limits, bits=int(_lower(bits, 1000 * kilobits)))


def _number(text: str) -> int:
    return int(text[:9]) if text.isascii() and text.isdigit() else 0


def _lower(a: Any, b: Any) -> Any:
    """The lower of two limits of which either may be none; of two wishes, either."""
    return min(a, b) if a and b else a or b


def _even(side: float) -> int:
    return max(SIDE, int(side) // 2 * 2)


def _blocks(width: int, height: int) -> int:
    return -(-width // SIDE) * -(-height // SIDE)
