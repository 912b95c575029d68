"""An endpoint's sessions: how each is found, begins, is called in time, and retires.

Implements RFC 7016 §3.3 and §3.5: packets find their session by session ID alone.  The startup
searches by address and by identity as well.
"""

import heapq
import itertools
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from rtmplite.rtmfp.session.congestion import TimeCritical
from rtmplite.rtmfp.session.limits import SessionBudget, SessionLimits
from rtmplite.rtmfp.session.recv_flow import FlowReceiver
from rtmplite.rtmfp.session.session import Session, SessionListener, State
from rtmplite.rtmfp.wire.address import Address

if TYPE_CHECKING:
    from rtmplite.rtmfp.crypto.profile import Keys
    from rtmplite.rtmfp.endpoint.initiator import Opening
    from rtmplite.rtmfp.session.recv_flow import RecvFlow
    from rtmplite.rtmfp.wire.control_chunks import ForwardedInitiatorHello
    from rtmplite.rtmfp.wire.startup_chunks import ResponderInitialKeying

_ID_BYTES: Final = 4
ALL_IDS: Final = range(1 << 8 * _ID_BYTES)
_SLACK: Final = 64  # outdated entries of a heap to tolerate
_K = TypeVar("_K")


class SessionOwner(Protocol):
    """Own design: the endpoint, all that a table entry knows of it."""

    def announce(self, entry: "SessionEntry", now: float) -> SessionListener | None:
        """Find the listener of a session: §3.5.1.1.2."""

    def on_closed(self, entry: "SessionEntry", now: float) -> None:
        """Note that a session is open no longer: §3.5.5."""

    def on_moved(self, entry: "SessionEntry", former: Address) -> None:
        """Note that the far end of a session is at another address: §3.5.3."""

    def on_forwarded_hello(
        self, entry: "SessionEntry", hello: "ForwardedInitiatorHello", now: float
    ) -> None:
        """Note that the far end forwards a hello which asks for us: §3.5.1.1.2."""


class SessionEntry(SessionListener):
    """One session, its listener, and the facts of its startup that are still needed.

    Own design: a responder remembers the initiator's keying component, when the cookie in it was
    `issued`, and its own answer; for an initiator `issued` is when the session opened.  `opening`
    is what the session fulfils, if it was asked for here.  `user` is the session's listener.
    `is_proven` says that the far end has shown that it has the keys: until then the session may
    have been made by anybody who knows a certificate, and the user is not told of it.
    """

    session: Session

    def __init__(
        self,
        owner: SessionOwner,
        *,
        opening: "Opening | None" = None,
        component: bytes = b"",
        issued: float = 0.0,
        answer: "ResponderInitialKeying | None" = None,
    ) -> None:
        self._owner = owner
        self.opening = opening
        self.component, self.issued, self.answer = component, issued, answer
        self.is_proven = False
        self.user: SessionListener | None = None

    @property
    def is_open(self) -> bool:
        """Whether the session is S_OPEN: §3.5."""
        return self.session.state is State.OPEN

    def on_flow(self, session: Session, flow: "RecvFlow", now: float) -> FlowReceiver | None:
        """Ask the user, which may hear of the session only now: §3.6.3.1."""
        user = self.user or self._owner.announce(self, now)
        return None if user is None else user.on_flow(session, flow, now)

    def on_closed(self, session: Session, now: float) -> None:
        """Tell the endpoint, and the user: §3.5.5."""
        self._owner.on_closed(self, now)
        if self.user is not None:
            self.user.on_closed(session, now)

    def on_forwarded_hello(
        self, session: Session, hello: "ForwardedInitiatorHello", now: float
    ) -> None:
        """Leave the answer to the endpoint: §3.5.1.1.2."""
        self._owner.on_forwarded_hello(self, hello, now)

    def on_address_change(self, session: Session, former: Address, now: float) -> None:
        """Tell the endpoint, and the user: §3.5.3."""
        self._owner.on_moved(self, former)
        if self.user is not None:
            self.user.on_address_change(session, former, now)


