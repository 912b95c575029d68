"""The server's side of a NetConnection: connect, createStream, calls both ways.

Implements RTMP 1.0 §7.2.1, read with RTMP Errata §8.  Clients send more than the texts list;
what ffmpeg, librtmp, GStreamer, OBS and Flash Media Live Encoder need of that is answered here.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final, Protocol, TypeVar, runtime_checkable

from rtmplite.amf.values import Value
from rtmplite.errors import LocalError, RemoteError
from rtmplite.live.streams import Registry
from rtmplite.rtmp import reconnect
from rtmplite.rtmp.lent_reading import AudioSink
from rtmplite.rtmp.message_transport import ConnectionEnd, ConnectionLimits, MessageTransport, text
from rtmplite.rtmp.netstream import MAX_NAME, ServedClient, ServerStream
from rtmplite.rtmp.netstream import State as StreamState
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.capabilities import RELAY, Capabilities, Extra
from rtmplite.rtmp.wire.command import Command, error, on_status, result
from rtmplite.rtmp.wire.message import Message
from rtmplite.rtmp.wire.shared_object import SharedObject

T = TypeVar("T")

DEFAULT_LIMITS: Final = ConnectionLimits()

# What Flash Media Server 3.5 said.  Flash Player enables some features by version only, and
# ffmpeg and rtmpdump print it.
_PROPERTIES: Final[Mapping[str, Value]] = {"fmsVer": "FMS/3,5,7,7009", "capabilities": 31.0}

PAYLOADS: Final = (0, 8192, 8192)  # bytes; the empty one measures the round trip
NAMES: Final = {
    "_checkbw": ("_onbwcheck", "_onbwdone"),
    "checkBandwidth": ("onBWCheck", "onBWDone"),
}


class BandwidthCheck:
    """Measures a client's bit rate and round trip by useless payloads: Field §"Bandwidth check".

    Own design: old Flash players ask for it to choose a bit rate.  `call` and `end` are the names
    of the calls to the client, `number` their transaction id.

        >>> check = BandwidthCheck("onBWCheck", "onBWDone", number=7.0)
        >>> check.begin(10.0).args
        ()
        >>> len(check.answered(7.0, 10.05).args[0])  # an answer to nothing took 50 ms
        8192
        >>> done = [check.answered(7.0, at) for at in (10.15, 10.25)][-1]
        >>> done.name, [round(value) for value in done.args]  # kbit/s, bytes, ms, ms
        ('onBWDone', [1311, 16384, 100, 50])
    """

    def __init__(self, call: str, end: str, number: float) -> None:
        self._call, self._end, self._number = call, end, number
        self._sent = 0
        self._latency, self._since, self._times = 0.0, 0.0, 0.0

    def begin(self, now: float) -> Command:
        """Give the first call."""
        return self._next(now)

    def answered(self, number: float, now: float) -> Command | None:
        """Give the next call, the last one with the figures; None for another transaction."""
        if number != self._number or self._sent > len(PAYLOADS):
            return None
        took = max(0.0, now - self._since)
        if self._sent == 1:
            self._latency = took
        else:
            self._times += max(0.0, took - self._latency)
        if self._sent < len(PAYLOADS):
            return self._next(now)
        self._sent += 1
        size, seconds = sum(PAYLOADS), max(self._times, 0.001)
        figures = size * 8 / seconds / 1000, size, self._times * 1000, self._latency * 1000
        return Command(self._end, 0.0, None, tuple(map(float, figures)))

    def _next(self, now: float) -> Command:
        size = PAYLOADS[self._sent]
        self._sent, self._since = self._sent + 1, now
        payload: tuple[Value, ...] = ("x" * size,) if size else ()
        return Command(self._call, self._number, None, payload)


class State(StrEnum):
    """The states of a server's NetConnection: RTMP 1.0 §7.2.1.1.  Own design: in no figure."""

    NEW = "new"  # no connect command yet
    ASKING = "asking"  # the application has not decided
    CONNECTED = "connected"
    CLOSED = "closed"


