"""When old objects are searched for garbage: while there is no call, or as memory grows.

Own design: a collection of the old generation walks through every object there is; with the
transactions of a flood that takes a tenth of a second and more, several times a minute, and
every call's audio is late by it.  No request of a stranger leaves reference cycles, so a collection
finds little: some 200 objects of each call that has ended, whose codecs have gone already.  Young
objects are collected as usual, which takes a few milliseconds at most; old ones while no call would
notice, after so many calls that what they have left is worth it, or when the process has grown so
much that they may be the reason.  Then free memory goes back to the system, in 10 to 30 ms: the C
library keeps what video encoders have freed in their threads, megabytes for each call.
Measured: calling gc.freeze again and again saves no more time, and leaks.
"""

import ctypes
import gc
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Final

LOOK: Final = 10.0  # s between two looks
QUIET: Final = 300.0  # s between two collections while nobody speaks
CALLS: Final = 50  # that have ended since the last one ...
PAUSE: Final = 60.0  # ... which is at least so many seconds ago
LATEST: Final = 6 * 3600.0  # s between two, calls or not
GROWTH_MB: Final = (
    64.0  # growth since the last one, beside half of the size then, that may be garbage
)
YOUNG: Final = gc.get_threshold()[0]  # as Python has it
NEVER: Final = 1 << 30  # collections of the middle generation before one of the old
_STATM: Final = Path("/proc/self/statm")


class GarbageCollector:
    """A machine with a deadline.

    `is_quiet()` tells whether no call or stream would notice a pause, and `ended()` how many calls
    have ended since the start; `resident()` is the size of the process in MB.
    """

    def __init__(
        self,
        is_quiet: Callable[[], bool],
        ended: Callable[[], int],
        now: float,
        collect: Callable[[], object] | None = None,
        resident: Callable[[], float] | None = None,
    ) -> None:
        self._is_quiet, self._ended, self._collect = is_quiet, ended, collect or collect_all
        self._before = 0  # calls that had ended at the last collection
        self._resident = resident or resident_mb
        self._last, self._grown = now, self._resident()
        self.deadline: float | None = now + LOOK

    def tick(self, now: float) -> None:
        """Collect if one of the four reasons holds."""
        self.deadline = now + LOOK
        since = now - self._last
        if (
            since >= LATEST
            or self._resident() > 1.5 * self._grown + GROWTH_MB
            or (since >= PAUSE and self._ended() - self._before >= CALLS)
            or (since >= QUIET and self._is_quiet())
        ):
            self._collect()
            self._last, self._grown, self._before = now, self._resident(), self._ended()


def collect_all() -> None:
    """Free what is garbage, and give free memory back where the C library can."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def settle(young: int = YOUNG) -> None:
    """Freeze the objects of the start, and leave old ones to `GarbageCollector`.

    Code and tables are not searched again.  After so many `young` objects these are searched, most
    of which have gone by then if they are many; they all are one pause.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(young, gc.get_threshold()[1], NEVER)


def resident_mb() -> float:
    """The memory of this process in MB of 2**20 bytes, 0 where there is no /proc."""
    try:
        return int(_STATM.read_text().split()[1]) * resource.getpagesize() / 2**20
    except OSError:
        return 0.0
