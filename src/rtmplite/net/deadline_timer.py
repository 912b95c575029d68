"""A timer of the loop for the deadline of a machine, set anew as seldom as possible.

Own design: a deadline moves with most packets, and setting a timer takes longer than waking too
early: the timer is touched only when the deadline comes nearer than it is set for.
"""

from collections.abc import Callable
from typing import Any

import gevent


class DeadlineTimer:
    """Calls `ring` at a deadline, or before it: the machine's `tick` checks the time again."""

    def __init__(self, ring: Callable[[], None], priority: int = 0) -> None:
        self._ring, self._priority = ring, priority
        self._at: float | None = None
        self._timer: Any = None

    def set(self, deadline: float | None, now: float) -> None:
        """Ring at `deadline` or before it; both are in seconds of the machine's clock."""
        if deadline is None or (self._at is not None and self._at <= deadline):
            return
        if self._timer is not None:
            self._timer.stop()
            self._timer.close()
        self._at = deadline
        delay = max(0.0, deadline - now)
        self._timer = gevent.get_hub().loop.timer(delay, priority=self._priority)
        self._timer.start(self._fire)

    def cancel(self) -> None:
        """Ring no more, until it is set again."""
        timer, self._timer, self._at = self._timer, None, None
        if timer is not None:
            timer.stop()
            timer.close()

    def _fire(self) -> None:
        self._at = None
        self._ring()