class Application(Protocol):
    """The part of a server that decides; one object may serve any number of connections.

    Own design: the commands of RTMP 1.0 §7.2 leave every decision to "the server"; the methods are
    the requests that it may refuse.  None may block: an application that needs time answers later,
    by the same methods.
    """

    def on_connect(self, connection: "NetConnection", now: float) -> None:
        """Lead to `accept` or `reject`; reading waits for it: RTMP 1.0 §7.2.1.1."""

    def on_command(self, connection: "NetConnection", command: Command, now: float) -> None:
        """Answer another call by `connection.result` or `error`: RTMP 1.0 §7.2.1.2."""

    def on_publish(
        self, connection: "NetConnection", stream: ServerStream, name: str, now: float
    ) -> None:
        """Lead to `stream.accept_publish` or `stream.reject_publish`: RTMP 1.0 §7.2.2.6."""

    def on_play(
        self, connection: "NetConnection", stream: ServerStream, name: str, now: float
    ) -> None:
        """Lead to `stream.accept_play` or `stream.reject_play`: RTMP 1.0 §7.2.2.1."""

    def on_disconnect(self, connection: "NetConnection", now: float) -> None:
        """Note that the connection has ended, after its streams; once for each `on_connect`."""


@runtime_checkable
class HasLengths(Protocol):
    """Own design: an application whose recordings have a length, asked by getStreamLength."""

    def on_length(
        self,
        connection: "NetConnection",
        path: str,
        query: str,
        answer: Callable[[float, float], None],
        now: float,
    ) -> None:
        """Call `answer(seconds, now)` once, 0 for no recording; `query` follows the name."""


