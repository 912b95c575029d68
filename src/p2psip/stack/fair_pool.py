"""A pool that is shared fairly between hosts.

Own design: a host that holds much is refused before one that holds little.  A host may hold as much
as is free: one alone gets half of the pool, n hosts get a part in n + 1 each, and as much is free
for the next.  A reserve is left for known requests, such as those within dialogs.

    >>> pool = Pool(800)
    >>> while pool.has_room("greedy"): pool.add("greedy", 1)
    >>> pool.used, pool.has_room("other")
    (350, True)
"""

from collections.abc import Hashable
from typing import Final, TypeVar

RESERVE: Final = 8  # one part in so many is for known requests


K = TypeVar("K", bound=Hashable)


def tally(counts: dict[K, int], key: K, more: int) -> None:
    """Count so many more, or fewer if negative; what comes to 0 is forgotten."""
    count = counts.get(key, 0) + more
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)


class Pool:
    """A limit of units for all hosts together."""

    def __init__(self, limit: int) -> None:
        self._limit, self._open = limit, limit - limit // RESERVE
        self.used = 0
        self.of_host: dict[str, int] = {}

    def has_room(self, host: str, units: int = 1, *, known: bool = False) -> bool:
        """Whether a host may have so many units more; `known` may use the reserve."""
        free = (self._limit if known else self._open) - self.used
        return self.of_host.get(host, 0) + units <= free

    def add(self, host: str, units: int) -> None:
        """Count units that a host takes, even beyond the limit, or gives back if negative."""
        self.used += units
        tally(self.of_host, host, units)
