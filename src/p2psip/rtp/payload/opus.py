"""Opus packets without decoding them: how long they are, and where their frames end.

Implements RFC 7587 §4 and RFC 6716 §3.

Timestamps count at 48000 Hz whatever the audio bandwidth.

    >>> packet = OpusPacket.parse(bytes([0x79, 1, 2, 3, 4]))
    >>> packet.frames, packet.frame_ticks, packet.ticks, packet.bandwidth
    ((b'\\x01\\x02', b'\\x03\\x04'), 960, 1920, 'FB')
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from p2psip.errors import LocalError, RemoteError

CLOCK_RATE: Final = 48000  # Source: RFC 7587 §4.1
MAX_FRAME_OCTETS: Final = 1275  # Source: RFC 6716 §3.2.1
MAX_TICKS: Final = 5760  # 120 ms. Source: RFC 6716 §3.2.5
_SILK: Final = (480, 960, 1920, 2880)  # ticks: 10, 20, 40 and 60 ms
_CELT: Final = (120, 240, 480, 960)  # 2.5, 5, 10 and 20 ms
# Source: RFC 6716 §3.1 Table 2, the frame and the audio bandwidth of each configuration
_FRAME_TICKS: Final = (*_SILK * 3, *(480, 960) * 2, *_CELT * 4)
_BANDWIDTHS: Final = tuple(
    name
    for name, count in (
        *(("NB", 4), ("MB", 4), ("WB", 4), ("SWB", 2), ("FB", 2)),
        *(("NB", 4), ("WB", 4), ("SWB", 4), ("FB", 4)),
    )
    for _ in range(count)
)


@dataclass(frozen=True, slots=True)
class OpusPacket:
    """The frames of one packet, and what holds for all of them: RFC 6716 §3."""

    configuration: int
    stereo: bool
    frames: tuple[bytes, ...]
    padding: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.configuration < 32 or self.padding < 0:
            raise LocalError("Opus has 32 configurations")
        if not self.frames or self.ticks > MAX_TICKS:
            raise LocalError("an Opus packet has 1 frame at least, and up to 120 ms")
        # RFC 6716 §3.2.1 [frame-limit]
        if any(len(frame) > MAX_FRAME_OCTETS for frame in self.frames):
            raise LocalError(f"an Opus frame has up to {MAX_FRAME_OCTETS} octets")

    @property
    def frame_ticks(self) -> int:
        """The length of a frame on the RTP clock: RFC 7587 §4.2 Table 2."""
        return _FRAME_TICKS[self.configuration]

    @property
    def ticks(self) -> int:
        """The length of the packet on the RTP clock: RFC 7587 §4.2."""
        return self.frame_ticks * len(self.frames)

    @property
    def bandwidth(self) -> str:
        """The audio bandwidth, "NB" to "FB": RFC 6716 §3.1 Table 2."""
        return _BANDWIDTHS[self.configuration]

    @classmethod
    def parse(cls, payload: bytes | memoryview) -> Self:
        """Read a payload, or raise RemoteError: RFC 6716 §3.4."""
        data = bytes(payload)
        if not data:  # RFC 6716 §3.1 [one-octet-at-least]
            raise RemoteError("Opus packet of nothing")
        frames, padding = _READERS[data[0] & 3](data)  # RFC 6716 §3 [framing-is-read]
        # RFC 6716 §3.2.1 [frame-limit]
        if any(len(frame) > MAX_FRAME_OCTETS for frame in frames):
            raise RemoteError("Opus frame too long")
        # RFC 6716 §3.4 [malformed-refused]
        if _FRAME_TICKS[data[0] >> 3] * len(frames) > MAX_TICKS:
            raise RemoteError("Opus packet of more than 120 ms")
        return cls(data[0] >> 3, bool(data[0] & 4), frames, padding)

    def __bytes__(self) -> bytes:
        """Write the packet in the fewest octets that have this padding: RFC 6716 §3.2."""
        first = self.configuration << 3 | (4 if self.stereo else 0)
        frames = self.frames
        if not self.padding and len(frames) == 1:
            return bytes((first,)) + frames[0]
        same = len({len(frame) for frame in frames}) == 1
        if not self.padding and len(frames) == 2:
            lengths = b"" if same else _length(frames[0])
            return bytes((first | (1 if same else 2),)) + lengths + b"".join(frames)
        flags = len(frames) | (0 if same else 0x80) | (0x40 if self.padding else 0)
        lengths = b"" if same else b"".join(map(_length, frames[:-1]))
        head, tail = _padding(self.padding)
        return bytes((first | 3, flags)) + head + lengths + b"".join(frames) + tail


_Frames = tuple[tuple[bytes, ...], int]


def _one(data: bytes) -> _Frames:
    return (data[1:],), 0


def _two_equal(data: bytes) -> _Frames:
    half, over = divmod(len(data) - 1, 2)
    if over:  # RFC 6716 §3.2.3 [code-1-even]
        raise RemoteError("Opus packet of two frames that are not equal")
    return (data[1 : 1 + half], data[1 + half :]), 0


def _two_different(data: bytes) -> _Frames:
    size, at = _read_length(data, 1)
    if at + size > len(data):  # RFC 6716 §3.2.4 [code-2-fits]
        raise RemoteError("Opus frame beyond the end")
    return (data[at : at + size], data[at + size :]), 0


def _any_number(data: bytes) -> _Frames:
    """Read a code 3 packet: RFC 6716 §3.2.5."""
    if len(data) < 2:  # RFC 6716 §3.2.5 [code-3-has-two-octets]
        raise RemoteError("Opus packet without a count of frames")
    count, at, end = data[1] & 0x3F, 2, len(data)
    if not count:  # RFC 6716 §3.2.5 [some-frames]
        raise RemoteError("Opus packet of no frames")
    more = bool(data[1] & 0x40)
    while more:
        if at >= end:  # RFC 6716 §3.2.5 [padding-length-goes-on]
            raise RemoteError("Opus padding without a length")
        more, end = data[at] == 255, end - min(data[at], 254)
        at += 1
    padding = at - 2 + len(data) - end
    if data[1] & 0x80:
        sizes, body = [], data[: max(end, 0)]
        for _ in range(count - 1):
            size, at = _read_length(body, at)
            sizes.append(size)
    else:
        size, over = divmod(end - at, count)
        if over:  # RFC 6716 §3.2.5 [cbr-is-even]
            raise RemoteError("Opus frames that are not equal")
        sizes = [size] * (count - 1)
    # RFC 6716 §3.2.5 [vbr-fits] [whole-fits] [padding-fits]
    if at + sum(sizes) > end:
        raise RemoteError("Opus frames beyond the end")
    frames = []
    for size in sizes:
        frames.append(data[at : at + size])
        at += size
    # RFC 6716 §3.2.5 [padding-is-anything], §3.2.1 [frame-may-be-empty]
    return (*frames, data[at:end]), padding


_READERS: Final = (_one, _two_equal, _two_different, _any_number)


def _read_length(data: bytes, at: int) -> tuple[int, int]:
    """Read the length of a frame; answer it and where the next octet is: RFC 6716 §3.2.1."""
    if at >= len(data):  # RFC 6716 §3.2.4 [code-2-has-a-length]
        raise RemoteError("Opus frame without a length")
    if data[at] < 252:
        return data[at], at + 1
    if at + 1 >= len(data):  # RFC 6716 §3.2.4 [code-2-has-a-length]
        raise RemoteError("Opus frame without a length")
    return 4 * data[at + 1] + data[at], at + 2


def _length(frame: bytes) -> bytes:
    """Write the length of a frame: RFC 6716 §3.2.1."""
    size = len(frame)
    if size < 252:
        return bytes((size,))
    low = 252 + (size & 3)
    return bytes((low, size - low >> 2))


def _padding(octets: int) -> tuple[bytes, bytes]:
    """Write the octets that count the padding, and the padding itself: RFC 6716 §3.2.5."""
    if not octets:
        return b"", b""
    full, last = divmod(octets - 1, 255)
    # RFC 6716 §3.2.5 [padding-is-zero] [padding-length-goes-on]
    return b"\xff" * full + bytes((last,)), bytes(254 * full + last)


def total_ticks(payload: bytes | memoryview) -> int:
    """Count the ticks of a payload by its first octets, 0 unless it is a packet: RFC 7587 §4.2."""
    if not payload:
        return 0
    code = payload[0] & 3
    counts: Iterable[int] = (1, 2, 2, payload[1] & 0x3F if len(payload) > 1 else 0)
    ticks = _FRAME_TICKS[payload[0] >> 3] * tuple(counts)[code]
    return ticks if ticks <= MAX_TICKS else 0
