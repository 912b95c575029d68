"""How many may be connected, in all and from one address, whichever listener they come to."""

import logging
from collections import Counter
from typing import Final

from rtmplite.limits.rate_limit_key import rate_limit_key

log = logging.getLogger(__name__)

CONNECTIONS: Final = 10_000
CONNECTIONS_OF_ONE: Final = 2_000  # address; many people may share one


class ConnectionLimit:
    """Everybody who is connected to a server, whatever it speaks."""

    def __init__(self, most: int = CONNECTIONS, most_of_one: int = CONNECTIONS_OF_ONE) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._all = 0
        self._from = Counter[str]()

    def __len__(self) -> int:
        """How many there are."""
        return self._all

    @property
    def is_full(self) -> bool:
        """Whether there is room for nobody."""
        return self._all >= self._most

    def admits(self, host: str) -> bool:
        """Count one more from `host` if there is room, else tell the operator."""
        source = rate_limit_key(host)
        if self.is_full:
            log.warning("refusing %s: %d connections", host, self._all)
            return False
        if self._from[source] >= self._most_of_one:
            log.warning("refusing %s: %d connections of its own", source, self._from[source])
            return False
        self._all += 1
        self._from[source] += 1
        return True

    def leaves(self, host: str) -> None:
        """Make room for another one; call it once for every `admits` that was true."""
        source = rate_limit_key(host)
        self._all -= 1
        self._from[source] -= 1
        if not self._from[source]:
            del self._from[source]
