"""Limits the time that reading takes in one turn of the loop.

Own design: the RTP sockets of the same loop read one packet a turn, so turns must be short however
much connections send.  When connections have been read for `SLICE` seconds, the others wait; each
later turn gives as much time again to those that wait, in their order.
"""

from typing import Any, Final, Protocol

from rtmplite.net.clock import now

SLICE: Final = 0.005  # s
EARLY: Final = 1  # a watcher's priority: before those of gevent itself, which are 0


class BudgetedReader(Protocol):
    """A connection that has something to read."""

    @property
    def is_reading(self) -> bool:
        """Whether it may still be read."""

    def read(self) -> None:
        """Read once, without raising, and add the seconds this took to `ReadBudget.spent`."""


class ReadBudget:
    """The reading time of a loop; once `spent` has reached `SLICE`, ask `lets` before each read."""

    def __init__(self, loop: Any) -> None:
        self.spent = 0.0  # s, in this turn, or in several that were short
        self._loop, self._turn = loop, loop.now()
        self._waiting: dict[BudgetedReader, None] = {}
        # Before the loop sleeps; before gevent runs callbacks there, and all is sent.
        self._watcher = loop.prepare(ref=False, priority=EARLY)

    def lets(self, reader: BudgetedReader) -> bool:
        """Whether `reader` may read in this turn; if not, it is read in one of the next."""
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
