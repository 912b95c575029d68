"""A webhook of the operator's: the events of calls that one web service hears of.

Own design: an event has an identifier, by which a service that hears it twice knows it again.
"""

import json
from collections.abc import Callable, Collection
from typing import Final

from siprtmp.web.resources.deliveries import Deliveries

_ID_OCTETS: Final = 12

Row = dict[str, object]


class Webhook:
    """Adds the events for one service to its deliveries; `random` makes their identifiers."""

    def __init__(
        self,
        deliveries: Deliveries,
        events: Collection[str],
        random: Callable[[int], bytes],
    ) -> None:
        self._deliveries, self._events, self._random = deliveries, frozenset(events), random

    def add(self, event: Row, at: str) -> None:
        """Take an event that happened at a time; one that the service does not hear of is left out.

        If there are too many, the oldest that is not under way gives way.
        """
        if event.get("event") not in self._events:
            return
        whole = {"id": self._random(_ID_OCTETS).hex(), "at": at, **event}
        self._deliveries.add(json.dumps(whole).encode("ascii"))
