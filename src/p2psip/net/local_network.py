"""The address that peers of the local network reach this machine by, where others need another.

Own design: phones behind the same router mostly cannot use our outside address, since few routers
send a packet back where it came from.  A peer is inside if no router passes its address on to the
internet.  An external address of that kind is meant for peers inside, and nothing is told apart.
"""

import ipaddress
import socket
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from p2psip.sdp.line import is_unspecified

_INSIDE: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "127.0.0.0/8"),
        *("fc00::/7", "fe80::/10", "::1/128"),  # RFC 4193 and RFC 4291
    )
)
_ANY_PORT: Final = 9  # a datagram socket is connected, and nothing sent


class LocalNetwork:
    """Chooses the address for ourselves in SIP and SDP, by peer.

    `listener` is the host that SIP listens on, `beside` the one of the other address family, if
    there is one.  `outside` is the address for peers outside; setting
    `external` changes it.  `relay` is the host of a server that media of peers outside goes by.
    """

    def __init__(
        self, listener: str, external: str | None = None, beside: str | None = None
    ) -> None:
        self._listener, self.external, self._beside = listener, external, beside
        self.relay: str | None = None

    @property
    def outside(self) -> str:
        """The address for peers that are not inside."""
        return self.external or self._listener

    def host_for(self, peers: Collection[str]) -> str:
        """The address for peers at these hosts: the inside one if all of them are inside."""
        if (beside := self.beside(peers)) is not None:
            return beside
        if not self.is_inside(peers):
            return self.outside
        return self.own_address(next(iter(peers))) or self.outside

    def beside(self, peers: Collection[str]) -> str | None:
        """Our address in the family of these peers, where the first listener's is another."""
        if self._beside is None or not peers:
            return None
        is_other = all(is_of_family(peer, self._beside) for peer in peers)
        return self._beside if is_other else None

    def is_inside(self, peers: Collection[str]) -> bool:
        """Whether peers at these hosts are all inside, where that makes a difference."""
        return bool(peers) and all(map(self.own_address, peers))

    def own_address(self, peer: str) -> str | None:
        """Our address in the network of a peer that is inside, None for any other."""
        external = self.external or self.relay
        if external is None or is_inside(external) or not is_inside(peer):
            return None
        return _address_towards(peer) if is_unspecified(self._listener) else self._listener


def is_inside(host: str) -> bool:
    """Whether a host is an address of a local network; a name is not."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return any(address in network for network in _INSIDE)


def is_of_family(host: str, other: str) -> bool:
    """Whether `host` is an address of the same family as the address `other`; a name is not."""
    try:
        return ipaddress.ip_address(host).version == ipaddress.ip_address(other).version
    except ValueError:
        return False


def _address_towards(peer: str) -> str | None:
    """The address that the system sends from to a peer; None if it has no way there."""
    family = socket.AF_INET6 if ":" in peer else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((peer, _ANY_PORT))
        return str(probe.getsockname()[0])
    return None
