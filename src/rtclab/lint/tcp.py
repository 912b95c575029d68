"""TCP streams of a capture, put together as the packets come.

Own design: unlike `rtclab.explain.capture`, which puts a stream together at the end, this gives
each piece with the packet that completes it, since rules need to know the time.

    >>> way = TcpWay()
    >>> def packet(number, sequence, data):
    ...     return SeenPacket(number, 0.0, "a:1", "b:2", data, TcpSegment(sequence, False, False))
    >>> parts = [packet(1, 10, b"he"), packet(2, 14, b"o"), packet(3, 11, b"ell")]
    >>> [(each.number, data) for part in parts for each, data in way.feed(part)]
    [(1, b'he'), (3, b'll'), (2, b'o')]
"""

from collections.abc import Iterator
from typing import Final

from rtclab.lint.findings.packet import SeenPacket, TcpSegment

_HALF: Final = 1 << 31
MOST_WAITING: Final = 256  # segments ahead of a gap; then what is missing won't come


class TcpWay:
    """One direction of a connection; `is_broken` after a gap that is never filled."""

    def __init__(self) -> None:
        self.is_broken = False
        self.has_start = False  # the SYN was seen, so that nothing is before the first octet
        self._next: int | None = None
        self._first: int | None = None  # the number behind that of the SYN
        self._waiting: dict[int, tuple[SeenPacket, bytes]] = {}

    @property
    def first_waiting(self) -> SeenPacket | None:
        """A packet that waits behind a gap."""
        return next((packet for packet, _ in self._waiting.values()), None)

    def is_over(self, segment: TcpSegment) -> bool:
        """Whether a segment begins another connection of the same ports, and not this one again."""
        is_known = self._next is not None
        return segment.is_syn and is_known and _behind(segment) != self._first

    def feed(self, packet: SeenPacket) -> Iterator[tuple[SeenPacket, bytes]]:
        """Take a packet; yield what can be read now, with the packets that brought it."""
        segment = packet.segment
        assert segment is not None
        at = segment.sequence
        if segment.is_syn:
            at = _behind(segment)  # where data may follow at once, RFC 7413
            if at != self._first:
                self._next = self._first = at
                self.has_start = True
        if not packet.data or self.is_broken:
            return
        if self._next is None:
            self._next = at
        if at not in self._waiting or len(self._waiting[at][1]) < len(packet.data):
            self._waiting[at] = packet, packet.data
        yield from self._ready()
        self.is_broken = len(self._waiting) > MOST_WAITING

    def _ready(self) -> Iterator[tuple[SeenPacket, bytes]]:
        found = True
        while found:
            found = False
            for at, (packet, data) in list(self._waiting.items()):
                assert self._next is not None
                ahead = (at - self._next + _HALF) % (1 << 32) - _HALF
                if ahead > 0:
                    continue
                del self._waiting[at]
                found = True
                if fresh := data[-ahead:]:
                    self._next = (self._next + len(fresh)) % (1 << 32)
                    yield packet, fresh


def _behind(segment: TcpSegment) -> int:
    """The number behind that of a SYN, which counts as an octet: RFC 9293."""
    return (segment.sequence + 1) % (1 << 32)
