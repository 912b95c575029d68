"""Limits the time that reading takes in one turn of the loop.

Own design: the RTP sockets of the same loop read once a turn, so turns must be short however much
connections send.  When connections have been read for `SLICE` seconds, the others wait; each later
turn gives as much time again to those that wait, a `SHARE` of it to each host after the other.  The
seconds are those of the clock.
"""

import threading
from collections import OrderedDict
from typing import Any, Final, Protocol

from gevent import get_hub

from rtmplite.net.clock import now

SLICE: Final = 0.002  # s
SHARE: Final = 0.0003  # s of it that one host has before the next
EARLY: Final = 1  # a watcher's priority: before those of gevent itself, which are 0

_LOCAL: Final = threading.local()


class BudgetedReader(Protocol):
    """A connection that has something to read; `host` counts as one with all its connections."""

    host: str

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
        self._waiting: OrderedDict[str, dict[BudgetedReader, None]] = OrderedDict()
        # Before the loop sleeps; before gevent runs callbacks there, and all is sent.
        self._watcher = loop.prepare(ref=False, priority=EARLY)
        self._waker = loop.idle(ref=False)  # the loop sleeps only when nothing waits

    def lets(self, reader: BudgetedReader) -> bool:
        """Whether `reader` may read in this turn; if not, it is read in one of the next."""
        turn = self._loop.now()  # the same all through one turn
        if turn != self._turn:
            self._turn, self.spent = turn, 0.0
            return True
        self.wait(reader)
        return False

    def wait(self, reader: BudgetedReader) -> None:
        """Have `reader` read when it is the turn of its host."""
        if not self._waiting:
            self._watcher.start(self._serve)
            self._waker.start(_stay_awake)
        self._waiting.setdefault(reader.host, {})[reader] = None

    def _serve(self) -> None:
        end = now() + SLICE
        while self._waiting:
            host, readers = self._waiting.popitem(last=False)
            self._waiting[host] = readers  # the last one now, and where it waits again
            self._serve_host(readers, min(end, now() + SHARE))
            if not readers:
                del self._waiting[host]
            if now() >= end:
                return
        self._watcher.stop()
        self._waker.stop()

    def _serve_host(self, readers: dict[BudgetedReader, None], end: float) -> None:
        while readers:
            reader = next(iter(readers))
            del readers[reader]
            if reader.is_reading:
                reader.read()
            if now() >= end:
                return


def read_budget() -> ReadBudget:
    """The one of this thread's loop, which all its listeners share."""
    if not hasattr(_LOCAL, "budget"):
        _LOCAL.budget = ReadBudget(get_hub().loop)
    budget: ReadBudget = _LOCAL.budget
    return budget


def _stay_awake() -> None:
    """Do nothing: the loop does not sleep while there is such a watcher."""
