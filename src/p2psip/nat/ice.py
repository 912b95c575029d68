"""A full agent of ICE: it finds a way to a peer, has one nominated, and asks for consent on it.

Implements RFC 8445 §6.1, §7.2, §7.3, §8.1 and §9, with trickled candidates (RFC 8838 §8), and RFC
6544 §6 to §11 for candidates of TCP.

The owner names its addresses by `add_local`, passes on what the signalling says of the peer, and
each STUN message with the address it came to and from; it sends what it is given.  One that has TCP
also names addresses by `add_tcp`, tells of its connections, and carries out `connections.orders()`
after each call.

    >>> octets = lambda count: bytes(range(count))
    >>> agents = [IceAgent(octets, 0.0, controlling=True),
    ...           IceAgent(lambda count: bytes(count), 0.0, controlling=False)]
    >>> for agent, other, host in zip(agents, agents[::-1], ("192.0.2.1", "192.0.2.2")):
    ...     there = other.add_local(("192.0.2.2" if host[-1] == "1" else "192.0.2.1", 9000))
    ...     agent.begin(other.ours, now=0.0)
    ...     agent.add_remote(there)
    >>> agents[0].tick(0.0)[0].to
    ('192.0.2.2', 9000)
"""

import struct
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from p2psip.errors import RemoteError
from p2psip.nat.demultiplexing import DatagramKind, kind_of
from p2psip.nat.ice_candidate import (
    COMPONENT,
    RTCP,
    CandidateType,
    HostPort,
    IceBase,
    IceCandidate,
    TcpBase,
    TcpType,
)
from p2psip.nat.ice_checklist import MAX_PAIRS, IceChecklist, IcePair, PairState
from p2psip.nat.ice_checks import IceCheck, IceChecks
from p2psip.nat.ice_connections import IceConnections, IceDatagram
from p2psip.nat.ice_consent import IceConsent
from p2psip.nat.ice_credentials import ROLE_CONFLICT, IceCredentials, IceType
from p2psip.nat.ice_gathering import (
    Gathered,
    learnt_candidate,
    reflexive_candidate,
    reflexive_priority,
    tcp_candidate,
    udp_candidate,
)
from p2psip.nat.ice_role import IceRole
from p2psip.nat.stun import StunClass, StunMessage

TA: Final = 0.05  # s between new checks.  Source: §14.2
PATIENCE: Final = 0.3  # s for a better pair, once there is one.  Own design: §8.1.1 leaves it open
GIVE_UP: Final = 60.0  # s without a pair.  Own design: candidates may be announced and never come
PATIENT: Final = 39.5  # s for the peer to connect.  Own design: as long as a check may take
MAX_LOCALS: Final = 64  # Own design: candidates of ours, those that the peer sees included
MAX_REMOTES: Final = 64  # Own design: candidates that a peer may have in a session

TO_PAIR: Final = (CandidateType.HOST, CandidateType.RELAYED)


class IceState(Enum):
    """How far a session is: §6.1.3."""

    RUNNING = auto()
    COMPLETED = auto()
    FAILED = auto()


