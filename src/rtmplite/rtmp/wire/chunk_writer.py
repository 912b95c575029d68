"""Writes messages as chunks, with the smallest header that the chunk stream allows.

Implements RTMP 1.0 §5.3.1.2.  `ChunkWriter` remembers what it sent on every chunk stream;
`encode_absolute` remembers nothing, so that its bytes suit any number of receivers whatever
they had before.

    >>> writer = ChunkWriter()
    >>> audio = [Message(8, 1000 + 20 * i, 12345, bytes(32)) for i in range(4)]
    >>> [len(writer.write(message, 3)) for message in audio]
    [44, 36, 33, 33]

Those are the sizes in the example of §5.3.2.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple

from rtmplite.errors import LocalError
from rtmplite.rtmp.wire.chunk_header import (
    CONTROL_CHUNK_STREAM,
    DEFAULT_CHUNK_SIZE,
    EXTENDED,
    MAX_CHUNK_SIZE,
    basic_header,
)
from rtmplite.rtmp.wire.message import MAX_PAYLOAD, TIMESTAMP_MASK, Message, MessageType

_BACKWARD: Final = 0x80000000  # ms, half the circle of serial numbers: RTMP 1.0 §4

# The bytes before each are shared: the top byte of the first word is the basic header's place.
_TYPE_0: Final = Struct(">II4s").pack
_TYPE_1: Final = Struct(">II").pack
_WORD: Final = Struct(">I").pack


# Bytes of what we send: nginx-rtmp's and OBS's choice, all players cope.
CHUNK_SIZE: Final = 4096

# Flash and ffmpeg use 3 for commands as well.
CONTROL_CHUNKS: Final = 2
COMMAND_CHUNKS: Final = 3
CHUNK_STREAMS: Final[Mapping[int, int]] = {
    MessageType.AUDIO: 4,
    MessageType.DATA: 5,
    MessageType.VIDEO: 6,
}


@dataclass(frozen=True, slots=True)
class ChunkFraming:
    """Writes type, time in ms and payload as chunks on message stream `stream_id`: RTMP 1.0 §5.3.1.

    Own design: §5.3.1.1 leaves the chunk stream numbers from 3 up to us.  Every medium has one to
    itself and every message a type 0 header, so that the same bytes can follow anything.
    Two are equal if they write the same, so that a stream encodes a message once for all
    players with the same `stream_id`.
    """

    stream_id: int

    def __call__(self, type_id: int, timestamp: int, payload: bytes) -> bytes:
        """Write one message of type 8, 9 or 18: RTMP 1.0 §5.3.1.2.1."""
        chunks = CHUNK_STREAMS[type_id]
        return encode_absolute(type_id, timestamp, self.stream_id, payload, chunks, CHUNK_SIZE)


class _Sent(NamedTuple):
    """The last message of a chunk stream; `delta` is None while only a type 0 has set it."""

    timestamp: int
    delta: int | None
    length: int
    type_id: int
    stream_id: int


def encode_absolute(
    type_id: int,
    timestamp: int,
    stream_id: int,
    payload: bytes,
    chunk_stream_id: int,
    chunk_size: int,
) -> bytes:
    """Write a message that can follow any other: type 0, absolute time: §5.3.1.2.1.

    What 24 and 32 bits cannot say is not sent (RTMP Errata §7).

    `timestamp` is in ms and wraps; `chunk_size` is the one that every receiver was told.
    Raises LocalError for a payload that 24 bits cannot count.
    """
    # RTMP Errata §7 [within-limits]
    time, length = timestamp & TIMESTAMP_MASK, len(payload)
    if time < EXTENDED and length <= chunk_size and 2 <= chunk_stream_id < 64:
        header = _TYPE_0(
            chunk_stream_id << 24 | time,
            length << 8 | type_id,
            stream_id.to_bytes(4, "little"),  # §5.3.1.2.5 [stream-id-is-little]
        )
        return header + payload
    if length > MAX_PAYLOAD:  # RTMP Errata §7 [within-limits]
        raise LocalError(f"a message of {length} bytes does not fit into RTMP")
    header = _TYPE_0(min(time, EXTENDED), length << 8 | type_id, stream_id.to_bytes(4, "little"))
    return _chunks(0, chunk_stream_id, header[1:], time, payload, chunk_size)


class ChunkWriter:
    """One direction of a connection, as its sender sees it: §5.3."""

    def __init__(self, chunk_size: int = DEFAULT_CHUNK_SIZE) -> None:
        self.chunk_size = chunk_size  # §5.3 [size-per-direction], §5.4.1 [default-128]
        self._sent: dict[int, _Sent] = {}

    def write(self, message: Message, chunk_stream_id: int) -> bytes:
        """Compress `message` against the last one there: §5.3.1.2.  LocalError if too long."""
        time, length = message.timestamp & TIMESTAMP_MASK, len(message.payload)
        if length > MAX_PAYLOAD:
            raise LocalError(f"a message of {length} bytes does not fit into RTMP")
        fmt, delta = self._format(self._sent.get(chunk_stream_id), message, time)
        self._sent[chunk_stream_id] = _Sent(time, delta, length, message.type_id, message.stream_id)
        value = time if delta is None else delta
        header = _TYPE_0(
            min(value, EXTENDED),  # §5.3.1.2.1 [type-0-extended], §5.3.1.2.5 [delta-extended]
            length << 8 | message.type_id,
            message.stream_id.to_bytes(4, "little"),
        )[1 : (12, 8, 4, 1)[fmt]]  # §5.3.1.2 [compact]
        return _chunks(fmt, chunk_stream_id, header, value, message.payload, self.chunk_size)

    def set_chunk_size(self, size: int) -> bytes:
        """Use chunks of `size`, and give the message: §5.4.1.  LocalError if not in range."""
        if not 1 <= size <= MAX_CHUNK_SIZE:  # §5.4.1 [size-at-least-1] [size-top-bit-zero]
            raise LocalError(f"{size} is no chunk size")
        order = Message(MessageType.SET_CHUNK_SIZE, 0, 0, _WORD(size))
        told = self.write(order, CONTROL_CHUNK_STREAM)
        self.chunk_size = size
        return told

    @staticmethod
    def _format(last: _Sent | None, message: Message, time: int) -> tuple[int, int | None]:
        """Choose the chunk type and the delta, None standing for absolute time.

        A type 3 right after a type 0 is allowed where the times fit (§5.3.1.2.4), and never
        chosen: peers differ about the delta it repeats (Field §"Type 3 after type 0").
        """
        if last is None or last.stream_id != message.stream_id:
            return 0, None  # §5.3.1.2.1 [type-0-first]
        delta = (time - last.timestamp) & TIMESTAMP_MASK
        if delta >= _BACKWARD:
            return 0, None  # §5.3.1.2.1 [type-0-backward]
        if (last.length, last.type_id) != (len(message.payload), message.type_id):
            return 1, delta  # §5.3.1.2.2 [type-1-variable]
        if delta != last.delta:
            return 2, delta  # §5.3.1.2.3 [type-2-constant]
        return 3, delta  # §5.3.1.2.4 [type-3-repeats]


def _chunks(
    fmt: int, chunk_stream_id: int, header: bytes, value: int, payload: bytes, size: int
) -> bytes:
    """Cut a payload into one run of bytes (§5.3), extended times on all (RTMP Errata §5.1)."""
    extended = _WORD(value) if value >= EXTENDED else b""
    view = memoryview(payload)
    parts: list[bytes | memoryview] = [basic_header(fmt, chunk_stream_id), header, extended]
    parts.append(view[:size])
    # §5.3.1.2.4 [type-3-continues], RTMP Errata §5.1 [extended-on-every-3]
    again = basic_header(3, chunk_stream_id) + extended
    for start in range(size, len(payload), size):
        parts += again, view[start : start + size]  # §5.3 [chunk-whole]
    return b"".join(parts)  # §5.3 [chunk-whole]
