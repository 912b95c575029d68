"""Limits how many clients are connected, in all and from one address, over all listeners."""

import logging
from collections import Counter
from typing import Final

from rtmplite.limits.rate_limit_key import rate_limit_key

log = logging.getLogger(__name__)

CONNECTIONS: Final = 10_000
CONNECTIONS_OF_ONE: Final = 2_000  # from one address, which many people may share


class ConnectionLimit:
    """Counts the connections of all listeners, and refuses those beyond the limits."""

    def __init__(self, most: int = CONNECTIONS, most_of_one: int = CONNECTIONS_OF_ONE) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._all = 0
        self._from = Counter[str]()

    def __len__(self) -> int:
        """The number of connections."""
        return self._all

    def total(self) -> int:
        """Count the connections that share the limit: here, those of this server."""
        return self._all

    def total_of(self, source: str) -> int:
        """Count those from one address, by its `rate_limit_key`."""
        return self._from[source]

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another connection."""
        return self.total() >= self._most

    def admits(self, host: str) -> bool:
        """Count a connection from `host` if there is room; else log that and return false."""
        source = rate_limit_key(host)
        if self.is_full:
            log.warning("refusing %s: %d connections", host, self.total())
            return False
        if (own := self.total_of(source)) >= self._most_of_one:
            log.warning("refusing %s: %d connections of its own", source, own)
            return False
        self._all += 1
        self._from[source] += 1
        return True

    def leaves(self, host: str) -> None:
        """Count a connection from `host` no more; call it once for every `admits` that was true."""
        source = rate_limit_key(host)
        self._all -= 1
        self._from[source] -= 1
        if not self._from[source]:
            del self._from[source]
