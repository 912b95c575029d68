"""Internet socket addresses in introductions and redirections, and what we are told of them.

Implements RFC 7016 §2.1.5.

    >>> SocketAddress("192.0.2.7", 1935, Origin.OBSERVED).encode().hex(" ")
    '02 c0 00 02 07 07 8f'
"""

from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from rtmplite.errors import LocalError, RemoteError

Address = tuple[str, int]
"""Where datagrams come from and go to: a numeric IP address and a port."""

_INET6: Final = 0x80  # bit IP6 of the first byte: §2.1.5
_ORIGIN: Final = 0x03  # bits ORI
_BROADCAST: Final = ip_address("255.255.255.255")


class Origin(IntEnum):
    """The origin of the knowledge of an address: §2.1.5 [origins]."""

    UNKNOWN = 0
    LOCAL = 1  # the endpoint has reported an interface of its own
    OBSERVED = 2  # its packets were seen to come from there: STUN's reflexive address
    RELAY = 3  # a Redirector or Forwarder that can introduce us


@dataclass(frozen=True, slots=True)
class SocketAddress:
    """A numeric IPv4 or IPv6 address, a port, and their origin: §2.1.5."""

    ip: str
    port: int
    origin: Origin = Origin.UNKNOWN

    def encode(self) -> bytes:
        """Write 7 bytes for IPv4, 19 for IPv6, else LocalError: §2.1.5 [address-layout]."""
        try:
            address = ip_address(self.ip)
            port = self.port.to_bytes(2, "big")
        except (ValueError, OverflowError) as error:
            raise LocalError(f"no socket address: {self.ip} port {self.port}") from error
        first = self.origin | (_INET6 if address.version == 6 else 0)
        return bytes((first,)) + address.packed + port


def parse_address(data: bytes | memoryview, at: int = 0) -> tuple[SocketAddress, int]:
    """Read the address at `at`, and the index after it; RemoteError if cut off: §2.1.5, §2."""
    first = bytes(data[at : at + 1])
    length = 16 if first and first[0] & _INET6 else 4
    end = at + 1 + length
    packed, port = bytes(data[at + 1 : end]), bytes(data[end : end + 2])
    if len(port) < 2:  # §2 [truncation-noticed]
        raise RemoteError("a socket address is cut off")
    ip = IPv6Address(packed) if length == 16 else IPv4Address(packed)
    origin = Origin(first[0] & _ORIGIN)  # §2 [reserved-ignored]
    # §2.1.5 [address-layout]
    return SocketAddress(str(ip), int.from_bytes(port, "big"), origin), at + length + 3


def is_sendable(address: Address) -> bool:
    """Whether what we were told is one host, not a network: §5 [resources-bounded]."""
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
