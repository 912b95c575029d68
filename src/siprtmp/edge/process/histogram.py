"""Counts of values below some bounds, as Prometheus keeps them.

Own design: no specification has it; a reader sums what it asks for at intervals.

    >>> seen = Histogram((1.0, 2.0))
    >>> for value in (0.5, 1.0, 1.5, 9.0):
    ...     seen.add(value)
    >>> list(seen.buckets()), seen.count, seen.total
    ([('1', 2), ('2', 3), ('+Inf', 4)], 4, 12.0)
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence


class Histogram:
    """`bounds` in rising order; a value that equals one counts below it."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self._counts)

    def add(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def buckets(self) -> Iterator[tuple[str, int]]:
        """Each bound, and how many values were not above it."""
        names, sum_ = [f"{each:g}" for each in self._bounds], 0
        for name, count in zip([*names, "+Inf"], self._counts, strict=True):
            sum_ += count
            yield name, sum_
