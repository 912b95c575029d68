"""Carries the messages of a NetConnection, below its commands.

Own design: RTMP 1.0 §7 speaks of commands and messages only; they go in chunks over TCP
(`connection.ChunkTransport`) or in the flows of RTMFP (`rtmplite.rtmfp.netconnection.connection`).
Both ends of a NetConnection have such a transport and know no more of it than this, and neither do
applications: an end hands it what is to be sent, and hears from it what has come.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError
from rtmplite.live.timestamp_rebase import ANSWER
from rtmplite.rtmp.lent_reading import AudioSink
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.aggregate import aggregated
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message, MessageType
from rtmplite.rtmp.wire.shared_object import SharedObject

if TYPE_CHECKING:
    from rtmplite.live.streams import LivePlayer, LiveStream, Outlet, Viewer

MEDIA_TYPES: Final = frozenset(
    (MessageType.AUDIO, MessageType.VIDEO, MessageType.DATA, MessageType.DATA_AMF3)
)
HOLD_ON_PING: Final = 2.0  # s; GStreamer's rtmp2sink waits 5, librtmp 30
_SHARED_TYPES: Final = (MessageType.SHARED_OBJECT, MessageType.SHARED_OBJECT_AMF3)
_COMMAND_TYPES: Final = (MessageType.COMMAND, MessageType.COMMAND_AMF3)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits the time and memory of one peer; sizes in bytes, times in seconds.

    Own design: no text sets limits.  `message` is the longest message accepted, `stranger` the
    longest before connect has been accepted; twice as much may lie unfinished.  `held` bytes may
    wait while reading is paused, `unread` bytes while the peer does not read.  Connecting may take
    `setup`; a peer that is silent for `ping_after` has `ping_timeout` more to answer a ping.  A
    client that sends nothing for `idle` and plays nothing is closed, never if that is 0.
    """

    window: int = 2_500_000
    message: int = 4 * 1024 * 1024
    stranger: int = 64 * 1024
    held: int = 256 * 1024
    unread: int = 8 * 1024 * 1024
    setup: float = 10.0
    ping_after: float = 60.0
    ping_timeout: float = 30.0
    idle: float = 0.0
    streams: int = 32


