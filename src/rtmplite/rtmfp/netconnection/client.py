"""The client's side of a NetConnection over RTMFP.

Implements RFC 7425 §5.3.  What is asked and answered is in `rtmplite.rtmp.client`; here is what
only RTMFP has.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from rtmplite.amf.values import Value
from rtmplite.rtmfp.netconnection.connection import PUBLISHER_LINGER, FlowEnd, FlowTransport
from rtmplite.rtmfp.netconnection.messages import (
    Address,
    FlowMetadata,
    SetKeepaliveTimers,
    keepalive_period,
    peer_info,
)
from rtmplite.rtmp.client import DEFAULT_LIMITS, NetClient, Target
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import MessageType

if TYPE_CHECKING:
    from rtmplite.rtmfp.netconnection.flows import MessageSession, ReceivingFlow
    from rtmplite.rtmp.message_transport import ConnectionLimits


_ENDINGS: Final = ("deleteStream", "closeStream", "FCUnpublish")


class ClientFlowTransport(FlowTransport):
    """The client's end of a session with a server: §5.3.1.

    `addresses` gives where we can be reached besides where the server sees us; it is asked when
    the server has accepted us (§5.3.3), and may be set until then.  `peer_keepalive` is how many
    seconds may pass between looks whether a peer is there (§5.3.4).  When it is closed, it ends as
    soon as all that was published has arrived, or nothing gets on for `PUBLISHER_LINGER`.
    """

    linger_timeout = PUBLISHER_LINGER

    def __init__(
        self,
        now: float,
        limits: "ConnectionLimits",
        addresses: Callable[[], Iterable[Address]] = tuple,
    ) -> None:
        super().__init__(now, limits)
        self.peer_keepalive: float | None = None
        self.addresses = addresses

    def attach(self, session: "MessageSession") -> None:
        """Use an open session: §5.3.1."""
        self.settle()
        super().attach(session)  # §5.3.1 [control-flow-first] [connect-on-control]

    def send_command(self, command: Command, stream_id: int = 0) -> None:
        """Send a command; one that ends a stream goes after its media: §5.2."""
        if command.name in _ENDINGS:  # §5.2 [only-when-needed]
            self.synchronize()
        super().send_command(command, stream_id)

    def send_media(self, type_id: int, timestamp: int, stream_id: int, payload: bytes) -> None:
        """Publish media, abandoned when older than `lifetimes` allows: §5.1.1 [abandons]."""
        self.send_live(type_id, timestamp, stream_id, payload)

    def accepts(self, metadata: FlowMetadata, flow: "ReceivingFlow") -> bool:
        """Accept a flow that returns to our control flow: §5.3.2 [canonical-is-first]."""
        return flow.associated is not None and super().accepts(metadata, flow)

    def on_accepted(self, answer: Command) -> None:
        """Tell the server our other addresses: §5.3.3."""
        information = answer.args[0] if answer.args else None
        encoding = information.get("objectEncoding") if isinstance(information, dict) else None
        # §5.3.3 [type-by-encoding]
        type_id = MessageType.COMMAND_AMF3 if encoding == 3.0 else MessageType.COMMAND
        # §5.3.3 [after-connect] [format-zero]
        self._send(peer_info(self.addresses()).message(0, type_id=type_id))

    def _on_keepalive(self, timers: SetKeepaliveTimers) -> None:
        """Look as often as the server says, within reason: §5.3.4 [client-obeys]."""
        if self.session is not None:
            self.session.keepalive.interval = keepalive_period(timers.server_period)
        self.peer_keepalive = keepalive_period(timers.peer_period)

    def _close_session(self, now: float) -> None:
        self._look_back("the server takes no more of it")
        super()._close_session(now)


class FlowClient(FlowEnd, Protocol):
    """The client's end of a connection by RTMFP, as the code that opens its session sees it.

    Own design: a `RtmfpClientConnection`, or a relay's.
    """

    target: Target

    @property
    def transport(self) -> ClientFlowTransport:
        """The flows that carry its messages: §5.3.1."""


class RtmfpClientConnection(NetClient):
    """One connection to a server by RTMFP: §5.3.1."""

    transport: ClientFlowTransport

    def __init__(
        self,
        target: Target,
        now: float,
        *,
        args: Sequence[Value] = (),
        properties: dict[str, Value] | None = None,
        limits: "ConnectionLimits" = DEFAULT_LIMITS,
        addresses: Callable[[], Iterable[Address]] = tuple,
    ) -> None:
        super().__init__(ClientFlowTransport(now, limits, addresses), target, args, properties)
