"""IP addresses of every shape, as text: any octets, and zeros in a row.

Own design: Hypothesis draws large integers that are mostly small, but octets evenly.
"""

from functools import cache
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

_ANY: Final = range(256)
_FOUR: Final = st.binary(min_size=4, max_size=4)
_SIXTEEN: Final = st.binary(min_size=1, max_size=16)


def _with_first(octets: bytes, first: range) -> bytes:
    return bytes((first[octets[0] % len(first)],)) + octets[1:]


@cache
@st.composite
def ipv4(draw: DrawFn, first: range = _ANY) -> str:
    """IPv4 addresses whose first octet is one of these."""
    return str(IPv4Address(_with_first(draw(_FOUR), first)))


@cache
@st.composite
def ipv6(draw: DrawFn, first: range = _ANY) -> str:
    """IPv6 addresses whose first octet is one of these: some octets, zeros, some octets."""
    octets = _with_first(draw(_SIXTEEN), first)
    middle = (len(octets) + 1) // 2
    return str(IPv6Address(octets[:middle] + bytes(16 - len(octets)) + octets[middle:]))
