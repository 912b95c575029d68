"""A live stream pushed to another server, or pulled from one: the link, and how it comes back.

Own design: the texts know clients and servers only, so to the other server we are a client as any,
RTMP 1.0 §7.2.2.6 or §7.2.2.1.  A push is a player of the local stream whose bytes go to another
server: it shares them with all others that are pushed, and is skipped or cut off as any player
who is slow.  A link that fails comes back, later each time.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from math import inf
from typing import Final, TypeAlias

from rtmplite.amf import amf0
from rtmplite.amf.values import Value
from rtmplite.flv.metadata import SET_DATA_FRAME
from rtmplite.rtmp import control
from rtmplite.rtmp.chunk import encode_absolute
from rtmplite.rtmp.client import DEFAULT_LIMITS, ClientConnection, Target
from rtmplite.rtmp.command import Command
from rtmplite.rtmp.connection import CHUNK_SIZE, CHUNK_STREAMS, Limits, text
from rtmplite.rtmp.message import Message, MessageType
from rtmplite.streams import Framing, LiveStream, Player

BUFFER: Final = 1000  # ms, what we say is buffered of a stream that is pulled
START: Final = -2000.0  # what is live, else recorded; in ms: Field §"Play times"

_CONNECT: Final = 1.0  # transaction ids of what we ask: RTMP 1.0 §7.2.1.1 fixes the first
_META_DATA: Final = amf0.encode("onMetaData")
_SET: Final = amf0.encode(SET_DATA_FRAME)
# About the connection, no part of the stream.
_NOT_MEDIA: Final = (amf0.encode("|RtmpSampleAccess"), amf0.encode("onStatus"))
_OVER: Final = ("NetStream.Play.UnpublishNotify", "NetStream.Play.Stop", "NetStream.Play.Complete")


class State(StrEnum):
    """Own design: how far a link has come."""

    IDLE = "idle"
    CONNECTING = "connecting"
    RUNNING = "running"
    WAITING = "waiting"  # for its next attempt
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True)
class Backoff:
    """When a link tries again; times in s.  Own design.

    The first wait is `first`, each next one twice as long up to `most`, and all are shortened at
    random by up to a quarter, lest many come back at once.  A link that ran for `steady` begins
    anew; without an answer for `answer` an attempt has failed, and after `attempts` failures in a
    row there are no more.
    """

    first: float = 1.0
    most: float = 30.0
    steady: float = 10.0
    answer: float = 10.0
    attempts: int | None = None

    def wait(self, failures: int, chance: int) -> float:
        """Seconds after so many failures in a row, `chance` being 0 to 255.  Own design."""
        longest = min(self.most, self.first * 2.0 ** min(failures - 1, 32))
        return longest * (1 - chance / 1024)


Dial: TypeAlias = Callable[[ClientConnection], None]
DEFAULT_BACKOFF: Final = Backoff()


class Link:
    """One stream on another server, and the connection to it that comes and goes.  Own design.

    `dial` connects a socket to a machine, by `machine.target`, and tells it by `connection_lost`
    when that fails.  `on_change` is called after every change of `state`; `reason` says why the
    last attempt ended.
    """

    def __init__(
        self,
        target: Target,
        dial: Dial,
        random: Callable[[int], bytes],
        backoff: Backoff = DEFAULT_BACKOFF,
    ) -> None:
        self.target, self.backoff = target, backoff
        self.state, self.reason, self.failures = State.IDLE, "", 0
        self.deadline: float | None = None
        self.on_change: Callable[[Link, float], None] = lambda link, now: None
        self._dial, self._random = dial, random
        self._connection: _Connection | None = None
        self._stream_id = 0
        self._create = 0.0  # the transaction id of createStream
        self._since = 0.0

    def start(self, now: float) -> None:
        """Connect, unless that has been done.  Own design."""
        if self.state in (State.IDLE, State.GIVEN_UP):
            self.failures = 0
            self._connect(now)

    def stop(self, now: float) -> None:
        """Say goodbye and come back no more, until the next `start`: RTMP 1.0 §7.2.2.3."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._leave(connection, now)
            connection.close(now, "stopped")
        self.deadline = None
        self._become(State.IDLE, now)

    def tick(self, now: float) -> None:
        """Try again, or wait no longer for an answer.  Own design."""
        if self.deadline is None or now < self.deadline:
            return
        if self.state is State.WAITING:
            self._connect(now)
        elif self._connection is not None:
            self._connection.abort("no answer in time", now)

    def on_command(self, command: Command, stream_id: int, now: float) -> None:
        """Go on to the next question: RTMP 1.0 §7.2.1.1, §7.2.1.3, then the stream's."""
        connection = self._connection
        if connection is None:
            return
        number, first = command.transaction_id, command.args[0] if command.args else None
        if command.name == "_error" and number in (_CONNECT, self._create):
            connection.abort(_words(first), now)
        elif command.name == "_result" and number == _CONNECT:
            self._prepare(connection)
            self._create = connection.call("createStream")
        elif command.name == "_result" and number == self._create:
            if not isinstance(first, float) or not 0 < first < 1 << 32:
                connection.abort("createStream gives no stream", now)
                return
            self._stream_id = int(first)
            self._ask(connection)
        elif command.name == "onStatus" and stream_id and isinstance(first, dict):
            self._on_status(connection, first, now)

    def on_media(self, message: Message, now: float) -> None:
        """Hook: something is played to us."""

    def on_eof(self, now: float) -> None:
        """Hook: what is played has ended: RTMP 1.0 §7.1.7."""

    def on_end(self, connection: ClientConnection, now: float) -> None:
        """The connection is gone: wait for the next attempt, if there is one.  Own design."""
        if connection is not self._connection:
            return
        if self.state is State.RUNNING and now - self._since >= self.backoff.steady:
            self.failures = 0
        self._connection, self.reason = None, connection.reason
        self.failures += 1
        self._leave(connection, now)
        if self.backoff.attempts is not None and self.failures >= self.backoff.attempts:
            self.deadline = None
            self._become(State.GIVEN_UP, now)
            return
        self.deadline = now + self.backoff.wait(self.failures, self._random(1)[0])
        self._become(State.WAITING, now)

    def _connect(self, now: float) -> None:
        self._stream_id, self._create = 0, 0.0
        self.deadline = now + self.backoff.answer
        self._connection = connection = _Connection(
            self, self.target, self._random, now, limits=self._limits
        )
        self._become(State.CONNECTING, now)
        self._dial(connection)

    def _on_status(
        self, connection: ClientConnection, information: dict[str, Value], now: float
    ) -> None:
        code = text(information.get("code"))
        if information.get("level") == "error":
            connection.abort(_words(information), now)
        elif code == self._start_code and self.state is State.CONNECTING:
            self.deadline, self._since = None, now
            self._become(State.RUNNING, now)
            self._started(connection, now)
        elif code in _OVER:
            self.on_eof(now)

    def _become(self, state: State, now: float) -> None:
        self.state = state
        self.on_change(self, now)

    _start_code = ""
    _limits = DEFAULT_LIMITS

    def _prepare(self, connection: ClientConnection) -> None:
        """Hook: before createStream."""

    def _ask(self, connection: ClientConnection) -> None:
        """Hook: publish or play."""

    def _started(self, connection: ClientConnection, now: float) -> None:
        """Hook: the server does what we asked for."""

    def _leave(self, connection: ClientConnection, now: float) -> None:
        """Hook: this connection is to be used no longer."""


