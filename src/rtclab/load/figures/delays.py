"""Delays in buckets, so that millions take little room and those of several processes add up.

Own design: neighbouring buckets differ by 2 %, which is finer than what two runs differ by.

    >>> delays = Delays()
    >>> for ms in range(1, 101):
    ...     delays.add(ms)
    >>> round(delays.percentile(50)), round(delays.percentile(99), -1), delays.count
    (50, 100.0, 100)
"""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Final, Self

LEAST: Final = 0.01  # ms; what is shorter counts as this
_STEP: Final = math.log(1.02)


class Delays:
    """How many delays fell into each bucket."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts: Counter[int] = Counter(counts or {})

    def add(self, ms: float) -> None:
        """Count one delay, in ms."""
        self.counts[round(math.log(max(ms, LEAST) / LEAST) / _STEP)] += 1

    @property
    def count(self) -> int:
        """How many there are."""
        return self.counts.total()

    def percentile(self, percent: float) -> float:
        """The delay in ms that `percent` of them stayed within; 0 without any."""
        left = self.count * percent / 100
        for bucket in sorted(self.counts):
            left -= self.counts[bucket]
            if left <= 0:
                return float(LEAST * math.exp(bucket * _STEP))
        return 0.0

    def since(self, earlier: "Delays") -> "Delays":
        """The delays that came after an earlier state of the same."""
        return Delays(self.counts - earlier.counts)

    def __iadd__(self, other: "Delays") -> Self:
        self.counts.update(other.counts)
        return self

    def as_json(self) -> dict[str, int]:
        """A JSON object; `parse` reads it."""
        return {str(bucket): count for bucket, count in self.counts.items()}

    @classmethod
    def parse(cls, found: Mapping[str, int]) -> Self:
        """Read what `as_json` gave."""
        return cls({int(bucket): count for bucket, count in found.items()})
