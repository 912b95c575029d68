"""How much of one turn of the loop goes into reading, and who is read in the next one.

Own design: on other sockets of the same loop, RTP above all, one packet is heard a turn, so turns
must be short whatever connections say.  When they have been read for `SLICE`, the rest waits; every
turn gives as much time again to those who have waited, in their order.
"""

from typing import Any, Final, Protocol

from rtmplite.net.clock import now

SLICE: Final = 0.005  # s
EARLY: Final = 1  # a watcher's priority: before those of gevent itself, which are 0


class BudgetedReader(Protocol):
    """Who has something to read."""

    @property
    def is_reading(self) -> bool:
        """Whether it still wants to."""

    def read(self) -> None:
        """Read once; it must not raise, and adds to `spent` how long it took."""


class ReadBudget:
    """Reading time; ask `lets` before each read once `spent` has reached `SLICE`."""

    def __init__(self, loop: Any) -> None:
        self.spent = 0.0  # s, in this turn, or in several that were short
        self._loop, self._turn = loop, loop.now()
        self._waiting: dict[BudgetedReader, None] = {}
        # Before the loop sleeps; before gevent runs callbacks there, and all is sent.
        self._watcher = loop.prepare(ref=False, priority=EARLY)

    def lets(self, reader: BudgetedReader) -> bool:
        """Whether there is time in this turn; if not, `reader` is read in one of the next."""
        turn = self._loop.now()  # the same all through one turn
        if turn != self._turn:
            self._turn, self.spent = turn, 0.0
            return True
        if not self._waiting:
            self._watcher.start(self._serve)
        self._waiting[reader] = None
        return False

    def _serve(self) -> None:
        end = now() + SLICE
        while self._waiting:
            reader = next(iter(self._waiting))
            del self._waiting[reader]
            if reader.is_reading:
                reader.read()
            if now() >= end:
                return
        self._watcher.stop()
