"""A timer that wakes one machine at its deadline, and is reset as seldom as possible.

Own design: a call's deadline moves with every packet, so the timer is set anew only when the
deadline comes nearer.  Its priority is below the sockets': after a stall input comes first, so that
no machine gives up, or repeats, a request whose answer is here.
"""

import logging
from typing import Any, Final, Protocol

from gevent import get_hub

from p2psip.net.clock import monotonic

AFTER_INPUT: Final = -2  # a timer's priority: below that of sockets, 0, and of `turns`, -1
log: Final = logging.getLogger(__name__)


class TimedMachine(Protocol):
    """A machine with a deadline, as all machines of this package have."""

    @property
    def deadline(self) -> float | None:
        """When to call `tick`, in `monotonic` seconds; None for never."""

    def tick(self, now: float) -> None:
        """Act on the deadlines that have passed."""


class Alarm:
    """Calls `tick` of one machine at its `deadline`, by the clock `monotonic`.

    With a `grain` it is called so many seconds later, for all the deadlines that are due by then.
    """

    __slots__ = ("_at", "_cancelled", "_grain", "_machine", "_timer")

    def __init__(self, machine: TimedMachine, grain: float = 0.0) -> None:
        self._machine, self._grain = machine, grain
        self._at: float | None = None
        self._cancelled = False
        self._timer: Any = get_hub().loop.timer(0.0)

    def set(self) -> None:
        """Look at the deadline again, since it may have come nearer."""
        due = self._machine.deadline
        if due is None or self._cancelled:
            return
        due += self._grain
        if self._at is not None and self._at <= due:
            return
        self._timer.stop()
        self._timer.close()
        self._at = due
        self._timer = get_hub().loop.timer(max(0.0, due - monotonic()), priority=AFTER_INPUT)
        self._timer.start(self._fire)

    def cancel(self) -> None:
        """Never call `tick` again; a second time does nothing."""
        if not self._cancelled:
            self._cancelled = True
            self._timer.stop()
            self._timer.close()

    def _fire(self) -> None:
        self._at = None
        now, due = monotonic(), self._machine.deadline
        if due is not None and due <= now:  # the loop's own clock may be ahead of `monotonic`
            try:
                self._machine.tick(now)
            except Exception:
                log.exception("tick of %s", type(self._machine).__name__)
        self.set()
