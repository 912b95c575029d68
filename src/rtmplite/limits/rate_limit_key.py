"""What counts as one host when something is allowed to each.

Own design: whoever has one address of IPv6 usually has 2**64 of them.
"""

from ipaddress import IPv6Address
from typing import Final

_REST: Final = (1 << 64) - 1  # of an address, below the prefix that is one customer's


def rate_limit_key(address: str) -> str:
    """Give the name of the host with a numeric address: the address, or its /64 of IPv6.

    An IPv4 address is the same one whatever a socket for both families makes of it.  Own design.

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
