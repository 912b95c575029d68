"""How late the event loop is: the time that a timer fires after it was due.

Own design: all calls share one loop, so whatever keeps it busy delays every packet.
"""

from typing import Any, Final

from gevent import get_hub

from p2psip.net.clock import monotonic
from siprtmp.edge.histogram import Histogram

EVERY: Final = 0.5  # s
BOUNDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)  # s


class LoopLag:
    """Measures from `start` to `stop`, into a histogram of seconds."""

    def __init__(self) -> None:
        self.seen = Histogram(BOUNDS)
        self._due = 0.0
        self._timer: Any = None

    def start(self) -> None:
        """Begin to measure."""
        self._timer = get_hub().loop.timer(EVERY, ref=False)
        self._due = monotonic() + EVERY
        self._timer.start(self._fire)

    def stop(self) -> None:
        """Measure no longer."""
        if self._timer is not None:
            self._timer.stop()
            self._timer.close()
            self._timer = None

    def _fire(self) -> None:
        now = monotonic()
        self.seen.add(max(0.0, now - self._due))
        self._due = now + EVERY
        self._timer.start(self._fire)
