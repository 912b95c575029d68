"""The key by which limits count a host.

Own design: a host with one IPv6 address usually has 2**64 of them, so its /64 is counted.
"""

from ipaddress import IPv6Address
from typing import Final

_REST: Final = (1 << 64) - 1  # the bits of an address below the prefix of one customer


def rate_limit_key(address: str) -> str:
    """Give the key of a numeric address: the address itself, or the /64 of an IPv6 address.

    An IPv4 address and its IPv4-mapped IPv6 form have the same key.

        >>> hosts = "192.0.2.7", "::ffff:192.0.2.7", "2001:db8:1:2:3:4:5:6"
        >>> tuple(map(rate_limit_key, hosts))
        ('192.0.2.7', '192.0.2.7', '2001:db8:1:2::/64')
    """
    if ":" not in address:
        return address
    ip = IPv6Address(address.partition("%")[0])
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return f"{IPv6Address(int(ip) & ~_REST)}/64"
