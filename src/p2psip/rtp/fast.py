"""The RTP header as plain numbers, as the media path reads every packet.

Implements RFC 3550 §5.1, a second time and without an object, which would cost more than the rest
of the work on a packet; a property test holds it and `packet.RtpPacket` equal.

    >>> header = pack_fixed(VERSION_2, 0x80 | 0, 7, 160, 0xCAFE)  # marker, payload type 0
    >>> unpack(header + b"sound")
    (0, True, 7, 160, 51966, 12, 17)
"""

from struct import Struct
from typing import Final

Header = tuple[int, bool, int, int, int, int, int]
"""Payload type, marker, sequence, timestamp, SSRC, payload offset, payload end: §5.1."""

VERSION_2: Final = 0x80  # the first octet of a header with nothing special about it: §5.1

# The five words of the fixed header: first octet, marker and payload type, sequence number,
# timestamp, SSRC.
pack_fixed: Final = Struct("!BBHII").pack
unpack_fixed: Final = Struct("!BBHII").unpack_from

_unpack_extension = Struct("!2xH").unpack_from
_unpack_profile = Struct("!HH").unpack_from
ONE_BYTE: Final = 0xBEDE  # Source: RFC 8285 §4.2
STOP: Final = 15  # an identifier. Source: RFC 8285 §4.2


def unpack(data: bytes | memoryview) -> Header | None:
    """Read the header of one datagram: §5.1; None if it is not RTP, by the checks of §A.1.

    The payload is `data[offset:end]`, CSRCs, extension and padding being outside of it.
    """
    if len(data) < 12:
        return None
    first, second, sequence, timestamp, ssrc = unpack_fixed(data)
    if first == VERSION_2:
        return second & 0x7F, second > 0x7F, sequence, timestamp, ssrc, 12, len(data)
    if first >> 6 != 2:
        return None
    start, end = 12 + 4 * (first & 0x0F), len(data)
    if first & 0x10:  # RFC 3551 §2 [extension-is-expected]
        if start + 4 > end:
            return None
        start += 4 + 4 * _unpack_extension(data, start)[0]  # RFC 3551 §2 [extension-is-skipped]
    if first & 0x20:
        padding = data[-1]
        if not padding:
            return None
        end -= padding
    if start > end:
        return None
    return second & 0x7F, second > 0x7F, sequence, timestamp, ssrc, start, end


def one_byte_element(data: bytes, identifier: int) -> bytes:
    """Give the data of an element of a packet's header extension: RFC 8285 §4.2; b"" without it."""
    if len(data) < 16 or not data[0] & 0x10:
        return b""
    at = 16 + 4 * (data[0] & 0x0F)
    profile, words = _unpack_profile(data, at - 4) if len(data) >= at else (0, 0)
    end = min(at + 4 * words, len(data))
    if profile != ONE_BYTE:  # RFC 8285 §4.2 [bede-marks-it]
        return b""
    while at < end:
        head = data[at]  # RFC 8285 §4.2 [element-has-id-and-length]
        at += 1
        if not head:  # padding
            continue
        if head >> 4 == STOP:  # RFC 8285 §4.2 [fifteen-ends-it]
            break
        if head >> 4 == identifier:
            return data[at : min(at + (head & 0x0F) + 1, end)]
        at += (head & 0x0F) + 1
    return b""


def looks_like_rtcp(data: bytes | memoryview) -> bool:
    """Tell RTCP from RTP on one port by the second octet: RFC 5761 §4."""
    return len(data) >= 4 and data[0] >> 6 == 2 and 192 <= data[1] <= 223
