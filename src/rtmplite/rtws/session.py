"""One end of an RTWebSocket: its flows in a single connection that loses nothing.

Implements Field §"RTWebSocket flows", §"RTWebSocket acknowledgements" and §"RTWebSocket pace".  It
has the shape of a session of RTMFP, so that the same NetConnection runs over it
(`rtmplite.rtmfp.netconnection`).  What opens the WebSocket, and closes it, is left to the edge.

Own design: names and limits are those of RTMFP's sessions.
"""

from collections import deque
from collections.abc import Mapping
from math import inf
from typing import Final, Protocol

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.session.flow_states import SendState
from rtmplite.rtmfp.session.keepalive import Keepalive
from rtmplite.rtmfp.session.limits import SessionBudget, SessionLimits
from rtmplite.rtmfp.session.rtt import RoundTrip
from rtmplite.rtmfp.session.send_flow import Priority
from rtmplite.rtmfp.session.session import SILENT
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtws.frames import (
    Abandon,
    AckWindow,
    Data,
    DataAck,
    FlowClose,
    FlowOpen,
    FlowRejection,
    Frame,
    LifeSign,
    parse_frame,
)
from rtmplite.rtws.pace import MIN_ACK_WINDOW, Pace
from rtmplite.rtws.recv_flow import RtwsReceiver, RtwsRecvFlow
from rtmplite.rtws.send_flow import RtwsSender, RtwsSendFlow

ACK_SECONDS: Final = (
    0.2  # Field §"RTWebSocket acknowledgements" [within-250-ms]: with time to spare
)
FLOW_BYTES: Final = 2000  # approximate memory of a flow
REJECTED: Final = 0
MAX_ANSWERS: Final = 4096  # frames that wait for the network
DEFAULT_LIMITS: Final = SessionLimits(flows=256)
_URGENCY: Final = tuple(sorted(Priority, reverse=True))
_UNBOUNDED: Final = 1 << 62


class RtwsListener(Protocol):
    """The user of a session: Field §"RTWebSocket flows"."""

    def on_flow(
        self, session: "RtwsSession", flow: RtwsRecvFlow, now: float
    ) -> RtwsReceiver | None:
        """The far end opens a flow: return its receiver, or None to reject it."""

    def on_closed(self, session: "RtwsSession", now: float) -> None:
        """The session is open no longer, for `session.reason`."""