class Push(Link):
    """Publishes `live` on another server: RTMP 1.0 §7.2.2.6."""

    _start_code = "NetStream.Publish.Start"
    # Servers have little to say to a publisher, and not all answer pings.  One that is dead is
    # found out by its socket, which takes no more.
    _limits = replace(DEFAULT_LIMITS, ping_after=inf)

    def __init__(
        self,
        live: LiveStream,
        target: Target,
        dial: Dial,
        random: Callable[[int], bytes],
        backoff: Backoff = DEFAULT_BACKOFF,
    ) -> None:
        super().__init__(target, dial, random, backoff)
        self.live = live
        self._player: Player | None = None

    @property
    def is_playing(self) -> bool:
        """Whether this is one of the players that `live` counts.  Own design."""
        return self._player is not None

    def _prepare(self, connection: ClientConnection) -> None:
        """Own design: what Flash Media Live Encoder asks first, since some servers wait for it."""
        connection.call("releaseStream", self.target.stream)
        connection.call("FCPublish", self.target.stream)

    def _ask(self, connection: ClientConnection) -> None:
        connection.send("publish", self.target.stream, "live", stream_id=self._stream_id)

    def _started(self, connection: ClientConnection, now: float) -> None:
        self._player = self.live.join(connection, publishing(self._stream_id), None, now)

    def _leave(self, connection: ClientConnection, now: float) -> None:
        player, self._player = self._player, None
        if player is not None:
            player.leave(now)
        if self._stream_id and not connection.closed:
            connection.call("FCUnpublish", self.target.stream)
            connection.send("deleteStream", float(self._stream_id))


