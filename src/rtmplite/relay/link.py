"""The link of a relay: one stream on another server, and how the connection to it comes back.

Own design: the texts know clients and servers only, so a relay is a client to the other server.  A
link that fails reconnects, after a longer wait each time; one that is redirected connects to the
other server at once (Field §"Redirects"); one that is asked to move (E-RTMP v2 §"Reconnect
Request") makes the new connection beside the old one, which goes on until a key frame.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, TypeAlias

from rtmplite.relay.session import ChunkSession, FlowSession, RelaySession, open_session
from rtmplite.rtmp.client import DEFAULT_LIMITS, Target
from rtmplite.rtmp.wire.message import Message

HOPS: Final = 3  # redirects that one attempt follows
AGAIN: Final = 2.0  # s until another attempt to reach a server that we were asked to move to
OVERLAP: Final = 10.0  # s with both servers, after which the link moves without a key frame


class State(StrEnum):
    """The states of a link."""

    IDLE = "idle"
    CONNECTING = "connecting"
    RUNNING = "running"
    WAITING = "waiting"  # for its next attempt
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True)
class ReconnectBackoff:
    """The waits between the attempts of a link; times in s.

    The first wait is `first`, each next one twice as long up to `most`, and all are shortened at
    random by up to a quarter.  So not all links reconnect at once.  A link that ran for `steady`
    begins with the first wait again.  An attempt fails without an answer for `answer`, and after
    `attempts` failures in a row the link gives up.
    """

    first: float = 1.0
    most: float = 30.0
    steady: float = 10.0
    answer: float = 10.0
    attempts: int | None = None

    def wait(self, failures: int, chance: int) -> float:
        """The seconds to wait after `failures` failures in a row; `chance` is 0 to 255."""
        longest = min(self.most, self.first * 2.0 ** min(failures - 1, 32))
        return longest * (1 - chance / 1024)


Dial: TypeAlias = Callable[[ChunkSession | FlowSession], None]
DEFAULT_BACKOFF: Final = ReconnectBackoff()


class Link:
    """One stream on another server, and the connection to it, which is made again after a loss.

    `dial` connects a network to a machine, by `machine.target`, and tells it by `connection_lost`
    when that fails.  `on_change` is called after every change of `state` and of `where`, the
    server in use: that of `target` or another one.  `reason` says why the last attempt ended.
    """

    def __init__(
        self,
        target: Target,
        dial: Dial,
        random: Callable[[int], bytes],
        backoff: ReconnectBackoff = DEFAULT_BACKOFF,
    ) -> None:
        self.target = self.where = target
        self.backoff = backoff
        self.state, self.reason, self.failures = State.IDLE, "", 0
        self.on_change: Callable[[Link, float], None] = lambda link, now: None
        self._dial, self._random = dial, random
        self._session: RelaySession | None = None
        self._next: RelaySession | None = None  # at the server that we were asked to move to
        self._asked: Target | None = None  # that server
        self._hops = 0
        self._attempt_ends: float | None = None  # or the next begins
        self._move_at: float | None = None  # when to try to move, or when that has failed

    @property
    def deadline(self) -> float | None:
        """When to call `tick`."""
        times = (self._attempt_ends, self._move_at)
        return min((at for at in times if at is not None), default=None)

    def start(self, now: float) -> None:
        """Connect, unless the link is connecting or running."""
        if self.state in (State.IDLE, State.GIVEN_UP):
            self.failures = 0
            self._begin(self.target, now)

    def stop(self, now: float) -> None:
        """Leave the server, and do not reconnect until the next `start`: RTMP 1.0 §7.2.2.3."""
        sessions = [each for each in (self._session, self._next) if each is not None]
        self._session = self._next = self._asked = None
        for session in sessions:
            self._leave(session, now)
        self._over(now)
        self._attempt_ends = self._move_at = None
        self._become(State.IDLE, now)

    def tick(self, now: float) -> None:
        """Make the attempt that is due, or give up one without an answer."""
        if self._move_at is not None and now >= self._move_at:
            self._move_at = None
            self._move_is_due(now)
        if self._attempt_ends is None or now < self._attempt_ends:
            return
        self._attempt_ends = None
        if self.state is State.WAITING:
            self._begin(self.where, now)
        elif self._session is not None:
            self._session.abort("no answer in time", now)

    # -- calls of a session -----------------------------------------------------------------

    def prepare(self, session: RelaySession) -> None:
        """Hook: before createStream."""

    def ask(self, session: RelaySession) -> None:
        """Hook: publish or play."""

    def on_running(self, session: RelaySession, now: float) -> None:
        """Begin to publish or play, or prepare to move if it is the next server's session."""
        if session is self._session:
            self._attempt_ends = None
            self._become(State.RUNNING, now)
            self._started(session, now)
        elif session is self._next:
            self._move_at = now + OVERLAP
            self._joined(session, now)

    def on_media(self, session: RelaySession, message: Message, now: float) -> None:
        """Hook: a message of the stream that is pulled has come."""

    def on_eof(self, session: RelaySession, now: float) -> None:
        """Hook: the stream that is pulled has ended: RTMP 1.0 §7.1.7."""

    def on_asked_to_move(self, session: RelaySession, target: Target, now: float) -> None:
        """Connect to `target` as well, while this session goes on."""
        if session is self._session and session.since is not None:
            self._asked, self._hops = target, 0
            if self._next is None:
                # E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
                # [careful-overlap]
                self._open_next(target, now)

    def on_end(self, session: RelaySession, now: float) -> None:
        """Note that a connection has ended, and make another one, now or later."""
        if session is self._next:
            self._next_failed(session, now)
        elif session is self._session:
            self._failed(session, now)

    # -- attempts ---------------------------------------------------------------------------

    def _begin(self, where: Target, now: float) -> None:
        """Make a new attempt, which may follow redirects."""
        self._hops = 0
        self._connect(where, now)

    def _connect(self, where: Target, now: float) -> None:
        self.where = where
        self._attempt_ends = now + self.backoff.answer
        self._session = session = self._open(where, now)
        self._become(State.CONNECTING, now)
        self._dial(session)

    def _open(self, where: Target, now: float) -> ChunkSession | FlowSession:
        return open_session(self, self._start_code, where, self._random, now, self._limits)

    def _failed(self, session: RelaySession, now: float) -> None:
        self.reason, self._session = session.reason, None
        self._leave(session, now)
        if self._next is not None:
            self._promote(self._next, now)
            return
        self._over(now)
        where, self._asked, self._move_at = self._asked, None, None
        if (target := self._sent_to(session)) is not None:
            self._connect(target, now)
            return
        if session.since is not None and now - session.since >= self.backoff.steady:
            self.failures = 0
            if where is not None:  # the server asked us to move there before it ended
                self._begin(where, now)
                return
        self.failures += 1
        self.where = where or self.target
        if self.backoff.attempts is not None and self.failures >= self.backoff.attempts:
            self._attempt_ends = None
            self._become(State.GIVEN_UP, now)
            return
        self._attempt_ends = now + self.backoff.wait(self.failures, self._random(1)[0])
        self._become(State.WAITING, now)

    def _sent_to(self, session: RelaySession) -> Target | None:
        """The target to try at once: with the next proof, or a redirect, up to `HOPS`."""
        target = None if session.since is not None else session.next_target
        if target is not None and not target.proof:
            self._hops += 1
            return target if self._hops <= HOPS else None
        return target

    def _become(self, state: State, now: float) -> None:
        self.state = state
        self.on_change(self, now)

    # -- moving -----------------------------------------------------------------------------

    def _open_next(self, where: Target, now: float) -> None:
        self._move_at = now + self.backoff.answer
        self._next = session = self._open(where, now)
        self._dial(session)

    def _move_is_due(self, now: float) -> None:
        """Try again to move, or move without a key frame, or give this attempt up."""
        if self._next is None:
            if self._asked is not None:
                self._open_next(self._asked, now)
        elif self._next.since is not None:
            self._overlapped(self._next, now)
        else:
            self._next.abort("no answer in time", now)

    def _next_failed(self, session: RelaySession, now: float) -> None:
        """Stay with the server in use, and try again later."""
        self.reason, self._next = session.reason, None
        self._leave(session, now)
        self._move_at = now + AGAIN
        if (target := self._sent_to(session)) is not None:
            self._asked = replace(target, proof="")  # a proof can be used once
            self._open_next(target, now)

    def _promote(self, session: RelaySession, now: float) -> None:
        """Use the next server from now on, whether it has answered or not."""
        old, self._session, self._next = self._session, session, None
        self._asked = self._move_at = None
        self.where = session.target
        if old is not None:
            self._leave(old, now)
        if session.since is not None:
            self._become(State.RUNNING, now)
            self._taken_over(session, now)
        else:
            self._attempt_ends = now + self.backoff.answer
            self._become(State.CONNECTING, now)

    def _leave(self, session: RelaySession, now: float) -> None:
        """Close a connection that is used no longer."""
        self._left(session, now)
        session.close(now, "stopped")

    _start_code = ""
    _limits = DEFAULT_LIMITS

    def _started(self, session: RelaySession, now: float) -> None:
        """Hook: the server has begun to publish or to play."""

    def _joined(self, session: RelaySession, now: float) -> None:
        """Hook: the next server has begun to publish or to play."""

    def _overlapped(self, session: RelaySession, now: float) -> None:
        """Hook: `OVERLAP` has passed without a key frame to move at."""
        self._promote(session, now)

    def _taken_over(self, session: RelaySession, now: float) -> None:
        """Hook: the next server is the only one now."""

    def _left(self, session: RelaySession, now: float) -> None:
        """Hook: this connection is about to be closed."""

    def _over(self, now: float) -> None:
        """Hook: the link has no connection."""
