"""A log that a flood of callers cannot fill: whoever knocks writes a line, and knocking is free."""

import logging
from collections.abc import Callable
from typing import Final

from rtmplite.net.clock import now

BURST: Final = 20  # lines of one logger at once ...
RATE: Final = 2.0  # ... and then so many a second


class Sparing(logging.Filter):
    """Passes what somebody can read, by logger; the next line tells how many it left out."""

    def __init__(self, clock: Callable[[], float] = now) -> None:
        super().__init__()
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is to be written; loggers are modules, so there are few."""
        bucket = self._buckets.setdefault(record.name, _Bucket(self._clock()))
        left_out = bucket.take(self._clock())
        if left_out:
            self.tell(record, left_out)
        return left_out is not None

    def tell(self, record: logging.LogRecord, left_out: int) -> None:
        """Add to a line how many before it were left out."""
        record.msg, record.args = f"{record.getMessage()} ({left_out} more left out)", ()


class _Bucket:
    def __init__(self, now: float) -> None:
        self._room, self._since, self._left_out = float(BURST), now, 0

    def take(self, now: float) -> int | None:
        """How many were left out before this one, None if this one is, too."""
        self._room = min(BURST, self._room + (now - self._since) * RATE)
        self._since = now
        if self._room < 1:
            self._left_out += 1
            return None
        self._room -= 1
        left_out, self._left_out = self._left_out, 0
        return left_out
