"""The processor and memory that this process uses.

Own design: the share of a core is that of the time since the last reading; readings that follow at
once give the same.
"""

import os
import time
from typing import Final

Row = dict[str, object]
LEAST: Final = 0.5  # s between two readings of the processor
_PAGES: Final = "/proc/self/statm"


class ProcessLoad:
    """Reads both; `now` is monotonic."""

    def __init__(self, now: float) -> None:
        self._at, self._used, self._percent = now, time.process_time(), 0.0

    def read(self, now: float) -> Row:
        """Give `cpu_percent` of one core, and `memory_bytes` where the system tells it."""
        if now - self._at >= LEAST:
            used = time.process_time()
            self._percent = round(100 * (used - self._used) / (now - self._at), 1)
            self._at, self._used = now, used
        return {"cpu_percent": self._percent, "memory_bytes": _memory()}


def _memory() -> int | None:
    try:
        with open(_PAGES) as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux, or no descriptor is left
        return None
