"""What a connection knows of one receiving flow.

Implements RFC 7425 §5.1.1, §5.1.2 and §5.3.5.3.
"""

from typing import TYPE_CHECKING, Final, Protocol

from rtmplite.flv.audio import is_sequence_header
from rtmplite.rtmfp.netconnection.messages import Intent, encode_message
from rtmplite.rtmfp.session.recv_flow import FlowReceiver
from rtmplite.rtmp.wire.message import MessageType

if TYPE_CHECKING:
    from rtmplite.rtmfp.session.recv_flow import RecvFlow

_HEADER_SIZE: Final = len(encode_message(0, 0, b""))
_AUDIO: Final = bytes((MessageType.AUDIO,))


class Taker(Protocol):
    """Whose flow it is: `FlowConnection`.  Own design: the two know each other by this alone."""

    def received(self, flow: "RecvFlow", data: bytes, stream_id: int, now: float) -> None:
        """Take a message: §5.1.2."""

    def completed(self, flow: "RecvFlow", now: float) -> None:
        """A flow has ended: §5.3.6."""

    def rejected(self, flow: "RecvFlow", stream_id: int, now: float) -> None:
        """A flow has been rejected here: §5.3.5.3."""


class Receiver(FlowReceiver):
    """A receiving flow of one message stream; `is_held` is whether it waits: §5.2.

    Own design, where §5.1.1 leaves the choice to us: a flow of sound is taken as it arrives if its
    sender hints so by `intent`, as one sound does without another; all other flows in order.
    """

    def __init__(self, taker: Taker, stream_id: int, intent: Intent) -> None:
        self._taker, self.stream_id = taker, stream_id
        self.is_held = False
        self._undecided = intent is Intent.NETWORK_ORDER
        self._latest: int | None = None  # the highest time of sound taken out of order

    def on_message(self, flow: "RecvFlow", message: bytes, now: float) -> None:
        """Take a message, whose stream is the flow's: §5.1.2 [stream-from-flow]."""
        if self._undecided:
            self._undecided = False
            flow.ordered = message[:1] != _AUDIO
        if flow.ordered or not self._is_overtaken(message):
            self._taker.received(flow, message, self.stream_id, now)

    def _is_overtaken(self, message: bytes) -> bool:
        """Whether it is sound from before what has been taken: §5.1.1 [out-of-order].

        Who plays it would have to go back in time.  A codec's header is of use whenever it comes.
        """
        if message[:1] != _AUDIO or len(message) < _HEADER_SIZE:
            return False
        if is_sequence_header(memoryview(message)[_HEADER_SIZE:]):
            return False
        time = int.from_bytes(message[1:_HEADER_SIZE])
        # Times wrap around: §5.1 [time-range]
        if self._latest is not None and (time - self._latest) & 0xFFFFFFFF >= 1 << 31:
            return True
        self._latest = time
        return False

    def on_exception(self, flow: "RecvFlow", now: float) -> None:
        """The session has rejected it: §5.3.5.3 [reject-all]."""
        self._taker.rejected(flow, self.stream_id, now)

    def on_complete(self, flow: "RecvFlow", now: float) -> None:
        """The far end has closed it: §5.3.6 [complete-answered]."""
        self._taker.completed(flow, now)