class IceAgent:
    """One session of ICE: §6; `controlling` is the role to begin with, which a conflict may change.

    `selected` is the pair to send by, once there is one.  `ours` is for the signalling to tell.
    `random(n)` gives n octets that nobody can guess.  A second component of a stream is an agent
    that has `first` with it: they share credentials and role.
    """

    def __init__(
        self,
        random: Callable[[int], bytes],
        now: float,
        *,
        controlling: bool,
        most_pairs: int = MAX_PAIRS,
        first: "IceAgent | None" = None,
    ) -> None:
        self.ours: IceCredentials = IceCredentials.draw(random) if first is None else first.ours
        self.role: IceRole = (
            IceRole(random, controlling=controlling) if first is None else first.role
        )
        self.state, self._component = IceState.RUNNING, COMPONENT if first is None else RTCP
        self.selected: IcePair | None = None
        self.locals: list[Gathered] = []
        self.connections = IceConnections()
        self._random, self._most_pairs = random, most_pairs
        self._earlier: IceCredentials | None = None  # ours, before a restart
        self._consent = IceConsent(random)
        self._clear(now)

    def _clear(self, now: float) -> None:
        self.theirs = IceCredentials("", "")
        self._checklist = IceChecklist(self._most_pairs)
        self._remotes: list[IceCandidate] = []
        self._triggered: deque[IcePair] = deque()
        self._checks = IceChecks()
        self._next_check = self._begun_at = now
        self._ended = self._gathered = False
        self._nominate_at: float | None = None
        self._give_up_at = float("inf")  # a callee may ring for long

    @property
    def controlling(self) -> bool:
        """Whether we nominate: §6.1.1."""
        return self.role.controlling

    @property
    def way(self) -> IcePair | None:
        """The pair in use, or the best that works, since handshakes need not wait: §7.2.5.3."""
        return self.selected or self._checklist.valid()

    def hears(self, base: IceBase, source: HostPort) -> bool:
        """Whether packets come from the peer, by a pair that works: §7.2.5.3."""
        pair = self._checklist.find(base, source)
        return pair is not None and pair.state is PairState.SUCCEEDED

    # -- signalling ---------------------------------------------------------------------

    def add_local(
        self,
        address: HostPort,
        kind: CandidateType = CandidateType.HOST,
        base: HostPort | None = None,
    ) -> IceCandidate:
        """Take an address of ours, and return the candidate for the signalling: §5.1.

        `base` is where packets leave from, if that is another.
        """
        base = base or address
        return self._add(udp_candidate(self.locals, address, kind, base, self._component), base)

    def add_tcp(
        self,
        direction: TcpType,
        address: HostPort,
        kind: CandidateType = CandidateType.HOST,
        base: HostPort | None = None,
    ) -> IceCandidate:
        """Take an address for TCP, and return its candidate: RFC 6544 §4.1.

        From an active one we connect, by any port of ours; to a passive one the peer does.
        """
        base = base or address
        made = tcp_candidate(self.locals, direction, address, kind, base, self._component)
        return self._add(*made)

    def _add(self, candidate: IceCandidate, base: IceBase) -> IceCandidate:
        self.locals.append((candidate, base))
        for remote in self._remotes:
            self._pair(candidate, base, remote)
        return candidate

    def begin(self, theirs: IceCredentials, now: float) -> None:
        """Take the credentials of the peer; from now on there are checks: §6.1.

        New credentials are those of another peer, such as the second callee of a forked call.
        """
        if self.theirs.ufrag and theirs != self.theirs:
            self._start_over(now)
        self.theirs, self._begun_at, self._give_up_at = theirs, now, now + GIVE_UP

    def add_remote(self, candidate: IceCandidate) -> None:
        """Take a candidate of the peer, at the beginning or later: RFC 8838 §8.

        One with a name, as browsers have it in place of private addresses, is left out, and of TCP
        all but passive ones: who connects is learnt from its checks.
        """
        # RFC 8839 §5.1 [names-are-ignored], RFC 8838 §14 [none-after-the-end]
        if candidate.version is None or self._ended:
            return
        if candidate.transport.lower() != "udp" and candidate.tcp_type is not TcpType.PASSIVE:
            return
        known = self._remote(candidate.address, is_tcp=candidate.is_tcp) is not None
        if candidate.port and not known and len(self._remotes) < MAX_REMOTES:
            self._remotes.append(candidate)
            for local, base in self.locals:
                self._pair(local, base, candidate)

    def end_of_candidates(self) -> None:
        """The peer has no more candidates: RFC 8838 §14."""
        self._ended = True

    def gathered(self) -> None:
        """There are no more candidates of ours: RFC 8838 §8."""
        self._gathered = True

    def restart(self, now: float, ours: IceCredentials | None = None) -> None:
        """Begin again with other credentials, and send by the old pair meanwhile: §9.

        `ours` are those that the signalling has said already.
        """
        self._earlier = self.ours
        self.ours = ours or IceCredentials.draw(self._random)  # §9 [restart-changes-both]
        self._start_over(now)

    def _start_over(self, now: float) -> None:
        self.state = IceState.RUNNING
        # RFC 7675 §5.1 [consent-goes-on-in-a-restart]
        # RFC 8839 §4.4.3.1.1 [remembers-its-pair] [lists-are-flushed]
        self._clear(now)  # §9 [restart-keeps-the-role]
        learnt = CandidateType.PEER_REFLEXIVE
        self.locals = [each for each in self.locals if each[0].type is not learnt]
        self._keep()  # RFC 6544 §9.2 [restart-keeps-its-connection]

    def _pair(self, local: IceCandidate, base: IceBase, remote: IceCandidate) -> None:
        # RFC 6544 §6.2 [passive-pairs-are-pruned]
        waits = local.tcp_type is TcpType.PASSIVE
        if local.type in TO_PAIR and self.state is IceState.RUNNING and not waits:
            self._checklist.add(local, base, remote, controlling=self.controlling)

    def _remote(self, address: HostPort, *, is_tcp: bool) -> IceCandidate | None:
        alike = (e for e in self._remotes if e.address == address and e.is_tcp is is_tcp)
        return next(alike, None)

    # -- connections --------------------------------------------------------------------

    def connected(self, base: TcpBase, to: HostPort) -> None:
        """A connection that was ordered is open: RFC 6544 §7.1."""
        self.connections.opened(base, to)

    def accepted(self, base: TcpBase, source: HostPort, now: float) -> None:
        """A connection has come to a passive candidate: RFC 6544 §7.2."""
        self.connections.accepted(base, source, now)
        if self.state is IceState.FAILED:
            self.connections.keep()

    def disconnected(self, base: TcpBase, to: HostPort, now: float) -> None:
        """A connection has ended, or could not be opened: RFC 6544 §7.1, §11.1."""
        was_valid = self.connections.ended(base, to, now)
        for check in self._checks.by(base, to):
            self._checks.end(check)
            self._failed(check)
        pair = self._checklist.find(base, to)
        if pair is not None:
            pair.state = PairState.FAILED  # RFC 6544 §7.1 [no-connection-fails]
            # RFC 6544 §11.1 [active-reopens] [reopened-is-checked]
            if pair is self.selected and was_valid and base.type is TcpType.ACTIVE:
                self._enqueue(pair)

    def octets(self, data: bytes, base: TcpBase, source: HostPort, now: float) -> list[bytes]:
        """Take octets of a connection; return the packets that are no STUN: RFC 6544 §10.2."""
        media: list[bytes] = []
        try:
            for packet in self.connections.received(data, base, source):
                if kind_of(packet) is DatagramKind.STUN:
                    # RFC 6544 §11.1 [checks-come-by-any-connection]
                    self.received(StunMessage.parse(packet), base, source, now)
                elif not self.connections.knows(base, source):
                    raise RemoteError("a stranger says something else than STUN")
                else:
                    media.append(packet)  # RFC 6544 §10.2 [media-is-unframed]
        except RemoteError:
            self._dismiss(base, source, now)
        return media

    def _dismiss(self, base: TcpBase, source: HostPort, now: float) -> None:
        """Close a connection whose far end is not our peer: RFC 6544 §7.1."""
        self.connections.drop(base, source)
        self.disconnected(base, source, now)
        if base.type is TcpType.ACTIVE:
            for pair in self._checklist.pairs:
                # RFC 6544 §7.1 [other-answers-close]
                if pair.remote.is_tcp and pair.remote.address == source:
                    pair.state = PairState.FAILED

    def _keep(self) -> None:
        """Close all connections but that in use: RFC 6544 §8."""
        used = self.selected
        if used is None:
            self.connections.keep()
        else:
            self.connections.keep(used.base, used.remote.address)

    @property
    def _is_cut(self) -> bool:
        """Whether the pair in use has lost its connection: RFC 6544 §11.1."""
        used = self.selected
        if used is None or not isinstance(used.base, TcpBase):
            return False
        return not self.connections.carries(used.base, used.remote.address)

    def _post(self, data: bytes, base: IceBase, to: HostPort, now: float) -> list[IceDatagram]:
        """Send a message as a datagram, or by a connection: RFC 6544 §7.1."""
        if isinstance(base, TcpBase):
            self.connections.send(data, base, to, now)
            return []
        return [IceDatagram(data, base, to)]

    # -- what comes ---------------------------------------------------------------------

    def received(
        self, message: StunMessage, base: IceBase, source: HostPort, now: float
    ) -> list[IceDatagram]:
        """Take a STUN message that came to `base`: §7.3 for a check, §7.2.5 for an answer."""
        if self.state is IceState.FAILED:
            return []
        if message.kind is StunClass.REQUEST:
            answer = self._asked(message, base, source, now)
            return [] if answer is None else self._post(answer, base, source, now)
        if message.kind in (StunClass.SUCCESS, StunClass.ERROR):
            try:
                self._answered(message, base, source, now)
            except RemoteError:
                return []  # what cannot be read was not received: it is asked for again
        return []

    def _asked(
        self, request: StunMessage, base: IceBase, source: HostPort, now: float
    ) -> bytes | None:
        if self._earlier is not None and self._earlier.names(request):
            # Own design: consent goes on while a restart is under way, and nothing else counts
            return self._earlier.refusal(request) or self._earlier.answer(request, source)
        if not self.ours.names(request):
            return None
        refusal = self.ours.refusal(request) or self._role_conflict(request)
        if refusal is not None:
            return refusal
        nominates = request.get(IceType.USE_CANDIDATE) is not None and not self.controlling
        pair = self._trigger(request, base, source, nominates=nominates)
        if isinstance(base, TcpBase) and pair in self._checklist.pairs:
            self.connections.note(base, source)
        if pair is not None and nominates:
            if pair.state is PairState.SUCCEEDED:
                self._select(pair, now)
            else:
                pair.is_asked_for = True
        return self.ours.answer(request, source)

    def _role_conflict(self, request: StunMessage) -> bytes | None:
        """Give way to a peer with the same role, or have it give way: §7.3.1.1."""
        stays = self.role.stays(request)
        if stays is False:
            self._switch()
        return self.ours.refuse(request, ROLE_CONFLICT) if stays else None

    def _switch(self) -> None:
        self.role.switch()
        self._nominate_at = None
        for pair in self._checklist.pairs:
            pair.nominates = pair.is_asked_for = False

    def _trigger(
        self, request: StunMessage, base: IceBase, source: HostPort, *, nominates: bool
    ) -> IcePair | None:
        """Have the pair that a check came by checked from here at once: §7.3.1.4."""
        pair = self._checklist.find(base, source)
        # §8.1.2 [the-nominated-pair-goes-on], RFC 6544 §11.1 [reopened-is-triggered]
        if pair is None and (nominates or self.state is IceState.RUNNING or self._is_cut):
            pair = self._learn(request, base, source)
        if pair is None or pair.state is PairState.SUCCEEDED:
            return pair
        self._checks.cancel(pair)
        self._enqueue(pair)  # §7.3.1.4 [in-progress-is-checked-anew] [others-are-checked]
        return pair

    def _enqueue(self, pair: IcePair) -> None:
        if pair.state is not PairState.SUCCEEDED:
            pair.state = PairState.WAITING
        if pair not in self._triggered:
            self._triggered.append(pair)

    def _learn(self, request: StunMessage, base: IceBase, source: HostPort) -> IcePair | None:
        """Make a pair of where a check came from: §7.3.1.3."""
        mine = next((e for e, at in self.locals if at == base and e.type in TO_PAIR), None)
        is_tcp = isinstance(base, TcpBase)
        remote = self._remote(source, is_tcp=is_tcp)
        value = request.get(IceType.PRIORITY) or b""
        if mine is None or len(value) != 4:
            return None
        if remote is None:
            if len(self._remotes) >= MAX_REMOTES:
                return None
            (rank,) = struct.unpack("!I", value)
            # §7.3.1.3: the priority is that of the request
            remote = learnt_candidate(f"p{len(self._remotes)}", mine, rank, source)
            self._remotes.append(remote)
        return self._checklist.add(mine, base, remote, controlling=self.controlling)

    def _answered(self, response: StunMessage, base: IceBase, source: HostPort, now: float) -> None:
        if self._consent.answered(response, base, source, now):
            if self._consent.is_lost:
                self._fail()
            return
        check = self._checks.find(response)
        if check is None or not response.integrity_holds(self.theirs.key):
            return
        mapped, error = response.mapped_address(), response.error()
        self._checks.end(check)
        # §7.2.5.2.1 [addresses-are-symmetric] [asymmetric-fails]
        if (base, source) != (check.pair.base, check.pair.remote.address):
            self._failed(check)
        elif response.kind is StunClass.SUCCESS and mapped is not None:
            self._reflected((mapped.host, mapped.port), check.pair)
            self._succeeded(check, now)
        elif error is not None and error[0] == ROLE_CONFLICT:
            self._repair(check)
        else:
            self._failed(check)  # §7.2.5.2.4 [errors-fail]

    def _repair(self, check: IceCheck) -> None:
        """Take the other role, which the peer says is free, and ask again: §7.2.5.1."""
        if check.controlling is self.controlling:
            # §7.2.5.1 [conflict-switches-to-controlling] [conflict-switches-to-controlled]
            self._switch()
            self.role.tie_breaker = self._random(8)  # §7.2.5.1 [conflict-changes-the-tie-breaker]
        self._enqueue(check.pair)  # §7.2.5.1 [conflict-is-checked-anew]

    def _reflected(self, mapped: HostPort, pair: IcePair) -> None:
        """Note an address of ours that only the peer sees: §7.2.5.3.1."""
        # §7.2.5.3.1 [mapped-address-is-looked-at]
        pair.seen = next((each for each, _ in self.locals if each.address == mapped), None)
        if pair.seen is None and len(self.locals) < MAX_LOCALS:
            pair.seen = reflexive_candidate(self.locals, mapped, pair.local, pair.base)
            self.locals.append((pair.seen, pair.base))

    def _succeeded(self, check: IceCheck, now: float) -> None:
        """Note a valid pair: §7.2.5.3."""
        pair = check.pair
        self._checklist.succeeded(pair)
        if isinstance(pair.base, TcpBase):
            self.connections.note(pair.base, pair.remote.address, answered=True)
        if check.nominates and check.controlling and self.controlling:
            self._select(pair, now)  # §7.2.5.3.4
        elif pair.is_asked_for and not self.controlling:
            self._select(pair, now)  # §7.3.1.5
        elif pair is self.selected:
            self._consent.begin(pair, self.theirs, self.ours.ufrag, now)
        elif self._is_cut and self.selected is not None and pair.base == self.selected.base:
            self._select(pair, now)  # RFC 6544 §11.1 [passive-waits]: it has come back
        elif self.controlling and self._nominate_at is None:
            self._nominate_at = now + (0.0 if self._checklist.hopeful()[:1] == [pair] else PATIENCE)

    def _failed(self, check: IceCheck) -> None:
        """Note that a check has no answer, or a bad one: §7.2.5.2."""
        if check.cancelled:
            return
        check.pair.state = PairState.FAILED  # §7.2.5.2.3 [silence-fails]
        if isinstance(check.pair.base, TcpBase):
            self.connections.drop(check.pair.base, check.pair.remote.address)
        if self.state is IceState.RUNNING and (check.nominates or check.pair.is_asked_for):
            self._fail()  # §7.2.5.3.4 [nomination-without-answer-fails], §7.3.1.5 [the-same]

    def _select(self, pair: IcePair, now: float) -> None:
        """Use a nominated pair, the best if there are several: §8.1.2."""
        is_used = self.selected is not None and not self._is_cut
        if self.state is IceState.COMPLETED and self.selected is not None and is_used:
            rank = self.selected.priority(controlling=self.controlling)
            # §8.1.1 [best-of-several-nominated]
            if pair.priority(controlling=self.controlling) <= rank:
                return
        self.selected, self.state = pair, IceState.COMPLETED
        self._checklist.pairs = [pair]  # §8.1.2 [others-are-removed]
        self._triggered.clear()
        self._checks.clear()
        self._keep()  # RFC 6544 §9.2 [old-connection-is-closed]
        self._consent.begin(pair, self.theirs, self.ours.ufrag, now)

    def _fail(self) -> None:
        self.state, self.selected = IceState.FAILED, None
        self._checks.clear()
        self._keep()
        self._consent.end()

    # -- time ---------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        """When to call `tick`: §6.1.4."""
        if self.state is IceState.FAILED:
            return None
        parts = self._checks, self._consent, self.connections
        times = [part.deadline for part in parts if part.deadline is not None]
        if self._has_work:
            times.append(self._next_check)
        if self._is_over:
            times.append(max(self._next_check, self._patient_until))
        if self.state is IceState.RUNNING:
            if self.theirs.ufrag:
                times.append(self._give_up_at)
            if self._nominate_at is not None and not self._is_nominating:
                times.append(self._nominate_at)
        return min(times, default=None)

    def tick(self, now: float) -> list[IceDatagram]:
        """Take the time; return the requests that are due: §6.1.4.2 and §7.2.4."""
        for base, to in self.connections.tick(now):
            self.disconnected(base, to, now)
        out = self._repeat(now)
        if self.state is IceState.FAILED:
            return []
        if self.state is IceState.RUNNING:
            self._nominate(now)
        pair = self._next() if now >= self._next_check and self.theirs.ufrag else None
        is_over = self._is_over and now >= self._patient_until
        if pair is not None:
            out += self._check(pair, now)
        elif self.state is IceState.RUNNING and (is_over or now >= self._give_up_at):
            self._fail()
            return []
        if (used := self._consent.pair) is not None:
            request = self._consent.tick(now, self._attributes(used))
            if self._consent.is_lost:
                self._fail()
                return []
            if request is not None and not self._is_cut:
                out += self._post(request, used.base, used.remote.address, now)
            elif request is not None and used.local.tcp_type is TcpType.ACTIVE:
                self._enqueue(used)  # once more: RFC 6544 §11.1
        return out

    def _repeat(self, now: float) -> list[IceDatagram]:
        """Send again what has no answer, and note what never will: §7.2.5.2.3."""
        out = []
        due, failed = self._checks.tick(now)
        for check in due:
            data, pair = check.transaction.request.data, check.pair
            out += self._post(data, pair.base, pair.remote.address, now)
        for check in failed:
            self._failed(check)
        return out

    @property
    def _is_nominating(self) -> bool:
        return any(each.nominates for each in self._checklist.pairs)

    @property
    def _has_work(self) -> bool:
        if not self.theirs.ufrag:
            return False
        more = self.state is IceState.RUNNING and self._checklist.next(controlling=self.controlling)
        return bool(self._triggered or more)

    @property
    def _is_over(self) -> bool:
        """Whether no candidate and no pair is left: RFC 8838 §8."""
        # RFC 8838 §8 [runs-while-candidates-may-come]
        is_running = self.state is IceState.RUNNING
        return is_running and self._ended and self._gathered and self._checklist.is_exhausted

    @property
    def _patient_until(self) -> float:
        """Until when the peer may connect to a candidate that waits for it: RFC 6544 §7.2."""
        waits = any(each.tcp_type is TcpType.PASSIVE for each, _ in self.locals)
        return self._begun_at + (PATIENT if waits else 0.0)

    def _next(self) -> IcePair | None:
        """The pair to check now, the triggered ones first: §6.1.4.2."""
        while self._triggered:
            pair = self._triggered.popleft()
            if pair in self._checklist.pairs:
                return pair
        if self.state is IceState.RUNNING:
            return self._checklist.next(controlling=self.controlling)
        return None

    def _nominate(self, now: float) -> None:
        """Nominate one valid pair, once no better one is to be expected: §8.1.1."""
        if not self.controlling or self._nominate_at is None or self._is_nominating:
            return
        best, ranked = self._checklist.valid(), self._checklist.hopeful()
        if best is not None and (now >= self._nominate_at or best is ranked[0]):
            # §8.1.1 [one-pair-is-nominated] [no-second-nomination]
            # RFC 6544 §8 [regular-nomination]
            best.nominates = True
            self._enqueue(best)

    def _check(self, pair: IcePair, now: float) -> list[IceDatagram]:
        """Ask by a pair: §7.2.4."""
        attributes = self._attributes(pair)
        if pair.nominates and self.controlling:
            # §7.1.2 [nominates-by-use-candidate] [controlled-never-nominates]
            attributes = (*attributes, (IceType.USE_CANDIDATE, b""))
        transaction_id = self._random(12)
        request = self.theirs.check(self.ours.ufrag, transaction_id, attributes)
        open_ = (PairState.WAITING, PairState.IN_PROGRESS)
        count = sum(each.state in open_ for each in self._checklist.pairs)
        # §14.3 [rto-by-number]
        self._checks.add(request, pair, now, TA * count, controlling=self.controlling)
        if pair.state is not PairState.SUCCEEDED:
            pair.state = PairState.IN_PROGRESS
        self._next_check = now + TA  # §14.2 [ta-50-ms]
        return self._post(request.data, pair.base, pair.remote.address, now)

    def _attributes(self, pair: IcePair) -> tuple[tuple[int, bytes], ...]:
        # §7.1.1 [priority-of-a-reflexive-one]
        rank = struct.pack("!I", reflexive_priority(pair.local))
        return (IceType.PRIORITY, rank), self.role.attribute()
