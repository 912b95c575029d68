"""Guards, which decide whether a client may connect, publish or play.

Own design: RTMP has no authentication of its own, but many places for proof (RTMP Errata §8.1.6),
and every decision is left to "the server".  A guard is asked before the application; it answers at
once or later, and nothing is read from the client until then.

    >>> def no_kittens(question):
    ...     return question.event != Event.PUBLISH or "kitten" not in question.name
    >>> guard = Calling(no_kittens)  # for a `GuardedApplication`
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol

from rtmplite.rtmp.message_transport import text
from rtmplite.rtmp.netconnection import Application, HasLengths, NetConnection
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.rtmp.netstream import State as StreamState
from rtmplite.rtmp.wire.command import Command


class Event(StrEnum):
    """The client's actions, before they are allowed or after, in the words of nginx-rtmp."""

    CONNECT = "connect"
    PUBLISH = "publish"
    PLAY = "play"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Question:
    """A request of a client, with all that is known of the client.

    `app`, `tc_url`, `flash_version`, `page_url` and `swf_url` are members of connect's command
    object (RTMP 1.0 §7.2.1.1), `args` its further arguments.  `connect_query` follows the question
    mark in tcUrl, or else in app, `query` that in the name of the stream.  `path` is the name with
    the rest of `app` before it, `kind` the type of RTMP 1.0 §7.2.2.6.  With DONE, `was` is what
    has ended.
    """

    event: Event
    host: str
    port: int
    client: str
    app: str
    tc_url: str
    flash_version: str
    page_url: str
    swf_url: str
    connect_query: str
    args: tuple[object, ...]
    name: str = ""
    path: str = ""
    query: str = ""
    kind: str = ""
    start: float = 0.0
    duration: float = 0.0
    reset: bool = True
    was: Event = Event.CONNECT

    @classmethod
    def of(cls, connection: NetConnection, event: Event) -> "Question":
        """Make the question of a connection."""
        said = {key: text(connection.properties.get(key)) for key in _SAID}
        query = said["tcUrl"].partition("?")[2] or said["app"].partition("?")[2]
        host, port = connection.peer_address
        return cls(
            event,
            host,
            port,
            connection.id,
            connection.app,
            said["tcUrl"],
            said["flashVer"],
            said["pageUrl"],
            said["swfUrl"],
            query,
            connection.connect_args,
        )

    def about(self, stream: ServerStream) -> "Question":
        """Add the details of a stream."""
        request = stream.request
        return replace(
            self,
            name=stream.name,
            path=stream.path,
            query=stream.query,
            kind=stream.kind,
            start=request.start,
            duration=request.duration,
            reset=request.reset,
        )


_SAID: Final = ("app", "tcUrl", "flashVer", "pageUrl", "swfUrl")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of a guard; `description` is for the client.

    With `url` the client is redirected there.  With `name` a stream is published or played under
    that name instead of its own, and a client that connects is redirected to the application of
    that name.
    """

    is_allowed: bool
    description: str = ""
    name: str = ""
    url: str = ""


ALLOWED: Final = Verdict(True)

Answer = Callable[[Verdict, float], None]


class Guard(Protocol):
    """Decides whether a client may connect, publish or play."""

    def ask(self, question: Question, answer: Answer, now: float) -> None:
        """Call `answer` with a verdict and the time, once, now or later."""

    def tell(self, question: Question, now: float) -> None:
        """Note that an allowed action has ended; the event is DONE."""


class Calling:
    """A guard that calls a function, which must not block."""

    def __init__(self, function: Callable[[Question], Verdict | bool]) -> None:
        self._function = function

    def ask(self, question: Question, answer: Answer, now: float) -> None:
        """Answer with the function's result."""
        said = self._function(question)
        answer(said if isinstance(said, Verdict) else Verdict(said, "Denied."), now)

    def tell(self, question: Question, now: float) -> None:
        """Call the function, and ignore its result."""
        self._function(question)


class Guards:
    """Guards asked one after the other: the first refusal or redirect, the last name counts."""

    def __init__(self, guards: Sequence[Guard]) -> None:
        self._guards = tuple(guards)

    def ask(self, question: Question, answer: Answer, now: float) -> None:
        """Ask the first guard, then the next if that one allows it."""
        self._ask(0, question, ALLOWED, answer, now)

    def tell(self, question: Question, now: float) -> None:
        """Tell all guards."""
        for guard in self._guards:
            guard.tell(question, now)

    def _ask(
        self, number: int, question: Question, so_far: Verdict, answer: Answer, now: float
    ) -> None:
        if number == len(self._guards):
            answer(so_far, now)
            return

        def heard(verdict: Verdict, now: float) -> None:
            if not verdict.is_allowed or verdict.url:
                answer(verdict, now)
            else:
                kept = replace(so_far, name=verdict.name or so_far.name)
                self._ask(number + 1, question, kept, answer, now)

        self._guards[number].ask(question, heard, now)


