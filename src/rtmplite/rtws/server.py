"""The server's side of a NetConnection over RTWebSocket.

Implements Field §"RTWebSocket flows" [as-rtmfp]: commands and messages are those of RTMFP, and so
applications see no difference.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rtmplite.rtmfp.netconnection.connection import FlowTransport
from rtmplite.rtmp.netconnection import DEFAULT_LIMITS, NetConnection

if TYPE_CHECKING:
    from rtmplite.live.streams import Registry
    from rtmplite.rtmp.message_transport import ConnectionLimits
    from rtmplite.rtmp.netconnection import Application


class RtwsServerConnection(NetConnection):
    """One client that has opened a WebSocket: Field §"RTWebSocket flows" [as-rtmfp].

    Attach its session to `transport`.
    """

    transport: FlowTransport

    def __init__(
        self,
        application_for: "Callable[[str], Application | None]",
        registry: "Registry",
        random: Callable[[int], bytes],
        now: float,
        *,
        limits: "ConnectionLimits" = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(FlowTransport(now, limits), application_for, registry, random, now)
