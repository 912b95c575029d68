"""The flow of a message: where it came from, and where its answer goes.

Implements RFC 3261 §18, as much of it as the layers above the sockets need to know.
"""

from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Final

LOCAL: Final = "LOCAL"  # our own stack, reached without a socket
RELIABLE: Final = frozenset({"TCP", "TLS", "WS", "WSS", LOCAL})
SECURE: Final = frozenset({"TLS", "WSS", LOCAL})
WEB: Final = frozenset({"WS", "WSS"})  # connections that clients alone can open: RFC 7118 §3

HostPort = tuple[str, int]
_REST: Final = (1 << 64) - 1  # of an IPv6 address, behind the prefix of one customer


def rate_limit_key(address: str) -> str:
    """The key by which limits count the host behind a numeric address.

    Own design: for IPv6 it is the /64, since whoever has one of its addresses usually has all.

        >>> hosts = "192.0.2.7", "::ffff:192.0.2.7", "2001:db8:1:2:3:4:5:6%eth0"
        >>> tuple(map(rate_limit_key, hosts))
        ('192.0.2.7', '192.0.2.7', '2001:db8:1:2::/64')
    """
    if ":" not in address:
        return address
    ip = IPv6Address(address.partition("%")[0])
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return f"{IPv6Address(int(ip) & ~_REST)}/64"


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Flow:
    """A path for messages: transport and far end, as §18.2.2 needs them to answer.

    `transport` is "UDP", "TCP", "TLS", "WS", "WSS" or "LOCAL"; `remote` and `local` are (IP
    address, port).  `domain` is the name that a server's certificate must be good for (RFC 3263
    §4.1), and is empty without TLS; `called` is the name by which the far end has called us, if our
    certificate has it.  The edge keeps one connection for each `peer`, and opens it
    when it is absent.
    """

    transport: str
    remote: HostPort
    local: HostPort | None = None
    domain: str = ""
    called: str = ""

    def __init__(
        self,
        transport: str,
        remote: HostPort,
        local: HostPort | None = None,
        domain: str = "",
        called: str = "",
    ) -> None:
        object.__setattr__(self, "transport", transport)
        object.__setattr__(self, "remote", remote)
        object.__setattr__(self, "local", local)
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "called", called)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Flow)
            and self.remote == other.remote
            and self.transport == other.transport
            and self.local == other.local
            and self.domain == other.domain
        )

    def __hash__(self) -> int:
        return hash(self.remote)

    @property
    def reliable(self) -> bool:
        """Whether the transport is reliable, so that nothing needs repeating (§17)."""
        # RFC 7118 §5 [reliable-timers]
        return self.transport in RELIABLE

    @property
    def peer(self) -> tuple[str, HostPort, str]:
        """The far end and its proven name; flows that agree in it share a connection (§18.1.1)."""
        return self.transport, self.remote, self.domain

    @property
    def secure(self) -> bool:
        """Whether nobody on the way can read it (§26.2.2)."""
        return self.transport in SECURE
