"""Chunks: the parts of a packet, each with its type and length before it.

Implements RFC 7016 §2.3.

    >>> wire = encode_chunk(Ping(b"hi")) + bytes.fromhex("ff ff ff ff")
    >>> wire.hex(" ")
    '01 00 02 68 69 ff ff ff ff'
    >>> parse_chunks(wire)
    [Ping(message=b'hi')]
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.wire.acks import DataAckBitmap, DataAckRanges
from rtmplite.rtmfp.wire.control_chunks import (
    ForwardedInitiatorHello,
    Fragment,
    Ping,
    PingReply,
    SessionClose,
    SessionCloseAck,
)
from rtmplite.rtmfp.wire.flow_chunks import BufferProbe, FlowException, NextUserData, UserData
from rtmplite.rtmfp.wire.startup_chunks import (
    InitiatorHello,
    InitiatorInitialKeying,
    ResponderHello,
    ResponderInitialKeying,
    ResponderRedirect,
    RHelloCookieChange,
)

__all__ = [
    "BufferProbe",
    "Chunk",
    "DataAckBitmap",
    "DataAckRanges",
    "FlowException",
    "ForwardedInitiatorHello",
    "Fragment",
    "InitiatorHello",
    "InitiatorInitialKeying",
    "NextUserData",
    "Ping",
    "PingReply",
    "RHelloCookieChange",
    "ResponderHello",
    "ResponderInitialKeying",
    "ResponderRedirect",
    "SessionClose",
    "SessionCloseAck",
    "UnknownChunk",
    "UserData",
    "encode_chunk",
    "expand_next_user_data",
    "parse_chunks",
]


@dataclass(frozen=True, slots=True)
class UnknownChunk:
    """A chunk of another type, such as 0xEC with congestion marks, kept to see: §2.3."""

    type_id: int
    payload: bytes

    def encode(self) -> bytes:
        """Write the payload: §2.3 [chunk-layout]."""
        return self.payload


_StartupChunk: TypeAlias = (
    InitiatorHello
    | ResponderHello
    | ResponderRedirect
    | RHelloCookieChange
    | InitiatorInitialKeying
    | ResponderInitialKeying
)
_SessionChunk: TypeAlias = (
    ForwardedInitiatorHello
    | Ping
    | PingReply
    | UserData
    | NextUserData
    | DataAckBitmap
    | DataAckRanges
    | BufferProbe
    | FlowException
    | SessionClose
    | SessionCloseAck
)
Chunk: TypeAlias = Fragment | _StartupChunk | _SessionChunk | UnknownChunk

HEADER_LENGTH: Final = 3  # bytes of type and length: §2.3
MAX_PAYLOAD: Final = 0xFFFF  # what the 16 bits of a length can say
PADDING_TYPES: Final = frozenset((0x00, 0xFF))  # Source: §2.3

# Source: §2.3 [chunk-types], in its order.
PARSERS: Final[Mapping[int, Callable[[bytes], Chunk]]] = {
    0x7F: Fragment.parse,
    0x30: InitiatorHello.parse,
    0x0F: ForwardedInitiatorHello.parse,
    0x70: ResponderHello.parse,
    0x71: ResponderRedirect.parse,
    0x79: RHelloCookieChange.parse,
    0x38: InitiatorInitialKeying.parse,
    0x78: ResponderInitialKeying.parse,
    0x01: Ping.parse,
    0x41: PingReply.parse,
    0x10: UserData.parse,
    0x11: NextUserData.parse,
    0x50: DataAckBitmap.parse,
    0x51: DataAckRanges.parse,
    0x18: BufferProbe.parse,
    0x5E: FlowException.parse,
    0x0C: SessionClose.parse,
    0x4C: SessionCloseAck.parse,
}
# Source: §2.2.4 [startup-chunks] [session-chunks]; fragments go with any packet.
STARTUP_TYPES: Final = frozenset((0x30, 0x70, 0x71, 0x79, 0x38, 0x78))
SESSION_TYPES: Final = frozenset(PARSERS) - STARTUP_TYPES - {Fragment.type_id}


def encode_chunk(chunk: Chunk) -> bytes:
    """Write type, length and payload, LocalError if impossible: §2.3 [chunk-layout]."""
    payload = chunk.encode()
    if len(payload) > MAX_PAYLOAD or chunk.type_id in PADDING_TYPES:
        raise LocalError(f"no chunk of type {chunk.type_id} has {len(payload)} bytes")
    return b"%c%c%c%b" % (chunk.type_id, len(payload) >> 8, len(payload) & 0xFF, payload)


def parse_chunks(
    data: bytes | memoryview,
    at: int = 0,
    ignored: Collection[int] = PADDING_TYPES,
    most: int = MAX_PAYLOAD,
) -> list[Chunk]:
    """Read the chunks from `at` to the end or to the padding: §2.3.

    Chunks of `ignored` types and damaged chunks are left out.  A length beyond the end of `data`
    is no damage, but the beginning of the padding: §2.2.4.  Own design: reading
    stops after `most` chunks of any kind, so that a stranger's packet costs little.
    """
    data = bytes(data)
    chunks: list[Chunk] = []
    for _ in range(most):
        if len(data) - at < HEADER_LENGTH:  # §2.2.4 [padding-told]
            break
        type_id = data[at]
        start = at + HEADER_LENGTH
        at = start + (data[at + 1] << 8 | data[at + 2])  # §2.3 [chunk-layout]
        if at > len(data):  # §2.2.4 [padding-told]
            break
        if type_id in ignored:
            continue
        parse = PARSERS.get(type_id)
        if parse is None:  # §2.3 [unknown-ignored]
            chunks.append(UnknownChunk(type_id, data[start:at]))
            continue
        try:
            chunks.append(parse(data[start:at]))
        except RemoteError:  # §2.3 [damaged-ignored], §2 [errors-abort]
            continue
    return chunks


def expand_next_user_data(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Turn each Next User Data into User Data; drop one that follows none: §2.3.12."""
    previous: UserData | None = None
    for chunk in chunks:
        if isinstance(chunk, NextUserData):
            if previous is not None:  # §2.3.12 [follows-user-data]
                previous = chunk.after(previous)
                yield previous
            continue
        if isinstance(chunk, UserData):
            previous = chunk
        yield chunk
