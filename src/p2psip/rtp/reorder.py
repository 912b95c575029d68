"""A buffer that puts packets back in order, and delays them for no other reason.

Implements RFC 3550 §5.1, where the sequence number is what restores order.

One that is early waits until those before it come, or are given up: after `hold_seconds`, or when
more than `depth_packets` wait.  Own design: no jitter is smoothed, since the player has a buffer
for that.

    >>> buffer = ReorderBuffer[str](depth_packets=8, hold_seconds=0.06)
    >>> [buffer.put(number, f"packet {number}", now=0.0) for number in (1, 3, 2)]
    [['packet 1'], [], ['packet 2', 'packet 3']]
"""

from typing import Final, Generic, TypeVar

from p2psip.rtp.sequence import MAX_DROPOUT
from p2psip.rtp.voip_metrics import BurstMeter

Item = TypeVar("Item")

DEPTH_PACKETS: Final = 10  # 0.2 s of audio in packets of 20 ms
HOLD_SECONDS: Final = 0.06  # three such packets: more than networks reorder, less than is heard


class ReorderBuffer(Generic[Item]):
    """A short queue of early packets, by extended sequence number: RFC 3550 §A.1.

    `depth_packets` and `hold_seconds` bound how many wait and for how long.
    `late` counts packets given up before they came, or that came twice; `skipped` the
    numbers given up.  `next` is the number whose turn it is, and `early` holds the items that
    wait.  Both are public for the media path, which saves a call per packet: while `early` is
    empty, an item of number `next` may pass by if `next` is increased.
    `meter` is told of what does not come in time.
    """

    __slots__ = ("_depth", "_hold", "_meter", "early", "late", "next", "skipped")

    def __init__(
        self,
        depth_packets: int = DEPTH_PACKETS,
        hold_seconds: float = HOLD_SECONDS,
        meter: BurstMeter | None = None,
    ) -> None:
        self._depth, self._hold, self._meter = depth_packets, hold_seconds, meter
        self.next: int | None = None
        self.early: dict[int, tuple[float, Item]] = {}
        self.late = self.skipped = 0

    @property
    def bounds(self) -> tuple[int, float]:
        """How many packets may wait, and how long (s).  Own design: for one that goes on by it."""
        return self._depth, self._hold

    def went_on(self, delivered: int, skipped: int) -> None:
        """Count items that had their turn elsewhere, and numbers that were given up there: §5.1."""
        if self.next is not None:
            self.next += delivered + skipped
        self.skipped += skipped

    @property
    def deadline(self) -> float | None:
        """When to call `tick`, or None while nothing waits."""
        if not self.early:
            return None
        return next(iter(self.early.values()))[0] + self._hold  # the first that came

    def put(self, sequence: int, item: Item, now: float) -> list[Item]:
        """Take an item by its extended number (RFC 3550 §A.1); return those whose turn it is."""
        if sequence == self.next and not self.early:
            self.next = sequence + 1
            return [item]
        if self.next is None or sequence - self.next >= MAX_DROPOUT:
            return self._begin(sequence, item)
        # RFC 7587 §4.1 [duplicates-may-come] [duplicates-are-dropped]
        if sequence < self.next or sequence in self.early:
            self.late += 1
            if self._meter is not None:
                self._meter.late(sequence)
            return []
        self.early[sequence] = now, item
        if len(self.early) > self._depth:
            self._skip()
        return self.tick(now)

    def tick(self, now: float) -> list[Item]:
        """Return the items that have waited long enough, in order."""
        ready = self._in_turn()
        while (deadline := self.deadline) is not None and deadline <= now:
            self._skip()
            ready += self._in_turn()
        return ready

    def _begin(self, sequence: int, item: Item) -> list[Item]:
        """Take up a stream at its first packet, or another in its place: nothing is missing."""
        ready = [self.early[early][1] for early in sorted(self.early)]
        self.early.clear()
        self.next = sequence + 1
        if self._meter is not None:
            self._meter.begin(sequence)
        return [*ready, item]

    def _skip(self) -> None:
        """Give up the missing items before the lowest number that waits."""
        first, wanted = min(self.early), self.next or 0
        self.skipped += first - wanted
        if self._meter is not None and first > wanted:
            self._meter.missed(wanted, first)
        self.next = first

    def _in_turn(self) -> list[Item]:
        ready = []
        while self.next in self.early:
            ready.append(self.early.pop(self.next)[1])
            self.next += 1
        return ready
