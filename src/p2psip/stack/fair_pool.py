"""A pool that nobody can take from everybody.

Own design: whoever holds much is refused before whoever holds little.  A host may hold as much as
is free: one alone has half of the pool, n of them have a share of n + 1 each, and as much is free
for the next, however many there are.  A reserve is left for those who are known.

    >>> pool = Pool(800)
    >>> while pool.has_room("greedy"): pool.add("greedy", 1)
    >>> pool.used, pool.has_room("other")
    (350, True)
"""

from collections import Counter
from typing import Final

RESERVE: Final = 8  # one part in so many is for those who are known


class Pool:
    """So many units of something for all hosts together (own design)."""

    def __init__(self, limit: int) -> None:
        self._limit, self._open = limit, limit - limit // RESERVE
        self.used = 0
        self.of_host = Counter[str]()

    def has_room(self, host: str, units: int = 1, *, known: bool = False) -> bool:
        """Whether a host may have so many more; the reserve is for the `known` (own design)."""
        free = (self._limit if known else self._open) - self.used
        return self.of_host[host] + units <= free

    def add(self, host: str, units: int) -> None:
        """Count what a host holds whatever the limit, or gives back if negative (own design)."""
        self.used += units
        self.of_host[host] += units
        if not self.of_host[host]:
            del self.of_host[host]