class RtwsSession:
    """One end of a session: Field §"RTWebSocket flows".

    `address` is where the far end is; `reason` says why the session is open no longer.  Call `take`
    after every event: it gives the frames to send.  Sessions may share a `budget` of memory, which
    has counted `counted` of this one.
    """

    def __init__(
        self,
        address: Address,
        now: float,
        listener: RtwsListener,
        limits: SessionLimits = DEFAULT_LIMITS,
        budget: SessionBudget | None = None,
    ) -> None:
        self.address, self.listener, self.limits = address, listener, limits
        self.budget = budget or SessionBudget(_UNBOUNDED)
        self.is_open, self.reason = True, ""
        self.buffered = self.counted = 0
        self.keepalive = Keepalive(RoundTrip(), limits.keepalive, limits.silence_timeout, now)
        self._pace = Pace()
        self._sending: dict[int, RtwsSendFlow] = {}
        self._receiving: dict[int, RtwsRecvFlow] = {}
        self._next_id = 0
        self._turns: Mapping[Priority, deque[RtwsSendFlow]] = {each: deque() for each in Priority}
        self._control: list[bytes] = []  # frames that go before those of flows
        self._pong = b""  # of the last ping alone
        self._unacknowledged: dict[RtwsRecvFlow, None] = {}
        self._ack_at = inf
        self._ack_window, self._since = MIN_ACK_WINDOW, 0

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; None for never: Field §"RTWebSocket acknowledgements"."""
        return min(self._ack_at, self.keepalive.deadline) if self.is_open else None

    @property
    def queued(self) -> int:
        """Bytes that all sending flows hold."""
        return sum(flow.queued for flow in self._sending.values())

    @property
    def memory(self) -> int:
        """Bytes of memory that all flows take, which `SessionBudget` limits."""
        flows = len(self._sending) + len(self._receiving)
        return self.queued + self.buffered + flows * FLOW_BYTES

    def open_flow(
        self,
        metadata: bytes,
        now: float,
        *,
        associated: RtwsRecvFlow | None = None,
        sender: RtwsSender,
        priority: Priority = Priority.NORMAL,
        time_critical: bool = False,
    ) -> RtwsSendFlow:
        """Open a sending flow: Field §"RTWebSocket flows".  LocalError unless the session is open.

        `associated` is the flow of the far end that it answers.  TCP has no other way for what is
        `time_critical`: its priority has to do.
        """
        if not self.is_open:
            raise LocalError("a flow in a session that has ended")
        answers = None if associated is None else associated.flow_id
        flow = RtwsSendFlow(self._next_id, metadata, answers, sender, priority)
        # Own design: no identifier is used again, so that none can be used too early.
        self._next_id += 1
        self._sending[flow.flow_id] = flow
        self._turns[priority].append(flow)
        return flow

    def receive(self, message: bytes | memoryview, now: float) -> None:
        """Take a binary message of the WebSocket; what breaks a rule closes the session."""
        if not self.is_open:
            return
        self.keepalive.hear(now)
        try:
            frame = parse_frame(message)
            if frame is not None:
                self._on_frame(frame, now)
            if self.buffered > self.limits.session_buffer_bytes:
                raise RemoteError("more than there is room for")
            if len(self._control) > MAX_ANSWERS:
                raise RemoteError("answers that it does not read")
        except RemoteError as error:
            self.close(now, error.description)

    def take(self, now: float) -> list[bytes]:
        """Return the frames to send now: Field §"RTWebSocket pace".

        The edge calls it only when the network has taken all that came before.
        """
        if not self.is_open:
            return []
        frames, self._control = self._control, []
        if self._pong:
            frames.append(self._pong)
            self._pong = b""
        if self._ack_at <= now:
            frames += self._acknowledgements()
        for priority in _URGENCY:  # Field §"RTWebSocket flows" [urgent-first]
            self._take_of(self._turns[priority], frames, now)
        return frames

    def tick(self, now: float) -> None:
        """Act on the deadlines that have passed.  Call `take` after it."""
        if not self.is_open:
            return
        if self.keepalive.is_lost(now):
            self.close(now, SILENT)
        elif self.keepalive.tick(now):
            self.say(bytes(LifeSign()))

    def close(self, now: float, reason: str = "closed here") -> None:
        """End the flows, and tell the listener; the end of the WebSocket tells the far end."""
        if not self.is_open:
            return
        self.is_open, self.reason = False, reason
        for sending in self._sending.values():
            sending.end()
        for receiving in self._receiving.values():
            receiving.stop()
        self.listener.on_closed(self, now)

    def abort(self, now: float, reason: str) -> None:
        """Close it, as `SessionBudget` asks."""
        self.close(now, reason)

    def say(self, frame: bytes) -> None:
        """Send a frame before those of flows."""
        self._control.append(frame)

    def acknowledge(self, flow: RtwsRecvFlow) -> None:
        """Acknowledge with the next frames: Field §"RTWebSocket acknowledgements"."""
        self._unacknowledged[flow] = None
        self._ack_at = -inf

    # -- what is sent -------------------------------------------------------------------

    def _take_of(self, turns: deque[RtwsSendFlow], frames: list[bytes], now: float) -> None:
        """Add frames of the flows of one priority, in turn, while the path has room for them."""
        idle = 0
        while idle < len(turns) and self._pace.has_room:
            flow, before = turns[0], turns[0].sent
            turns.rotate(-1)
            frame = flow.next_frame(now)
            if frame is None:
                idle += 1
                continue
            idle = 0
            if size := flow.sent - before:
                if (window := self._pace.ask(now)) is not None:
                    frames.append(bytes(AckWindow(window)))
                self._pace.sent(size)
            frames.append(frame)

    def _acknowledgements(self) -> list[bytes]:
        """Acknowledge all flows together."""
        self._ack_at = inf
        due, self._unacknowledged = self._unacknowledged, {}
        # Field §"RTWebSocket acknowledgements" [all-at-once]
        return [flow.acknowledgement() for flow in due if flow.flow_id in self._receiving]

    # -- what is received ---------------------------------------------------------------

    def _on_frame(self, frame: Frame, now: float) -> None:
        match frame:
            case Data():
                self._on_data(frame, now)
            case DataAck():
                self._on_ack(frame, now)
            case FlowOpen():
                self._on_open(frame, now)
            case LifeSign():
                if not frame.is_reply:  # Field §"RTWebSocket frames" [ping-is-answered]
                    self._pong = bytes(LifeSign(frame.message, is_reply=True))
            case AckWindow():
                # Field §"RTWebSocket acknowledgements" [window-of-acks]
                self._ack_window, self._since = max(frame.size, MIN_ACK_WINDOW), 0
            case Abandon():
                flow = self._received(frame.flow_id)
                flow.abandon()
            case FlowClose():
                self._on_close(frame, now)
            case FlowRejection():
                self._sent(frame.flow_id).excepted(frame.code or REJECTED, now)

    def _on_open(self, frame: FlowOpen, now: float) -> None:
        """Ask the listener for a receiver: Field §"RTWebSocket flows"."""
        if frame.flow_id in self._receiving:  # Field §"RTWebSocket flows" [identifier-in-use]
            raise RemoteError(f"flow {frame.flow_id} is open already")
        if len(self._receiving) >= self.limits.flows:
            raise RemoteError("too many flows")
        answered = None if frame.answers is None else self._sending.get(frame.answers)
        flow = RtwsRecvFlow(self, frame.flow_id, frame.metadata, answered)
        self._receiving[frame.flow_id] = flow
        self.acknowledge(flow)  # Field §"RTWebSocket acknowledgements" [at-once-on-open]
        is_lost = frame.answers is not None and (
            answered is None or answered.state is not SendState.OPEN
        )
        if is_lost or len(frame.metadata) > self.limits.metadata_bytes:
            flow.reject(REJECTED, now)  # Field §"RTWebSocket flows" [answers-what-is-open]
            return
        flow.receiver = self.listener.on_flow(self, flow, now)
        if flow.receiver is None:
            flow.reject(REJECTED, now)

    def _on_data(self, frame: Data, now: float) -> None:
        flow = self._received(frame.flow_id)
        flow.take(frame, now)
        self._since += frame.size
        self._unacknowledged[flow] = None
        # Field §"RTWebSocket acknowledgements" [window-of-acks] [half-window]
        if self._since >= self._ack_window or flow.is_due:
            self._since %= self._ack_window
            self._ack_at = -inf
        else:
            # Field §"RTWebSocket acknowledgements" [within-250-ms]
            self._ack_at = min(self._ack_at, now + ACK_SECONDS)

    def _on_ack(self, frame: DataAck, now: float) -> None:
        self._sent(frame.flow_id).acknowledge(frame.count, frame.window, now)
        self._pace.acknowledged(frame.count, now)

    def _on_close(self, frame: FlowClose, now: float) -> None:
        """Acknowledge the end of a flow, or forget one of ours: Field §"RTWebSocket flows"."""
        if frame.is_ack:
            ours = self._sent(frame.flow_id)
            self._pace.acknowledged(ours.closed(now), now)
            del self._sending[frame.flow_id]
            self._turns[ours.priority].remove(ours)
            return
        flow = self._received(frame.flow_id)
        # Field §"RTWebSocket flows" [close-is-acknowledged]
        self.say(flow.acknowledgement())
        self.say(bytes(FlowClose(frame.flow_id, is_ack=True)))
        del self._receiving[frame.flow_id]
        flow.ended(now)

    def _received(self, flow_id: int) -> RtwsRecvFlow:
        if (flow := self._receiving.get(flow_id)) is None:
            raise RemoteError(f"no flow {flow_id} is open")
        return flow

    def _sent(self, flow_id: int) -> RtwsSendFlow:
        if (flow := self._sending.get(flow_id)) is None:
            raise RemoteError(f"an answer to flow {flow_id}, which does not exist")
        return flow
