"""Sound leaves at the pace it is heard, however it came in.

Own design: a publisher may send in bursts, or a whole file at once; a phone has room for a
few packets.  A packet is due when the ones before it have been heard.  Punctual input meets
no timer here: what comes at its time, or up to half a packet early, leaves at once, so the
machine costs a comparison per packet.

Three kinds of publisher are told apart by how far they run ahead of the clock:

- punctual ones, whose late packets move the schedule back by as much as they were late;
- those recovering from a stall, whose backlog is history: it is dropped, or a call would
  stay late for good;
- those that send faster than time (a file): nothing of theirs is ever dropped, they are
  held back instead (`is_ahead`).
"""

from collections import deque
from typing import Final, Generic, TypeVar

T = TypeVar("T")

HOLD_SECONDS: Final = 0.5  # queued sound beyond which the publisher is not read any more
RESUME_SECONDS: Final = 0.3
LIVE_LEAD: Final = 0.2  # a publisher that was ever this far ahead of time is not live
LIVE_BACKLOG: Final = 0.25  # what a live publisher may have queued after a stall


class Pacer(Generic[T]):
    """A schedule of packets in seconds of media time.  Own design: see the module.

    `early` is how long before its time a packet may leave, in seconds.
    """

    def __init__(self, early: float = 0.01) -> None:
        self.early = early
        self.dropped = 0
        self._queue: deque[tuple[float, T]] = deque()
        self._anchor: float | None = None  # when media time 0 is due
        self._first = 0.0  # when media time 0 would have come from a punctual publisher
        self._sent = 0.0  # when the last packet left
        self._is_live = True

    @property
    def deadline(self) -> float | None:
        """When to call `tick`, or None while nothing waits.  Own design."""
        if not self._queue or self._anchor is None:
            return None
        return self._anchor + self._queue[0][0]

    @property
    def backlog(self) -> float:
        """Seconds of media between the oldest and the newest packet that wait.  Own design."""
        return self._queue[-1][0] - self._queue[0][0] if self._queue else 0.0

    @property
    def is_ahead(self) -> bool:
        """Whether the publisher must be held back.  Own design: more than HOLD_SECONDS."""
        return self.backlog > HOLD_SECONDS

    @property
    def has_room(self) -> bool:
        """Whether a held-back publisher may be read again.  Own design: some hysteresis."""
        return self.backlog < RESUME_SECONDS

    def put(self, at: float, item: T, now: float) -> list[T]:
        """Take a packet of media time `at` (s); returns what is to be sent now, in order.

        Own design.
        """
        if self._anchor is None:
            self._anchor = self._first = now - at
        if at - (now - self._first) > LIVE_LEAD:
            self._is_live = False
        if not self._queue:
            due = self._anchor + at
            if due <= now + self.early:
                if due < now:
                    self._anchor = now - at
                self._sent = now
                return [item]
        self._queue.append((at, item))
        if self._is_live and self.backlog > LIVE_BACKLOG:
            self._catch_up(now)
        return self.tick(now)

    def tick(self, now: float) -> list[T]:
        """Release the packet that is due; a late call moves the schedule.  Own design.

        Never more than one: the next is a packet time later, whatever the loop did.
        """
        if not self._queue or self._anchor is None:
            return []
        at, item = self._queue[0]
        due = self._anchor + at
        if due > now + 1e-6:
            return []
        self._queue.popleft()
        self._sent = now
        if self._queue and now - due > self._queue[0][0] - at:
            self._anchor = now - at  # overslept a whole packet: keep the distance, not the hour
        return [item]

    def clear(self) -> None:
        """Forget what waits, when the call it waited for is gone.  Own design."""
        self._queue.clear()

    def _catch_up(self, now: float) -> None:
        """Keep the newest packet of a backlog that is history; it leaves a packet time on."""
        newest, before = self._queue[-1], self._queue[-2]
        self.dropped += len(self._queue) - 1
        self._queue.clear()
        self._queue.append(newest)
        self._anchor = max(now, self._sent + newest[0] - before[0]) - newest[0]
