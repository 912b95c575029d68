"""The flows that a connection receives, and the order of their messages.

Implements RFC 7425 §5.1.1, §5.1.2, §5.2 and §5.3.5.3.
"""

from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from rtmplite.errors import RemoteError
from rtmplite.flv.audio import is_sequence_header
from rtmplite.rtmfp.netconnection.messages import (
    FlowMetadata,
    FlowSynchronization,
    Intent,
    encode_message,
)
from rtmplite.rtmfp.session.recv_flow import FlowReceiver
from rtmplite.rtmfp.session.session import SessionListener
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmp.wire.message import MessageType

if TYPE_CHECKING:
    from rtmplite.rtmfp.netconnection.flows import MessageSession, ReceivingFlow

REJECTED: Final = 0  # the only exception code there is: §5.3.5.3 [code-zero]
_HEADER_SIZE: Final = len(encode_message(0, 0, b""))
_AUDIO: Final = bytes((MessageType.AUDIO,))

F = TypeVar("F")

MAX_FLOWS: Final = 64  # own design: of one barrier; a stream has three or four


class FlowSynchronizer(Generic[F]):
    """The barriers at which flows of one connection wait: §5.2.

    A flow that meets a barrier waits until all the other flows have met it, and then all go on.
    What comes behind it in a flow stays there: it takes no more memory than the receive window.

        >>> synchronizer, barrier = FlowSynchronizer(), FlowSynchronization(8, 2)
        >>> synchronizer.meet("F1", barrier), synchronizer.meet("F2", barrier)
        ([], ['F1', 'F2'])
    """

    def __init__(self) -> None:
        self._waiting: dict[int, list[F]] = {}

    def __bool__(self) -> bool:
        """Whether any flow waits: §5.2 [suspends]."""
        return bool(self._waiting)

    def __contains__(self, flow: F) -> bool:
        """Whether a flow waits: §5.2 [suspends]."""
        return any(flow in flows for flows in self._waiting.values())

    def meet(self, flow: F, barrier: FlowSynchronization) -> list[F]:
        """Let `flow` arrive; return the flows that may go on now, in order of arrival.

        §5.2.  Raises RemoteError for a count of 0 or one that is beyond reason, and if the flow
        waits already, which means that it was not held.
        """
        if not 1 <= barrier.count <= MAX_FLOWS:  # §5.2 [count-at-least-1]
            raise RemoteError(f"a barrier of {barrier.count} flows")
        if flow in self:
            raise RemoteError("a barrier behind a barrier")
        flows = self._waiting.setdefault(barrier.sync_id, [])
        flows.append(flow)
        if len(flows) < barrier.count:  # §5.2 [suspends]
            return []
        return self._waiting.pop(barrier.sync_id)

    def leave(self, flow: F) -> None:
        """Forget a flow that has ended: §5.2.  Own design: the others wait for one that remains."""
        for sync_id, flows in list(self._waiting.items()):
            if flow in flows:
                flows.remove(flow)
                if not flows:
                    del self._waiting[sync_id]


class IncomingOwner(Protocol):
    """Own design: all that receiving flows know of a `connection.FlowTransport`."""

    closed: bool
    reading: bool
    deciding: bool
    peer_address: Address

    def accepts(self, metadata: FlowMetadata, flow: "ReceivingFlow") -> bool:
        """Tell whether a flow belongs to this connection: §5.3.1, §5.3.2, §5.4.2."""

    def takes_control(self, flow: "ReceivingFlow") -> bool:
        """Tell whether the first flow is the one that ours return to: §5.3.2, §5.4.2."""

    def received(self, flow: "ReceivingFlow", data: bytes, stream_id: int, now: float) -> None:
        """Take a message: §5.1.2."""

    def flow_completed(self, flow: "ReceivingFlow", now: float) -> None:
        """Note that the far end has closed a flow: §5.3.6."""

    def control_rejected(self, now: float) -> None:
        """Note that a flow of stream 0 has broken a limit, and is rejected: §5.3.5.3."""

    def session_closed(self, session: "MessageSession", now: float) -> None:
        """Note that the session has ended: §5.3.6."""


