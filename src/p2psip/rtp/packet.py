"""The RTP packet: a header of twelve octets or more, and a payload.

Implements RFC 3550 §5.1, with the header extension of §5.3.1.

    >>> packet = RtpPacket(0, sequence=7, timestamp=160, ssrc=0xCAFE, payload=b"sound")
    >>> bytes(packet).hex(" ", 4)
    '80 00000700 0000a000 00cafe73 6f756e64'
    >>> RtpPacket.parse(bytes(packet)) == packet
    True
"""

import struct
from dataclasses import dataclass
from typing import Final, Self

from p2psip.errors import LocalError, RemoteError

VERSION: Final = 2  # Source: §5.1
MAX_CSRCS: Final = 15  # Source: §5.1, the four bits of CC
PADDING, EXTENSION, MARKER = 0x20, 0x10, 0x80  # bits P and X of octet 0, bit M of octet 1
_FIXED: Final = struct.Struct("!BBHII")
_EXTENSION: Final = struct.Struct("!HH")
_LIMITS: Final = {"payload_type": 7, "sequence": 16, "timestamp": 32, "ssrc": 32}  # in bits


@dataclass(frozen=True, slots=True)
class Extension:
    """The one header extension a packet may have: §5.3.1.

    `profile` is the 16-bit identifier (0xBEDE for RFC 8285's one-byte form) and `data`
    the words after the length, a multiple of 4 octets; LocalError for anything else.
    """

    profile: int
    data: bytes = b""

    def __post_init__(self) -> None:
        if self.profile >> 16 or len(self.data) % 4 or len(self.data) > 0xFFFF * 4:
            raise LocalError("an extension has a 16-bit profile and up to 65535 whole words")

    def __bytes__(self) -> bytes:
        """Write the extension as it follows the CSRC list: §5.3.1."""
        return _EXTENSION.pack(self.profile, len(self.data) // 4) + self.data


@dataclass(frozen=True, slots=True)
class RtpPacket:
    """One RTP data packet, field by field: §5.1.

    `sequence` is 16 bits, `timestamp` (in ticks of the format's clock), `ssrc` and each
    of `csrcs` 32.  `padding` counts all padding octets, the one with the count included;
    0 means that the P bit is clear.  LocalError if a field does not fit its bits.
    """

    payload_type: int
    sequence: int
    timestamp: int
    ssrc: int
    payload: bytes
    marker: bool = False
    csrcs: tuple[int, ...] = ()
    extension: Extension | None = None
    padding: int = 0

    def __post_init__(self) -> None:
        for name, bits in _LIMITS.items():
            if getattr(self, name) >> bits:
                raise LocalError(f"{name} does not fit {bits} bits")
        if len(self.csrcs) > MAX_CSRCS or any(csrc >> 32 for csrc in self.csrcs):
            raise LocalError(f"at most {MAX_CSRCS} CSRCs of 32 bits each")
        if self.padding >> 8:
            raise LocalError("the padding count is one octet")

    @classmethod
    def parse(cls, data: bytes | memoryview) -> Self:
        """Read one datagram, or raise RemoteError: the checks of §A.1 that need no history."""
        if len(data) < _FIXED.size:
            raise RemoteError("RTP packet shorter than its fixed header")
        first, second, sequence, timestamp, ssrc = _FIXED.unpack_from(data)
        if first >> 6 != VERSION:  # §5.1 [version-2], §A.1 [header-checks]
            raise RemoteError(f"RTP version {first >> 6}")
        start, count = _FIXED.size, first & 0x0F  # §5.1 [csrc-count]
        if start + 4 * count > len(data):
            raise RemoteError("CSRC list beyond the end")
        csrcs = struct.unpack_from(f"!{count}I", data, start)
        start += 4 * count
        # RFC 3551 §2 [extension-is-expected]
        extension = _read_extension(data, start) if first & EXTENSION else None
        if extension is not None:
            start += _EXTENSION.size + len(extension.data)  # RFC 3551 §2 [extension-is-skipped]
        padding = data[-1] if first & PADDING else 0  # §5.1 [padding-counts-itself]
        if first & PADDING and not 0 < padding <= len(data) - start:
            raise RemoteError(f"{padding} octets of padding in {len(data) - start}")
        payload = bytes(data[start : len(data) - padding])
        marker, payload_type = bool(second & MARKER), second & 0x7F
        return cls(
            payload_type, sequence, timestamp, ssrc, payload, marker, csrcs, extension, padding
        )

    def __bytes__(self) -> bytes:
        """Write the datagram; padding is zeros and their count: §5.1."""
        first = VERSION << 6 | len(self.csrcs)
        # §5.1 [extension-when-x]
        first |= (PADDING if self.padding else 0) | (EXTENSION if self.extension else 0)
        second = self.payload_type | (MARKER if self.marker else 0)
        head = _FIXED.pack(first, second, self.sequence, self.timestamp, self.ssrc)
        csrcs = struct.pack(f"!{len(self.csrcs)}I", *self.csrcs)
        extension = bytes(self.extension) if self.extension else b""
        tail = bytes(self.padding - 1) + bytes([self.padding]) if self.padding else b""
        return head + csrcs + extension + self.payload + tail  # §5.3.1 [extension-behind-csrcs]


def _read_extension(data: bytes | memoryview, start: int) -> Extension:
    """Read the extension whose profile is at `start`: §5.3.1."""
    if start + _EXTENSION.size > len(data):
        raise RemoteError("header extension beyond the end")
    profile, words = _EXTENSION.unpack_from(data, start)
    start += _EXTENSION.size
    if start + 4 * words > len(data):
        raise RemoteError("header extension beyond the end")
    return Extension(profile, bytes(data[start : start + 4 * words]))
