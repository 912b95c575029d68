"""An RTMP client for scripts, tests and the demo: its calls wait, and let other greenlets run.

client = RtmpClient.connect("rtmp://127.0.0.1/live")
stream = client.create_stream()
stream.publish("demo")
stream.write(MessageType.AUDIO, 0, tag_body)
client.close()
"""

import os
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import gevent
from gevent import socket
from gevent.event import AsyncResult
from gevent.lock import BoundedSemaphore
from gevent.queue import Empty, Queue

from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError
from rtmplite.net.clock import now
from rtmplite.net.refusal import ElsewhereError, failure, next_target
from rtmplite.net.shared import RemoteObject
from rtmplite.net.tls import Tls, client_context, explain
from rtmplite.rtmp.client import Called, ClientConnection, Ended, Reply, Target
from rtmplite.rtmp.connection import CHUNK_STREAMS
from rtmplite.rtmp.message import Message
from rtmplite.rtmp.reconnect import requested
from rtmplite.rtmp.shared_object import SharedObject

TIMEOUT: Final = 10.0  # s, unless a call says otherwise
READ_SIZE: Final = 65536
REDIRECTS: Final = 3
CLOSED: Final = "NetConnection.Connect.Closed"

# After these a server sends no more of a stream.
_FINAL: Final = ("NetStream.Play.UnpublishNotify", "NetStream.Play.Stop", "NetStream.Play.Complete")


