"""A timer that wakes one machine at its deadline, and is reset as seldom as possible.

Own design: a call's deadline moves with every packet.  The timer is only touched when the
deadline comes nearer than it is set for; when it fires too early, it is simply set again.
It fires after the sockets have been read, so that packets that waited during a stall count as
here in time.
"""

import logging
from typing import Any, Final

from gevent import get_hub

from p2psip.net.clock import monotonic
from p2psip.net.driver import AFTER_INPUT
from siprtmp.calls.context import Timed

log: Final = logging.getLogger(__name__)


class Alarm:
    """Wakes one machine, by the clock `monotonic`."""

    __slots__ = ("_at", "_cancelled", "_machine", "_timer")

    def __init__(self, machine: Timed) -> None:
        self._machine = machine
        self._at: float | None = None
        self._cancelled = False
        self._timer: Any = get_hub().loop.timer(0.0)

    def set(self) -> None:
        """Set the timer if the machine's deadline is earlier than before."""
        due = self._machine.deadline
        if due is None or self._cancelled or (self._at is not None and self._at <= due):
            return
        self._timer.stop()
        self._timer.close()
        self._at = due
        self._timer = get_hub().loop.timer(max(0.0, due - monotonic()), priority=AFTER_INPUT)
        self._timer.start(self._fire)

    def cancel(self) -> None:
        """Stop waking the machine."""
        if not self._cancelled:
            self._cancelled = True
            self._timer.stop()
            self._timer.close()

    def _fire(self) -> None:
        self._at = None
        now, due = monotonic(), self._machine.deadline
        if due is not None and due <= now:  # a loop that was busy is early: its clock is late
            try:
                self._machine.tick(now)
            except Exception:
                log.exception("tick of %s", type(self._machine).__name__)
        self.set()
