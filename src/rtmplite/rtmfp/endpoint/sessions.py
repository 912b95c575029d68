"""Begins the sessions of an endpoint, collects their packets, and retires them.

Implements RFC 7016 §3.5.
"""

import heapq
import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from rtmplite.rtmfp.endpoint.session_table import SessionEntry, Table
from rtmplite.rtmfp.session.budget import SessionBudget
from rtmplite.rtmfp.session.congestion import TimeCritical
from rtmplite.rtmfp.session.limits import SessionLimits
from rtmplite.rtmfp.session.session import Session, State
from rtmplite.rtmfp.wire.address import Address

if TYPE_CHECKING:
    from rtmplite.rtmfp.crypto.profile import Keys


_SLACK: Final = 64  # outdated entries to tolerate


class Timed(Protocol):
    """A machine with a deadline.  Own design: sessions, openings and packets are all alike here."""

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; None for never."""

    def tick(self, now: float) -> None:
        """Act on the deadlines that have passed."""


class TimerHeap:
    """The times at which a number of machines want to be called.

    Own design: an endpoint has thousands of sessions, and every packet may move the deadline of
    one.  The heap has the earliest time at which each may need a `tick`.  An item whose deadline
    has moved away is found not to be due when that time comes, and is planned again.
    """

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


class Sessions:
    """Begins the sessions that `table` holds, collects their packets, and retires them: §3.5.

    Own design: `wake` is called when a session has something to send, `on_bug` when a session has
    failed by a bug of ours: that session is over then, and the others go on.
    """

    def __init__(
        self,
        table: Table,
        schedule: TimerHeap,
        budget: SessionBudget,
        limits: SessionLimits,
        random: Callable[[int], bytes],
        wake: Callable[[], None],
        on_bug: Callable[[Exception], None],
    ) -> None:
        self.table, self.budget, self.limits = table, budget, limits
        self._schedule, self._random, self._wake = schedule, random, wake
        self._on_bug = on_bug
        self._notices = TimeCritical()
        self._working: dict[Session, None] = {}  # those that have something to send
        self._invalid = 0  # packets of sessions that have ended

    @property
    def invalid(self) -> int:
        """The number of packets that were forged or broken."""
        return self._invalid + sum(entry.session.invalid for entry in self.table)

    def begin(
        self,
        entry: SessionEntry,
        initiator: bool,
        keys: "Keys",
        near_id: int,
        far_id: int,
        address: Address,
        far_certificate: bytes,
        now: float,
    ) -> None:
        """Begin a session in S_OPEN, as `Session` says: §3.5.1.1.1, §3.5.1.1.2."""
        session = entry.session = Session(
            initiator=initiator,
            cipher=keys.cipher,
            near_id=near_id,
            far_id=far_id,
            address=address,
            far_certificate=far_certificate,
            near_nonce=keys.near_nonce,
            far_nonce=keys.far_nonce,
            random=self._random,
            now=now,
            listener=entry,
            limits=self.limits,
            notices=self._notices,
            budget=self.budget,
            on_work=self._on_work,
        )
        self.table.add(entry)
        self.budget.add(session)
        self._schedule.plan(session)

    def touched(self, session: Session) -> None:
        """Note the deadline and the memory of a session; `take` does so for sessions with work."""
        if session not in self._working:
            self.budget.count(session)
            self._schedule.plan(session)

    def take(self, datagrams: list[tuple[bytes, Address]], now: float) -> None:
        """Add the sessions' output, and make room if they hold too much: §3.5.2.3."""
        self._take(datagrams, now)
        chosen = self.budget.excess(now)
        for session in chosen:  # §5 [resources-bounded]
            self.budget.evicted += 1
            session.abort(now, "it takes too much memory")
            self.budget.count(session)  # it may be another endpoint's
        if chosen:
            self._take(datagrams, now)

    def _take(self, datagrams: list[tuple[bytes, Address]], now: float) -> None:
        working, self._working = self._working, {}
        for session in working:
            try:
                datagrams += session.take(now)
                self.budget.count(session)
            except Exception as error:
                self.failed(session, error, now)
            if session.state is State.CLOSED:
                self._retire(session)
            else:
                self._schedule.plan(session)

    def failed(self, session: Session, error: Exception, now: float) -> None:
        """End a session that has met a bug of ours; the others are not stopped by it."""
        with suppress(Exception):
            session.drop(now, "internal error")
        session.state = State.CLOSED
        self._working.pop(session, None)
        self._retire(session)
        self._on_bug(error)

    def _on_work(self, session: Session) -> None:
        self._working[session] = None
        self._wake()

    def _retire(self, session: Session) -> None:
        self._schedule.forget(session)
        self.budget.discard(session)
        entry = self.table.by_id.get(session.near_id)
        if entry is not None:
            self._invalid += session.invalid
            self.table.discard(entry)