class Pull(Link):
    """Plays a stream of another server into `live`: RTMP 1.0 §7.2.2.1.

    Own design: while the other server has nothing to play, the link stays and waits for it.
    `on_over` is called when a publication has ended there.
    """

    _start_code = "NetStream.Play.Start"

    def __init__(
        self,
        live: LiveStream,
        target: Target,
        dial: Dial,
        random: Callable[[int], bytes],
        backoff: Backoff = DEFAULT_BACKOFF,
    ) -> None:
        super().__init__(target, dial, random, backoff)
        self.live, self.is_publishing = live, False
        self.on_over: Callable[[float], None] = lambda now: None

    def on_media(self, message: Message, now: float) -> None:
        """Pass it on, unless somebody else publishes under that name.  Own design."""
        type_id, payload = message.type_id, message.payload
        if type_id == MessageType.DATA_AMF3:  # a zero before the AMF0 values: RTMP Errata §7.2
            type_id, payload = MessageType.DATA, payload[1:]
        if type_id == MessageType.DATA and payload.startswith(_NOT_MEDIA):
            return
        if not self.is_publishing:
            if self.live.publishing:
                self.stop(now)
                return
            self.is_publishing = True
            self.live.begin(now)
        self.live.write(type_id, message.timestamp, payload, now)

    def on_eof(self, now: float) -> None:
        """The publisher there has gone, ours therefore too: RTMP 1.0 §7.1.7."""
        if self.is_publishing:
            self.is_publishing = False
            self.live.end(now)
            self.on_over(now)

    def _ask(self, connection: ClientConnection) -> None:
        connection.set_buffer_length(self._stream_id, BUFFER)
        connection.send("play", self.target.stream, START, stream_id=self._stream_id)

    def _leave(self, connection: ClientConnection, now: float) -> None:
        if self.is_publishing:
            self.is_publishing = False
            self.live.end(now)
        if self._stream_id and not connection.closed:
            connection.send("deleteStream", float(self._stream_id))


class _Connection(ClientConnection):
    """A client's connection whose events go straight to its link."""

    def __init__(
        self,
        link: Link,
        target: Target,
        random: Callable[[int], bytes],
        now: float,
        limits: Limits,
    ) -> None:
        self._link = link
        super().__init__(target, random, now, limits=limits)

    def _on_media(self, message: Message, now: float) -> None:
        self._link.on_media(message, now)

    def _on_control(self, message: control.Control, now: float) -> None:
        super()._on_control(message, now)
        self.events()  # nobody asks for them
        if isinstance(message, control.StreamEof):
            self._link.on_eof(now)

    def _on_command(self, command: Command, stream_id: int, now: float) -> None:
        self._link.on_command(command, stream_id, now)

    def _ended(self, now: float) -> None:
        self._link.on_end(self, now)


@cache
def publishing(stream_id: int) -> Framing:
    """How a publisher writes messages on `stream_id`: RTMP 1.0 §7.2.2.6, Field §"@setDataFrame".

    Own design: always the same function for a stream id, so that pushes share bytes.
    """

    def frame(type_id: int, timestamp: int, payload: bytes) -> bytes:
        if type_id == MessageType.DATA and payload.startswith(_META_DATA):
            payload = _SET + payload
        chunks = CHUNK_STREAMS[type_id]
        return encode_absolute(type_id, timestamp, stream_id, payload, chunks, CHUNK_SIZE)

    return frame


def _words(information: Value) -> str:
    """What an information object says, for the log."""
    if not isinstance(information, dict):
        return "refused"
    words = [text(information.get(key)) for key in ("code", "description")]
    return ": ".join(word for word in words if word) or "refused"
