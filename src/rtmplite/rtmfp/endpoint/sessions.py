"""Begins the sessions of an endpoint, collects their packets, and retires them.

Implements RFC 7016 §3.5.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from rtmplite.rtmfp.endpoint.session_table import SessionEntry, Table
from rtmplite.rtmfp.endpoint.timer_heap import TimerHeap
from rtmplite.rtmfp.session.budget import SessionBudget
from rtmplite.rtmfp.session.congestion import TimeCritical
from rtmplite.rtmfp.session.limits import SessionLimits
from rtmplite.rtmfp.session.session import Session, State
from rtmplite.rtmfp.wire.address import Address

if TYPE_CHECKING:
    from rtmplite.rtmfp.crypto.profile import Keys


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