class MessageTransport:
    """Carries messages, and looks into them as far as both ends of a NetConnection do.

    Own design: `user` is the end that it serves, and hears what the peer sends.  Nothing is taken
    from the peer while `reading` is false (the application asked for a pause) or `deciding` is true
    (the peer's last command has no answer yet).  `output_size` is how many bytes the network has
    not taken.  `traffic` gives how many bytes have come from the peer and how many have reached
    it; the edge sets it where the system counts them.
    """

    user: "ConnectionEnd"

    def __init__(self, now: float, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._usual: ConnectionLimits | None = None  # to go back to after `hold_on`
        self.output_size = 0
        self.peer_address: tuple[str, int] = ("", 0)
        self.traffic: Callable[[], tuple[int, int] | None] = lambda: None
        self.reading, self.deciding = True, False
        self.closed, self.aborted, self.reason = False, False, ""
        self._opened = now
        self._settled = False  # set up is over, silence is all there is to watch

    # -- what is sent -------------------------------------------------------------------

    def send_command(self, command: Command, stream_id: int = 0) -> None:
        """Send a command on message stream `stream_id`: RTMP 1.0 §7.1.1."""
        raise NotImplementedError

    def send_shared(self, message: Message) -> None:
        """Send a shared object message: RTMP 1.0 §7.1.3."""
        raise NotImplementedError

    def send_control(self, message: control.Control) -> None:
        """Send a user control message: RTMP 1.0 §6.2."""
        raise NotImplementedError

    def send_media(self, type_id: int, timestamp: int, stream_id: int, payload: bytes) -> None:
        """Send audio, video or data that nobody else gets; `timestamp` in ms: RTMP 1.0 §7.1."""
        raise NotImplementedError

    def join(
        self, live: "LiveStream", stream_id: int, viewer: "Viewer", now: float
    ) -> "LivePlayer":
        """Play `live` on message stream `stream_id`: RTMP 1.0 §7.2.2.1."""
        raise NotImplementedError

    def outlet(self, stream_id: int) -> "Outlet":
        """The outlet for a live stream that is published on `stream_id`: RTMP 1.0 §7.2.2.6."""
        raise NotImplementedError

    @property
    def queued(self) -> int:
        """The number of bytes that wait, with those of this turn, unlike `output_size`."""
        raise NotImplementedError

    def synchronize(self, *stream_ids: int) -> None:
        """Let later messages of these streams arrive after earlier ones, if need be."""

    def sinks_changed(self) -> None:
        """Note that published media go elsewhere from now on: see `ConnectionEnd.audio_sink`."""

    def stream_ended(self, stream_id: int) -> None:
        """Release the resources of a message stream that has ended."""

    def settle(self) -> None:
        """Note that the peer has connected in time: the limit `setup` ends."""
        self._settled = True

    def welcome(self) -> None:
        """Hook: the server accepts the client, which hears so next: RTMP 1.0 §7.2.1.1."""

    def on_accepted(self, answer: Command) -> None:
        """Hook: the server has accepted this client by `answer`: RTMP 1.0 §7.2.1.1."""

    def is_silent(self, now: float, answer: float = ANSWER) -> bool:
        """Whether the peer has left a ping unanswered for `answer` s: see `timestamp_rebase`."""
        raise NotImplementedError

    def hold_on(self) -> None:
        """Ping often while a verdict takes its time, for librtmp's sake: RTMP 1.0 §7.1.7."""
        self._usual = self._usual or self.limits
        self.limits = replace(self.limits, ping_after=HOLD_ON_PING)

    def held_on(self) -> None:
        """Own design: undo `hold_on`."""
        self.limits = self._usual or self.limits
        self._usual = None

    # -- reading ------------------------------------------------------------------------

    def pause_reading(self) -> None:
        """Ask for no more input, so that the network slows the peer down."""
        self.reading = False
        self._reading_changed()

    def resume_reading(self) -> None:
        """Undo `pause_reading`; input that was kept is used at the next `proceed`."""
        self.reading = True
        self._reading_changed()

    def proceed(self, now: float) -> None:
        """Use the input that was kept while `reading` was false or `deciding` true."""
        raise NotImplementedError

    def _on_message(self, message: Message, now: float) -> None:
        if message.type_id in MEDIA_TYPES:
            self.user.on_media(message, now)
        elif message.type_id in _COMMAND_TYPES:
            self.user.on_command(Command.parse(message), message.stream_id, now)
            if self.queued > self.limits.unread:  # a short command may ask for many bytes
                raise RemoteError(f"{self.queued} bytes that it does not read")
        elif message.type_id == MessageType.AGGREGATE:
            for part in aggregated(message):
                if part.type_id in MEDIA_TYPES:  # a command would overtake what is not decided
                    self.user.on_media(part, now)
        elif message.type_id in _SHARED_TYPES:
            self.user.on_shared(SharedObject.parse(message), now)
        elif parsed := control.parse_control(message):
            self._on_control(parsed, now)  # RTMP 1.0 §6.2 [at-once]

    def _on_control(self, message: control.Control, now: float) -> None:
        """Obey the control messages that concern every transport (RTMP 1.0 §7.1.7)."""
        match message:
            case control.PingRequest(timestamp):
                # RTMP 1.0 §7.1.7 [ping-response]
                self.send_control(control.PingResponse(timestamp))
            case control.SetBufferLength():
                self.user.on_buffer_length(message, now)
            case control.StreamEof(stream_id):
                self.user.on_stream_eof(stream_id, now)

    # -- time and the end ---------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        """When to call `tick`, None once closed."""
        raise NotImplementedError

    def tick(self, now: float) -> None:
        """Act on the deadlines that have passed."""
        raise NotImplementedError

    def close(self, now: float, reason: str = "closed by us") -> None:
        """Close after sending the queue; a second call does nothing."""
        if not self.closed:
            self.closed, self.reason = True, reason
            self._shut(now)
            self.user.on_ended(now)

    def abort(self, reason: str, now: float) -> None:
        """Close at once, without sending the queue."""
        if not self.closed:
            self.aborted = True
            self.close(now, reason)

    def connection_lost(self, now: float, reason: str = "closed by the peer") -> None:
        """Hear from the network that the peer is gone."""
        self.abort(reason, now)

    # -- hooks of chunks and flows ------------------------------------------------------

    def _reading_changed(self) -> None:
        """Hook: `reading` has changed."""

    def _shut(self, now: float) -> None:
        """Hook: it has been closed; send the queue unless it is `aborted`."""


def text(value: Value) -> str:
    """Give `value` if it is a string, else "": RTMP 1.0 §7.2."""
    return value if isinstance(value, str) else ""


class ConnectionEnd:
    """One end of a NetConnection, over any transport of its messages: RTMP 1.0 §7.

    Own design: properties and methods that are not explained here are those of `MessageTransport`.
    Methods that no end changes are the transport's own, so that a packet of media costs no call
    more.
    """

    transport: MessageTransport

    def __init__(self, transport: MessageTransport) -> None:
        self.transport = transport
        transport.user = self
        self.send_media, self.send_command = transport.send_media, transport.send_command
        self.send_shared, self.abort = transport.send_shared, transport.abort
        self.pause_reading, self.resume_reading = transport.pause_reading, transport.resume_reading

    # -- what the transport is ----------------------------------------------------------

    @property
    def peer_address(self) -> tuple[str, int]:
        """The address of the peer."""
        return self.transport.peer_address

    @property
    def closed(self) -> bool:
        """Whether the connection has ended, by whichever side; `reason` says why."""
        return self.transport.closed

    @property
    def reason(self) -> str:
        """Why it ended, empty before."""
        return self.transport.reason

    @property
    def output_size(self) -> int:
        """The number of bytes that the network has not taken."""
        return self.transport.output_size

    @property
    def queued(self) -> int:
        """The number of bytes that wait, with those of this turn."""
        return self.transport.queued

    # -- time and the end ---------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        """When to call `tick`, None once closed."""
        return self.transport.deadline

    def tick(self, now: float) -> None:
        """Act on the deadlines that have passed."""
        self.transport.tick(now)

    def close(self, now: float, reason: str = "closed by us") -> None:
        """Close after sending the queue; a second call does nothing."""
        self.transport.close(now, reason)

    # -- what the transport tells -------------------------------------------------------

    @property
    def is_watched(self) -> bool:
        """Whether to notice early that the peer is gone."""
        return False

    def on_ready(self) -> None:
        """Messages can be sent now."""

    def on_media(self, message: Message, now: float) -> None:
        """A message of type 8, 9, 15 or 18 has come."""

    def audio_sink(self, stream_id: int) -> AudioSink | None:
        """Where `on_media` leads audio of this stream that is no header, if it goes straight there.

        It does so until `MessageTransport.sinks_changed`, or another message that has come.
        """
        return None

    def heard_audio(self, now: float) -> None:
        """Audio has gone to `audio_sink`, the last at this time."""

    def on_shared(self, message: SharedObject, now: float) -> None:
        """A message of type 16 or 19 has come."""

    def on_command(self, command: Command, stream_id: int, now: float) -> None:
        """A command has come."""

    def on_buffer_length(self, event: control.SetBufferLength, now: float) -> None:
        """A player tells the length of its buffer."""

    def on_stream_eof(self, stream_id: int, now: float) -> None:
        """Playback on a message stream is over."""

    def on_ended(self, now: float) -> None:
        """The transport has just been closed."""