class Incoming(SessionListener):
    """A connection's receiving flows; ours are associated to `far_control`: §5.3.5."""

    def __init__(self, owner: IncomingOwner) -> None:
        self.far_control: ReceivingFlow | None = None
        self._owner = owner
        self.take = owner.received  # what receivers call with each message
        self._receivers: dict[ReceivingFlow, Receiver] = {}
        self._synchronizer: FlowSynchronizer[ReceivingFlow] = FlowSynchronizer()

    @property
    def is_empty(self) -> bool:
        """Whether all flows have ended: §5.3.6."""
        return not self._receivers

    def on_flow(
        self, session: "MessageSession", flow: "ReceivingFlow", now: float
    ) -> "Receiver | None":
        """Accept a flow of RTMP messages, reject others: §5.1.1."""
        try:
            metadata = FlowMetadata.parse(flow.metadata)
        except RemoteError:
            return None  # with code 0: §5.1.1 [rejects-unknown], §5.3.5.3 [code-zero]
        if self._owner.closed or not self._owner.accepts(metadata, flow):
            return None
        if self.far_control is None and self._owner.takes_control(flow):
            self.far_control = flow
        receiver = self._receivers[flow] = Receiver(self, metadata.stream_id, metadata.intent)
        self.hold()
        return receiver

    def on_closed(self, session: "MessageSession", now: float) -> None:
        """Tell the connection that the session is gone: §5.3.6 [abrupt]."""
        self._owner.session_closed(session, now)

    def on_address_change(self, session: "MessageSession", former: Address, now: float) -> None:
        """Note the peer's new address: RFC 7016 §3.5.4.2."""
        self._owner.peer_address = session.address

    def completed(self, flow: "ReceivingFlow", now: float) -> None:
        """Forget a flow that has ended: §5.3.6 [complete-answered]."""
        self.forget(flow)
        self._owner.flow_completed(flow, now)

    def rejected(self, flow: "ReceivingFlow", stream_id: int, now: float) -> None:
        """Reject all flows of the stream, or end without the control flow: §5.3.5.3."""
        if stream_id:
            self.reject(now, stream_id)  # §5.3.5.3 [reject-all]
        else:
            self._owner.control_rejected(now)

    def reject(self, now: float, stream_id: int | None = None) -> None:
        """Reject the flows of a stream, or of all streams: §5.3.5.3, §5.4.3."""
        for flow, receiver in list(self._receivers.items()):
            if stream_id is None or receiver.stream_id == stream_id:
                flow.reject(REJECTED, now)  # §5.3.5.3 [code-zero]
                self.forget(flow)

    def forget(self, flow: "ReceivingFlow") -> None:
        """Wait for nothing more from a flow.  Own design: nor do other flows at a barrier."""
        self._receivers.pop(flow, None)
        self._synchronizer.leave(flow)

    def meet(self, flow: "ReceivingFlow", barrier: FlowSynchronization) -> None:
        """Let a flow wait at a barrier: §5.2 [suspends]; RemoteError for a wrong one."""
        self._synchronizer.meet(flow, barrier)

    def hold(self) -> None:
        """Take nothing from the flows that have to wait: §5.2."""
        if self._owner.reading and not self._owner.deciding and not self._synchronizer:
            return
        for flow, receiver in self._receivers.items():
            if not receiver.is_held and not self._may_go_on(flow):
                receiver.is_held = True
                flow.suspend()  # §5.2 [suspends]

    def let_go_on(self, now: float) -> None:
        """Take again from the flows that wait no longer: §5.2 [suspends]."""
        for flow, receiver in list(self._receivers.items()):
            if receiver.is_held and self._may_go_on(flow):
                receiver.is_held = False
                flow.resume(now)

    def _may_go_on(self, flow: "ReceivingFlow") -> bool:
        owner = self._owner
        return owner.reading and not owner.deciding and flow not in self._synchronizer


class Receiver(FlowReceiver):
    """A receiving flow of one message stream; `is_held` is whether it waits: §5.2.

    Own design, where §5.1.1 leaves the choice to the receiver: a flow of audio is taken as it
    arrives if its sender hints so by `intent`, as one frame does without another; all other flows
    are taken in order.
    """

    def __init__(self, incoming: Incoming, stream_id: int, intent: Intent) -> None:
        self._incoming, self.stream_id = incoming, stream_id
        self._take = incoming.take
        self.is_held = False
        self._undecided = intent is Intent.NETWORK_ORDER
        self._latest: int | None = None  # the highest time of audio taken out of order

    def on_message(self, flow: "ReceivingFlow", message: bytes, now: float) -> None:
        """Take a message; it belongs to the stream of its flow: §5.1.2."""
        if self._undecided:
            self._undecided = False
            flow.ordered = message[:1] != _AUDIO
        if flow.ordered or not self._is_overtaken(message):
            self._take(flow, message, self.stream_id, now)  # §5.1.2 [stream-from-flow]

    def _is_overtaken(self, message: bytes) -> bool:
        """Whether an audio message, not a header, is older than the last one passed on: §5.1.1."""
        if message[:1] != _AUDIO or len(message) < _HEADER_SIZE:
            return False
        if is_sequence_header(memoryview(message)[_HEADER_SIZE:]):
            return False
        time = int.from_bytes(message[1:_HEADER_SIZE])
        # Times wrap around: §5.1.1 [out-of-order], §5.1 [time-range]
        if self._latest is not None and (time - self._latest) & 0xFFFFFFFF >= 1 << 31:
            return True
        self._latest = time
        return False

    def on_exception(self, flow: "ReceivingFlow", now: float) -> None:
        """The session has rejected it: §5.3.5.3 [reject-all]."""
        self._incoming.rejected(flow, self.stream_id, now)

    def on_complete(self, flow: "ReceivingFlow", now: float) -> None:
        """The far end has closed it: §5.3.6 [complete-answered]."""
        self._incoming.completed(flow, now)
