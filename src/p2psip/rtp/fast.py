"""The RTP header as numbers only: what the media path uses for every packet.

Implements RFC 3550 §5.1, a second time and without an object: a frozen dataclass costs
more than the rest of the work on a packet.  `packet.RtpPacket` is the readable form, and
a property test proves that both accept the same datagrams and see the same fields.

    >>> header = HeaderTemplate(0, ssrc=0xCAFE).pack(7, 160, marker=True)
    >>> unpack(header + b"sound")
    (0, True, 7, 160, 51966, 12, 17)
"""

from struct import Struct
from typing import Final

Header = tuple[int, bool, int, int, int, int, int]
"""Payload type, marker, sequence, timestamp, SSRC, payload offset, payload end: §5.1."""

_FIXED: Final = Struct("!BBHII")
_unpack_fixed = _FIXED.unpack_from
_unpack_extension = Struct("!2xH").unpack_from


def unpack(data: bytes | memoryview) -> Header | None:
    """Read the header of one datagram: §5.1; None if it is not RTP, by the checks of §A.1.

    The payload is `data[offset:end]`, CSRCs, extension and padding being outside of it.
    """
    if len(data) < 12:
        return None
    first, second, sequence, timestamp, ssrc = _unpack_fixed(data)
    if first == 0x80:  # version 2 and nothing else, as nearly every packet is
        return second & 0x7F, second > 0x7F, sequence, timestamp, ssrc, 12, len(data)
    if first >> 6 != 2:
        return None
    start, end = 12 + 4 * (first & 0x0F), len(data)
    if first & 0x10:
        if start + 4 > end:
            return None
        start += 4 + 4 * _unpack_extension(data, start)[0]
    if first & 0x20:
        padding = data[-1]
        if not padding:
            return None
        end -= padding
    if start > end:
        return None
    return second & 0x7F, second > 0x7F, sequence, timestamp, ssrc, start, end


def looks_like_rtcp(data: bytes | memoryview) -> bool:
    """Tell RTCP from RTP on one port by the second octet: RFC 5761 §4."""
    return len(data) >= 4 and data[0] >> 6 == 2 and 192 <= data[1] <= 223


class HeaderTemplate:
    """The fixed header of one stream, all but three fields filled in: §5.1."""

    __slots__ = ("_marked", "_pack", "_plain", "_ssrc")

    def __init__(self, payload_type: int, ssrc: int) -> None:
        self._plain, self._marked, self._ssrc = payload_type, payload_type | 0x80, ssrc
        self._pack = _FIXED.pack

    def pack(self, sequence: int, timestamp: int, marker: bool = False) -> bytes:
        """Write 12 octets; `sequence` and `timestamp` are taken modulo their width: §5.1."""
        return self._pack(
            0x80,
            self._marked if marker else self._plain,
            sequence & 0xFFFF,
            timestamp & 0xFFFFFFFF,
            self._ssrc,
        )