class Table:
    """All sessions of an endpoint, closing ones too: by session ID, address and identity.

    Own design: an index for each question.  `canonical_epd` and `fingerprint` are the profile's.
    New session IDs are among `ids`.
    """

    def __init__(
        self,
        random: Callable[[int], bytes],
        canonical_epd: Callable[[bytes], bytes],
        fingerprint: Callable[[bytes], bytes],
        ids: range = ALL_IDS,
    ) -> None:
        self._random, self._ids = random, ids
        self._canonical_epd, self._fingerprint = canonical_epd, fingerprint
        self.by_id: dict[int, SessionEntry] = {}
        self._by_address: dict[Address, list[SessionEntry]] = {}
        self._by_canonical: dict[bytes, list[SessionEntry]] = {}
        self._by_fingerprint: dict[bytes, list[SessionEntry]] = {}
        self._unproven: dict[SessionEntry, None] = {}

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[SessionEntry]:
        return iter(list(self.by_id.values()))

    @property
    def unproven(self) -> Collection[SessionEntry]:
        """The sessions whose far ends have proved nothing, the oldest first: §5."""
        return self._unproven

    def new_id(self, taken: Collection[int]) -> int:
        """Draw a free ID: §3.5.1.1.1 [unique-near-id], §3.5.1.1.2 [unique-near-id]."""
        while True:
            session_id = self._ids[int.from_bytes(self._random(_ID_BYTES)) % len(self._ids)]
            if session_id and session_id not in self.by_id and session_id not in taken:
                return session_id  # §3.3 [zero-is-startup]

    def add(self, entry: SessionEntry) -> None:
        """Keep a session, which is new and not proven: §3.5."""
        session = entry.session
        self.by_id[session.near_id] = entry
        _add(self._by_address, session.address, entry)
        _add(self._by_canonical, self._canonical_epd(session.far_certificate), entry)
        self._unproven[entry] = None

    def prove(self, entry: SessionEntry) -> None:
        """Note that the far end has the keys: it may be introduced to others (§3.5.1.6)."""
        entry.is_proven = True
        del self._unproven[entry]
        _add(self._by_fingerprint, self._fingerprint(entry.session.far_certificate), entry)

    def move(self, entry: SessionEntry, former: Address) -> None:
        """Note that a session's far end has another address: §3.5.3."""
        _remove(self._by_address, former, entry)
        _add(self._by_address, entry.session.address, entry)

    def discard(self, entry: SessionEntry) -> None:
        """Keep a session no longer: §3.5, Figure 8."""
        session = entry.session
        del self.by_id[session.near_id]
        self._unproven.pop(entry, None)
        _remove(self._by_address, session.address, entry)
        _remove(self._by_canonical, self._canonical_epd(session.far_certificate), entry)
        if entry.is_proven:
            _remove(self._by_fingerprint, self._fingerprint(session.far_certificate), entry)

    def at(self, address: Address) -> list[SessionEntry]:
        """Give the sessions with an address, in any state: §3.5.1.1.2."""
        return list(self._by_address.get(address, ()))

    def canonical(self, epd: bytes) -> list[SessionEntry]:
        """Give the sessions with an identity, by its Canonical Endpoint Discriminator: §3.2."""
        return self._by_canonical.get(epd, [])

    def reachable(self, fingerprint: bytes) -> SessionEntry | None:
        """Give the latest session with an identity that is open and proven: §3.5.1.5."""
        found = self._by_fingerprint.get(fingerprint, ())
        return next((entry for entry in reversed(found) if entry.is_open), None)


def _add(index: dict[_K, list[SessionEntry]], key: _K, entry: SessionEntry) -> None:
    index.setdefault(key, []).append(entry)


def _remove(index: dict[_K, list[SessionEntry]], key: _K, entry: SessionEntry) -> None:
    found = index[key]
    found.remove(entry)
    if not found:
        del index[key]


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
