"""The usual packets of a line, counted by their clear headers: nothing is decrypted.

Implements RFC 3550 §A.8 for the jitter.

Own design: a packet is usual if its number follows the last one, and its line has shown something
already.  `_usual.c` does the same where it is compiled, since a thousand viewers get more than a
hundred thousand of these packets a second.
"""

from struct import Struct
from typing import TYPE_CHECKING, Final

HEAD: Final = 12  # octets: the fixed header of RTP
RTP: Final = 128  # the least first octet: RFC 7983 §7
TIME_AT: Final = 16  # octets of a control message before its time
CONTROL: Final = 32  # octets of it
MESSAGE: Final = 64  # octets of a struct mmsghdr of Linux ...
OCTETS_AT: Final = 56  # ... and where it tells how long the datagram is
_CYCLE, _HALF = 1 << 32, 1 << 31  # of timestamps
_HEADS: Final = Struct("!BBHII")
_OCTETS: Final = Struct(f"={OCTETS_AT}xI{MESSAGE - OCTETS_AT - 4}x")
_TIMES: Final = Struct(f"={TIME_AT}xqq")


class PlainLineCount:
    """The counts of a line; `next` is the number that its next packet is to have.

    Times are in s and `jitter` in ticks of its `rate`; `run` and `markers` are counted since they
    were last set to 0.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.ssrc = self.next = -1
        self.timestamp = self.ticks = self.run = self.markers = 0
        self.jitter = self.last = 0.0
        self.is_new = True

    def heard(self, second: int, sequence: int, timestamp: int, ssrc: int, at: float, /) -> bool:
        """Count a packet, if it follows the last; its second octet has marker and payload type."""
        if sequence != self.next or ssrc != self.ssrc:
            return False
        self.next = sequence + 1 & 0xFFFF
        self.run += 1
        if second > 127:
            self.markers += 1
        ticks = (timestamp - self.timestamp + _HALF) % _CYCLE - _HALF
        self.ticks += ticks
        self.timestamp = timestamp
        gap = (at - self.last) * self.rate - ticks
        # RFC 3550 §A.8: gaps in arrival and in timestamps
        self.jitter += ((gap if gap > 0 else -gap) - self.jitter) / 16
        self.last = at
        return True


def plain_pass_usual(
    heads: bytearray,
    messages: bytearray,
    times: bytearray,
    start: int,
    count: int,
    lines: "list[LineCount | None]",
    offset: float,
    /,
) -> tuple[int, int, float]:
    """Count packets from `start` on, up to the first that is not usual.

    Returns the place of that one, and the octets and the last time of the usual ones.
    `lines` are found by the second octet of a packet; `offset` makes our time of the system's.
    """
    size, last, place = 0, 0.0, start
    arrived = zip(
        _HEADS.iter_unpack(memoryview(heads)[start * HEAD : count * HEAD]),
        _OCTETS.iter_unpack(memoryview(messages)[start * MESSAGE : count * MESSAGE]),
        _TIMES.iter_unpack(memoryview(times)[start * CONTROL : count * CONTROL]),
        strict=True,
    )
    for (first, second, *header), (octets,), (seconds, nanoseconds) in arrived:
        line = lines[second]
        if line is None or first < RTP or octets < HEAD or line.is_new:
            break
        at = seconds + nanoseconds * 1e-9 + offset
        if not line.heard(second, *header, at):
            break
        size += octets
        last = at
        place += 1
    return place, size, last


if TYPE_CHECKING:
    LineCount = PlainLineCount
    pass_usual = plain_pass_usual
else:
    try:
        from rtclab.load.clients._usual import LineCount, pass_usual
    except ImportError:  # it is not compiled, or SIPRTMP_PURE is set
        LineCount, pass_usual = PlainLineCount, plain_pass_usual
