"""Publishes and plays at the server that redirects name, and moves when a server asks for that.

E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest": the new connection
is made beside the old one, which goes on until a key frame; then the old one is left.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Self, TypeAlias

import gevent

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv.metadata import wrapped
from rtmplite.live.tracks import Tracks
from rtmplite.net.client.client import REDIRECTS, TIMEOUT, Client, ClientStream, RedirectError
from rtmplite.net.client.rtmfp_client import connect as connect_to
from rtmplite.net.clock import now
from rtmplite.net.redaction import public
from rtmplite.relay.link import AGAIN, OVERLAP
from rtmplite.relay.session import redirected
from rtmplite.relay.switchover import PlayedPosition, StandbyBuffer
from rtmplite.rtmp.client import Target
from rtmplite.rtmp.wire.message import Message, MessageType

log = logging.getLogger(__name__)

TURN: Final = 0.1  # s to wait for the old server before looking at the new one

Connect: TypeAlias = Callable[[Target], Client]

_FAILURES: Final = (OSError, RemoteError, LocalError, TimeoutError)


def begin(
    target: Target,
    connect: Connect,
    start: Callable[[ClientStream, str], None],
    timeout: float = TIMEOUT,
) -> tuple[Client, ClientStream, Target]:
    """Publish or play by `start`, at `target` or where its server redirects: Field §"Redirects".

    Gives the client, stream and target in the end.  Raises what `connect` and `start` do.
    """
    for hops_left in reversed(range(REDIRECTS + 1)):
        client = connect(target)
        try:
            stream = client.create_stream(timeout=timeout)
            start(stream, target.stream)
            return client, stream, target
        except RedirectError as error:
            client.close()
            found = redirected(target, error.url)
            if found is None or not hops_left:
                raise
            target = found
        except BaseException:
            client.close()
            raise
    raise AssertionError("not reached")


class _Following:
    """One stream at one server at a time; `connect` makes the connection to the next one."""

    def __init__(
        self,
        client: Client,
        stream: ClientStream,
        name: str,
        connect: Connect,
        timeout: float = TIMEOUT,
    ) -> None:
        self.client, self.stream, self.name, self.timeout = client, stream, name, timeout
        self._connect = connect
        self._seeking: gevent.Greenlet[[str], tuple[Client, ClientStream] | None] | None = None
        self._not_before = 0.0
        self._begin()

    @classmethod
    def open(
        cls, url: str | Target, *, connect: Connect = connect_to, timeout: float = TIMEOUT
    ) -> Self:
        """Connect to the server of `url`, or to the one that it names, and begin.

        Raises LocalError if `url` names no stream, RemoteError if the server refuses, OSError if
        there is none, TimeoutError after `timeout` seconds.
        """
        target = url if isinstance(url, Target) else Target.parse(url)
        if not target.stream:
            raise LocalError(f"{url} names no stream")
        start = partial(cls._start, timeout=timeout)
        client, stream, target = begin(target, connect, start, timeout)
        return cls(client, stream, target.stream, connect, timeout)

    def __enter__(self) -> Self:
        """Give the stream itself, which is closed at the end of the block."""
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection in use, as `Client.close` does, and the next one."""
        self._stop_seeking()
        self.client.close()

    def leave(self) -> None:
        """The same, but soon: `Client.leave`."""
        self._stop_seeking()
        self.client.leave()

    def _stop_seeking(self) -> None:
        if self._seeking is not None:
            self._seeking.kill()
            if self._seeking.successful() and isinstance(self._seeking.value, tuple):
                self._seeking.value[0].leave()

    def _search(self) -> None:
        """Begin to connect to the next server if asked to; nothing waits for it."""
        url = self.client.reconnect_to
        if url is not None and self._seeking is None and now() >= self._not_before:
            # E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
            # [careful-overlap]
            self._seeking = gevent.spawn(self._seek, url)

    def _found(self) -> tuple[Client, ClientStream] | None:
        """The new connection and its stream when they are ready, once."""
        if self._seeking is None or not self._seeking.ready():
            return None
        found, self._seeking = self._seeking.value, None
        return found if isinstance(found, tuple) else None

    def _seek(self, url: str) -> tuple[Client, ClientStream] | None:
        client = None
        try:
            target = Target.parse(url, stream=False).as_user_of(self.client.target)
            client = self._connect(target)
            return client, client.create_stream(timeout=self.timeout)
        except _FAILURES as error:
            self._failed(client, error)
            return None

    def _failed(self, client: Client | None, error: Exception) -> None:
        """Stay at the old server, and try again later."""
        log.warning("cannot move to %s: %s", public(self.client.reconnect_to or ""), error)
        self._not_before = now() + AGAIN
        if client is not None:
            client.close()

    @staticmethod
    def _start(stream: ClientStream, name: str, timeout: float) -> None:
        """Hook: begin at the first server."""

    def _begin(self) -> None:
        """Hook: nothing has been written or read yet."""

    def _leave(self, client: Client, stream: ClientStream) -> None:
        try:
            stream.delete()
        except _FAILURES:
            log.debug("the old server has gone already")
        client.close()


