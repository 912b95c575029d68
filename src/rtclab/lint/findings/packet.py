"""A packet of a capture as the rules see it.

Own design: addresses are texts, `host:port`, since nothing is ever sent to them.
"""

from typing import Final, NamedTuple

WEBSOCKET: Final = "WS"


class TcpSegment(NamedTuple):
    """What the header of TCP says of a packet.  Own design."""

    sequence: int
    is_syn: bool
    is_end: bool  # FIN or RST


class SeenPacket(NamedTuple):
    """One packet: its number from 1 on, and its time in seconds since the first one.  Own design.

    `data` is what UDP or TCP carries; `segment` is None for UDP.  `carrier` is what else was around
    the data: "" for nothing, `WEBSOCKET`, or the client and the server of a TURN relay.
    """

    number: int
    time: float
    source: str
    target: str
    data: bytes
    segment: TcpSegment | None = None
    carrier: str = ""
