"""Addresses that peers tell us, and that we tell peers.

Implements RFC 7016 §2.1.5.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from rtmplite.rtmfp.wire.address import Address, Origin, SocketAddress

_BROADCAST: Final = ip_address("255.255.255.255")


def is_sendable(address: Address) -> bool:
    """Tell whether an address that we were told leads to one host: §5 [resources-bounded].

    Own design: else a stranger could make us disturb a whole network.
    """
    ip = _plain(address[0])
    is_many = ip.is_multicast or ip == _BROADCAST
    return address[1] != 0 and not is_many and not ip.is_unspecified


def told(address: SocketAddress) -> Address:
    """Give an address in the form of sockets, IPv4 not as IPv6: §2.1.5."""
    return str(_plain(address.ip)), address.port  # §5 [resources-bounded]


def _plain(address: str) -> IPv4Address | IPv6Address:
    ip = ip_address(address)
    return ip.ipv4_mapped or ip if isinstance(ip, IPv6Address) else ip


def observed(address: Address) -> SocketAddress:
    """Give the address of a packet as it is told to others: §2.1.5 [origins]."""
    return SocketAddress(address[0], address[1], Origin.OBSERVED)