class Publisher(_Following):
    """Publishes at one server after another; `stream` publishes already.

    with Publisher.open("rtmp://127.0.0.1/live/demo") as publisher:
        publisher.write(TagType.AUDIO, 0, payload)
    """

    @staticmethod
    def _start(stream: ClientStream, name: str, timeout: float) -> None:
        stream.publish(name, timeout=timeout)

    def _begin(self) -> None:
        self._tracks = Tracks()
        self._lost: RemoteError | None = None  # on the way to a server that was left

    def close(self) -> None:
        """Close when all has arrived; RemoteError if this server or an earlier one lacks some."""
        super().close()
        if self._lost is not None:
            raise self._lost

    def write(self, type_id: int, timestamp: int, payload: bytes) -> None:
        """Send one message as `ClientStream.write`; the next server's first is a key frame."""
        moment = now()
        self._search()
        weight, _ = self._tracks.note(type_id, timestamp, payload, moment)
        # E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
        # [leave-at-boundary]
        if self._tracks.can_begin(weight, moment) and (found := self._found()):
            self._move(*found, timestamp)
        self.stream.write(type_id, timestamp, payload)

    def _move(self, client: Client, stream: ClientStream, timestamp: int) -> None:
        try:
            stream.publish(self.name, timeout=self.timeout)
        except _FAILURES as error:
            self._failed(client, error)
            return
        for type_id, payload in self._tracks.opening():
            is_data = type_id == MessageType.DATA
            at = 0 if is_data else timestamp  # metadata is of no time: ffmpeg shows other as text
            stream.write(type_id, at, wrapped(payload) if is_data else payload)
        old = self.client, self.stream
        self.client, self.stream = client, stream
        try:
            self._leave(*old)
        except RemoteError as error:
            self._lost = error


class Player(_Following):
    """Plays at one server after another; `stream` plays already.

    with Player.open("rtmp://127.0.0.1/live/demo") as player:
        for message in player:
            print(message.timestamp, len(message.payload))
    """

    @staticmethod
    def _start(stream: ClientStream, name: str, timeout: float) -> None:
        stream.play(name, timeout=timeout)

    def _begin(self) -> None:
        self._next: tuple[Client, ClientStream] | None = None
        self._ahead: StandbyBuffer | None = None  # until the next server has taken over
        self._overlap_ends = 0.0
        self._passed = PlayedPosition()
        self._waiting: deque[Message] = deque()

    @property
    def ended(self) -> bool:
        """Whether the stream has ended, and no other server is to follow."""
        return self.stream.ended and self._next is None and self._seeking is None

    @property
    def is_drained(self) -> bool:
        """Whether all that has arrived has been read."""
        return self.stream.is_drained and self._next is None and not self._waiting

    def close(self) -> None:
        """Close the connections, that in use and the next."""
        super().close()
        if self._next is not None:
            self._next[0].close()

    def read(self, timeout: float = TIMEOUT) -> Message | None:
        """The next message: of the old server until it comes to where the new one begins."""
        end = now() + timeout
        while not self._waiting:
            self._look_ahead()
            message = self.stream.read(min(TURN, max(0.0, end - now())))
            if message is not None:
                # E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
                # [leave-at-boundary]
                self._take(message)
            elif self.stream.ended and self._next is not None:
                self._switch(*self._next)
            elif self.ended or now() >= end:
                return None
            elif self.stream.ended and self._seeking is not None:
                self._seeking.join(TURN)  # nothing else lets it run
        message = self._waiting.popleft()
        self._passed.note(message.type_id, message.timestamp, message.payload, now())
        return message

    def __iter__(self) -> Iterator[Message]:
        """The messages one after the other, waiting for each, until the stream ends."""
        while not self.ended or not self.is_drained:
            if (message := self.read()) is not None:
                yield message

    def _take(self, message: Message) -> None:
        """Keep a message of the server in use, unless the next one takes over here."""
        type_id, timestamp, _, payload = message
        if self._ahead is None:
            if not self._passed.is_repeated(type_id, timestamp, payload, now()):
                self._waiting.append(message)
        elif self._next is None:  # the only server now, and not where one can begin yet
            self._ahead.take(type_id, timestamp, payload, self._passed, now())
            self._go_on(self._ahead)
        elif self._ahead.meets(type_id, timestamp, payload, now()):
            self._switch(*self._next)
        else:
            self._waiting.append(message)

    def _look_ahead(self) -> None:
        """Play at the next server as well when it is connected, and read what it sends."""
        if self._next is None:
            self._search()
            if found := self._found():
                self._play_beside(*found)
        if self._next is None or self._ahead is None:
            return
        stream = self._next[1]
        while not stream.is_drained and (message := stream.read(TURN)) is not None:
            type_id, timestamp, _, payload = message
            self._ahead.take(type_id, timestamp, payload, self._passed, now())
        if now() >= self._overlap_ends and self._ahead.begin is None:
            self._ahead.from_anywhere = True  # their time lines do not meet
        elif now() >= self._overlap_ends or self._ahead.is_due:
            self._switch(*self._next)

    def _play_beside(self, client: Client, stream: ClientStream) -> None:
        try:
            stream.play(self.name, timeout=self.timeout)
        except _FAILURES as error:
            self._failed(client, error)
            return
        self._next, self._ahead = (client, stream), StandbyBuffer()
        self._overlap_ends = now() + OVERLAP

    def _switch(self, client: Client, stream: ClientStream) -> None:
        old = self.client, self.stream
        self.client, self.stream, self._next = client, stream, None
        if self._ahead is not None:
            self._go_on(self._ahead)
        self._leave(*old)

    def _go_on(self, ahead: StandbyBuffer) -> None:
        """Switch to the next server's messages once they begin with a key frame."""
        if ahead.begin is None:
            return
        self._ahead = None
        if not ahead.from_anywhere:
            self._passed.go_over()
        for type_id, timestamp, payload in ahead.messages:
            self._take(Message(type_id, timestamp, self.stream.id, payload))
