"""What a datagram is, on a port where STUN, DTLS and RTP arrive together.

Implements RFC 7983 §7: the first octet tells.

    >>> [kind_of(bytes((first,))).name for first in (0, 22, 128)]
    ['STUN', 'DTLS', 'RTP']
    >>> kind_of(b"") is kind_of(b"GET /") is None
    True
"""

from enum import Enum
from typing import Final


class DatagramKind(Enum):
    """The protocols of a browser's port, by the first octets of their packets: §7 Figure 3."""

    STUN = range(4)
    DTLS = range(20, 64)
    RTP = range(128, 192)  # and RTCP, or either one encrypted


_KINDS: Final = {octet: kind for kind in DatagramKind for octet in kind.value}


def kind_of(data: bytes) -> DatagramKind | None:
    """The protocol of a datagram, None for one to drop, such as TURN channels and ZRTP: §7."""
    # §7 [others-are-dropped]
    return _KINDS.get(data[0]) if data else None


def is_rtcp(data: bytes) -> bool:
    """Tell RTCP from RTP on one port, also when encrypted: RFC 5761 §4."""
    # RFC 5761 §4 [told-by-the-second-octet]
    return len(data) > 1 and 192 <= data[1] < 224
