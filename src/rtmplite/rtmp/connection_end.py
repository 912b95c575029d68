"""One end of a NetConnection: the part of servers and clients above their transport.

Own design: an end has a transport, hands it what is to be sent, and hears from it what has come.
Only what holds for chunks and for flows alike is offered here; the rest is at `transport`.
"""

from typing import TYPE_CHECKING

from rtmplite.live.timestamp_rebase import ANSWER
from rtmplite.rtmp.message_transport import ConnectionLimits, MessageTransport
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message
from rtmplite.rtmp.wire.shared_object import SharedObject

if TYPE_CHECKING:
    from rtmplite.live.streams import LivePlayer, LiveStream, Viewer


class ConnectionEnd:
    """One end of a NetConnection, over any transport of its messages: RTMP 1.0 §7.

    Own design: properties and methods that are not explained here are those of `MessageTransport`.
    `send_media` is the transport's own, so that a packet of media costs no call more.
    """

    transport: MessageTransport

    def __init__(self, transport: MessageTransport) -> None:
        self.transport = transport
        transport.user = self
        self.send_media = transport.send_media

    # -- what the transport is ----------------------------------------------------------

    @property
    def limits(self) -> ConnectionLimits:
        """How much the peer may use."""
        return self.transport.limits

    @property
    def peer_address(self) -> tuple[str, int]:
        """Where the peer is; the edge says so."""
        return self.transport.peer_address

    @peer_address.setter
    def peer_address(self, address: tuple[str, int]) -> None:
        self.transport.peer_address = address

    @property
    def closed(self) -> bool:
        """Whether the connection has ended, by whichever side; `reason` says why."""
        return self.transport.closed

    @property
    def aborted(self) -> bool:
        """Whether it ended at once, without sending the queue."""
        return self.transport.aborted

    @property
    def reason(self) -> str:
        """Why it ended, empty before."""
        return self.transport.reason

    @property
    def output_size(self) -> int:
        """How many bytes the network has not taken."""
        return self.transport.output_size

    @property
    def queued(self) -> int:
        """How many bytes wait, with those of this turn."""
        return self.transport.queued

    def is_silent(self, now: float, answer: float = ANSWER) -> bool:
        """Whether the peer neither sends nor answers a ping for so long."""
        return self.transport.is_silent(now, answer)

    # -- what the transport does --------------------------------------------------------

    def send_command(self, command: Command, stream_id: int = 0) -> None:
        """Send a command on message stream `stream_id`: RTMP 1.0 §7.1.1."""
        self.transport.send_command(command, stream_id)

    def send_shared(self, message: Message) -> None:
        """Send a shared object message: RTMP 1.0 §7.1.3."""
        self.transport.send_shared(message)

    def send_control(self, message: control.Control) -> None:
        """Send a user control message: RTMP 1.0 §6.2."""
        self.transport.send_control(message)

    def join(
        self, live: "LiveStream", stream_id: int, viewer: "Viewer", now: float
    ) -> "LivePlayer":
        """Play `live` on message stream `stream_id`: RTMP 1.0 §7.2.2.1."""
        return self.transport.join(live, stream_id, viewer, now)

    def synchronize(self, *stream_ids: int) -> None:
        """Let later messages on these streams arrive after all earlier ones."""
        self.transport.synchronize(*stream_ids)

    def pause_reading(self) -> None:
        """Ask for no more input, so that the network slows the peer down."""
        self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Undo `pause_reading`; messages kept are processed at the transport's next `proceed`."""
        self.transport.resume_reading()

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

    def abort(self, reason: str, now: float) -> None:
        """Close at once, without sending the queue."""
        self.transport.abort(reason, now)

    def connection_lost(self, now: float, reason: str = "closed by the peer") -> None:
        """Hear from the network that the peer is gone."""
        self.transport.connection_lost(now, reason)

    # -- what the transport tells: `message_transport.TransportUser` --------------------

    @property
    def is_watched(self) -> bool:
        """Whether to notice early that the peer is gone."""
        return False

    def on_ready(self) -> None:
        """Messages can be sent now."""

    def on_media(self, message: Message, now: float) -> None:
        """A message of type 8, 9, 15 or 18 has come."""

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
