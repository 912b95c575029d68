"""A receiving flow of RTWebSocket: it joins parts to messages, and says how much it takes.

Implements Field §"RTWebSocket flows" and §"RTWebSocket acknowledgements".

Own design: the names are those of RTMFP's flows, whose users can then be the same.
"""

from collections import deque
from typing import Final, Protocol

from rtmplite.rtmfp.session.flow_states import RecvState
from rtmplite.rtmfp.session.limits import SessionBudget, SessionLimits
from rtmplite.rtws.frames import Data, DataAck, FlowRejection
from rtmplite.rtws.send_flow import RtwsSendFlow

OVERHEAD_BYTES: Final = 100  # of a message that waits


class RtwsReceiver(Protocol):
    """The user of a receiving flow: Field §"RTWebSocket flows"."""

    def on_message(self, flow: "RtwsRecvFlow", message: bytes, now: float) -> None:
        """A whole message has come."""

    def on_exception(self, flow: "RtwsRecvFlow", now: float) -> None:
        """The flow was rejected because its sender broke a limit."""

    def on_complete(self, flow: "RtwsRecvFlow", now: float) -> None:
        """The sender closed the flow, and all its messages have been delivered."""


class RecvHost(Protocol):
    """The part of a session that a receiving flow uses; `buffered` is the memory of all flows."""

    limits: SessionLimits
    budget: SessionBudget
    buffered: int

    def say(self, frame: bytes) -> None:
        """Send a frame, before those of flows."""

    def acknowledge(self, flow: "RtwsRecvFlow") -> None:
        """Acknowledge the flow with the next frames: its window is another now."""


class RtwsRecvFlow:
    """One receiving flow of a session: Field §"RTWebSocket flows".

    `metadata` is the sender's, `associated` the sending flow of ours that it answers, or None.
    `receiver` is its user, None while there is none; messages always come in order, whatever
    `ordered` says.  `buffered` is the memory that it takes.
    """

    def __init__(
        self, host: RecvHost, flow_id: int, metadata: bytes, associated: RtwsSendFlow | None
    ) -> None:
        self.flow_id, self.metadata, self.associated = flow_id, metadata, associated
        self.receiver: RtwsReceiver | None = None
        self.ordered = True
        self.state = RecvState.OPEN
        self.buffered = 0
        self.unacknowledged = 0  # bytes of frames
        self._host = host
        self._partial: bytearray | None = None
        self._messages: deque[bytes] = deque()  # whole ones, while it is suspended
        self._is_suspended = self._has_ended = self._is_done = False
        self._advertised = 0

    @property
    def window(self) -> int:
        """How much may be on its way: Field §"RTWebSocket acknowledgements"."""
        capacity = self._host.budget.window(self._host.limits.buffer_bytes)
        # Field §"RTWebSocket acknowledgements" [waiting-narrows-the-window]
        return max(0, capacity - self.buffered) if self._is_suspended else capacity

    @property
    def is_due(self) -> bool:
        """Whether half the window is used: Field §"RTWebSocket acknowledgements" [half-window]."""
        return self.unacknowledged * 2 >= self._advertised

    def acknowledgement(self) -> bytes:
        """Give the frame that acknowledges what has come: Field §"RTWebSocket acknowledgements"."""
        self._advertised, count = self.window, self.unacknowledged
        self.unacknowledged = 0
        return bytes(DataAck(self.flow_id, count, self._advertised))

    def reject(self, code: int, now: float) -> None:
        """Take no more of it; `code` tells the sender why: Field §"RTWebSocket flows"."""
        if self.state is RecvState.OPEN:
            self.state = RecvState.REJECTED
            self._forget()
            self._host.say(bytes(FlowRejection(self.flow_id, code)))

    def suspend(self) -> None:
        """Keep messages until `resume`."""
        self._is_suspended = True

    def resume(self, now: float) -> None:
        """Deliver the messages that were kept, and go on."""
        self._is_suspended = False
        self._deliver(now)
        if not self._has_ended:
            self._host.acknowledge(self)

    def take(self, frame: Data, now: float) -> None:
        """Take a part of a message: Field §"RTWebSocket flows"."""
        self.unacknowledged += frame.size
        if self.state is not RecvState.OPEN:
            return
        if self._partial is None:
            if not frame.more:
                self._add(frame.data, len(frame.data) + OVERHEAD_BYTES, now)
                return
            self._partial = bytearray()
            self._count(OVERHEAD_BYTES)
        self._partial += frame.data
        self._count(len(frame.data))
        if len(self._partial) > self._host.limits.message_bytes:
            self._break(now)
        elif not frame.more:  # Field §"RTWebSocket flows" [parts-then-last]
            message, self._partial = bytes(self._partial), None
            self._add(message, 0, now)

    def abandon(self) -> None:
        """Forget the message in progress, if any: Field §"RTWebSocket flows" [abandons]."""
        if self._partial is not None:
            self._count(-len(self._partial) - OVERHEAD_BYTES)
            self._partial = None

    def ended(self, now: float) -> None:
        """The sender has closed it: Field §"RTWebSocket flows" [closes-behind-all]."""
        self._has_ended = True
        self.abandon()
        if self.state is RecvState.OPEN:
            self.state = RecvState.COMPLETE_LINGER
        self._deliver(now)

    def stop(self) -> None:
        """Deliver no more: the session has ended."""
        self.state = RecvState.CLOSED
        self._forget()

    def _add(self, message: bytes, size: int, now: float) -> None:
        """Keep a whole message, and deliver it unless the flow waits."""
        self._messages.append(message)
        self._count(size)
        self._deliver(now)

    def _deliver(self, now: float) -> None:
        while self._messages and not self._is_suspended:
            message = self._messages.popleft()
            self._count(-len(message) - OVERHEAD_BYTES)
            if self.receiver is not None:
                self.receiver.on_message(self, message, now)
        if self._has_ended and not self._messages and not self._is_done:
            self._is_done = True
            if self.receiver is not None and self.state is RecvState.COMPLETE_LINGER:
                self.receiver.on_complete(self, now)

    def _break(self, now: float) -> None:
        self.reject(0, now)
        if self.receiver is not None:
            self.receiver.on_exception(self, now)

    def _count(self, size: int) -> None:
        self.buffered += size
        self._host.buffered += size

    def _forget(self) -> None:
        self._is_done = True
        self._partial = None
        self._messages.clear()
        self._count(-self.buffered)
