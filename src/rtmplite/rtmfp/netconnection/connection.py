"""Carries the messages of a NetConnection in the flows of an RTMFP session.

Implements RFC 7425 §5.  Whatever is sent waits in one list until `flush`, which the owner of the
network calls at the end of its turn (`on_output` says that there is something); media come in
whatever order flows bring them, and where RTMP's order matters barriers keep it (§5.2).
"""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final, Protocol

from rtmplite.errors import RemoteError
from rtmplite.live.timestamp_rebase import ANSWER, QUIET
from rtmplite.rtmfp.netconnection import messages
from rtmplite.rtmfp.netconnection.incoming import Incoming
from rtmplite.rtmfp.netconnection.media_flows import LIVE, Lifetimes, MediaFlow, Medium, medium_of
from rtmplite.rtmfp.netconnection.messages import (
    Control,
    FlowMetadata,
    FlowSynchronization,
    SetKeepaliveTimers,
    encode_message,
    parse_message,
)
from rtmplite.rtmfp.netconnection.output import ROOM, FlowOutlet, Order, Output
from rtmplite.rtmfp.session.session import SILENT
from rtmplite.rtmp.message_transport import ConnectionLimits, MessageTransport
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message, MessageType

if TYPE_CHECKING:
    from rtmplite.live.streams import LivePlayer, LiveStream, Viewer
    from rtmplite.rtmfp.netconnection.flows import MessageSession, ReceivingFlow

LINGER: Final = 5.0  # s without progress of last words before the session is closed
PUBLISHER_LINGER: Final = 30.0  # s, the same for those that carry what was published


class FlowEnd(Protocol):
    """An end of a NetConnection by RTMFP, as the owner of the network sees it.

    Own design: time passes for the end, and datagrams are its transport's business.
    """

    @property
    def transport(self) -> "FlowTransport":
        """The flows that carry its messages: §5."""

    @property
    def deadline(self) -> float | None:
        """When to call `tick`, None for never."""

    def tick(self, now: float) -> None:
        """Act on the deadlines that have passed."""


