"""Limits the lines that clients can cause in a log, since a refused request costs them nothing.

Own design: lines are counted instead of written, and the next line written has the count.
"""

import logging
from collections.abc import Callable
from typing import Final

from rtmplite.net.clock import now

BURST: Final = 20  # lines of one logger at once ...
RATE: Final = 2.0  # ... and then so many a second
ALL_BURST: Final = 1000  # lines about all clients: as many may come back at once ...
ALL_RATE: Final = 50.0  # ... and then so many a second


class LogRateLimit(logging.Filter):
    """Passes some lines a second of each logger; the next line says how many were left out."""

    def __init__(self, clock: Callable[[], float] = now) -> None:
        super().__init__()
        self._clock = clock
        self._buckets: dict[str, Bucket] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write a record; each logger, which is a module, has its own limit."""
        bucket = self._buckets.setdefault(record.name, Bucket(self._clock()))
        left_out = bucket.take(self._clock())
        if left_out:
            self.tell(record, left_out)
        return left_out is not None

    def tell(self, record: logging.LogRecord, left_out: int) -> None:
        """Add to a record how many before it were left out."""
        record.msg, record.args = f"{record.getMessage()} ({left_out} more left out)", ()


class LimitedPrinter:
    """Prints lines about clients, up to a limit for each client and one for all together."""

    def __init__(self, clock: Callable[[], float] = now) -> None:
        self._clock = clock
        self._all = Bucket(clock(), ALL_BURST, ALL_RATE)

    def client(self) -> "Bucket":
        """A counter for the lines about one more client."""
        return Bucket(self._clock())

    def say(self, line: str, client: "Bucket", *, last: bool = False) -> None:
        """Print a line within the limits; a client's `last` one counts the lines left out."""
        moment = self._clock()
        own = client.left_out if last else client.take(moment)
        others = None if own is None else self._all.take(moment)
        if own is None or others is None:
            return
        print(line + (f" ({own + others} more left out)" if own + others else ""), flush=True)


class Bucket:
    """A token bucket for lines: `rate` a second, up to `burst`; `left_out` found it empty."""

    def __init__(self, now: float, burst: int = BURST, rate: float = RATE) -> None:
        self._burst, self._rate = burst, rate
        self._room, self._since, self.left_out = float(burst), now, 0

    def take(self, now: float) -> int | None:
        """Take room for a line; return how many were left out before it, None without room."""
        self._room = min(self._burst, self._room + (now - self._since) * self._rate)
        self._since = now
        if self._room < 1:
            self.left_out += 1
            return None
        self._room -= 1
        left_out, self.left_out = self.left_out, 0
        return left_out
