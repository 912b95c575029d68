"""One end of a NetConnection whose messages travel in the flows of an RTMFP session.

Implements RFC 7425 §5.  Whatever is sent waits in one list until `flush`, which whoever owns the
network calls at the end of its turn (`on_output` says that there is something); media come in
whatever order flows bring them, and where RTMP's order matters barriers keep it (§5.2).
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.netconnection import messages
from rtmplite.rtmfp.netconnection.flow_sync import Barriers
from rtmplite.rtmfp.netconnection.incoming import Receiver
from rtmplite.rtmfp.netconnection.media_flows import LIVE, Lifetimes, MediaFlow, Medium, medium_of
from rtmplite.rtmfp.netconnection.messages import (
    Control,
    FlowMetadata,
    FlowSynchronization,
    SetKeepaliveTimers,
    encode_message,
    parse_message,
)
from rtmplite.rtmfp.netconnection.outlet import ROOM, FlowOutlet
from rtmplite.rtmfp.netconnection.output import Order, Output
from rtmplite.rtmfp.session.recv_flow import FlowReceiver
from rtmplite.rtmfp.session.session import SILENT, SessionListener
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmp.message_transport import ConnectionLimits, MessageTransport
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message, MessageType

if TYPE_CHECKING:
    from rtmplite.live.streams import LiveStream, Player, Viewer
    from rtmplite.rtmfp.session.recv_flow import RecvFlow
    from rtmplite.rtmfp.session.session import Session

LINGER: Final = 5.0  # s without progress of last words before the session is closed
PATIENCE: Final = 30.0  # s, the same for those that carry what was published
REJECTED: Final = 0  # the only code there is: §5.3.5.3 [code-zero]


class FlowConnection(MessageTransport, SessionListener):
    """The half of a connection over RTMFP that servers and clients share: §5.3.

    `session` is None until it is open, and again when it is gone; `far_control` is the other
    end's canonical control flow, to which ours are associated (§5.3.5).  `lifetimes` are those of
    live streams that are played here.  `cut_short` says why not all that streams had to send has
    arrived, once that is certain; `patience` is how long last words may be without progress, in s.
    """

    patience = LINGER

    def __init__(self, now: float, limits: ConnectionLimits, lifetimes: Lifetimes = LIVE) -> None:
        super().__init__(now, limits)
        self.session: Session | None = None
        self.far_control: RecvFlow | None = None
        self.on_output: Callable[[FlowConnection], None] | None = None
        self.lifetimes = lifetimes
        self._output = Output(self)
        self._receivers: dict[RecvFlow, Receiver] = {}
        self._barriers: Barriers[RecvFlow] = Barriers()
        self._is_told = False  # `on_output` has been called since the last flush
        self._linger: float | None = None
        self.cut_short = ""

    @property
    def is_over(self) -> bool:
        """Whether it is closed and all that had to be said has been: §5.3.6."""
        return self.closed and self.session is None

    # -- what is sent -------------------------------------------------------------------

    def enqueue(self, order: Order, size: int = 0) -> None:
        """Do this at the next `flush`, after what was queued before.  Own design: see there."""
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
        """Send a user control message, about a stream in that stream's flow: §5.4.2.

        What is about chunks is not sent: §5.1 [no-chunk-control].
        """
        raw = message.message()
        if raw.type_id in messages.CHUNK_STREAM_TYPES:
            return
        stream_id = getattr(message, "stream_id", 0)  # Figure 5: StreamBegin in SFlow-1
        if isinstance(message, control.SetBufferLength):
            stream_id = 0
        self._send(Message(raw.type_id, 0, stream_id, raw.payload))

    def send_media(self, type_id: int, timestamp: int, stream_id: int, payload: bytes) -> None:
        """Send audio, video or data that nobody else gets; `timestamp` in ms: §5.1.2.

        Own design: all of it arrives, however late; see `send_live` for what may be lost.
        """
        self._send(Message(type_id, timestamp, stream_id, payload))

    def send_live(self, type_id: int, timestamp: int, stream_id: int, payload: bytes) -> None:
        """Send audio, video or data of no use when it is late: §5.1.1 [abandons]."""
        data = encode_message(type_id, timestamp, payload)

        def order(now: float) -> None:
            self.lane(stream_id, medium_of(type_id)).send_live(data, now, self.lifetimes)

        self.enqueue(order, len(data))

    def join(self, live: "LiveStream", stream_id: int, viewer: "Viewer", now: float) -> "Player":
        """Play `live`; all players over RTMFP share the same bytes: §5.1.2 [stream-from-flow]."""
        outlet = FlowOutlet(self, stream_id, self.lifetimes)
        self._output.outlets[stream_id] = outlet
        return live.join(outlet, encode_message, viewer, now)

    def synchronize(self, *stream_ids: int) -> None:
        """Put a barrier across the flows of these streams, or of all: §5.2 [only-when-needed]."""
        self.enqueue(partial(self._output.put_barrier, stream_ids))

    def stream_ended(self, stream_id: int) -> None:
        """Close the flows of a stream: §5.3.5.3 [closing-says-nothing]."""
        self._output.outlets.pop(stream_id, None)
        self.enqueue(partial(self._output.close_stream, stream_id))

    @property
    def holds_media(self) -> bool:
        """Whether some of what streams sent may not have arrived.  Own design: see `Output`."""
        return self.session is not None and self._output.holds_media

    @property
    def queued(self) -> int:
        """How many bytes wait, those of this turn counted too.  Own design: for the limits."""
        return self._output.queued

    def lane(self, stream_id: int, medium: Medium) -> MediaFlow:
        """The flow for one medium of a stream, new if need be: §5.3.5.1, §5.3.5.2 [as-many]."""
        return self._output.lane(stream_id, medium)

    def flush(self, now: float) -> None:
        """Give what waits to the session, and take from it what may be taken again.

        Own design: for whoever owns the network, whenever `on_output` has been called.
        """
        self._is_told = False
        if self.session is None:
            return
        while self._output.run(now):
            self._let_go_on(now)
        self._let_go_on(now)
        if self.closed:
            self._recount()
            if self._output.close(now):  # §5.3.6 [orderly]
                self._close_session(now)
        elif self._may_be_slow():
            self._recount()
            if self.queued > self.limits.unread:
                self.abort(f"{self.queued} bytes that it does not read", now)

    def _send(self, message: Message) -> None:
        data = encode_message(message.type_id, message.timestamp, message.payload)
        medium, stream_id = medium_of(message.type_id), message.stream_id

        def order(now: float) -> None:
            self.lane(stream_id, medium).send(data, now)

        self.enqueue(order, len(data))

    def _may_be_slow(self) -> bool:
        """Whether to look at every lane.  Own design: all flows of the session are mostly empty."""
        held = 0 if self.session is None else self.session.queued
        return self._output.is_slow or held > min(ROOM, self.limits.unread)

    def _recount(self) -> None:
        self._output.recount()
        self.output_size = self._output.excess

    def _wake(self) -> None:
        if not self._is_told and self.on_output is not None:
            self._is_told = True
            self.on_output(self)

    # -- lanes --------------------------------------------------------------------------

    def lane_excepted(self, lane: MediaFlow, now: float) -> None:
        """Our control flow was rejected, so all is over; or a stream's, which says no more.

        §5.3 [exception-ends], §5.3.6 [abrupt].
        """
        if lane.stream_id == 0:
            self.connection_lost(now, "rejected by the peer")

    def lane_moved(self, lane: MediaFlow, now: float) -> None:
        """Own design: count again at the next `flush`, if anybody waits for it.

        As long as last words get on, they have time.
        """
        if self.closed and self._linger is not None:
            self._linger = now + self.patience
        if self.closed or self._output.is_slow:
            self._wake()

    # -- what is received ---------------------------------------------------------------

    def on_flow(self, session: "Session", flow: "RecvFlow", now: float) -> FlowReceiver | None:
        """Accept a flow of RTMP messages, reject others: §5.1.1 [rejects-unknown]."""
        try:
            metadata = FlowMetadata.parse(flow.metadata)
        except RemoteError:
            return None  # with code 0: §5.3.5.3 [code-zero]
        if self.closed or not self._accepts(metadata, flow):
            return None
        if self.far_control is None and self._takes_control(flow):
            self.far_control = flow
        receiver = self._receivers[flow] = Receiver(self, metadata.stream_id, metadata.intent)
        self._hold()
        return receiver

    def on_closed(self, session: "Session", now: float) -> None:
        """The session is gone: §5.3.6 [abrupt]."""
        self._look_back(session.reason, session.reason == SILENT)
        self.session = None
        self._output.drop()
        self.connection_lost(now, session.reason)
        self._wake()  # to be forgotten

    def on_address_change(self, session: "Session", former: Address, now: float) -> None:
        """The peer is somewhere else now: RFC 7016 §3.5.4.2."""
        self.peer_address = session.address

    def received(self, flow: "RecvFlow", data: bytes, stream_id: int, now: float) -> None:
        """Take a message; a peer that breaks the rules is closed: §5.1.2."""
        if self.closed:
            return
        if self._linger is not None:  # its control flow has ended before this one
            self._linger = now + self.patience
        try:
            message = parse_message(data, stream_id)
            if message.type_id == MessageType.USER_CONTROL:
                self._on_event(flow, message, now)
            elif message.type_id not in messages.CHUNK_STREAM_TYPES:  # §5.1 [ignores-chunk-control]
                self._on_message(message, now)
        except RemoteError as error:
            self.abort(str(error), now)
        self._hold()

    def completed(self, flow: "RecvFlow", now: float) -> None:
        """A flow has ended; with the control flow everything does: §5.3.6 [complete-answered].

        Own design: what other flows still bring is waited for, as they are closed as well.
        """
        self._receivers.pop(flow, None)
        self._barriers.leave(flow)
        if flow is self.far_control:
            self._look_back("closed by the peer")  # which looks at no more of it
            self._linger = now + self.patience
        if self._linger is not None and not self._receivers:
            self.close(now, "closed by the peer")

    def rejected(self, flow: "RecvFlow", stream_id: int, now: float) -> None:
        """Reject the other flows of the stream, too, as a barrier may have been lost.

        §5.3.5.3 [reject-all] [code-zero]; without its control flow a connection is none.
        """
        if stream_id == 0:
            self.abort("a flow that breaks the limits", now)
            return
        for other, receiver in list(self._receivers.items()):
            if receiver.stream_id == stream_id:
                other.reject(REJECTED, now)
                del self._receivers[other]
                self._barriers.leave(other)

    def proceed(self, now: float) -> None:
        """Use what was kept while nothing was read.  Own design: at the next `flush`."""
        self._wake()

    def _accepts(self, metadata: FlowMetadata, flow: "RecvFlow") -> bool:
        """Whether a flow belongs here.  Hook: the first one must be for stream 0: §5.3.1."""
        return self.far_control is not None or metadata.stream_id == 0

    def _takes_control(self, flow: "RecvFlow") -> bool:
        """Hook: whether the first flow is the one that ours return to: §5.3.2, §5.4.2."""
        return True

    def _on_event(self, flow: "RecvFlow", message: Message, now: float) -> None:
        parsed = messages.parse_control(message)
        if isinstance(parsed, FlowSynchronization):
            self._barriers.meet(flow, parsed)
            self._wake()  # whoever may go on does so then
        elif isinstance(parsed, SetKeepaliveTimers):
            self._on_keepalive(parsed)
        elif parsed is not None:
            self._on_control(parsed, now)

    def _on_keepalive(self, timers: SetKeepaliveTimers) -> None:
        """Hook: the server says how often to look whether it is there: §5.3.4."""

    def _may_go_on(self, flow: "RecvFlow") -> bool:
        return self.reading and not self.deciding and flow not in self._barriers

    def _hold(self) -> None:
        """Take nothing from those that have to wait: §5.2 [suspends]."""
        if self.reading and not self.deciding and not self._barriers:
            return
        for flow, receiver in self._receivers.items():
            if not receiver.is_held and not self._may_go_on(flow):
                receiver.is_held = True
                flow.suspend()

    def _let_go_on(self, now: float) -> None:
        """Take again from those that wait no longer: §5.2 [suspends]."""
        for flow, receiver in list(self._receivers.items()):
            if receiver.is_held and self._may_go_on(flow):
                receiver.is_held = False
                flow.resume(now)

    def _reading_changed(self) -> None:
        self._hold()
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
        """Give up a client that asks nothing, and close a session that has lingered enough.

        Own design: as with RTMP over TCP.
        """
        if self._linger is not None and now >= self._linger:
            self._look_back(f"nothing was acknowledged for {self.patience:g} s", True)
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
        """Close our flows, and the session when they are complete: §5.3.6 [orderly]."""
        if self.aborted:
            self._look_back(self.reason)
            self._output.drop()
            self._close_session(now)
            return
        self._linger = now + self.patience
        self._wake()

    def _look_back(self, reason: str, is_silent: bool = False) -> None:
        """See whether this end comes before that of what streams had to send: `cut_short`.

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
