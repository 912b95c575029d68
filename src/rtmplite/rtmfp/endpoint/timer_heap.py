"""A heap of deadlines: finds the machines that are due among thousands.

Own design: an endpoint has thousands of sessions, and every packet may move the deadline of one.
The heap has the earliest time at which each may need a `tick`.  A session whose deadline has moved
away is found not to be due when that time comes, and is planned again.
"""

import heapq
import itertools
from collections.abc import Iterator
from typing import Final, Protocol

_SLACK: Final = 64  # outdated entries to tolerate


class Timed(Protocol):
    """A machine with a deadline."""

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; None for never."""

    def tick(self, now: float) -> None:
        """Act on the deadlines that have passed."""


class TimerHeap:
    """The times at which a number of machines want to be called."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timed]] = []
        self._planned: dict[Timed, float] = {}
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self._planned)

    @property
    def deadline(self) -> float | None:
        """When something may be due; None if nothing ever is."""
        while self._heap and self._planned.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def plan(self, item: Timed) -> None:
        """Note an item's deadline, which is new or has come nearer."""
        deadline = item.deadline
        if deadline is None or deadline >= self._planned.get(item, float("inf")):
            return
        self._planned[item] = deadline
        heapq.heappush(self._heap, (deadline, next(self._order), item))
        if len(self._heap) > 2 * len(self._planned) + _SLACK:
            entries = (entry for entry in self._heap if self._planned.get(entry[2]) == entry[0])
            self._heap = list(entries)
            heapq.heapify(self._heap)

    def forget(self, item: Timed) -> None:
        """Call an item no more."""
        self._planned.pop(item, None)

    def due(self, now: float) -> Iterator[Timed]:
        """Yield the items that are due by `now`, each once; plan each again after its `tick`."""
        ready: list[Timed] = []
        while (deadline := self.deadline) is not None and deadline <= now:
            item = heapq.heappop(self._heap)[2]
            del self._planned[item]
            ready.append(item)
        for item in ready:
            deadline = item.deadline
            if deadline is not None and deadline <= now:
                yield item
            else:
                self.plan(item)
