"""The session and the flows that a NetConnection needs of the layer below it.

Own design: RFC 7425 §5 carries messages in the flows of RTMFP; those of RTWebSocket
(`rtmplite.rtws`) have the same properties, so that one NetConnection runs over both.
"""

from typing import Any, Protocol

from rtmplite.rtmfp.session.flow_states import RecvState, SendState
from rtmplite.rtmfp.session.send_flow import Priority
from rtmplite.rtmfp.session.send_queue import Outgoing
from rtmplite.rtmfp.wire.address import Address


class SendingFlow(Protocol):
    """A flow that is sent: its messages arrive in order, or are abandoned."""

    @property
    def queued(self) -> int:
        """Bytes that have neither arrived nor been given up."""

    @property
    def refused(self) -> int:
        """Bytes that waited when the receiver rejected it."""

    @property
    def state(self) -> SendState:
        """Whether it is open, or has been closed and all has arrived."""

    @property
    def has_entries(self) -> bool:
        """Whether any message has yet to be acknowledged."""

    def send(self, message: bytes, now: float, *, lifetime: float | None = None) -> Outgoing:
        """Queue a message that is of no use after `lifetime` seconds."""

    def close(self, now: float) -> None:
        """Accept no more messages; those queued are still sent."""


class ReceivingFlow(Protocol):
    """A flow that is received, in order if it is `ordered`."""

    ordered: bool

    @property
    def metadata(self) -> bytes:
        """What its sender says of it."""

    @property
    def associated(self) -> object:
        """The sending flow of ours that it answers, or None."""

    @property
    def state(self) -> RecvState:
        """Whether it is open, rejected or complete."""

    def suspend(self) -> None:
        """Keep messages until `resume`."""

    def resume(self, now: float) -> None:
        """Deliver the messages that were kept, and go on."""

    def reject(self, code: int, now: float) -> None:
        """Take no more of it; `code` tells the sender why."""


class Watch(Protocol):
    """Looks whether a silent far end is still there; times in seconds."""

    haste: float
    interval: float

    def unanswered(self, now: float) -> float:
        """For how many seconds a Ping has had no answer."""


class MessageSession(Protocol):
    """An open session with a far end at `address`; `reason` is why it has ended."""

    reason: str

    @property
    def address(self) -> Address:
        """Where the far end is."""

    @property
    def keepalive(self) -> Watch:
        """What asks a silent far end for a sign."""

    @property
    def queued(self) -> int:
        """Bytes that all sending flows hold."""

    def open_flow(
        self,
        metadata: bytes,
        now: float,
        *,
        associated: Any,  # a receiving flow of the same session: no type can say that
        sender: Any,  # the same of its user
        priority: Priority,
        time_critical: bool,
    ) -> SendingFlow:
        """Open a sending flow; the far end sees it with its first message."""

    def close(self, now: float) -> None:
        """Close it."""
