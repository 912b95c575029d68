"""The application `call`, whose names all workers share.

Own design: a name's publisher stays in the worker that it has reached, and its call comes there.
Before a client publishes a name that another worker uses, that one is asked to give it up, by the
rules that hold within one process.  Players take the phone's audio from where the call is, as they
take any stream.
"""

from collections.abc import Callable, Iterable

import gevent

from rtmplite.live.streams import Registry
from rtmplite.net.clock import now as clock
from rtmplite.rtmp.netconnection import Application, NetConnection
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.rtmp.wire.command import Command
from siprtmp.calls.access.admission import Holder
from siprtmp.calls.access.name_rights import HELD, say_refused
from siprtmp.calls.call_app import CallApplication
from siprtmp.calls.home import BAD_NAME, PLAY_FAILED
from siprtmp.edge.workers.bus import Message
from siprtmp.edge.workers.team import Team


class NamesOfAll:
    """`call` at one of several workers: see `CallApplication`."""

    def __init__(self, application: CallApplication, team: Team, registry: Registry) -> None:
        self._application, self._bus, self._registry = application, team.bus, registry
        self._home = application.home
        team.handlers["claim-name"] = self._claimed

    def on_connect(self, connection: NetConnection, now: float) -> None:
        """Pass on."""
        self._application.on_connect(connection, now)

    def on_command(self, connection: NetConnection, command: Command, now: float) -> None:
        """Pass on."""
        self._application.on_command(connection, command, now)

    def on_publish(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Publish, after the workers that use this name were asked to give it up."""
        others = [each.worker for each in self._home.neighbours.names(stream.path)]

        def decide(reason: str, now: float) -> None:
            if not reason:
                self._application.on_publish(connection, stream, name, now)
                return
            say_refused(self._home.context.log, stream.client, "publish", stream.path, reason)
            stream.reject_publish(BAD_NAME, f"{stream.path}: {reason}.", now)

        if not (others and self._home.may_use(connection, stream.query)):
            self._application.on_publish(connection, stream, name, now)
            return
        holder = self._home.rights.holder(stream.client, stream.query, now)
        request: Message = {"do": "claim-name", "name": stream.path, "holder": sorted(holder)}
        request["newcomer"] = stream.newcomer

        def ask(answer: Callable[[str, float], None]) -> None:
            gevent.spawn(self._claim, request, others, answer)

        connection.wait_for(ask, decide)

    def on_play(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Play, unless a client of another worker holds the name."""
        held = [each.holder for each in self._home.neighbours.names(stream.path)]
        if any(held) and self._home.may_use(connection, stream.query):
            holder = self._home.rights.holder(stream.client, stream.query, now)
            if not _may_all(held, holder):
                say_refused(self._home.context.log, stream.client, "play", stream.path, HELD)
                stream.reject_play(PLAY_FAILED, f"{stream.path}: {HELD}.", now)
                return
        self._application.on_play(connection, stream, name, now)

    def on_disconnect(self, connection: NetConnection, now: float) -> None:
        """Pass on."""
        self._application.on_disconnect(connection, now)

    def _claim(
        self, request: Message, others: Iterable[int], answer: Callable[[str, float], None]
    ) -> None:
        """Ask each worker that has a name; the first reason against it, empty without one.

        A worker that does not answer is taken to have ended.
        """
        reasons = [self._bus.ask(request, worker) for worker in others]
        answer(next((each for each in reasons if each), ""), clock())

    def _claimed(self, worker: int, message: Message) -> str:
        host, is_back = message["newcomer"]
        claimant = frozenset(message["holder"]), (host, is_back)
        return self._application.give_up(message["name"], self._registry, claimant, clock())


def _may_all(held: Iterable[Holder | None], holder: Holder) -> bool:
    return not any(each is not None and each.isdisjoint(holder) for each in held)


_: type[Application] = NamesOfAll  # the type checker's proof
