"""One RTMFP endpoint: an identity, a UDP port, and all the sessions behind it.

Implements RFC 7016 §3.3 and §3.5.1; the parts are in `initiator`, `responder`, `hellos` and
`session`, and here packets and events are dispatched to them.

Own design: a machine without input and output.  Give datagrams to `receive`, call `tick` at
`deadline`, run what `take_jobs` gives in a thread and hand it to `finish`; then send what `take`
gives.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.endpoint.endpoint_listener import EndpointListener, Forwarded
from rtmplite.rtmfp.endpoint.hellos import Hellos, Redirector
from rtmplite.rtmfp.endpoint.initiator import Job, Opening, Openings, OpeningState
from rtmplite.rtmfp.endpoint.limits import StartupLimits
from rtmplite.rtmfp.endpoint.rate_limiter import KEY_BYTES
from rtmplite.rtmfp.endpoint.responder import Keying, Responder
from rtmplite.rtmfp.endpoint.session_table import ALL_IDS, SessionEntry, Sessions, Table, TimerHeap
from rtmplite.rtmfp.endpoint.startup_packets import CHUNKS_MOST, StartupPackets
from rtmplite.rtmfp.session.limits import SessionBudget, SessionLimits
from rtmplite.rtmfp.session.session import Session, SessionListener, State
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmfp.wire.control_chunks import ForwardedInitiatorHello, Ping
from rtmplite.rtmfp.wire.packet import session_id_of, unscramble
from rtmplite.rtmfp.wire.startup_chunks import (
    InitiatorHello,
    InitiatorInitialKeying,
    ResponderHello,
    ResponderInitialKeying,
    ResponderRedirect,
    RHelloCookieChange,
)

if TYPE_CHECKING:
    from rtmplite.rtmfp.crypto.profile import CryptoProfile, KeyingAnswer, Keys
    from rtmplite.rtmfp.wire.chunks import Chunk

_ID_BYTES: Final = 4  # of the session ID before the packet: §2.2.2
Datagrams = Sequence[tuple[bytes, Address]]
DEFAULT_LIMITS: Final = StartupLimits()
DEFAULT_SESSION_LIMITS: Final = SessionLimits()


class Duplicates:
    """Looks for a duplicate when an RHello has told the far end's identity: §3.5.1.1.1."""

    def __init__(self, profile: "CryptoProfile", table: Table, openings: Openings) -> None:
        self._profile, self._table, self._openings = profile, table, openings

    def find(self, certificate: bytes, epd: bytes) -> Session | Opening | None:
        """Give the session or opening that an opening duplicates: §3.5.1.1.1 [duplicate-aborted].

        Own design: an unproven session does not count, as anybody may know a certificate; but see
        `awaited`.
        """
        canonical = self._profile.canonical_epd(certificate)
        for entry in self._table.canonical(canonical):
            if entry.is_open and entry.is_proven and self._is_wanted(entry.session, epd):
                return entry.session
        return self._openings.keying_with(canonical, epd)

    def awaited(self, opening: Opening, certificate: bytes, source: Address) -> bool:
        """Tell whether a session that the far end has begun from `source` serves `opening` too.

        To be called when `find` has found nothing, so that no such session is proven.  If there is
        one, it is for both: §3.5.1.1.1.  Our keying would override it at the
        far end, which may use it by now, though no packet of it has come here.

        Own design: a Ping asks for such a packet, which fulfils `opening`; without one `opening`
        fails when the session's time is over, 120 seconds after it began.  A stranger cannot block
        us from a peer in this way: the initiator of that session has had a cookie at that address.
        """
        canonical = self._profile.canonical_epd(certificate)
        for entry in self._table.at(source):
            if not entry.is_open or not self._is_wanted(entry.session, opening.epd):
                continue
            # §3.5.1.1.1 [duplicate-aborted]
            if self._profile.canonical_epd(entry.session.far_certificate) != canonical:
                continue
            if entry.opening is None or not entry.opening.is_wanted:
                entry.opening = opening
            else:
                opening.instead = entry.opening
            entry.session.queue_chunk(Ping())
            return True
        return False

    def _is_wanted(self, session: "Session", epd: bytes) -> bool:
        return self._profile.is_selected(session.far_certificate, epd)


