"""A packet of a capture as the rules see it.

Own design: addresses are texts, `host:port`, since nothing is ever sent to them.
"""

from typing import NamedTuple


class TcpSegment(NamedTuple):
    """What the header of TCP says of a packet.  Own design."""

    sequence: int
    is_syn: bool
    is_end: bool  # FIN or RST


class SeenPacket(NamedTuple):
    """One packet: its number from 1 on, and its time in seconds since the first one.  Own design.

    `data` is what UDP or TCP carries; `segment` is None for UDP.
    """

    number: int
    time: float
    source: str
    target: str
    data: bytes
    segment: TcpSegment | None = None


def host_of(address: str) -> str:
    """Give the host alone: `[::1]:5060` is at `::1`.

    >>> host_of("[::1]:5060"), host_of("192.0.2.1:5060")
    ('::1', '192.0.2.1')
    """
    return address.rpartition(":")[0].strip("[]")


def written(host: str, port: int) -> str:
    """Write an address as packets have it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