class NetConnection(ConnectionEnd):
    """One client, from its first byte to its last: RTMP 1.0 §7.2.1.

    `app` is the member of connect without a query; its first part chooses the application, and
    `instance` is the rest.  `tc_url`, `properties` (the command object) and `connect_args` (the
    further arguments) are as sent, `capabilities` what they say of enhanced RTMP.  `data` belongs
    to the application, `peer_address` to the edge.
    """

    def __init__(
        self,
        transport: MessageTransport,
        application_for: Callable[[str], Application | None],
        registry: Registry,
        random: Callable[[int], bytes],
        now: float,
    ) -> None:
        super().__init__(transport)
        self._active = now  # when it last asked or sent something
        self.id = random(4).hex()
        self.registry = registry
        self.state = State.NEW
        self.app = self.instance = self.tc_url = self.released = ""
        self.properties: dict[str, Value] = {}
        self.connect_args: tuple[Value, ...] = ()
        self.capabilities = Capabilities()
        self.object_encoding = 0
        self.data: object = None
        self.streams: dict[int, ServerStream] = {}
        self._application_for = application_for
        self._application: Application | None = None
        self._connect_id = 1.0
        self._next_call = 2.0
        self._check: BandwidthCheck | None = None

    @property
    def application(self) -> Application:
        """The application of this client.  Own design: LocalError before the connect command."""
        if self._application is None:
            raise LocalError("no application before connect")
        return self._application

    @property
    def client(self) -> ServedClient:
        """The client as its streams know it: RTMP 1.0 §7.2.1.1."""
        return ServedClient(self, self.id, self.app, self.instance, self.tc_url, self.capabilities)

    def add_stream(self, stream_id: int) -> None:
        """Add a stream, whose requests go to the application: RTMP 1.0 §7.2.1.3."""
        stream = ServerStream(self.client, stream_id, self._ask_publish, self._ask_play)
        self.streams[stream_id] = stream

    def _ask_publish(self, stream: ServerStream, now: float) -> None:
        stream.released = self.released
        self.application.on_publish(self, stream, stream.name, now)

    def _ask_play(self, stream: ServerStream, now: float) -> None:
        self.application.on_play(self, stream, stream.name, now)

    def accept(
        self, now: float, description: str = "Connection succeeded.", **extra: Value
    ) -> None:
        """Answer connect with success; `extra` says more (RTMP 1.0 §7.2.1.1).

        A client with enhanced RTMP is told that we relay any codec, in both objects, as the text
        does not tell which.
        Own design: a verdict that comes when the connection has ended does nothing.
        """
        if self.state is not State.ASKING:
            return
        self.state, self.transport.deciding = State.CONNECTED, False
        self.transport.settle()
        self._active = now
        self.transport.welcome()
        information: dict[str, Value] = {
            "level": "status",
            "code": "NetConnection.Connect.Success",
            "description": description,
            "objectEncoding": float(self.object_encoding),  # RTMP Errata §8.1.1 [server-says]
        }
        # E-RTMP v2 §"Enhancing NetConnection connect Command" [server-states-support]
        ours = RELAY.properties() if self.capabilities.is_enhanced else {}
        reply = result(self._connect_id, {**_PROPERTIES, **ours}, information | ours | extra)
        self.send_command(reply)  # RTMP 1.0 §7.2.1.1 [then-result]
        self.transport.proceed(now)  # what came while the application was thinking

    def reject(
        self, description: str, now: float, code: str = "NetConnection.Connect.Rejected"
    ) -> None:
        """Answer connect with an error, then close: RTMP 1.0 §7.2.1.1."""
        if self.state is State.ASKING:
            self.send_command(error(self._connect_id, RemoteError(description, code)))
            self.close(now, reason=f"rejected: {description}")

    def redirect(self, url: str, now: float, description: str = "") -> None:
        """Redirect the client to `url`, then close: Field §"Redirects"."""
        if self.state is State.ASKING:
            said: dict[str, Value] = {
                "level": "error",
                "code": "NetConnection.Connect.Rejected",
                "description": description or f"Ask {url}.",
                "ex": {"code": 302.0, "redirect": url},
            }
            self.send_command(Command("_error", self._connect_id, None, (said,)))
            self.close(now, reason=f"sent to {url}")

    def call(self, name: str, *args: Value) -> None:
        """Call the client: RTMP 1.0 §7.2.1.2, on stream 0, the ids counting from 2."""
        self.send_command(Command(name, self._next_call, None, args))
        self._next_call += 1

    def result(self, transaction_id: float, *values: Value) -> None:
        """Answer a call, unless its number is 0 (RTMP 1.0 §7.2.1.2)."""
        if transaction_id:  # RTMP 1.0 §7.2.1.2 [zero-wants-none]
            self.send_command(result(transaction_id, None, *(values or (None,))))

    def error(self, transaction_id: float, reason: RemoteError) -> None:
        """Answer a call of the client that failed: RTMP 1.0 §7.2.1.2."""
        if transaction_id:  # RTMP 1.0 §7.2.1.2 [zero-wants-none]
            self.send_command(error(transaction_id, reason))

    def request_reconnect(self, tc_url: str | None = None) -> bool:
        """Ask a client to reconnect, later served until it leaves; False: it cannot."""
        if self.state is not State.CONNECTED or Extra.RECONNECT not in self.capabilities.extras:
            return False
        # and no more: E-RTMP v2 §"Message Flow When Handling
        # NetConnection.Connect.ReconnectRequest" [old-server-goes-on]
        self.send_command(reconnect.request(tc_url))
        return True

    def wait_for(
        self, ask: Callable[[Callable[[T, float], None]], None], decide: Callable[[T, float], None]
    ) -> None:
        """Own design: call `decide` once with the answer to `ask`; until then read nothing."""
        waits = answered = False

        def answer(found: T, now: float) -> None:
            nonlocal answered
            if answered or self.closed:
                return
            answered = True
            try:
                if waits and not self.transport.deciding:
                    self.resume_reading()
                decide(found, now)
                if waits:
                    self.transport.proceed(now)
            except Exception:  # or the connection would wait for ever
                self.abort("internal error", now)
                raise

        ask(answer)
        if not answered and not self.closed:
            waits = True
            if not self.transport.deciding:
                self.pause_reading()

    def close(self, now: float, reason: str = "closed by us", code: str | None = None) -> None:
        """Close after sending the queue and a last status, `code`: RTMP 1.0 §7.2.2."""
        if code is not None:
            self.send_command(on_status("status", code, reason))
        super().close(now, reason)

    @property
    def deadline(self) -> float | None:
        """Own design: when to call `tick`, None once closed."""
        at = super().deadline
        if at is None:
            return None
        times = [each.deadline for each in self.streams.values()]
        at = min((at, *(each for each in times if each is not None)))
        if not self.transport.limits.idle or self.state is not State.CONNECTED:
            return at
        return min(at, self._active + self.transport.limits.idle)

    def tick(self, now: float) -> None:
        """Close a client that is idle for too long.  Own design: a player is never idle."""
        if not self.transport.reading or any(
            each.state is StreamState.PLAYING for each in self.streams.values()
        ):
            self._active = now
        for stream in self.streams.values():
            stream.tick(now)
        idle = self.transport.limits.idle
        if idle and self.state is State.CONNECTED and now >= self._active + idle:
            self.close(now, f"idle for {idle:g} s", "NetConnection.Connect.IdleTimeout")
        super().tick(now)

    @property
    def is_watched(self) -> bool:
        """Whether it publishes, so that its loss is to be noticed early: RTMP 1.0 §7.1.7."""
        return any(each.state is StreamState.PUBLISHING for each in self.streams.values())

    def on_media(self, message: Message, now: float) -> None:
        """Give media to the stream that publishes them: RTMP 1.0 §7.2.2.6."""
        self._active = now
        if (stream := self.streams.get(message.stream_id)) is not None:
            stream.on_media(message, now)

    def audio_sink(self, stream_id: int) -> AudioSink | None:
        """Own design: where `on_media` would lead audio of this stream."""
        stream = self.streams.get(stream_id)
        return stream.audio_sink if stream is not None else None

    def heard_audio(self, now: float) -> None:
        """Own design: as `on_media` notes it."""
        self._active = now

    @property
    def amf3(self) -> bool:
        """Whether both ends have AMF3: RTMP Errata §8.1.1."""
        return self.object_encoding == 3

    def on_shared(self, message: SharedObject, now: float) -> None:
        """Give a shared object message to the objects: RTMP 1.0 §7.1.3."""
        if self.state is not State.CONNECTED:
            raise RemoteError("a shared object before connect")
        self._active = now
        self.registry.shared.receive(self, self.app, message, now)

    def on_buffer_length(self, event: control.SetBufferLength, now: float) -> None:
        """Tell a stream how much its player wants in hand: RTMP 1.0 §7.1.7."""
        if (stream := self.streams.get(event.stream_id)) is not None:
            stream.on_buffer(event.milliseconds, now)

    def on_command(self, command: Command, stream_id: int, now: float) -> None:
        """Obey a command, the first of which must be connect: RTMP 1.0 §7.2.1, §7.2.2."""
        self._active = now
        if self.state is State.NEW:
            if command.name != "connect":
                raise RemoteError(f"{command.name} before connect")
            self._on_connect(command, now)
            return
        stream = self.streams.get(stream_id)
        if stream is not None and stream.on_command(command, now):
            return
        if handler := _COMMANDS.get(command.name):
            handler(self, command, now)
        elif command.name not in ("_result", "_error"):  # the answers to `call` are not awaited
            self.application.on_command(self, command, now)
        elif self._check and (again := self._check.answered(command.transaction_id, now)):
            self.send_command(again)

    def _on_connect(self, command: Command, now: float) -> None:
        self.properties = command.object if isinstance(command.object, dict) else {}
        # RTMP Errata §8.1.5 [more-arguments]
        self.connect_args, self._connect_id = command.args, command.transaction_id or 1.0
        self.capabilities = Capabilities.parse(self.properties)
        self.tc_url = text(self.properties.get("tcUrl"))
        self.app = text(self.properties.get("app")).partition("?")[0].strip("/")
        name, _, self.instance = self.app.partition("/")
        # RTMP Errata §8.1.1 [never-more-than-asked], and E-RTMP v2 §"Important AMF3-encoded
        # Historical Specification Clarification" [object-encoding].
        if self.properties.get("objectEncoding") == 3.0:
            self.object_encoding = 3
        self.state, self.transport.deciding = State.ASKING, True
        application = self._application_for(name)
        if application is None:
            self.reject(f"No such application: {name}", now, "NetConnection.Connect.InvalidApp")
            return
        self._application = application
        application.on_connect(self, now)

    def _on_create_stream(self, command: Command, now: float) -> None:
        """Add one (RTMP 1.0 §7.2.1.3)."""
        free = (number for number in range(1, self.transport.limits.streams + 1))
        # RTMP Errata §4.2 [stream-id-limit]
        stream_id = next((number for number in free if number not in self.streams), None)
        if stream_id is None:
            self.error(command.transaction_id, RemoteError("Too many streams"))
            return
        self.add_stream(stream_id)  # RTMP 1.0 §7.2.2 [several-streams]
        # RTMP 1.0 §7.2.1.3 [gives-the-stream]
        self.result(command.transaction_id, float(stream_id))

    def _on_delete_stream(self, command: Command, now: float) -> None:
        """End a stream: RTMP 1.0 §7.2.2.3, on the connection by RTMP Errata §8.3."""
        stream_id = command.args[0] if command.args else None
        if isinstance(stream_id, float) and stream_id in self.streams:  # no NaN is
            # RTMP 1.0 §7.2.2.3 [no-answer] [destroyed]
            self.streams.pop(int(stream_id)).stop(now)
            self.transport.stream_ended(int(stream_id))

    def _on_check(self, command: Command, now: float) -> None:
        """Measure the bit rate of the client: Field §"Bandwidth check"."""
        self.result(command.transaction_id)
        self._check = BandwidthCheck(*NAMES[command.name], self._next_call)
        self._next_call += 1
        self.send_command(self._check.begin(now))

    def _on_courtesy(self, command: Command, now: float) -> None:
        """Answer null to a call that needs no more."""
        self.result(command.transaction_id)

    def _on_release(self, command: Command, now: float) -> None:
        """Note the name that is to be free of a former publisher, which `yields_to` this one."""
        self.result(command.transaction_id)
        name = text(command.args[0]) if command.args else ""
        self.released = name.partition("?")[0][:MAX_NAME]

    def _on_fc_publish(self, command: Command, now: float) -> None:
        """Answer FCPublish by a call; Flash Media Live Encoder waits for it."""
        self.result(command.transaction_id)
        name = text(command.args[0]) if command.args else ""
        self._notify("onFCPublish", "NetStream.Publish.Start", name)

    def _on_fc_unpublish(self, command: Command, now: float) -> None:
        """End the publication of that name; librtmp and ffmpeg send this before deleteStream."""
        name = text(command.args[0]) if command.args else ""
        self._notify("onFCUnpublish", "NetStream.Unpublish.Success", name)
        for stream in self.streams.values():
            if stream.state is StreamState.PUBLISHING and stream.name == name.partition("?")[0]:
                stream.unpublish(now)
        self.result(command.transaction_id)

    def _on_fc_subscribe(self, command: Command, now: float) -> None:
        self.result(command.transaction_id)
        name = text(command.args[0]) if command.args else ""
        self._notify("onFCSubscribe", "NetStream.Play.Start", name)

    def _on_get_stream_length(self, command: Command, now: float) -> None:
        """Give a recording's length, 0 s if live; ffmpeg waits for the answer."""
        name, _, query = text(command.args[0] if command.args else None).partition("?")
        path = "/".join(part for part in (self.instance, name) if part)

        if not isinstance(application := self.application, HasLengths):
            self.result(command.transaction_id, 0.0)
            return

        def ask(answer: Callable[[float, float], None]) -> None:
            application.on_length(self, path, query, answer, now)

        self.wait_for(ask, lambda seconds, now: self.result(command.transaction_id, seconds))

    def _notify(self, name: str, code: str, description: str) -> None:
        said: dict[str, Value] = {"level": "status", "code": code, "description": description}
        self.send_command(Command(name, 0.0, None, (said,)))

    def on_ended(self, now: float) -> None:
        """Stop the streams, and tell the application: RTMP 1.0 §7.2.1."""
        self.state = State.CLOSED
        for stream in list(self.streams.values()):
            stream.stop(now)  # Field §"Names in use" [freed-with-its-connection]
        self.streams.clear()
        self.registry.shared.leave(self, now)
        if self._application is not None:
            self._application.on_disconnect(self, now)


_COMMANDS: Final[Mapping[str, Callable[[NetConnection, Command, float], None]]] = {
    "createStream": NetConnection._on_create_stream,
    "deleteStream": NetConnection._on_delete_stream,
    "releaseStream": NetConnection._on_release,
    "_checkbw": NetConnection._on_check,
    "checkBandwidth": NetConnection._on_check,
    "FCPublish": NetConnection._on_fc_publish,
    "FCUnpublish": NetConnection._on_fc_unpublish,
    "FCSubscribe": NetConnection._on_fc_subscribe,
    "FCUnsubscribe": NetConnection._on_courtesy,
    "getStreamLength": NetConnection._on_get_stream_length,
}