class Endpoint:
    """One UDP port with all its sessions.

    `random(n)` gives n bytes.  `others` are servers to which hellos are redirected while
    `hellos.refers()` is true, or while there are as many sessions as `limits` allow (§3.5.1.7).
    `forwarded` is the answer to forwarded hellos.  `budget` may be shared with other endpoints,
    else it is one of its own.  Its session IDs are among `ids`, by which the endpoints of several
    processes at one address are told apart.  `on_work` is called when `take` or `take_jobs` may
    have something to give, and has not been called since the last `take`; `on_bug` when a session
    has failed by a bug of ours, which ends that session alone.  `ignored` counts, by reason, what
    was not answered.
    """

    def __init__(
        self,
        profile: "CryptoProfile",
        random: Callable[[int], bytes],
        now: float,
        *,
        listener: EndpointListener,
        limits: StartupLimits = DEFAULT_LIMITS,
        session_limits: SessionLimits = DEFAULT_SESSION_LIMITS,
        others: Sequence[Address] = (),
        forwarded: Forwarded = Forwarded.HELLO,
        budget: SessionBudget | None = None,
        ids: range = ALL_IDS,
        on_work: Callable[[], None] | None = None,
        on_bug: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        self.profile, self.limits, self.listener = profile, limits, listener
        self.ignored: Counter[str] = Counter()
        self._random, self._now, self._on_work, self._on_bug = random, now, on_work, on_bug
        self._is_awake = False
        cipher = profile.default_cipher()
        self.packets = StartupPackets(cipher, random(KEY_BYTES), limits.reassemblies)
        self.table = Table(random, profile.canonical_epd, profile.fingerprint, ids)
        self._responder = Responder(self, random, self._ignore)
        redirector = Redirector(self, listener, random, others)
        self.hellos = Hellos(self, self._responder, redirector, random, self._ignore)
        self.hellos.forwarded = forwarded
        self._openings = Openings(self.profile, random)
        self.duplicates = Duplicates(profile, self.table, self._openings)
        self.budget = budget or SessionBudget(limits.buffered_bytes)
        self._schedule = TimerHeap()
        self._sessions = Sessions(
            self.table, self._schedule, self.budget, session_limits, random, self._wake, on_bug
        )
        self._jobs: list[Job[Any]] = []

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; None for never."""
        return self._schedule.deadline

    @property
    def sessions(self) -> list[Session]:
        """Return all sessions, also those that close or are unproven."""
        return [entry.session for entry in self.table]

    @property
    def openings(self) -> list[Opening]:
        """The sessions that are opening from here: §3.5."""
        return self._openings.all

    @property
    def keyings_in_work(self) -> int:
        """The number of Diffie-Hellman computations for strangers under way."""
        return self._responder.in_work

    @property
    def has_room(self) -> bool:
        """Whether there is room for one more session: §5 [resources-bounded]."""
        return len(self.table) < self.limits.sessions and not self.budget.is_tight

    @property
    def invalid(self) -> int:
        """The number of packets of sessions that were forged or broken."""
        return self._sessions.invalid

    def connect(self, epd: bytes, addresses: Iterable[Address], now: float) -> Opening:
        """Open a session with the far end of `epd`, asking at all `addresses`: §3.5.1.1.1.

        LocalError without an address, or if the discriminator is longer than `limits` allow.
        """
        candidates = tuple(addresses)
        if not candidates or len(epd) > self.limits.field_bytes:
            raise LocalError("an opening needs an address to ask at, and a short discriminator")
        opening = Opening(self, epd, self._openings.new_tag(), candidates, now)
        self._openings.add(opening)
        opening.tick(now)
        self._schedule.plan(opening)
        self._wake()
        return opening

    def receive_known(self, datagrams: Datagrams, now: float) -> list[tuple[bytes, Address]]:
        """Process those of sessions that are open or opening here, and give the others: §3.3.

        An error that one of them causes is `on_bug`'s, and the rest are processed.
        """
        others: list[tuple[bytes, Address]] = []
        self._now = now
        for datagram, source in datagrams:
            if len(datagram) < _ID_BYTES:
                others.append((datagram, source))
                continue
            try:
                session_id = session_id_of(datagram)
                entry = self.table.by_id.get(session_id)  # §3.3 [found-by-id]
                if entry is not None:
                    self._on_packet(entry, datagram[_ID_BYTES:], source, now)
                elif session_id in self._openings.by_id:
                    self.receive(datagram, source, now)
                else:
                    others.append((datagram, source))
            except RemoteError:
                self._ignore("packet")
            except Exception as error:
                self._on_bug(error)
        return others

    def receive(self, datagram: bytes, source: Address, now: float) -> None:
        """Process any datagram."""
        self._now = now
        try:
            session_id, encrypted = unscramble(datagram)
            entry = self.table.by_id.get(session_id)  # §3.3 [found-by-id]
            if entry is not None:
                self._on_packet(entry, encrypted, source, now)
                return
            if session_id and session_id not in self._openings.by_id:
                self._ignore("session ID")
                return
            is_asking = bool(self._openings.by_tag)
            chunks = self.packets.open(encrypted, source, session_id, now, is_asking=is_asking)
            for chunk in chunks[:CHUNKS_MOST]:
                self._on_startup(chunk, session_id, source, now)
        except RemoteError:
            self._ignore("packet")
        self._schedule.plan(self.packets)

    def tick(self, now: float) -> None:
        """Act on the deadlines that have passed."""
        self._now = now
        for item in self._schedule.due(now):
            try:
                item.tick(now)
            except Exception as error:
                if not isinstance(item, Session):
                    raise
                self._sessions.failed(item, error, now)
                continue
            self._schedule.plan(item)
        self._wake()

    def take(self, now: float | None = None) -> list[tuple[bytes, Address]]:
        """Return the datagrams to send; without `now` the time is that of the last call."""
        now = self._now = max(self._now, self._now if now is None else now)
        self._is_awake = False
        datagrams = self.packets.take()
        self._sessions.take(datagrams, now)
        self._schedule.plan(self.packets)
        return datagrams

    def take_jobs(self) -> list[Job[Any]]:
        """Return the slow work to do: call `run` of each, in any thread, then `finish`."""
        jobs, self._jobs = self._jobs, []
        return jobs

    def finish(self, job: Job[Any], now: float) -> None:
        """Go on with the result of a job, also of one that has failed."""
        self._now = now
        job.finish(now)
        for opening in self.openings:
            self._schedule.plan(opening)
        self._wake()

    def close(self, now: float) -> None:
        """Close all sessions in good order, and open no more: §3.5.5."""
        self._cancel_openings(now)
        for session in self.sessions:
            session.close(now)

    def abort(self, now: float) -> None:
        """Cease at once, with a last word to each far end: §3.1, §3.5.5."""
        self._cancel_openings(now)
        for session in self.sessions:
            session.abort(now)

    # What the machines of the startup see of us: `initiator.StartupHost`.

    def new_session_id(self) -> int:
        """Draw a receive session ID that no session uses: §3.5.1.1.1, §3.5.1.1.2."""
        return self.table.new_id(self._openings.by_id)

    def add_job(self, job: Job[Any]) -> None:
        """Have slow work done: see `take_jobs`."""
        self._jobs.append(job)
        self._wake()

    def on_keying_sent(self, opening: Opening) -> None:
        """Accept packets with the session ID of an opening: §3.5.1.1.1."""
        self._openings.by_id[opening.near_id] = opening

    def on_opened(self, opening: Opening, keys: "Keys", far_id: int, now: float) -> None:
        """Begin the session that was asked for: §3.5.1.1.1."""
        self._forget(opening)
        entry = SessionEntry(self, opening=opening, issued=now)
        address, certificate = opening.address, opening.far_certificate
        # §3.5.1.1.1 [initiator-open]
        self._sessions.begin(entry, True, keys, opening.near_id, far_id, address, certificate, now)
        self.table.prove(entry)
        # The far end may tell nobody of the session before it hears of it.
        entry.session.queue_chunk(Ping())
        self.announce(entry, now)

    def on_ended(self, opening: Opening, now: float) -> None:
        """Tell the user that an opening has failed, unless its session tells: §3.5, Figure 8."""
        self._forget(opening)
        if opening.state is OpeningState.OPEN_FAILED or opening.instead is not None:
            self.listener.on_open_failed(opening, opening.reason, now)

    def on_accepted(
        self,
        keying: Keying,
        answer: "KeyingAnswer",
        reply: ResponderInitialKeying,
        opening: Opening | None,
        now: float,
    ) -> None:
        """Begin a session that a far end has asked for: §3.5.1.1.2."""
        chunk = keying.chunk
        entry = SessionEntry(
            self,
            opening=opening,
            component=chunk.session_key_initiator_component,
            issued=keying.issued,
            answer=reply,
        )
        near_id, far_id = reply.responder_session_id, chunk.initiator_session_id
        certificate = chunk.initiator_certificate
        # §3.5.1.1.2 [responder-open]
        self._sessions.begin(
            entry, False, answer.keys, near_id, far_id, keying.source, certificate, now
        )
        self._responder.answer(entry, now)
        if len(self.table.unproven) > self.limits.unproven:  # §5 [resources-bounded]
            strangers = (each for each in self.table.unproven if each.opening is None)
            oldest = next(strangers, entry).session
            oldest.drop(now, "too many sessions of which nothing was heard")

    # What sessions tell us: `session_table.SessionOwner`.

    def announce(self, entry: SessionEntry, now: float) -> SessionListener | None:
        """Find the listener of a session, which is aborted if there is none."""
        entry.user = self.listener.on_session(entry.session, entry.opening, now)
        if entry.user is None:
            entry.session.abort(now, "nobody wants it")
        return entry.user

    def on_closed(self, entry: SessionEntry, now: float) -> None:
        """Tell of an opening given up for a session that was never proven: §3.5.1.3."""
        if entry.user is None and entry.opening is not None:
            self.listener.on_open_failed(entry.opening, entry.session.reason, now)

    def on_moved(self, entry: SessionEntry, former: Address) -> None:
        """Find a session by its far end's new address: §3.5.3."""
        self.table.move(entry, former)

    def on_forwarded_hello(
        self, entry: SessionEntry, hello: ForwardedInitiatorHello, now: float
    ) -> None:
        """Answer a hello that the far end forwards: §3.5.1.1.2."""
        self.hellos.on_forwarded(hello, entry.opening is not None, now)

    def _on_startup(self, chunk: "Chunk", session_id: int, source: Address, now: float) -> None:
        """Hand a chunk to the part it concerns: §2.3 says with which session ID each comes."""
        opening = self._openings.by_id.get(session_id)
        match chunk:
            case InitiatorHello() if not session_id:  # §2.3.2 [ihello-only-in]
                self.hellos.on_hello(chunk, source, now)
            case InitiatorInitialKeying() if not session_id:  # §2.3.7 [iikeying-only-in]
                self._responder.on_iikeying(chunk, source, now)
            case ResponderHello(tag_echo=tag) if not session_id:  # §2.3.4 [rhello-only-in]
                opening = self._openings.by_tag.get(tag)
                if opening is not None:
                    opening.on_rhello(chunk, source, now)
            case ResponderRedirect(tag_echo=tag) if not session_id:  # §2.3.5 [redirect-only-in]
                opening = self._openings.by_tag.get(tag)
                if opening is not None:
                    opening.on_redirect(chunk, source, now)
            case RHelloCookieChange() if opening is not None:  # §2.3.6 [cookie-change-only-in]
                opening.on_cookie_change(chunk, now)
            case ResponderInitialKeying() if opening is not None:  # §2.3.8 [rikeying-only-in]
                opening.on_rikeying(chunk, now)
        if opening is not None:
            self._schedule.plan(opening)

    def _on_packet(
        self, entry: SessionEntry, encrypted: bytes, source: Address, now: float
    ) -> None:
        """Give a packet to its session, and announce the session if the packet proves it."""
        session = entry.session
        if session.state is State.CLOSED:
            return
        invalid = session.invalid
        try:
            session.receive(encrypted, source, now)
        except RemoteError:
            raise
        except Exception as error:
            self._sessions.failed(session, error, now)
            return
        if not entry.is_proven and session.invalid == invalid:
            self.table.prove(entry)
            if entry.user is None and entry.is_open:
                self.announce(entry, now)
        self._sessions.touched(session)

    def _forget(self, opening: Opening) -> None:
        self._openings.discard(opening)
        self._schedule.forget(opening)

    def _cancel_openings(self, now: float) -> None:
        for opening in self.openings:
            opening.cancel(now, "closed here")

    def _wake(self) -> None:
        if not self._is_awake:
            self._is_awake = True
            if self._on_work is not None:
                self._on_work()

    def _ignore(self, why: str) -> None:
        self.ignored[why] += 1
