"""How late the event loop is: the time that a timer fires after it was due.

Own design: all calls share one loop, so whatever keeps it busy delays every packet.
"""

from typing import Final

from p2psip.net.alarm import Alarm
from p2psip.net.clock import monotonic
from siprtmp.edge.process.histogram import Histogram

EVERY: Final = 0.5  # s
HALF: Final = 30  # s, the span that `worst` looks back at least, and twice it at most
BOUNDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)  # s


class LoopLag:
    """A machine that does nothing but see when it is woken, from `start` to `stop`."""

    def __init__(self) -> None:
        self.seen = Histogram(BOUNDS)
        self.deadline: float | None = None
        self._worst = [0.0, 0.0]  # of this half of a minute, and of the one before
        self._halves = 0
        self._alarm = Alarm(self)

    def start(self) -> None:
        """Begin to measure."""
        self.deadline = monotonic() + EVERY
        self._alarm.set()

    def stop(self) -> None:
        """Measure no longer."""
        self._alarm.cancel()

    def tick(self, now: float) -> None:
        """Note how late it is."""
        if self.deadline is not None:
            late = now - self.deadline
            self.seen.add(late)
            if now // HALF != self._halves:
                self._halves, self._worst = int(now // HALF), [0.0, self._worst[0]]
            self._worst[0] = max(self._worst[0], late)
        self.deadline = now + EVERY

    @property
    def worst(self) -> float:
        """The most that it was late within the last half of a minute at least, in seconds."""
        return max(self._worst)
