"""The hosts that notifications may be posted to, by an operator's list of names and networks.

Implements Resources §13.2.

Own design: a user who chooses a URL may try to have the gateway ask services that only the gateway
reaches.  So the list is empty at first, a name that is on it counts for public addresses alone, and
an address that is not public needs a network of the list that has no public one.  What is judged
is the address that is connected to, since a name may have another one a moment later.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network

WEB_PORTS: Final = (80, 443)  # of an entry without a port
_ENTRY: Final = re.compile(r"(?:\[([0-9a-f:.]+(?:/\d+)?)\]|([^\[\]:]+))(?::(\d{1,5}))?", re.I)
_NAME: Final = re.compile(r"(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*", re.I)
# Addresses of one site, of examples, of many hosts, or that stand for other ones.
_NOT_PUBLIC: Final = tuple(
    ip_network(each)
    for each in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16"),
        *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3"),
        *("::/8", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32"),
        *("2002::/16", "fc00::/7", "fe80::/10", "ff00::/8"),
    )
)


@dataclass(frozen=True, slots=True)
class ToldHost:
    """One entry: a name of a host or a network, and the ports of it."""

    name: str
    network: IpNetwork | None
    ports: tuple[int, ...]

    @classmethod
    def parse(cls, text: str, usual: tuple[int, ...] = WEB_PORTS) -> "ToldHost":
        """Read `HOST[:PORT]`, `*.DOMAIN[:PORT]`, or `NETWORK[:PORT]`.  Raises ValueError.

        >>> ToldHost.parse("crm.example:8443").ports, ToldHost.parse("[fd00::/8]").network
        ((8443,), IPv6Network('fd00::/8'))
        """
        found = _ENTRY.fullmatch(text if text.count(":") < 2 or "[" in text else f"[{text}]")
        if found is None or not 0 < int(found[3] or 80) < 1 << 16:
            raise ValueError(
                f"{text!r}: HOST, *.DOMAIN or NETWORK/BITS is wanted, or one with :PORT"
            )
        ports = (int(found[3]),) if found[3] else usual
        place = found[1] or found[2]
        try:
            return cls("", ip_network(place), ports)
        except ValueError as error:
            is_name = found[2] and "/" not in place and not re.fullmatch(r"[\d.]+", place)
            if not (is_name and _NAME.fullmatch(place)):
                raise ValueError(f"{text!r}: {error}") from None
        return cls(place.lower(), None, ports)

    def has_name(self, host: str) -> bool:
        """Whether a host has the name of this entry, or one below it."""
        name = self.name
        return host.endswith(name[1:]) if name.startswith("*.") else bool(name) and host == name

    def has_address(self, address: IpAddress) -> bool:
        """Whether an address is in the network; one that is not public needs such a network."""
        network = self.network
        if network is None or address not in network:
            return False
        return is_public(address) or any(_is_within(network, each) for each in _NOT_PUBLIC)


class ToldHosts:
    """All entries of the list; those without a port have the `usual` ones."""

    def __init__(self, entries: Iterable[str], usual: tuple[int, ...] = WEB_PORTS) -> None:
        self._entries = tuple(ToldHost.parse(each, usual) for each in entries)

    def __bool__(self) -> bool:
        return bool(self._entries)

    def may_have(self, host: str, port: int) -> bool:
        """Whether a URL with this host could be told: its address is judged when it is known."""
        host = _plain(host)
        address = _address(host)
        return any(
            port in each.ports
            and (
                each.has_name(host)
                or (each.network is not None and (address is None or each.has_address(address)))
            )
            for each in self._entries
        )

    def admits(self, host: str, address: str, port: int) -> bool:
        """Whether this address, which the host has, may be connected to."""
        found = _address(address)
        if found is None:
            return False
        # Resources §13.2 [public-unless-listed]
        return any(
            port in each.ports
            and (each.has_address(found) or (each.has_name(_plain(host)) and is_public(found)))
            for each in self._entries
        )


def is_public(address: IpAddress) -> bool:
    """Whether an address is that of one host of the Internet.

    >>> is_public(ip_address("127.0.0.1")), is_public(ip_address("::ffff:127.0.0.1"))
    (False, False)
    """
    return address.is_global and not any(address in each for each in _NOT_PUBLIC)


def _plain(host: str) -> str:
    return host.lower().rstrip(".")


def _address(text: str) -> IpAddress | None:
    """Read an address as sockets write it; one of IPv4 that is written as IPv6 is its own."""
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found


def _is_within(network: IpNetwork, other: IpNetwork) -> bool:
    if isinstance(network, IPv4Network):
        return isinstance(other, IPv4Network) and network.subnet_of(other)
    return isinstance(other, IPv6Network) and network.subnet_of(other)
