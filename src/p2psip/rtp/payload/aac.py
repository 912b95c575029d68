"""AAC in RTP: whole frames behind a list of their sizes, or a part of one.

Implements RFC 3640 §3.3.6, mode AAC-hbr without interleaving.
Not done: RFC 3640 §3.3.6 [de-interleaving]: a sender that interleaves has to say so (§4.1), and
then the format is not agreed on.
Not done: RFC 3640 §3.2.3.2 [interleaved-is-read]: for the same reason.

    >>> [(payload, marker)] = pack_aac([b"one", b"three"], 1400)
    >>> payload.hex(" ", 2), marker
    ('0020 0018 0028 6f6e 6574 6872 6565', True)
    >>> read_aac(payload)
    ((3, b'one'), (5, b'three'))
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final, TypeAlias

from p2psip.errors import LocalError, RemoteError

MAX_FRAME_OCTETS: Final = 8191  # Source: §3.3.6, what 13 bits hold
FRAME_TICKS: Final = 1024  # Own design: samples of a frame of AAC-LC; `constantDuration` says so
# Source: §3.3.6 [lengths-in-fmtp], §3.3.1 [mode-is-told] and §4.1 [one-way-to-tell-sizes]
FMTP: Final = "streamtype=5;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3"
MAX_FRAMES: Final = 64  # of one packet, Own design: more than fit a datagram in use
_LENGTH: Final = Struct("!H")
_INDEX: Final = 0x07  # Source: §3.3.6, the three bits below the size


def read_aac(payload: bytes | memoryview) -> tuple[tuple[int, bytes], ...]:
    """Read a payload as (size of the frame, octets of it): §3.2.1.  RemoteError if malformed."""
    data = bytes(payload)
    if len(data) < _LENGTH.size:
        raise RemoteError("AAC payload without headers")
    (bits,) = _LENGTH.unpack_from(data)
    count, over = divmod(bits, 16)  # §3.2.1 [length-in-bits], §3.3.6 [length-precedes]
    start = at = _LENGTH.size + 2 * count
    # §2.11 [some-data]
    if over or count > MAX_FRAMES or at >= len(data):
        raise RemoteError(f"AAC headers of {bits} bits, in {len(data)} octets")
    headers = [_LENGTH.unpack_from(data, 2 + 2 * each)[0] for each in range(count)]
    # §3.3.6 [index-is-zero], §3.2.1.1 [deltas-after-the-first]
    if any(header & _INDEX for header in headers):
        raise RemoteError("AAC frames that are interleaved")
    sizes = [header >> 3 for header in headers]  # §3.2.1.1 [size-before-index]
    if count == 1 and sizes[0] >= len(data) - start:  # §3.2.1.1 [size-is-of-the-whole]
        return ((sizes[0], data[start:]),)
    # §3.3.6 [no-auxiliary-section]
    if not all(sizes) or start + sum(sizes) != len(data):
        raise RemoteError("AAC frames of other sizes than they say")
    frames = []
    for size in sizes:
        frames.append((size, data[at : at + size]))
        at += size
    return tuple(frames)


def pack_aac(frames: Iterable[bytes], max_octets: int) -> list[tuple[bytes, bool]]:
    """Put frames into (payload, marker), many in one or one cut: §3.2.3.1."""
    if max_octets < 5:
        raise LocalError(f"AAC in packets of {max_octets} octets")
    packets: list[tuple[bytes, bool]] = []
    waiting: list[bytes] = []
    room = max_octets - _LENGTH.size
    for frame in frames:
        if not 0 < len(frame) <= MAX_FRAME_OCTETS:  # §3.2.1.1 [bits-enough]
            raise LocalError(f"an AAC frame has 1 to {MAX_FRAME_OCTETS} octets")
        needed = sum(2 + len(each) for each in (*waiting, frame))
        # §3.2.3 [fits-the-path]
        if waiting and (needed > room or len(waiting) == MAX_FRAMES):
            packets.append((_payload([len(each) for each in waiting], b"".join(waiting)), True))
            waiting = []
        if 2 + len(frame) > room:
            packets += _cut(frame, room - 2)  # §3.2.3.1 [whole-or-one-fragment]
        else:
            waiting.append(frame)  # §3.2.3 [decoding-order]
    if waiting:
        packets.append((_payload([len(each) for each in waiting], b"".join(waiting)), True))
    return packets


def _payload(sizes: Sequence[int], data: bytes) -> bytes:
    # §3.2.3 [sizes-are-told] [size-in-the-header], §3.2.1.1 [size-before-index]
    # §3.3.6 [header-for-each], §3.2.1.1 [deltas-after-the-first]
    headers = b"".join(_LENGTH.pack(size << 3) for size in sizes)
    # §3.2.1 [length-in-bits], §3.3.6 [length-precedes] [no-auxiliary-section]
    return _LENGTH.pack(16 * len(sizes)) + headers + data


def _cut(frame: bytes, room: int) -> list[tuple[bytes, bool]]:
    """Cut one frame: each part says the size of the whole, the last has the marker: §3.2.3.1."""
    starts = range(0, len(frame), room)
    return [
        (_payload([len(frame)], frame[start : start + room]), start + room >= len(frame))
        for start in starts
    ]


@dataclass(frozen=True, slots=True)
class AacFrame:
    """A whole frame, and its RTP timestamp: §3.2.3."""

    data: bytes
    timestamp: int


@dataclass(frozen=True, slots=True)
class AacDamage:
    """Frames are missing: §3.2.3.1; `lost` packets never came, 0 if one that came was malformed."""

    timestamp: int
    lost: int


AacUnpacked: TypeAlias = AacFrame | AacDamage
"""What `AacUnpacker` gives: §3.2.3.1."""


class AacUnpacker:
    """Puts frames of `frame_ticks` together, from packets in order, and tells damage: §3.2.3.1."""

    def __init__(self, frame_ticks: int = FRAME_TICKS) -> None:
        self._frame_ticks = frame_ticks
        self._next: int | None = None
        self._timestamp = self._size = 0
        self._part = b""
        self._skipping: int | None = None  # the timestamp of a frame whose beginning is lost

    def push(
        self, sequence: int, timestamp: int, marker: bool, payload: bytes | memoryview
    ) -> list[AacUnpacked]:
        """Take the next packet; one whose turn has passed is dropped: §3.2.3.1."""
        out: list[AacUnpacked] = []
        if self._next is not None and sequence < self._next:
            return out
        lost = 0 if self._next is None else sequence - self._next
        if lost or (self._part and timestamp != self._timestamp):
            out.append(AacDamage(timestamp, lost))
            self._part = b""
        self._next = sequence + 1
        try:
            frames = read_aac(payload)
        except RemoteError:
            self._part = b""
            return [*out, AacDamage(timestamp, 0)]
        size, data = frames[0]
        if len(data) == size:
            if self._part:
                out.append(AacDamage(timestamp, 0))
                self._part = b""
            for at, (_, frame) in enumerate(frames):
                # §3.2.3.2 [index-by-time] [duration-is-constant]
                out.append(AacFrame(frame, timestamp + at * self._frame_ticks & 0xFFFFFFFF))
            return out
        self._fragment(size, data, timestamp, bool(lost), marker, out)
        return out

    def _fragment(
        self,
        size: int,
        data: bytes,
        timestamp: int,
        after_loss: bool,
        marker: bool,
        out: list[AacUnpacked],
    ) -> None:
        """Take a part; after a loss, those of one time have no beginning that can be told."""
        if after_loss:
            self._skipping = timestamp
        if timestamp == self._skipping:
            return
        self._skipping = None
        if self._part and size != self._size:
            out.append(AacDamage(timestamp, 0))
            self._part, self._skipping = b"", timestamp
            return
        self._timestamp, self._size, self._part = timestamp, size, self._part + data
        if len(self._part) == size:
            out.append(AacFrame(self._part, timestamp))
            self._part = b""
        elif len(self._part) > size or marker:
            out.append(AacDamage(timestamp, 0))  # §3.2.3.1 [never-half-a-frame]
            self._part = b""
