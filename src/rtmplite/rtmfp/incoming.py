"""What a connection knows of one receiving flow.

Implements RFC 7425 §5.1.2 and §5.3.5.3.
"""

from typing import TYPE_CHECKING, Protocol

from rtmplite.rtmfp.listener import FlowReceiver

if TYPE_CHECKING:
    from rtmplite.rtmfp.recv_flow import RecvFlow


class Taker(Protocol):
    """Whose flow it is: `FlowConnection`.  Own design: the two know each other by this alone."""

    def received(self, flow: "RecvFlow", data: bytes, stream_id: int, now: float) -> None:
        """Take a message: §5.1.2."""

    def completed(self, flow: "RecvFlow", now: float) -> None:
        """A flow has ended: §5.3.6."""

    def rejected(self, flow: "RecvFlow", stream_id: int, now: float) -> None:
        """A flow has been rejected here: §5.3.5.3."""


class Receiver(FlowReceiver):
    """A receiving flow of one message stream; `is_held` is whether it waits: §5.2."""

    def __init__(self, taker: Taker, stream_id: int) -> None:
        self._taker, self.stream_id = taker, stream_id
        self.is_held = False

    def on_message(self, flow: "RecvFlow", message: bytes, now: float) -> None:
        """Take a message, whose stream is the flow's: §5.1.2 [stream-from-flow]."""
        self._taker.received(flow, message, self.stream_id, now)

    def on_exception(self, flow: "RecvFlow", now: float) -> None:
        """The session has rejected it: §5.3.5.3 [reject-all]."""
        self._taker.rejected(flow, self.stream_id, now)

    def on_complete(self, flow: "RecvFlow", now: float) -> None:
        """The far end has closed it: §5.3.6 [complete-answered]."""
        self._taker.completed(flow, now)
