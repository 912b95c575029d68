"""SDES: the names of sources.  A CNAME stays when an SSRC changes, and joins audio and video.

Implements RFC 3550 §6.5.

    >>> SourceDescription.of_cname(1, "alice@example.org").chunks[0].cname
    'alice@example.org'
"""

import struct
from dataclasses import dataclass
from typing import Final, Self

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp import rtcp_frame
from p2psip.rtp.rtcp_frame import SDES, RtcpForm

CNAME: Final = 1  # Source: §12.2, the item types; the only one that is mandatory
MAX_ITEMS: Final = 32  # a source, Own design: there are eight types, and memory must be bounded
_SSRC: Final = struct.Struct("!I")


@dataclass(frozen=True, slots=True)
class SdesChunk:
    """How one source describes itself: §6.5; `items` are types with up to 255 octets."""

    ssrc: int
    items: tuple[tuple[int, bytes], ...] = ()

    def __post_init__(self) -> None:
        if any(not 0 < kind < 256 or len(text) > 255 for kind, text in self.items):
            raise LocalError("an item has a type of 1 to 255 and up to 255 octets")

    @property
    def cname(self) -> str | None:
        """The canonical name, undecodable octets replaced; None if not given: §6.5.1."""
        texts = [text for kind, text in self.items if kind == CNAME]
        return texts[0].decode(errors="replace") if texts else None

    def __bytes__(self) -> bytes:
        """Write the chunk, ended by one to four zeros: §6.5."""
        items = b"".join(bytes([kind, len(text)]) + text for kind, text in self.items)
        # §6.5 [zero-ends] [zeros-fill]
        return _SSRC.pack(self.ssrc) + items + bytes(4 - len(items) % 4)


@dataclass(frozen=True, slots=True)
class SourceDescription(RtcpForm):
    """Up to 31 chunks: §6.5."""

    packet_type = SDES
    chunks: tuple[SdesChunk, ...]

    @classmethod
    def of_cname(cls, ssrc: int, cname: str) -> Self:
        """Make the description that every compound must hold: §6.5.1."""
        return cls((SdesChunk(ssrc, ((CNAME, cname.encode()[:255]),)),))

    @classmethod
    def _read(cls, count: int, body: bytes) -> Self:
        chunks, at = [], 0
        for _ in range(count):
            chunk, at = _read_chunk(body, at)
            chunks.append(chunk)
        return cls(tuple(chunks))

    def __bytes__(self) -> bytes:
        return rtcp_frame.write(SDES, len(self.chunks), b"".join(map(bytes, self.chunks)))


def _read_chunk(body: bytes, at: int) -> tuple[SdesChunk, int]:
    """Read the chunk at `at`; answer it and where the next begins: §6.5."""
    (ssrc,) = rtcp_frame.unpack_from(_SSRC, body, at)
    at += _SSRC.size
    items: list[tuple[int, bytes]] = []
    while at < len(body) and body[at]:
        if at + 2 > len(body) or at + 2 + body[at + 1] > len(body) or len(items) == MAX_ITEMS:
            raise RemoteError("source description beyond the end, or of too many items")
        end = at + 2 + body[at + 1]
        items.append((body[at], body[at + 2 : end]))
        at = end
    if at == len(body):
        raise RemoteError("source description without an end")
    return SdesChunk(ssrc, tuple(items)), at + 4 - at % 4