class AuditedGuard:
    """A guard that reports each refusal to `on_refused`."""

    def __init__(self, guard: Guard, on_refused: Callable[[Question, Verdict], None]) -> None:
        self._guard, self._on_refused = guard, on_refused

    def ask(self, question: Question, answer: Answer, now: float) -> None:
        """Pass the question on, and report a refusal."""

        def heard(verdict: Verdict, now: float) -> None:
            if not verdict.is_allowed:
                self._on_refused(question, verdict)
            answer(verdict, now)

        self._guard.ask(question, heard, now)

    def tell(self, question: Question, now: float) -> None:
        """Pass it on."""
        self._guard.tell(question, now)


class GuardedApplication:
    """Gives an application what its guard allows, and closes others after each guess."""

    def __init__(self, application: Application, guard: Guard) -> None:
        self._application, self._guard = application, guard
        self._inside: set[NetConnection] = set()

    def on_connect(self, connection: NetConnection, now: float) -> None:
        """Ask, then let the application decide: RTMP 1.0 §7.2.1.1."""

        def decide(verdict: Verdict, now: float) -> None:
            if verdict.url or verdict.name:
                url = verdict.url or _other_app(connection.tc_url, verdict.name)
                connection.redirect(url, now, verdict.description)
            elif verdict.is_allowed:
                self._inside.add(connection)
                self._application.on_connect(connection, now)
            else:
                connection.reject(verdict.description or "Denied.", now)

        self._ask(connection, Question.of(connection, Event.CONNECT), decide, now)

    def on_command(self, connection: NetConnection, command: Command, now: float) -> None:
        """Pass it on: RTMP 1.0 §7.2.1.2."""
        self._application.on_command(connection, command, now)

    def on_length(
        self,
        connection: NetConnection,
        path: str,
        query: str,
        answer: Callable[[float, float], None],
        now: float,
    ) -> None:
        """Pass it on if the application `HasLengths`; a length is not worth a question."""
        if isinstance(self._application, HasLengths):
            self._application.on_length(connection, path, query, answer, now)
        else:
            answer(0.0, now)

    def on_publish(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Ask, then let the application decide: RTMP 1.0 §7.2.2.6."""

        def decide(verdict: Verdict, now: float) -> None:
            if self._redirects(connection, stream, verdict, now):
                return
            if not verdict.is_allowed:
                description = verdict.description or "Denied."
                stream.reject_publish("NetStream.Publish.Rejected", description, now)
                connection.close(now, f"may not publish: {description}")
                return
            self._watch(stream, asked)
            self._application.on_publish(connection, stream, stream.name, now)

        asked = Question.of(connection, Event.PUBLISH).about(stream)
        self._ask(connection, asked, decide, now)

    def on_play(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Ask, then let the application decide: RTMP 1.0 §7.2.2.1."""

        def decide(verdict: Verdict, now: float) -> None:
            if self._redirects(connection, stream, verdict, now):
                return
            if not verdict.is_allowed:
                description = verdict.description or "Denied."
                if stream.state is StreamState.PLAYING:  # it was to join the playlist
                    stream.status("NetStream.Play.Failed", description, "error")
                stream.reject_play("NetStream.Play.Failed", description, now)
                return
            self._watch(stream, asked)
            self._application.on_play(connection, stream, stream.name, now)

        asked = Question.of(connection, Event.PLAY).about(stream)
        self._ask(connection, asked, decide, now)

    def on_disconnect(self, connection: NetConnection, now: float) -> None:
        """Pass it on if the application has had this connection: RTMP 1.0 §7.2.1.1."""
        if connection in self._inside:
            self._inside.remove(connection)
            self._application.on_disconnect(connection, now)

    def _ask(
        self, connection: NetConnection, question: Question, decide: Answer, now: float
    ) -> None:
        """Ask, and read nothing more from that client before the answer."""
        connection.wait_for(lambda answer: self._guard.ask(question, answer, now), decide)

    def _redirects(
        self, connection: NetConnection, stream: ServerStream, verdict: Verdict, now: float
    ) -> bool:
        """Redirect or rename the stream as the verdict says; whether it was redirected."""
        if verdict.url:
            stream.redirect(verdict.url, verdict.description, now)
        elif verdict.is_allowed and verdict.name:
            stream.rename(verdict.name)
        return bool(verdict.url)

    def _watch(self, stream: ServerStream, asked: Question) -> None:
        """Tell the guard when the stream ends, after the earlier items of a playlist."""
        before, over = stream.on_done, replace(asked, event=Event.DONE, was=asked.event)

        def done(now: float) -> None:
            if before is not None:
                before(now)
            self._guard.tell(over, now)

        stream.on_done = done


def _other_app(tc_url: str, name: str) -> str:
    """The URL of another application of the server that the client knows."""
    scheme, _, rest = tc_url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/{name.lstrip('/')}"


_: type[Application] = GuardedApplication  # the type checker's proof
