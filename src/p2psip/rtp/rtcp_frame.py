"""The frame of all RTCP packets: one word of header, and several packets in a datagram.

Implements RFC 3550 §6.1.
"""

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Final, Self

from p2psip.errors import LocalError, RemoteError

VERSION: Final = 2  # Source: §6.4.1
SR, RR, SDES, BYE, APP = 200, 201, 202, 203, 204  # Source: §12.1, the packet types
RTPFB, PSFB = 205, 206  # Source: RFC 4585 §6.1
XR: Final = 207  # Source: RFC 3611 §2
_HEADER: Final = struct.Struct("!BBH")


def write(packet_type: int, count: int, body: bytes) -> bytes:
    """Write one packet, `count` in its header's five bits, `body` in whole words: §6.1."""
    if count >> 5:
        raise LocalError("an RTCP packet holds up to 31 of anything")
    # §6.1 [whole-words]
    return _HEADER.pack(VERSION << 6 | count, packet_type, len(body) // 4) + body


def read_all(data: bytes | memoryview) -> Iterator[tuple[int, int, bytes]]:
    """Walk a datagram; yield packet type, count and body, padding removed: §6.1.

    Raises RemoteError on the checks of §A.2: version, lengths that add up to the whole,
    padding on the last packet only.  The caller checks that the first is an SR or RR.
    """
    at, end = 0, len(data)
    if end == 0:
        raise RemoteError("empty RTCP datagram")
    while at < end:
        if at + _HEADER.size > end:
            raise RemoteError("RTCP header beyond the end")
        first, packet_type, words = _HEADER.unpack_from(data, at)
        start, at = at + 4, at + 4 + 4 * words
        if first >> 6 != VERSION:
            raise RemoteError(f"RTCP version {first >> 6}")
        if at > end:  # §A.2 [compound-checks]
            raise RemoteError("RTCP packet beyond the end")
        body = bytes(data[start:at])
        if first & 0x20:
            # libwebrtc (Firefox, Chromium) fills the last word of transport-wide feedback with
            # one to three octets of padding, where others have whole words.
            unit = 1 if packet_type == RTPFB else 4
            # §6.4.1 [padding-at-the-end] [padding-bit-at-the-end]
            if at != end or not body or not 0 < body[-1] <= len(body) or body[-1] % unit:
                raise RemoteError("RTCP padding of a wrong size, or not at the end")
            body = body[: -body[-1]]
        yield packet_type, first & 0x1F, body


def read_one(data: bytes | memoryview, packet_type: int) -> tuple[int, bytes]:
    """Read a datagram that is one packet of that type; answer count and body: §6.1."""
    packets = list(read_all(data))
    if len(packets) != 1 or packets[0][0] != packet_type:
        raise RemoteError(f"not one RTCP packet of type {packet_type}")
    return packets[0][1:]


def unpack_from(layout: struct.Struct, body: bytes, at: int = 0) -> tuple[int, ...]:
    """Unpack numbers, or raise RemoteError where the packet is too short for them: §A.2."""
    if at + layout.size > len(body):
        raise RemoteError("RTCP packet too short for what it says it holds")
    return layout.unpack_from(body, at)


class RtcpForm(ABC):
    """One form of packet: §6.1.  `packet_type` is what the header says of it."""

    __slots__ = ()
    packet_type: ClassVar[int]

    @classmethod
    def parse(cls, data: bytes | memoryview) -> Self:
        """Read a datagram that is one such packet, or raise RemoteError: §6.1."""
        return cls._read(*read_one(data, cls.packet_type))

    @classmethod
    @abstractmethod
    def _read(cls, count: int, body: bytes) -> Self:
        """Read the five bits of the header, and what follows it."""
