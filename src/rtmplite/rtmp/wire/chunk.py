"""The chunk stream: messages cut into pieces, so that a long one cannot block a short one.

Implements RTMP 1.0 §5.3.  Writing is in `chunk_writer`, reading in `chunk_reader`, the first
bytes of every chunk in `chunk_header`; this is the front door to all three.

    >>> writer, reader = ChunkWriter(), ChunkReader()
    >>> reader.feed(writer.set_chunk_size(4096) + writer.write(Message(8, 40, 1, b"..."), 4))[1]
    Message(type_id=8, timestamp=40, stream_id=1, payload=b'...')
"""

from rtmplite.rtmp.wire.chunk_header import (
    CONTROL_CHUNK_STREAM,
    DEFAULT_CHUNK_SIZE,
    MAX_CHUNK_SIZE,
    MAX_CHUNK_STREAM,
)
from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.chunk_writer import ChunkWriter, encode_absolute
from rtmplite.rtmp.wire.message import Message, MessageType

__all__ = [
    "CONTROL_CHUNK_STREAM",
    "DEFAULT_CHUNK_SIZE",
    "MAX_CHUNK_SIZE",
    "MAX_CHUNK_STREAM",
    "ChunkReader",
    "ChunkWriter",
    "Message",
    "MessageType",
    "encode_absolute",
]
