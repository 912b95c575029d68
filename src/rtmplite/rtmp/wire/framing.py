"""Writes the messages of a live stream for RTMP players, as bytes that all of them share.

Own design: RTMP 1.0 §5.3.1.1 leaves the chunk stream numbers from 3 up to us.  Every medium has
one to itself and every message a type 0 header, so that the same bytes can follow anything that a
player had before.

    >>> ChunkFraming(1)(8, 20, b"a sound") == ChunkFraming(1)(8, 20, b"a sound")
    True
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rtmplite.rtmp.wire.chunk_writer import encode_absolute
from rtmplite.rtmp.wire.message import MessageType

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

    Two are equal if they write the same, so that a stream encodes a message once for all
    players with the same `stream_id`.
    """

    stream_id: int

    def __call__(self, type_id: int, timestamp: int, payload: bytes) -> bytes:
        """Write one message of type 8, 9 or 18: RTMP 1.0 §5.3.1.2.1."""
        chunks = CHUNK_STREAMS[type_id]
        return encode_absolute(type_id, timestamp, self.stream_id, payload, chunks, CHUNK_SIZE)
