"""Sends audio at the pace at which it is heard, even if its publisher is faster or in bursts.

Own design: a publisher may send in bursts, or a whole file at once; a phone has room for a
few packets.  A packet is due when the packets before it have been heard.  For punctual input there
is no timer: a packet that comes on time, or up to half a packet early, is sent at once, at the cost
of a comparison.

Publishers are of three kinds, by how far they run ahead of the clock:

- A punctual publisher: a late packet moves the schedule back by as much as it was late.  While
  packets wait, the schedule returns by a twentieth of the time that passes.  So neither late
  packets nor a publisher's clock that is a little fast make the whole call late.
- A publisher that recovers from a stall: its backlog is dropped, or the call would stay late.
- A publisher that sends faster than time, such as a file: none of its packets is dropped, and it
  is held back instead (`is_ahead`).

The last two begin alike on a busy machine, where a file's first packet may come well before its
second.  So a backlog has time to grow into a lead, and the publisher is not held back meanwhile.
"""

from collections import deque
from typing import Final, Generic, TypeVar

T = TypeVar("T")

HOLD_SECONDS: Final = 0.5  # queued audio beyond which the publisher is not read any more
RESUME_SECONDS: Final = 0.3
LIVE_LEAD: Final = 0.2  # a publisher that was ever this far ahead of time is not live
LIVE_BACKLOG: Final = 0.25  # what a live publisher may have queued after a stall
LIVE_JUDGE: Final = 1.0  # s until a larger backlog that has not become a lead is dropped
LIVE_LIMIT: Final = 5.0  # s of backlog at most until that is decided
# How much faster than time a live publisher's waiting packets are sent, so that stalls do not add
# up: to catch up 0.1 s takes 2 s.  `HURRY` is for a backlog that would soon be dropped.
RECOVERY: Final = 0.05
HURRY: Final = 0.25
HURRY_BACKLOG: Final = 0.12  # s
STEP: Final = 0.04  # s that one packet may catch up at most, so that no two are sent at once
DRIFT: Final = 0.0004  # s by which a packet that comes early moves what counts as punctual
MAX_GAP: Final = (
    10.0  # a step of media time, ahead of the clock, that is no silence but a new clock
)


class Pacer(Generic[T]):
    """A schedule of packets in seconds of media time.

    `early` is how long before its time a packet may leave, in seconds.  `dropped` counts packets
    that came too late, on from those of the pacer before this one.
    """

    def __init__(self, early: float = 0.01, dropped: int = 0) -> None:
        self.early, self.dropped = early, dropped
        self._queue: deque[tuple[float, T]] = deque()
        self._anchor: float | None = None  # when media time 0 is due
        self._first = 0.0  # when media time 0 would have come, by the last punctual packet
        self._lead = 0.0  # of the last packet that came too early, by that reckoning
        self._sent = 0.0  # when the last packet left
        self._taken = 0.0  # when the last packet came that had to wait
        self._last = 0.0  # media time of the newest packet
        self._cut = 0.0  # media time that steps of the publisher's clock have added
        self._is_live = True
        self._late_since: float | None = None  # when the backlog became too large for a live one

    @property
    def deadline(self) -> float | None:
        """When to call `tick`, or None while nothing waits."""
        if not self._queue or self._anchor is None:
            return None
        return self._anchor + self._queue[0][0]

    @property
    def backlog(self) -> float:
        """Seconds of media between the oldest and the newest packet that wait."""
        return self._queue[-1][0] - self._queue[0][0] if self._queue else 0.0

    @property
    def is_ahead(self) -> bool:
        """Whether the publisher must be held back, with more than `HOLD_SECONDS` waiting."""
        return self.backlog > (LIVE_LIMIT if self._is_live else HOLD_SECONDS)

    @property
    def has_room(self) -> bool:
        """Whether a publisher that was held back may be read again, with some hysteresis."""
        return self.backlog < RESUME_SECONDS

    def passes(self, at: float, now: float) -> bool:
        """Whether a packet of media time `at` (s) may be sent at once; if not, `put` it."""
        at -= self._cut
        if self._anchor is None:
            self._anchor = self._first = now - at
        due = self._anchor + at
        if self._queue or due > now + self.early:
            return False
        if due < now:
            self._anchor = now - at
        self._sent, self._last = now, at
        return True

    @property
    def state(self) -> tuple[float, float, float] | None:
        """What goes on in place of `passes`: when media time 0 is due, steps, and `early`.

        None if the next packet may have to wait for others.
        """
        if self._queue or self._anchor is None:
            return None
        return self._anchor, self._cut, self.early

    def went_on(self, anchor: float, at: float, now: float) -> None:
        """Follow packets that passed by `state`, the last one of media time `at` at `now`."""
        self._anchor, self._last, self._sent = anchor, at, now

    def put(self, at: float, item: T, now: float) -> list[T]:
        """Queue a packet of media time `at` (s); returns the packets to send now, in order."""
        if self.passes(at, now):
            return [item]
        assert self._anchor is not None
        at -= self._cut
        due = self._anchor + at
        if at - self._last > MAX_GAP and due - now > MAX_GAP:
            step = at - self._last - 2 * self.early
            at, self._cut = at - step, self._cut + step
        self._last = at
        lead = at - (now - self._first)
        if lead > LIVE_LEAD:
            self._is_live = False
        elif self._is_live:
            if lead < self._lead + self.early:  # no burst: it comes early, packet after packet
                self._first -= max(0.0, min(DRIFT, lead))
            self._lead = lead
            passed, self._taken = min(now - self._taken, STEP), now
            passed *= HURRY if self.backlog > HURRY_BACKLOG else RECOVERY
            self._anchor -= max(0.0, min(passed, self._anchor - self._first))
        self._queue.append((at, item))
        return self.tick(now)

    def tick(self, now: float) -> list[T]:
        """Return the packet that is due; a late call of this moves the schedule.

        At most one: the next is due a packet time later, also after a stall of the loop.
        """
        if not self._queue or self._anchor is None:
            return []
        if self._is_live:
            self._judge(now)
        at, item = self._queue[0]
        due = self._anchor + at
        if due > now + 1e-6:
            return []
        self._queue.popleft()
        self._sent = now
        if self._queue and now - due > self._queue[0][0] - at:
            self._anchor = now - at  # a whole packet late: keep the distance between packets
        return [item]

    def clear(self) -> None:
        """Drop the waiting packets, when the call has ended."""
        self._queue.clear()

    def _judge(self, now: float) -> None:
        """Drop a live publisher's backlog that has lasted; a file's has become a lead by then."""
        if self.backlog <= LIVE_BACKLOG:
            self._late_since = None
        elif self._late_since is None:
            self._late_since = now
        elif now - self._late_since > LIVE_JUDGE:
            self._late_since = None
            self._catch_up(now)

    def _catch_up(self, now: float) -> None:
        """Drop a backlog but for its newest packet, which is due a packet time later."""
        newest, before = self._queue[-1], self._queue[-2]
        self.dropped += len(self._queue) - 1
        self._queue.clear()
        self._queue.append(newest)
        self._anchor = max(now, self._sent + newest[0] - before[0]) - newest[0]
