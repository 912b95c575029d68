"""Tables for many items, found by key, by peer and by due time without a scan.

Own design: every transaction, dialog and pending retry has at most one deadline.  A heap holds
them; a deadline that moved leaves a stale entry behind, which is skipped when it surfaces and
swept out once stale entries outnumber the live ones.
"""

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

from p2psip.transaction.flow import Flow
from p2psip.transaction.key import Key

T = TypeVar("T", bound=Hashable)


def earlier(a: float | None, b: float | None) -> float | None:
    """The earlier of two times, None being never."""
    if a is None or b is None:
        return b if a is None else a
    return a if a < b else b


class TimerQueue(Generic[T]):
    """Items, each with the time it is due (seconds).

    >>> timer_queue = TimerQueue[str]()
    >>> timer_queue.set("bill", 3.0), timer_queue.set("tea", 1.0), timer_queue.set("bill", 2.0)
    (None, None, None)
    >>> timer_queue.deadline, timer_queue.due(5.0), timer_queue.deadline
    (1.0, ['tea', 'bill'], None)
    """

    def __init__(self) -> None:
        self._at: dict[T, float] = {}
        self._heap: list[tuple[float, int, T]] = []
        self._count = 0

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._at)

    def set(self, item: T, at: float | None) -> None:
        """Make `item` due at `at`; None takes it off."""
        if at is None:
            self._at.pop(item, None)
        elif self._at.get(item) != at:
            self._at[item] = at
            self._count += 1
            heapq.heappush(self._heap, (at, self._count, item))
        if len(self._heap) > 2 * len(self._at) + 64:
            self._heap = [entry for entry in self._heap if self._at.get(entry[2]) == entry[0]]
            heapq.heapify(self._heap)

    @property
    def deadline(self) -> float | None:
        """When the first item is due."""
        while self._heap:
            at, _, item = self._heap[0]
            if self._at.get(item) == at:
                return at
            heapq.heappop(self._heap)
        return None

    def due(self, now: float) -> list[T]:
        """Take off all that is due, earliest first."""
        items = []
        while (at := self.deadline) is not None and at <= now:
            item = heapq.heappop(self._heap)[2]
            del self._at[item]
            items.append(item)
        return items


class Table(Generic[T]):
    """Transactions by key and by peer, each with its deadline.

    What is removed leaves no trace, so that an idle stack holds nothing.
    """

    def __init__(self) -> None:
        self._timer_queue = TimerQueue[T]()
        self._by_key: dict[Key, T] = {}
        self._by_peer: dict[object, dict[T, None]] = {}
        self._where: dict[T, tuple[list[Key], Flow]] = {}

    def __len__(self) -> int:
        """How many transactions there are."""
        return len(self._where)

    def get(self, key: Key) -> T | None:
        """Return the transaction of this key (RFC 3261 §17.1.3, §17.2.3)."""
        return self._by_key.get(key)

    def add(self, item: T, key: Key, flow: Flow) -> None:
        """Add a transaction under its first key."""
        self._by_key[key] = item
        self._where[item] = [key], flow
        self._by_peer.setdefault(flow.peer, {})[item] = None

    def alias(self, item: T, key: Key) -> None:
        """Let a transaction be found by one more key."""
        if item in self._where and key not in self._by_key:
            self._by_key[key] = item
            self._where[item][0].append(key)

    def remove(self, item: T) -> None:
        """Forget a transaction."""
        keys, flow = self._where.pop(item, ((), None))
        for key in keys:
            del self._by_key[key]
        if flow is not None:
            self._leave(item, flow)
        self._timer_queue.set(item, None)

    def move(self, item: T, flow: Flow) -> None:
        """Note that a transaction uses another connection now (RFC 3261 §18.2.2)."""
        keys, before = self._where[item]
        self._leave(item, before)
        self._where[item] = keys, flow
        self._by_peer.setdefault(flow.peer, {})[item] = None

    def _leave(self, item: T, flow: Flow) -> None:
        peers = self._by_peer[flow.peer]
        del peers[item]
        if not peers:
            del self._by_peer[flow.peer]

    def at(self, flow: Flow) -> list[T]:
        """Return all transactions that use the connection of `flow`."""
        return list(self._by_peer.get(flow.peer, ()))

    def schedule(self, item: T, at: float | None) -> None:
        """Set when a transaction is due."""
        if item in self._where:
            self._timer_queue.set(item, at)

    @property
    def deadline(self) -> float | None:
        """When the first transaction is due."""
        return self._timer_queue.deadline

    def due(self, now: float) -> list[T]:
        """Take off the transactions that are due, earliest first."""
        return self._timer_queue.due(now)
