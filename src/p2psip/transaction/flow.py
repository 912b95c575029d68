"""Where a message came from, and where its answer goes.

Implements RFC 3261 §18, as much of it as the layers above the sockets need to know.
"""

from dataclasses import dataclass
from typing import Final

LOCAL: Final = "LOCAL"  # our own stack, reached without a socket
RELIABLE: Final = frozenset({"TCP", "TLS", "WS", "WSS", LOCAL})

HostPort = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Flow:
    """A path for messages: transport and far end, as §18.2.2 needs them to answer.

    `transport` is "UDP", "TCP", "TLS" or "LOCAL"; `remote` and `local` are (IP address, port).
    The edge keeps one connection per (transport, remote) and opens it when it is absent.
    """

    transport: str
    remote: HostPort
    local: HostPort | None = None

    @property
    def reliable(self) -> bool:
        """Does the transport deliver by itself, so that nothing needs repeating (§17)?"""
        return self.transport in RELIABLE

    @property
    def peer(self) -> tuple[str, HostPort]:
        """What decides whether two flows share a connection (§18.1.1)."""
        return self.transport, self.remote
