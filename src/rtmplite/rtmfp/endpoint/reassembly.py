"""Packets put together again from fragments, within limits.

Implements RFC 7016 §3.4.

    >>> from rtmplite.rtmfp.wire.control_chunks import Fragment
    >>> pieces = Reassembler(limit=10)
    >>> sender = ("192.0.2.1", 1935), 0
    >>> pieces.add(sender, 3, Fragment(7, 1, b"later"), 0.0)
    >>> pieces.add(sender, 3, Fragment(7, 0, b"sooner or ", more_fragments=True), 0.1)
    b'sooner or later'
"""

from math import inf
from typing import Final, TypeAlias

from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmfp.wire.control_chunks import Fragment

WHOLE_SECONDS: Final = 60.0  # §3.4 [sixty-seconds]
PROGRESS_SECONDS: Final = 1.0
BUFFER_BYTES: Final = 65536  # §3.4 [buffers-limited]
_OVERHEAD: Final = 64  # bytes that a fragment costs besides its own; own design

Origin: TypeAlias = tuple[Address, int]
"""The origin of fragments: the source of the packets, and their session ID."""


class _Buffer:
    """The fragments of one packet so far."""

    __slots__ = ("begun", "highest", "last", "mode", "pieces", "progress", "size")

    def __init__(self, mode: int, now: float) -> None:
        self.mode = mode
        self.begun = self.progress = now
        self.pieces: dict[int, bytes] = {}
        self.size = 0
        self.highest = -1
        self.last: int | None = None  # the number of the final fragment

    @property
    def expires(self) -> float:
        # §3.4 [sixty-seconds]
        return min(self.begun + WHOLE_SECONDS, self.progress + PROGRESS_SECONDS)

    @property
    def whole(self) -> bytes | None:
        """All of the packet, if all is there: §3.4 [fragments-concatenated]."""
        if self.last is None or len(self.pieces) <= self.last:
            return None
        return b"".join(self.pieces[number] for number in range(self.last + 1))

    def add(self, fragment: Fragment, now: float) -> bool:
        """Take a fragment; False if it makes the packet larger than we take, or contradicts it."""
        number = fragment.fragment_number
        if number in self.pieces:
            return True
        if not fragment.more_fragments:
            if self.last is not None:
                return False
            self.last = number
        self.highest = max(self.highest, number)
        if self.last is not None and self.highest > self.last:
            return False
        self.pieces[number] = fragment.packet_fragment
        self.size += len(fragment.packet_fragment) + _OVERHEAD
        self.progress = now
        return self.size <= BUFFER_BYTES  # §3.4 [buffers-limited]


class Reassembler:
    """The packets of which only a part has come: §3.4.

    At most `limit` at a time.  When all places are taken, the packets whose fragments keep coming
    stay, and fragments of other packets are discarded until one of the former pauses for a second.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffers: dict[tuple[Origin, int], _Buffer] = {}
        self._look_at = inf  # before that nothing expires

    def __len__(self) -> int:
        return len(self._buffers)

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; None while nothing waits: §3.4."""
        return None if self._look_at == inf else self._look_at

    def tick(self, now: float) -> None:
        """Forget packets that have paused, or have taken too long: §3.4."""
        if now < self._look_at:
            return
        # §3.4 [sixty-seconds]
        kept = {key: buffer for key, buffer in self._buffers.items() if now < buffer.expires}
        self._buffers = kept
        self._look_at = min((buffer.expires for buffer in kept.values()), default=inf)

    def add(self, origin: Origin, mode: int, fragment: Fragment, now: float) -> bytes | None:
        """Take a fragment; return the plain packet that it completes: §3.4.

        `mode` is that of the packet it came in.
        """
        self.tick(now)
        key = origin, fragment.packet_id  # §3.4 [by-address-and-id]
        buffer = self._buffers.get(key)
        if buffer is None:
            if len(self._buffers) >= self._limit:  # §3.4 [buffers-limited]
                return None
            buffer = self._buffers[key] = _Buffer(mode, now)
            self._look_at = min(self._look_at, buffer.expires)
        if mode != buffer.mode:  # §3.4 [fragment-mode]
            return None
        if not buffer.add(fragment, now):
            del self._buffers[key]
            return None
        packet = buffer.whole
        if packet is not None:
            del self._buffers[key]
            if packet[0] & 3 != mode:  # §3.4 [packet-mode]
                return None
        return packet