class FlowTransport(MessageTransport):
    """The half of a connection over RTMFP that servers and clients share: §5.3.

    `session` is None until it is open, and again when it is gone; `incoming` is to be its listener.
    `lifetimes` are those of live streams that are played here.  `cut_short` says why not all that
    streams had to send has arrived, once that is certain; `linger_timeout` is how many
    seconds the last messages may wait without progress.
    """

    linger_timeout = LINGER

    def __init__(self, now: float, limits: ConnectionLimits, lifetimes: Lifetimes = LIVE) -> None:
        super().__init__(now, limits)
        self.session: MessageSession | None = None
        self.on_output: Callable[[FlowTransport], None] | None = None
        self.lifetimes = lifetimes
        self.cut_short = ""
        self.incoming = Incoming(self)
        self._output = Output(self)
        self._is_told = False  # `on_output` has been called since the last flush
        self._linger: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether it is closed and all that had to be said has been: §5.3.6."""
        return self.closed and self.session is None

    @property
    def far_control(self) -> "ReceivingFlow | None":
        """The other end's canonical control flow, to which ours are associated: §5.3.5."""
        return self.incoming.far_control

    def attach(self, session: "MessageSession") -> None:
        """Use an open session: §5.3.1, §5.3.2."""
        self.session, self.peer_address = session, session.address
        self.user.on_ready()
        self._wake()

    # -- what is sent -------------------------------------------------------------------

    def enqueue(self, order: Order, size: int = 0) -> None:
        """Do this at the next `flush`.  Own design: what leaves in one turn shares packets."""
        if not self.closed:
            self._output.add(order, size)
            self._wake()

    def send_command(self, command: Command, stream_id: int = 0) -> None:
        """Send a command on message stream `stream_id`: RTMP 1.0 §7.1.1."""
        self._send(command.message(stream_id))

    def send_shared(self, message: Message) -> None:
        """Send a shared object message: RTMP 1.0 §7.1.3."""
        self._send(message)

    def send_control(self, message: Control) -> None:
        """Send a control message in its stream's flow, none about chunks: §5.4.2, §5.1."""
        raw = message.message()
        if raw.type_id in messages.CHUNK_STREAM_TYPES:  # §5.1 [no-chunk-control]
            return
        stream_id = getattr(message, "stream_id", 0)  # Figure 5: StreamBegin in SFlow-1
        if isinstance(message, control.SetBufferLength):
            stream_id = 0
        self._send(Message(raw.type_id, 0, stream_id, raw.payload))

    def send_media(self, type_id: int, timestamp: int, stream_id: int, payload: bytes) -> None:
        """Send media that nobody else gets, however late; time in ms: §5.1.2."""
        self._send(Message(type_id, timestamp, stream_id, payload))

    def send_live(self, type_id: int, timestamp: int, stream_id: int, payload: bytes) -> None:
        """Send audio, video or data of no use when it is late: §5.1.1 [abandons]."""
        data = encode_message(type_id, timestamp, payload)

        def order(now: float) -> None:
            self.media_flow(stream_id, medium_of(type_id)).send_live(data, now, self.lifetimes)

        self.enqueue(order, len(data))

    def join(
        self, live: "LiveStream", stream_id: int, viewer: "Viewer", now: float
    ) -> "LivePlayer":
        """Play `live`; all players over RTMFP share the same bytes: §5.1.2 [stream-from-flow]."""
        return live.join(self.outlet(stream_id), encode_message, viewer, now, self.queued)

    def outlet(self, stream_id: int) -> FlowOutlet:
        """Sort a live stream into flows, late media given up: §5.1.1 [many-flows]."""
        outlet = self._output.outlets[stream_id] = FlowOutlet(self, stream_id)
        return outlet

    def synchronize(self, *stream_ids: int) -> None:
        """Put a barrier across the flows of these streams, or of all: §5.2 [only-when-needed]."""
        self.enqueue(partial(self._output.put_barrier, stream_ids))

    def stream_ended(self, stream_id: int) -> None:
        """Close the flows of a stream: §5.3.5.3."""
        self._output.outlets.pop(stream_id, None)
        # §5.3.5.3 [closing-says-nothing]
        self.enqueue(partial(self._output.close_stream, stream_id))

    @property
    def holds_media(self) -> bool:
        """Whether part of the streams' media may not have arrived.

        Own design: the owner of the network waits for it before it closes the port.
        """
        return self.session is not None and self._output.holds_media

    @property
    def queued(self) -> int:
        """The number of bytes that wait, with those of this turn: RFC 7016 §5."""
        return self._output.queued

    def media_flow(self, stream_id: int, medium: Medium) -> MediaFlow:
        """Give a stream's flow for a medium: §5.3.5.1, §5.3.5.2 [as-many]."""
        return self._output.flow(stream_id, medium)

    def flush(self, now: float) -> None:
        """Hand the queue to the session, and resume the receiving flows that were held.

        Own design: the owner of the network calls it after `on_output`.
        """
        self._is_told = False
        if self.session is None:
            return
        self.session.keepalive.haste = QUIET if self.user.is_watched else inf
        while self._output.run(now):
            self.incoming.let_go_on(now)
        self.incoming.let_go_on(now)
        if self.closed:
            self._recount()
            if self._output.close(now):  # §5.3.6 [orderly]
                self._close_session(now)
        elif self._may_be_slow():
            self._recount()
            if self.queued > self.limits.unread:
                self.abort(f"{self.queued} bytes that it does not read", now)

    def is_silent(self, now: float, answer: float = ANSWER) -> bool:
        """Whether no packet has come, though a Ping asks for one: RFC 7016 §3.5.4.1."""
        if self.session is None or not self.reading or self.deciding:
            return False
        return self.session.keepalive.unanswered(now) >= answer

    def _send(self, message: Message) -> None:
        data = encode_message(message.type_id, message.timestamp, message.payload)
        medium, stream_id = medium_of(message.type_id), message.stream_id

        def order(now: float) -> None:
            self.media_flow(stream_id, medium).send(data, now)

        self.enqueue(order, len(data))

    def _may_be_slow(self) -> bool:
        """Whether to count the backlog of every flow; mostly the whole session holds little."""
        held = 0 if self.session is None else self.session.queued
        return self._output.is_slow or held > min(ROOM, self.limits.unread)

    def _recount(self) -> None:
        self._output.recount()
        self.output_size = self._output.excess

    def _wake(self) -> None:
        if not self._is_told and self.on_output is not None:
            self._is_told = True
            self.on_output(self)

    # -- what sending flows tell --------------------------------------------------------

    def media_flow_rejected(self, flow: MediaFlow, now: float) -> None:
        """End the connection if our control flow was rejected: §5.3, §5.3.6."""
        if flow.stream_id == 0:  # §5.3 [exception-ends], §5.3.6 [abrupt]
            self.connection_lost(now, "rejected by the peer")

    def media_flow_moved(self, flow: MediaFlow, now: float) -> None:
        """Own design: count the backlog at the next `flush`; last words get more time."""
        if self.closed and self._linger is not None:
            self._linger = now + self.linger_timeout
        if self.closed or self._output.is_slow:
            self._wake()

    # -- what receiving flows tell: `incoming.IncomingOwner` ----------------------------

    def accepts(self, metadata: FlowMetadata, flow: "ReceivingFlow") -> bool:
        """Accept any flow after the first, which must be for stream 0: §5.3.1."""
        return self.far_control is not None or metadata.stream_id == 0

    def takes_control(self, flow: "ReceivingFlow") -> bool:
        """Let ours return to the first flow: §5.3.2, §5.4.2."""
        return True

    def received(self, flow: "ReceivingFlow", data: bytes, stream_id: int, now: float) -> None:
        """Take a message; a peer that breaks the rules is closed: §5.1.2."""
        if self.closed:
            return
        if self._linger is not None:  # its control flow has ended before this one
            self._linger = now + self.linger_timeout
        try:
            message = parse_message(data, stream_id)
            if message.type_id == MessageType.USER_CONTROL:
                self._on_event(flow, message, now)
            elif message.type_id not in messages.CHUNK_STREAM_TYPES:  # §5.1 [ignores-chunk-control]
                self._on_message(message, now)
        except RemoteError as error:
            self.abort(str(error), now)
        self.incoming.hold()

    def flow_completed(self, flow: "ReceivingFlow", now: float) -> None:
        """End the connection with the peer's control flow: §5.3.6.

        Own design: what other flows still bring is waited for, as they are closed as well.
        """
        if flow is self.far_control:
            self._look_back("closed by the peer")  # which looks at no more of it
            self._linger = now + self.linger_timeout
        if self._linger is not None and self.incoming.is_empty:
            self.close(now, "closed by the peer")  # §5.3.6 [complete-answered]

    def control_rejected(self, now: float) -> None:
        """Give up a peer whose control flow breaks the limits: §5.3.5.3."""
        self.abort("a flow that breaks the limits", now)

    def session_closed(self, session: "MessageSession", now: float) -> None:
        """End the connection with its session: §5.3.6."""
        self._look_back(session.reason, session.reason == SILENT)
        self.session = None
        self._output.drop()
        self.connection_lost(now, session.reason)  # §5.3.6 [abrupt]
        self._wake()  # to be forgotten

    def proceed(self, now: float) -> None:
        """Process the messages kept while reading was paused.  Own design: at the next `flush`."""
        self._wake()

    def _on_event(self, flow: "ReceivingFlow", message: Message, now: float) -> None:
        parsed = messages.parse_control(message)
        if isinstance(parsed, FlowSynchronization):
            self.incoming.meet(flow, parsed)
            self._wake()  # the flows that may go on do so then
        elif isinstance(parsed, SetKeepaliveTimers):
            self._on_keepalive(parsed)
        elif parsed is not None:
            self._on_control(parsed, now)

    def _on_keepalive(self, timers: SetKeepaliveTimers) -> None:
        """Hook: the server says how often to look whether it is there: §5.3.4."""

    def _reading_changed(self) -> None:
        self.incoming.hold()
        self._wake()

    # -- time and the end ---------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        """Own design: when to call `tick`; the session itself watches for silence."""
        if self._linger is not None:
            return self._linger
        if self.closed or self._settled:
            return None
        return self._opened + self.limits.setup

    def tick(self, now: float) -> None:
        """Give up a client that asks nothing; close after lingering.  Own design: as by TCP."""
        if self._linger is not None and now >= self._linger:
            self._look_back(f"nothing was acknowledged for {self.linger_timeout:g} s", True)
            self.close(now, "closed by the peer")
            self._close_session(now)
            return
        deadline = self.deadline
        if deadline is None or now < deadline or self.closed:
            return
        if not self.reading or self.deciding:
            self._opened = now
        elif not self._settled:
            self.abort("nothing asked in time", now)

    def _shut(self, now: float) -> None:
        """Close our flows, and the session when they are complete: §5.3.6."""
        if self.aborted:
            self._look_back(self.reason)
            self._output.drop()
            self._close_session(now)
            return
        self._linger = now + self.linger_timeout
        self._wake()

    def _look_back(self, reason: str, is_silent: bool = False) -> None:
        """Note whether the connection ends before its streams' media were sent: `cut_short`.

        Where the far end has said nothing, what was given up as too late counts as well.
        """
        output = self._output
        if not self.cut_short and (output.holds_media if is_silent else output.undelivered > 0):
            self.cut_short = reason

    def _close_session(self, now: float) -> None:
        self._linger = None
        session, self.session = self.session, None
        if session is not None:
            session.close(now)
        self._wake()  # to be forgotten
