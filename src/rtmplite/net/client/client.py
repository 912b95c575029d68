"""A client whose calls wait for the server, and let other greenlets run meanwhile.

This is what clients for RTMP (`rtmp_client`) and RTMFP (`rtmfp_client`) have in common.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, Self, TypeVar

import gevent
from gevent.event import AsyncResult, Event
from gevent.queue import Empty, Queue

from rtmplite.amf.values import Value
from rtmplite.auth.adobe import proven
from rtmplite.errors import LocalError, RemoteError
from rtmplite.net.clock import now
from rtmplite.rtmp.client import Called, Ended, NetClient, Reply, Target, redirection
from rtmplite.rtmp.reconnect import requested
from rtmplite.rtmp.wire.chunk_writer import CHUNK_STREAMS
from rtmplite.rtmp.wire.message import Message
from rtmplite.rtmp.wire.shared_object import SharedObject
from rtmplite.shared_objects.replica import Mirror, News, Refused

TIMEOUT: Final = 10.0  # s, unless a call says otherwise


class RedirectError(RemoteError):
    """The server redirects to `url`."""

    def __init__(self, description: str, code: str, level: str, url: str) -> None:
        super().__init__(description, code, level)
        self.url = url


@contextmanager
def naming(target: Target) -> Iterator[None]:
    """Add host and port of `target` to every OSError, and so to TimeoutError."""
    try:
        yield
    except OSError as error:
        if error.strerror is None:
            error.args = (f"{place(target)}: {error}",)
        else:
            error.strerror = f"{place(target)}: {error.strerror}"
        raise


def place(target: Target) -> str:
    """Host and port of a target, without the rest of its URL."""
    host = f"[{target.host}]" if ":" in target.host else target.host
    return f"{host}:{target.port}"


def next_target(target: Target, error: RedirectError, hops_left: int) -> Target:
    """The target of a redirect; RemoteError after too many, or if it would leave TLS."""
    try:
        found = Target.parse(error.url, stream=False)
    except LocalError:
        raise error from None
    if not hops_left or not may_go(target, error.url):
        raise error
    return found.as_user_of(target)


def may_go(target: Target, url: str) -> bool:
    """Whether a redirect to `url` does not leave TLS.  Raises LocalError for a wrong URL."""
    return not target.secure or Target.parse(url, stream=False).secure


def failure(information: Value) -> RemoteError:
    """The exception for an information object."""
    if not isinstance(information, dict):
        return RemoteError(str(information))
    words = [information.get(key) for key in ("description", "code", "level")]
    description, code, level = (word if isinstance(word, str) else "" for word in words)
    code, level = code or "NetConnection.Call.Failed", level or "error"
    if (url := redirection(information)) is not None:
        return RedirectError(description, code, level, url)
    return RemoteError(description, code, level)


class RemoteObject(Mapping[str, Value]):
    """A shared object in use, as a mapping of its slots; `Client.shared_object` makes it.

    users = client.shared_object("users")
    users["ann"] = {"online": True}
    users.send("greet", "hello")

    `on_news` is called with every `Sync`, `Heard` and `Refused`, in the greenlet that reads, so it
    must not wait for the server.
    """

    def __init__(self, name: str, persistent: bool, send: Callable[[SharedObject], None]) -> None:
        self.on_news: Callable[[News], None] = lambda news: None
        self._mirror, self._send = Mirror(name, persistent), send
        self._changed = Event()
        self._error: RemoteError | None = None

    def use(self) -> None:
        """Ask the server for it; `Client` calls this when it can route the answer."""
        self._send(self._mirror.use())

    @property
    def is_used(self) -> bool:
        """Whether the server lets us use it."""
        return self._mirror.is_used

    @property
    def version(self) -> int:
        """The number of changes it has had, as far as the server has told."""
        return self._mirror.version

    def __getitem__(self, name: str) -> Value:
        return self._mirror.data[name]

    def __iter__(self) -> Iterator[str]:
        """The names of slots."""
        return iter(list(self._mirror.data))

    def __len__(self) -> int:
        """The number of slots."""
        return len(self._mirror.data)

    def __setitem__(self, name: str, value: Value) -> None:
        """Give a slot a value, here at once and soon everywhere."""
        self._send(self._mirror.set(name, value))

    def __delitem__(self, name: str) -> None:
        """Remove a slot, here at once and soon everywhere."""
        self._send(self._mirror.remove(name))

    def send(self, name: str, *args: Value) -> None:
        """Call all clients that use it, this one as well."""
        self._send(self._mirror.send(name, *args))

    def close(self) -> None:
        """Use it no longer."""
        if self.is_used:
            self._send(self._mirror.release())

    def wait_until(self, condition: Callable[[], object], timeout: float = TIMEOUT) -> None:
        """Wait for news that make `condition` true; RemoteError, TimeoutError."""
        end = now() + timeout
        while not condition():
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            if not self._changed.wait(max(0.0, end - now())) and now() >= end:
                raise TimeoutError(f"not within {timeout:g} s")
            self._changed.clear()

    def take(self, message: SharedObject) -> None:
        """Take a message of the server; `Client` calls it."""
        for news in self._mirror.receive(message):
            if isinstance(news, Refused):
                self._error = RemoteError(f"{self._mirror.name} is refused", news.code, news.level)
            self.on_news(news)
        self._changed.set()

    def end(self, error: RemoteError) -> None:
        """Wake the calls that wait; `Client` calls it."""
        self._error = error
        self._changed.set()


REDIRECTS: Final = 3
CLOSED: Final = "NetConnection.Connect.Closed"

# After these a server sends no more of a stream.
_FINAL: Final = ("NetStream.Play.UnpublishNotify", "NetStream.Play.Stop", "NetStream.Play.Complete")


class Client:
    """One connection to a server; `RtmpClient` and `RtmfpClient` carry its messages.

    `on_call(name, args)` is called for every command of the server that is not about a stream, in
    the greenlet that reads, so it must not wait for the server.  `information` is the object that
    connect was answered with.  `reconnect_to` is the tcUrl that the server has asked us to go to,
    None if it has not; `reconnecting` obeys.
    """

    def __init__(self, machine: NetClient) -> None:
        self.on_call: Callable[[str, tuple[Value, ...]], None] = lambda name, args: None
        self.information: dict[str, Value] = {}
        self.reconnect_to: str | None = None
        self._machine = machine
        self._replies: dict[float, AsyncResult[Reply]] = {}
        self._streams: dict[int, ClientStream] = {}
        self._objects: dict[str, RemoteObject] = {}
        self._connected: AsyncResult[Reply] = self._await(1.0)

    def establish(self, timeout: float) -> None:
        """Wait until the server accepts us; RemoteError if it refuses, TimeoutError."""
        reply = self._wait(1.0, self._connected, timeout)
        information = reply[1] if len(reply) > 1 else None
        self.information = information if isinstance(information, dict) else {}

    def __enter__(self) -> Self:
        """Give the client itself, which is closed at the end of the block."""
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def target(self) -> Target:
        """The URL of the server, in parts."""
        return self._machine.target

    def flush(self) -> None:
        """Send the queue; waits while the server takes nothing."""
        raise NotImplementedError

    def close(self) -> None:
        """End the connection when all output has left.  Idempotent.

        By RTMFP it waits until everything has arrived.  Raises RemoteError if some of what was
        published never did.
        """
        raise NotImplementedError

    def leave(self) -> None:
        """End the connection soon, without waiting until all output has arrived."""
        self.close()

    @property
    def closed(self) -> bool:
        """Whether the connection has ended; `reason` says why."""
        return self._machine.closed

    @property
    def reason(self) -> str:
        """Why the connection has ended, empty before."""
        return self._machine.reason

    def call(self, name: str, *args: Value, timeout: float = TIMEOUT) -> Value:
        """Call the server; RemoteError for an error or the connection's end, TimeoutError."""
        number = self._machine.call(name, *args)
        waiting = self._await(number)
        self.flush()
        values = self._wait(number, waiting, timeout)
        return values[1] if len(values) > 1 else None

    def send(self, name: str, *args: Value) -> None:
        """Call the server without an answer."""
        self._machine.send(name, *args)
        self.flush()

    def create_stream(self, timeout: float = TIMEOUT) -> "ClientStream":
        """Ask for a stream to publish or play on; errors as those of `call`."""
        number = self.call("createStream", timeout=timeout)
        if not (isinstance(number, float) and number.is_integer()):
            raise RemoteError(f"{number!r} is no stream")
        stream = self._streams[int(number)] = ClientStream(self, self._machine, int(number))
        return stream

    def shared_object(
        self, name: str, *, persistent: bool = False, timeout: float = TIMEOUT
    ) -> RemoteObject:
        """Use a remote shared object; RemoteError if that is refused, TimeoutError."""
        thing = self._objects[name] = RemoteObject(name, persistent, self._share)
        thing.use()
        thing.wait_until(lambda: thing.is_used, timeout)
        return thing

    def forget(self, stream_id: int) -> None:
        """Route no more messages to a stream; called by `ClientStream.delete`."""
        self._streams.pop(stream_id, None)

    def _await(self, number: float) -> "AsyncResult[Reply]":
        waiting: AsyncResult[Reply] = AsyncResult()
        self._replies[number] = waiting
        if self.closed:
            self._finish()
        return waiting

    def _wait(
        self, number: float, waiting: "AsyncResult[Reply]", timeout: float
    ) -> tuple[Value, ...]:
        try:
            reply = waiting.get(timeout=timeout)
        except gevent.Timeout:
            raise TimeoutError(f"no answer within {timeout:g} s") from None
        finally:
            self._replies.pop(number, None)
        assert reply is not None  # the stubs think of get(block=False)
        if not reply.succeeded:
            raise failure(reply.values[-1])
        return reply.values

    def _stream_of(self, event: Called | Ended | Message) -> "ClientStream | None":
        """The stream that an event is about.

        ffmpeg as a server (`-listen 1`, 5.1) sends its media on message stream 0, where none
        belongs; with one stream it is clear which is meant.
        """
        if event.stream_id == 0 and isinstance(event, Message) and len(self._streams) == 1:
            return next(iter(self._streams.values()))
        return self._streams.get(event.stream_id)

    def _share(self, message: SharedObject) -> None:
        self._machine.send_shared(message.message())
        self.flush()

    def _finish(self) -> None:
        """Wake all calls that wait, as the connection has ended."""
        end = RemoteError(self.reason or "closed", CLOSED, "status")
        for waiting in self._replies.values():
            if not waiting.ready():
                waiting.set_exception(end)
        for stream in self._streams.values():
            stream.end()
        for thing in self._objects.values():
            thing.end(end)

    def _hear(self) -> None:
        """Pass each event to the call, stream or object that it is about."""
        for event in self._machine.events():
            match event:
                case Reply(transaction_id=number):
                    if waiting := self._replies.get(number):
                        waiting.set(event)
                case Called(stream_id=0, command=command):
                    with suppress(RemoteError, LocalError):  # it names no place
                        asked = requested(command, self.target.tc_url)
                        if asked is not None and may_go(self.target, asked):
                            self.reconnect_to = asked
                    self.on_call(command.name, command.args)
                case SharedObject(name=name):
                    if (thing := self._objects.get(name)) is not None:
                        thing.take(event)
                case _ if stream := self._stream_of(event):
                    stream.take(event)


