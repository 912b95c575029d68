"""The table of an endpoint's sessions, and how each is found.

Implements RFC 7016 §3.3: packets find their session by session ID alone.  The startup searches by
address and by identity as well.
"""

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from rtmplite.rtmfp.session.recv_flow import FlowReceiver
from rtmplite.rtmfp.session.session import Session, SessionListener, State
from rtmplite.rtmfp.wire.address import Address

if TYPE_CHECKING:
    from rtmplite.rtmfp.endpoint.initiator import Opening
    from rtmplite.rtmfp.session.recv_flow import RecvFlow
    from rtmplite.rtmfp.wire.control_chunks import ForwardedInitiatorHello
    from rtmplite.rtmfp.wire.startup_chunks import ResponderInitialKeying

_ID_BYTES: Final = 4
_K = TypeVar("_K")


class SessionOwner(Protocol):
    """The endpoint's reactions to a session's events.

    Own design: a table entry knows its endpoint by this alone.
    """

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
    """

    def __init__(
        self,
        random: Callable[[int], bytes],
        canonical_epd: Callable[[bytes], bytes],
        fingerprint: Callable[[bytes], bytes],
    ) -> None:
        self._random = random
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
            session_id = int.from_bytes(self._random(_ID_BYTES))
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
