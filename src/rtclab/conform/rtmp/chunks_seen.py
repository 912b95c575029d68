"""The chunks of a target as they are on the wire, for cases about their headers.

Own design: a reader of messages hides which chunk stream and which type of header they came by, and
ours would forgive what a case is about.  `chunk` writes one of a form that `ChunkWriter` would not
choose.  Implements RTMP 1.0 §5.3.1.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rtmplite.rtmp.wire.chunk_header import (
    DEFAULT_CHUNK_SIZE,
    EXTENDED,
    MESSAGE_HEADER_LENGTHS,
    basic_header,
    read_basic_header,
)
from rtmplite.rtmp.wire.message import MessageType

_TIME: Final = 4  # bytes of an extended timestamp: §5.3.1.3


class SeenChunk(NamedTuple):
    """One chunk: its header's type, and the message that it belongs to."""

    fmt: int
    chunk_stream: int
    type_id: int
    stream_id: int
    starts: bool  # a message begins here
    is_new: bool  # and its chunk stream as well
    extended: bytes  # the extended timestamp, or nothing
    limit: int  # bytes, the chunk size in force


@dataclass(slots=True)
class _Sender:
    """One chunk stream, as the headers so far describe it."""

    length: int = 0
    type_id: int = 0
    stream_id: int = 0
    is_extended: bool = False  # the time of the last header with one
    payload: bytearray = field(default_factory=bytearray)

    def header(self, fmt: int, raw: bytes, at: int) -> tuple[bytes, int]:
        """Read what follows the basic header: §5.3.1.2; gives the extended time, and its end."""
        fields = raw[at : at + MESSAGE_HEADER_LENGTHS[fmt]]
        at += MESSAGE_HEADER_LENGTHS[fmt]
        if fmt < 3:
            self.is_extended = int.from_bytes(fields[:3], "big") == EXTENDED
        if fmt < 2:
            self.length = int.from_bytes(fields[3:6], "big")
            self.type_id = int.from_bytes(fields[6:7], "big")
        if fmt == 0:
            self.stream_id = int.from_bytes(fields[7:], "little")
        after = at + _TIME if self.is_extended else at
        return raw[at:after], after


def chunks_seen(raw: bytes) -> Iterator[SeenChunk]:
    """Take octets after the handshake apart; ends where a chunk is not whole."""
    senders: dict[int, _Sender] = {}
    at, size = 0, DEFAULT_CHUNK_SIZE
    while at < len(raw):
        try:
            fmt, number, at = read_basic_header(raw, at)
        except IndexError:
            return
        is_new = number not in senders
        sender = senders.setdefault(number, _Sender())
        extended, at = sender.header(fmt, raw, at)
        starts, count = not sender.payload, min(size, sender.length - len(sender.payload))
        at += count
        if at > len(raw):
            return
        sender.payload += raw[at - count : at]
        type_id, stream_id = sender.type_id, sender.stream_id
        yield SeenChunk(fmt, number, type_id, stream_id, starts, is_new, extended, size)
        if len(sender.payload) >= sender.length:
            if type_id == MessageType.SET_CHUNK_SIZE:
                size = int.from_bytes(sender.payload, "big")
            sender.payload.clear()


def chunk(
    fmt: int,
    chunk_stream: int,
    data: bytes,
    *,
    time: int = 0,
    length: int | None = None,
    type_id: int = 0,
    stream_id: int = 0,
    extended: int | None = None,
) -> bytes:
    """Write one chunk with a header of this type (§5.3.1.2); `length` is of the whole message."""
    length = len(data) if length is None else length
    header = time.to_bytes(3, "big") + length.to_bytes(3, "big") + bytes((type_id,))
    header = (header + stream_id.to_bytes(4, "little"))[: MESSAGE_HEADER_LENGTHS[fmt]]
    late = b"" if extended is None else extended.to_bytes(_TIME, "big")
    return basic_header(fmt, chunk_stream) + header + late + data
