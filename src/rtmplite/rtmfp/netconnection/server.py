"""The server's side of a NetConnection over RTMFP.

Implements RFC 7425 §5.3.  What commands mean is in `rtmplite.rtmp.netconnection`, so applications
see no difference; here is what only RTMFP has.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from rtmplite.rtmfp.netconnection.connection import FlowTransport
from rtmplite.rtmfp.netconnection.messages import (
    RELAY_COMMAND,
    SET_PEER_INFO,
    Address,
    SetKeepaliveTimers,
    is_behind_nat,
    parse_peer_info,
)
from rtmplite.rtmp.netconnection import DEFAULT_LIMITS, NetConnection, State
from rtmplite.rtmp.wire.command import Command

if TYPE_CHECKING:
    from rtmplite.live.streams import Registry
    from rtmplite.rtmp.message_transport import ConnectionLimits
    from rtmplite.rtmp.netconnection import Application

# Own design, for §5.3.4 [server-chooses], in milliseconds: address translators forget a client that
# is silent for half a minute; other clients are asked only to notice that they have gone.
BEHIND_NAT: Final = SetKeepaliveTimers(20_000, 20_000)
IN_THE_OPEN: Final = SetKeepaliveTimers(60_000, 60_000)


class PeerRelayService(Protocol):
    """Own design: all a connection knows of `p2p.peer_relay`, for `RELAY_COMMAND`."""

    def on_command(self, asker: "RtmfpServerConnection", command: Command, now: float) -> None:
        """Answer a client that asks for a way to another client through us: RTMP 1.0 §7.2.1.2."""


class RtmfpServerConnection(NetConnection):
    """One client that has opened a session with us: §5.3.2.

    `listed` are the addresses at which it says it can be reached; `is_behind_nat` is whether the
    one that we see is not among them: §5.3.3.  `peer_relays` answers a client that asks for a way
    to another client through us; None if there is no such way.
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
        self.listed: tuple[Address, ...] = ()
        self.is_behind_nat = True
        self.peer_relays: PeerRelayService | None = None

    def on_command(self, command: Command, stream_id: int, now: float) -> None:
        """Obey the commands of RTMFP alone, and those of every server: §5.3.3, RTMP 1.0 §7.2.1."""
        if command.name == SET_PEER_INFO and stream_id == 0:
            self._on_peer_info(command)
        elif command.name == RELAY_COMMAND and self.peer_relays and self.state is State.CONNECTED:
            self.peer_relays.on_command(self, command, now)
        else:
            super().on_command(command, stream_id, now)

    def _on_peer_info(self, command: Command) -> None:
        """Note where else the client is, and say how often to look: §5.3.3, §5.3.4."""
        self.listed = parse_peer_info(command)
        # §5.3.3 [nat-if-unlisted]
        self.is_behind_nat = is_behind_nat(self.listed, self.peer_address)
        # §5.3.4 [server-chooses] [more-than-once]
        self.transport.send_control(BEHIND_NAT if self.is_behind_nat else IN_THE_OPEN)
