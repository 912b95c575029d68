"""When garbage is looked for among what lives long: while nobody speaks, or as memory grows.

Own design: a collection of the old generation walks through every object there is; with the
transactions of a flood that takes a tenth of a second and more, several times a minute, and
every call is late by it.  Nothing that strangers can cause leaves cycles, so hardly anything is
ever found: what the counting of references does not free are some 200 objects of an ended call.
So only young objects are looked at by themselves, which takes a few milliseconds at most; the
old ones when nobody would notice, or when the process has grown so much that it may be them.
Measured: freezing what is there again and again would spare no more, and then leak.
"""

import gc
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Final

LOOK: Final = 10.0  # s between two looks
QUIET: Final = 300.0  # s between two collections while nobody speaks
LATEST: Final = 6 * 3600.0  # s between two, whoever speaks
GROWTH_MB: Final = 64.0  # by so much and a half more than after the last one, it may be garbage
NEVER: Final = 1 << 30  # collections of the middle generation before one of the old
_STATM: Final = Path("/proc/self/statm")


class Collector:
    """A machine with a deadline.  Own design: see the module.

    `is_quiet()` tells whether a pause would go unnoticed, `resident()` how many MB the process has.
    """

    def __init__(
        self,
        is_quiet: Callable[[], bool],
        now: float,
        collect: Callable[[], object] = gc.collect,
        resident: Callable[[], float] | None = None,
    ) -> None:
        self._is_quiet, self._collect = is_quiet, collect
        self._resident = resident or resident_mb
        self._last, self._grown = now, self._resident()
        self.deadline: float | None = now + LOOK

    def tick(self, now: float) -> None:
        """Look, and collect if it is time.  Own design."""
        self.deadline = now + LOOK
        since = now - self._last
        if (
            since >= LATEST
            or self._resident() > 1.5 * self._grown + GROWTH_MB
            or (since >= QUIET and self._is_quiet())
        ):
            self._collect()
            self._last, self._grown = now, self._resident()


def settle() -> None:
    """What is there now stays for good, and what grows old is the collector's.

    Own design: code and tables are never walked through again.
    """
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, NEVER)


def resident_mb() -> float:
    """The memory of this process in MB of 2**20 bytes, 0 where the system does not tell.

    Own design: on Linux.
    """
    try:
        return int(_STATM.read_text().split()[1]) * resource.getpagesize() / 2**20
    except OSError:
        return 0.0
