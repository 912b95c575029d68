"""What makes the workers of a server one: streams, figures and rows that all of them share.

Own design: a stream lives in the worker that its publisher has reached.  A worker whose clients
want to play it takes it from there once, and gives it out to its own players, as if it were
published here.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final

import gevent

from rtmplite.live.streams import LiveStream, Registry
from rtmplite.net.clock import now as clock
from rtmplite.relay.rules import Relays
from rtmplite.rtmp.application import APP, LiveApplication, may_replace
from rtmplite.rtmp.message_transport import ConnectionLimits
from rtmplite.rtmp.netconnection import Application, NetConnection
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.rtmp.wire.command import Command
from rtmplite.shared_objects.server import SharedLimits, SharedObjects
from siprtmp.edge.workers.bus import Bus, Message
from siprtmp.edge.workers.directory import Directory, Key
from siprtmp.edge.workers.local_links import Copy, LocalDialer, LocalListener
from siprtmp.edge.workers.place import WorkerPlace

FIRST: Final = 0  # the worker that pulls


class Team:
    """The other workers, as one of them sees them.

    `registry` has the streams here, `live` is the application that publishes them; `limits` and
    `merge_ms` are those of connections.  What `relays` pull, the first worker does for all.
    `handlers` take the messages of the bus, `greeters` give
    those with which it begins, and `on_lost` are told of a worker that has ended.
    """

    def __init__(
        self,
        place: WorkerPlace,
        registry: Registry,
        live: LiveApplication,
        limits: ConnectionLimits,
        merge_ms: float,
        relays: Relays,
    ) -> None:
        self.place, self._registry, self._limits = place, registry, limits
        self.directory, self._copies, self._relays = Directory(), dict[Key, Copy](), relays
        relays.is_elsewhere = lambda app, name: not self._pulls((app, name))
        self._local = LocalListener(
            *(place.streams, registry, limits, merge_ms),
            lambda app, name: place.is_first and relays.can_fetch(app, name),
        )
        self._dialer = LocalDialer(place.streams_path, merge_ms)
        self._dialer.tick = self._tick
        self.handlers: dict[str, Any] = {
            "publish": self._published,
            "unpublish": self._unpublished,
            "claim": self._claimed,
        }
        self.greeters: list[Callable[[], Iterator[Message]]] = [self._greeting]
        self.on_lost: list[Callable[[int], object]] = [self._lost]
        self.bus = Bus(place, self.handlers, self._greet, self._left)
        live.is_elsewhere = lambda path: self.directory.owner((APP, path)) is not None
        registry.shared = SharedObjects(limits=SharedLimits(objects=0))  # of whom, would they be?
        registry.on_begin.append(self._begun)
        registry.on_end.append(self._ended)
        registry.on_audience.append(self._look)
        registry.fetchers.append(lambda app, name: self.directory.owner((app, name)) is not None)

    def start(self) -> None:
        """Join the other workers."""
        self._local.start()
        self._dialer.start()
        self.bus.start()

    def stop(self) -> None:
        """Leave them."""
        self.bus.stop()
        for copy in list(self._copies.values()):
            copy.stop(clock())
        self._dialer.stop()
        self._local.stop()

    @property
    def lent(self) -> int:
        """The players of streams here that are other workers, which count their own."""
        return self._local.players

    def own(self) -> Iterator[LiveStream]:
        """The streams that are published here."""
        return (live for live in self._registry if live.publishing and not live.is_copy)

    def waited(self) -> Iterator[Key]:
        """The streams that players here wait for, and nobody publishes."""
        for live in self._registry:
            key = (live.app, live.name)
            if not live.publishing and self.directory.owner(key) is None:
                yield key

    def claim(self, stream: ServerStream) -> None:
        """Ask the worker that has a name to give it up, if its publisher is lost."""
        key = (APP, stream.path)
        owner = self.directory.owner(key)
        if owner is None:
            return
        request = {"do": "claim", "key": key, "newcomer": stream.newcomer}
        if self.bus.ask(request, owner):
            self.directory.remove(owner, key)
            if (copy := self._copies.pop(key, None)) is not None:
                copy.stop(clock())

    # -- what happens here ------------------------------------------------------------------

    def _begun(self, live: LiveStream, now: float) -> None:
        if not live.is_copy:
            self._look(live, now)
            self.bus.tell({"do": "publish", "key": (live.app, live.name)})

    def _ended(self, live: LiveStream, now: float) -> None:
        if not live.is_copy:
            self.bus.tell({"do": "unpublish", "key": (live.app, live.name)})
        self._look(live, now)

    def _pulls(self, key: Key) -> bool:
        """Whether this worker is to pull a stream, if there is a rule for it."""
        return self.place.is_first and self.directory.owner(key) is None

    def _source(self, key: Key) -> int | None:
        """The worker from which a stream is taken: that with the publisher, or the one to pull."""
        owner = self.directory.owner(key)
        is_pulled = owner is None and not self.place.is_first and self._relays.can_fetch(*key)
        return FIRST if is_pulled else owner

    def _look(self, live: LiveStream, now: float) -> None:
        """Take the stream from another worker while it is there and is played here.

        The bus tells of its end before the last media have come: the copy is left until its own.
        """
        key = (live.app, live.name)
        owner = self._source(key)
        is_ours = live.publishing and not live.is_copy
        wanted = live.players > 0 and owner is not None and not is_ours
        copy = self._copies.get(key)
        if copy is not None and copy.owner != owner and copy.is_publishing and live.players:
            return
        if copy is not None and (not wanted or copy.owner != owner):
            del self._copies[key]
            copy.stop(now)
            copy = None
        if wanted and owner is not None and copy is None and key not in self._copies:
            copy = self._copies[key] = Copy(live, owner, self._dialer.dial, self._limits)
            copy.start(now)

    def _tick(self, now: float) -> None:
        for copy in list(self._copies.values()):
            copy.tick(now)

    # -- what others tell -------------------------------------------------------------------

    def _greet(self) -> Iterator[Message]:
        return chain.from_iterable(each() for each in self.greeters)

    def _left(self, worker: int) -> None:
        for each in self.on_lost:
            each(worker)

    def _greeting(self) -> Iterator[Message]:
        return ({"do": "publish", "key": (live.app, live.name)} for live in self.own())

    def _published(self, worker: int, message: Message) -> None:
        key, now = _key(message), clock()
        self.directory.add(worker, key)
        live = self._registry.get(*key)
        if live is not None and live.publishing and not live.is_copy and worker < self.place.index:
            self._give_up(live, now)
        self._renew(key)

    def _unpublished(self, worker: int, message: Message) -> None:
        self.directory.remove(worker, _key(message))
        self._renew(_key(message))

    def _lost(self, worker: int) -> None:
        for key in self.directory.lost(worker):
            self._renew(key)

    def _claimed(self, worker: int, message: Message) -> bool:
        """Give up a stream for a client of another worker; whether it has no publisher here."""
        live, now = self._registry.get(*_key(message)), clock()
        if live is None or not live.publishing or live.is_copy:
            return True
        host, is_back = message["newcomer"]
        if not may_replace(live, (host, is_back), now):
            return False
        self._give_up(live, now)
        return True

    def _give_up(self, live: LiveStream, now: float) -> None:
        publisher, live.publisher = live.publisher, None
        if publisher is not None:
            publisher.replaced(now)
        live.end(now)

    def _renew(self, key: Key) -> None:
        if (live := self._registry.get(*key)) is not None:
            self._look(live, clock())


class TeamApplication:
    """`live`, whose names all workers share: see `LiveApplication`.  Own design: see the module."""

    def __init__(self, application: LiveApplication, team: Team) -> None:
        self._application, self._team = application, team

    def on_connect(self, connection: NetConnection, now: float) -> None:
        """Pass on."""
        self._application.on_connect(connection, now)

    def on_command(self, connection: NetConnection, command: Command, now: float) -> None:
        """Pass on."""
        self._application.on_command(connection, command, now)

    def on_publish(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Publish, after the worker that has this name, if one does, was asked to give it up."""

        def decide(_: None, now: float) -> None:
            self._application.on_publish(connection, stream, name, now)

        if self._team.directory.owner((APP, stream.path)) is None:
            decide(None, now)
            return

        def claim(answer: Any) -> None:
            self._team.claim(stream)
            answer(None, clock())

        def ask(answer: Callable[[None, float], None]) -> None:
            gevent.spawn(claim, answer)

        connection.wait_for(ask, decide)

    def on_play(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Pass on: a player that waits has the stream taken from another worker."""
        self._application.on_play(connection, stream, name, now)

    def on_disconnect(self, connection: NetConnection, now: float) -> None:
        """Pass on."""
        self._application.on_disconnect(connection, now)


def _key(message: Message) -> Key:
    app, name = message["key"]
    return app, name


_: type[Application] = TeamApplication  # the type checker's proof
