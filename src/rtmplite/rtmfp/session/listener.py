"""What a session and its flows tell their users.

Implements RFC 7016 §3.6.  The user of a session is asked about every flow that the far end opens;
the user of a flow hears of its messages, its gaps and its end.  Whoever needs only some of this
inherits the rest: each method here does nothing.

Own design: the spec says that users are notified, and leaves open how.
"""

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rtmplite.rtmfp.session.recv_flow import RecvFlow
    from rtmplite.rtmfp.session.send_flow import SendFlow
    from rtmplite.rtmfp.session.session import Session
    from rtmplite.rtmfp.wire.control_chunks import ForwardedInitiatorHello

Address = tuple[str, int]
"""A numeric IP address and a port."""


class Priority(IntEnum):
    """Whose turn it is when the network does not take everything: §3.6.1.2.

    Higher goes first; flows of the same priority take turns.
    """

    BULK = 0
    NORMAL = 1
    VIDEO = 2
    AUDIO = 3
    IMMEDIATE = 4


class FlowSender:
    """The user of a sending flow."""

    def on_exception(self, flow: "SendFlow", code: int, now: float) -> None:
        """The far end rejects the flow, which closes it: §3.6.2.10."""

    def on_writable(self, flow: "SendFlow", now: float) -> None:
        """There is room again: `flow.queued` is lower than it was.

        What was given up is told of with the next acknowledgement.
        """

    def on_complete(self, flow: "SendFlow", now: float) -> None:
        """The flow was closed, and all of it has arrived or been abandoned: §3.6.2.11."""


class FlowReceiver:
    """The user of a receiving flow."""

    def on_message(self, flow: "RecvFlow", message: bytes, now: float) -> None:
        """A whole message has come, in its turn if the flow is ordered: §3.6.3.3."""

    def on_gap(self, flow: "RecvFlow", missing: int, now: float) -> None:
        """The sender gave up `missing` fragments before what comes next: §3.6.1.2."""

    def on_exception(self, flow: "RecvFlow", now: float) -> None:
        """The flow was rejected, not by the user: its sender broke a rule or a limit: §3.6.3.2."""

    def on_complete(self, flow: "RecvFlow", now: float) -> None:
        """The sender closed the flow, and all there was has been delivered: §3.6.3.3."""


class SessionListener:
    """The user of a session."""

    def on_flow(self, session: "Session", flow: "RecvFlow", now: float) -> FlowReceiver | None:
        """The far end opens a flow: whoever shall receive it, or None to reject it: §3.6.3.1.

        `flow.metadata` says what it is, `flow.associated` to which of our flows it answers.
        For an exception code other than 0, call `flow.reject(code, now)` and answer None.
        """
        return None

    def on_closed(self, session: "Session", now: float) -> None:
        """The session is open no longer, and its flows are gone; `session.reason` says why: §3.5.5.

        It may still have packets to send and to answer: see `Session.state`.
        """

    def on_forwarded_hello(
        self, session: "Session", hello: "ForwardedInitiatorHello", now: float
    ) -> None:
        """The far end passes on that somebody asks for us: §3.5.1.5."""

    def on_address_change(self, session: "Session", former: Address, now: float) -> None:
        """The far end has proved that it is at `session.address` now: §3.5.4.2."""