class RtmpClient:
    """One connection; make it with `connect`.

    `on_call(name, args)` is called for every command of the server that is not about a stream, in
    the greenlet that reads, so it must not wait for the server.  `information` is what connect was
    answered with.  `reconnect_to` is the tcUrl that the server has asked us to go to, None unless
    it has; `following` obeys.
    """

    def __init__(
        self, machine: ClientConnection, connected: socket.socket, tls: Tls | None = None
    ) -> None:
        self.on_call: Callable[[str, tuple[Value, ...]], None] = lambda name, args: None
        self.information: dict[str, Value] = {}
        self.reconnect_to: str | None = None
        self._machine, self._socket, self._tls = machine, connected, tls
        self._sending = BoundedSemaphore()
        self._replies: dict[float, AsyncResult[Reply]] = {}
        self._streams: dict[int, ClientStream] = {}
        self._objects: dict[str, RemoteObject] = {}
        self._connected: AsyncResult[Reply] = self._await(1.0)
        self._greenlet = gevent.spawn(self._run)

    @classmethod
    def connect(
        cls,
        url: str | Target,
        *args: Value,
        timeout: float = TIMEOUT,
        properties: dict[str, Value] | None = None,
        handshake: str = "simple",
        on_call: Callable[[str, tuple[Value, ...]], None] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> "RtmpClient":
        """Connect to an application: the whole path of `url`, or a `Target`.

        `args` follow the command object, `properties` go into it; `handshake` is "simple" or
        "digest".  For an rtmps URL the server's certificate has to be one that the system trusts,
        unless `tls` says otherwise: see `tls.client_context`.  A server that sends us
        elsewhere is obeyed a few times.  Raises RemoteError if the server refuses, OSError if
        there is none, TimeoutError after `timeout` seconds.
        """
        target = url if isinstance(url, Target) else Target.parse(url, stream=False)
        for hops_left in reversed(range(REDIRECTS + 1)):
            client = cls._open(target, args, timeout, properties, handshake == "digest", tls)
            if on_call is not None:
                client.on_call = on_call
            try:
                reply = client._wait(1.0, client._connected, timeout)
                break
            except ElsewhereError as error:
                client.close()
                target = next_target(target, error, hops_left)
            except BaseException:
                client.close()
                raise
        information = reply[1] if len(reply) > 1 else None
        client.information = information if isinstance(information, dict) else {}
        return client

    @classmethod
    def _open(
        cls,
        target: Target,
        args: tuple[Value, ...],
        timeout: float,
        properties: dict[str, Value] | None,
        digest: bool,
        tls: ssl.SSLContext | None,
    ) -> "RtmpClient":
        machine = ClientConnection(
            target, os.urandom, now(), args=args, properties=properties, digest=digest
        )
        connected = socket.create_connection((target.host, target.port), timeout)
        connected.settimeout(None)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        secure = Tls(tls or client_context(), target.host) if target.secure else None
        return cls(machine, connected, secure)

    @property
    def closed(self) -> bool:
        """Whether the connection has ended; `reason` says how."""
        return self._machine.closed

    @property
    def reason(self) -> str:
        """Why it ended, empty while it has not."""
        return self._machine.reason

    def call(self, name: str, *args: Value, timeout: float = TIMEOUT) -> Value:
        """Call the server and give its answer.

        Raises RemoteError if that is an error, or if the connection ends; TimeoutError.
        """
        number = self._machine.call(name, *args)
        waiting = self._await(number)
        self.flush()
        values = self._wait(number, waiting, timeout)
        return values[1] if len(values) > 1 else None

    def send(self, name: str, *args: Value) -> None:
        """Call the server and want no answer."""
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

    def close(self) -> None:
        """End the connection; a second time does nothing."""
        self._machine.close(now())
        if self._greenlet is not gevent.getcurrent():
            self._greenlet.kill()
        self._socket.close()
        self._finish()

    def flush(self) -> None:
        """Send what is queued; waits while the server takes nothing."""
        with self._sending:
            self._drain()

    def forget(self, stream_id: int) -> None:
        """Route nothing to this stream any more; `ClientStream.delete` does the rest."""
        self._streams.pop(stream_id, None)

    def _drain(self) -> None:
        try:
            while output := self._output():
                self._socket.sendall(output)
        except OSError as error:
            self._machine.connection_lost(now(), str(error))
            self._finish()

    def _output(self) -> bytes:
        output = b"".join(self._machine.take_output())
        if self._tls is None:
            return output
        if output:
            self._tls.send(output)
        return self._tls.take_output()

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

    def _run(self) -> None:
        self._drain()
        while not self.closed:
            deadline = self._machine.deadline
            wait = None if deadline is None else max(0.0, deadline - now())
            try:
                socket.wait_read(self._socket.fileno(), wait, _LateError())
                self._take(self._socket.recv(READ_SIZE))
            except _LateError:
                self._machine.tick(now())
            except ssl.SSLError as error:
                self._machine.connection_lost(now(), explain(error))
            except OSError as error:
                self._machine.connection_lost(now(), str(error))
            self._answer()
        self._socket.close()
        self._finish()

    def _take(self, data: bytes) -> None:
        ended = not data
        if self._tls is not None:
            data = self._tls.receive(data)
            ended = ended or self._tls.ended
        if data:
            self._machine.receive(data, now())
        if ended:
            self._machine.connection_lost(now())
        for event in self._machine.events():
            match event:
                case Reply(transaction_id=number):
                    if waiting := self._replies.get(number):
                        waiting.set(event)
                case Called(stream_id=0, command=command):
                    with suppress(RemoteError):  # it names no place
                        asked = requested(command, self._machine.target.tc_url)
                        self.reconnect_to = asked or self.reconnect_to
                    self.on_call(command.name, command.args)
                case SharedObject(name=name):
                    if (thing := self._objects.get(name)) is not None:
                        thing.take(event)
                case _ if stream := self._streams.get(event.stream_id):
                    stream.take(event)

    def _share(self, message: SharedObject) -> None:
        self._machine.send_shared(message.message())
        self.flush()

    def _answer(self) -> None:
        """Send the machine's replies; if somebody is sending already, they go with that."""
        if self._sending.acquire(blocking=False):
            try:
                self._drain()
            finally:
                self._sending.release()

    def _finish(self) -> None:
        """Tell all who wait that the connection has ended."""
        end = RemoteError(self.reason or "closed", CLOSED, "status")
        for waiting in self._replies.values():
            if not waiting.ready():
                waiting.set_exception(end)
        for stream in self._streams.values():
            stream.end()
        for thing in self._objects.values():
            thing.end(end)


class ClientStream:
    """One NetStream; `RtmpClient.create_stream` makes it.  `id` is the server's number for it."""

    def __init__(self, client: RtmpClient, machine: ClientConnection, stream_id: int) -> None:
        self.id = stream_id
        self.ended = False
        self._client, self._machine = client, machine
        self._media: Queue[Message | None] = Queue()
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
        self._machine.send("play", name, -2000.0, stream_id=self.id)  # in ms, as librtmp has it
        self._client.flush()
        self._expect("NetStream.Play.Start", timeout)

    def write(self, type_id: int, timestamp: int, payload: bytes) -> None:
        """Send one message of type 8, 9 or 18, `timestamp` in ms; waits for a slow server.

        Raises RemoteError if the connection has ended.
        """
        if self._client.closed:
            raise RemoteError(self._client.reason, CLOSED, "status")
        self._machine.send_media(type_id, timestamp, self.id, payload)
        self._client.flush()

    def read(self, timeout: float | None = TIMEOUT) -> Message | None:
        """The next audio, video or data message; what is not read is kept.

        None after `timeout` seconds without one, or at the end, when `ended` is true.
        """
        if self.ended and self._media.empty():
            return None
        try:
            return self._media.get(timeout=timeout)
        except Empty:
            return None

    def status(self, timeout: float | None = TIMEOUT) -> dict[str, Value] | None:
        """The next information object of an onStatus; None after `timeout` s, or at the end."""
        if self.ended and self._statuses.empty():
            return None
        try:
            return self._statuses.get(timeout=timeout)
        except Empty:
            return None

    def delete(self) -> None:
        """Stop publishing or playing, and give the stream back: RTMP Errata §8.3 [on-stream-0]."""
        self._machine.send("deleteStream", float(self.id))
        self._client.forget(self.id)
        self._client.flush()
        self.end()

    def take(self, event: Called | Ended | Message) -> None:
        """Sort what has arrived on this stream; `RtmpClient` calls it."""
        match event:
            case Message(type_id=type_id) if type_id in CHUNK_STREAMS:
                self._media.put(event)
            case Called(command=command) if command.name == "onStatus":
                information = command.args[0] if command.args else None
                if isinstance(information, dict):
                    self._statuses.put(information)
                    if information.get("code") in _FINAL:
                        self.end()
            case Ended():
                self.end()

    def end(self) -> None:
        """Let nobody wait for more; `RtmpClient` calls it."""
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


class _LateError(Exception):
    """Nothing to read in time."""
