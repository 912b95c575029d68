"""Counts the connections of all workers, in memory that they share.

Own design: a limit on connections must hold for all processes together, and to ask the others for
each client would take a message each way.  So each worker writes its own row of numbers, and reads
those of all; no lock is needed, as two that admit a client at the same moment may exceed a limit by
one.  Addresses are counted by a hash with a random key: two of them share a count so rarely that
nobody can choose it.
"""

import hashlib
import mmap
import os
from typing import Final

from rtmplite.limits.rate_limit_key import rate_limit_key
from rtmplite.net.connection_limit import ConnectionLimit

BUCKETS: Final = 1 << 16  # and one more for all connections


class SharedCounts:
    """A row of counts for each worker, made before the first is started."""

    def __init__(self, workers: int) -> None:
        self._key, self._workers = os.urandom(16), workers
        self._row = BUCKETS + 1
        self._numbers = memoryview(mmap.mmap(-1, 4 * self._row * workers)).cast("I")

    def bucket(self, source: str) -> int:
        """The column of an address."""
        digest = hashlib.blake2b(source.encode(), key=self._key, digest_size=2).digest()
        return int.from_bytes(digest, "big")

    def add(self, worker: int, column: int, change: int) -> None:
        """Change one count of a worker."""
        self._numbers[worker * self._row + column] += change

    def total(self, column: int) -> int:
        """The sum over all workers."""
        return sum(self._numbers[at] for at in range(column, len(self._numbers), self._row))

    def clear(self, worker: int) -> None:
        """Forget the connections of a worker that has ended."""
        begin = worker * self._row
        self._numbers[begin : begin + self._row] = memoryview(bytes(4 * self._row)).cast("I")


class SharedConnectionLimit(ConnectionLimit):
    """Limits the connections of all workers together; each logs what it refuses."""

    def __init__(self, counts: SharedCounts, worker: int, most: int, most_of_one: int) -> None:
        super().__init__(most, most_of_one)
        self._counts, self._worker = counts, worker

    def total(self) -> int:
        """Count the connections of all workers."""
        return self._counts.total(BUCKETS)

    def total_of(self, source: str) -> int:
        """Count those of all workers from one address."""
        return self._counts.total(self._counts.bucket(source))

    def admits(self, host: str) -> bool:
        """Count a connection from `host` if there is room in all; else log that."""
        if not super().admits(host):
            return False
        for column in (BUCKETS, self._counts.bucket(rate_limit_key(host))):
            self._counts.add(self._worker, column, 1)
        return True

    def leaves(self, host: str) -> None:
        """Count a connection from `host` no more."""
        super().leaves(host)
        for column in (BUCKETS, self._counts.bucket(rate_limit_key(host))):
            self._counts.add(self._worker, column, -1)