class ClientStream:
    """One NetStream; `Client.create_stream` makes it.  `id` is the server's number for it."""

    def __init__(self, client: Client, machine: NetClient, stream_id: int) -> None:
        self.id = stream_id
        self.ended = False
        self._client, self._machine = client, machine
        self._media: Queue[Message | None] = Queue()
        self._take_media: Callable[[Message], object] = self._media.put
        self._statuses: Queue[dict[str, Value] | None] = Queue()

    @property
    def is_drained(self) -> bool:
        """Whether all that has arrived has been read."""
        return self._media.empty()

    def publish(self, name: str, kind: str = "live", timeout: float = TIMEOUT) -> None:
        """Publish under `name`; RemoteError if that is refused, TimeoutError."""
        self._machine.send("publish", name, kind, stream_id=self.id)
        self._client.flush()
        self._expect("NetStream.Publish.Start", timeout)

    def play(self, name: str, timeout: float = TIMEOUT) -> None:
        """Play `name`, live; then `read`.  RemoteError if that is refused, TimeoutError."""
        self._machine.set_buffer_length(self.id, 1000)
        self._machine.send("play", name, -2000.0, stream_id=self.id)  # in ms, as librtmp sends it
        self._client.flush()
        self._expect("NetStream.Play.Start", timeout)

    def write(self, type_id: int, timestamp: int, payload: bytes) -> None:
        """Send type 8, 9 or 18, time in ms, at the server's pace; RemoteError at the end."""
        if self._client.closed:
            raise RemoteError(self._client.reason, CLOSED, "status")
        self._machine.send_media(type_id, timestamp, self.id, payload)
        self._client.flush()

    def read(self, timeout: float | None = TIMEOUT) -> Message | None:
        """The next audio, video or data message; None after `timeout` s or when `ended`."""
        if self.ended and self._media.empty():
            return None
        try:
            return self._media.get(timeout=timeout)
        except Empty:
            return None

    def __iter__(self) -> Iterator[Message]:
        """The messages one after the other, waiting for each, until the stream ends."""
        while (message := self.read(timeout=None)) is not None:
            yield message

    def follow(self, take: Callable[[Message], object]) -> None:
        """Give `take` each message as it comes, until the stream ends.

        `take` is called in the greenlet that reads, so no other is woken; it must not wait.
        """
        self._take_media = take
        while (message := self._media.get()) is not None:  # those from before, then the end
            take(message)

    def status(self, timeout: float | None = TIMEOUT) -> dict[str, Value] | None:
        """The next information object of an onStatus; None after `timeout` s, or at the end."""
        if self.ended and self._statuses.empty():
            return None
        try:
            return self._statuses.get(timeout=timeout)
        except Empty:
            return None

    def delete(self) -> None:
        """Stop publishing or playing, and give the stream back (RTMP Errata §8.3)."""
        self._machine.send("deleteStream", float(self.id))  # RTMP Errata §8.3 [on-stream-0]
        self._client.forget(self.id)
        self._client.flush()
        self.end()

    def take(self, event: Called | Ended | Message) -> None:
        """Keep an event of this stream until it is read; `Client` calls it."""
        match event:
            case Message(type_id=type_id) if type_id in CHUNK_STREAMS:
                self._take_media(event)
            case Called(command=command) if command.name == "onStatus":
                information = command.args[0] if command.args else None
                if isinstance(information, dict):
                    self._statuses.put(information)
                    if information.get("code") in _FINAL:
                        self.end()
            case Ended():
                self.end()

    def end(self) -> None:
        """Wake the calls that wait for more; `Client` calls it."""
        if not self.ended:
            self.ended = True
            self._media.put(None)
            self._statuses.put(None)

    def _expect(self, code: str, timeout: float) -> None:
        end = now() + timeout
        while (left := end - now()) > 0:
            information = self.status(left)
            if information is None and self._client.closed:
                raise RemoteError(self._client.reason, CLOSED, "status")
            if information is not None and information.get("level") == "error":
                raise failure(information)
            if information is not None and information.get("code") == code:
                return
        raise TimeoutError(f"no {code} within {timeout:g} s")


C = TypeVar("C", bound=Client)


def established(
    open_to: Callable[[Target], C],
    target: Target,
    timeout: float,
    on_call: Callable[[str, tuple[Value, ...]], None] | None,
) -> C:
    """Connect by `open_to`, and follow redirects of the server, a few times.

    A challenge is answered with the user and password of the URL: Field §"authmod=adobe".  Raises
    RemoteError if the server refuses, and what `open_to` does, with host and port.
    """
    hops_left = REDIRECTS
    while True:
        with naming(target):
            client = open_to(target)
        if on_call is not None:
            client.on_call = on_call
        try:
            with naming(target):
                client.establish(timeout)
        except RedirectError as error:
            client.close()
            target, hops_left = next_target(target, error, hops_left), hops_left - 1
        except RemoteError as error:
            client.close()
            again = proven(target, error.description, os.urandom)
            if again is None and error.code == CLOSED:  # without a word of the server's
                reason = f"{place(target)}: {error.description}"
                raise RemoteError(reason, CLOSED, error.level) from None
            if again is None:
                raise
            target = again
        except BaseException:
            client.close()
            raise
        else:
            return client
