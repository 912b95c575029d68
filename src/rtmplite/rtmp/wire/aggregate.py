"""The aggregate message: several messages in one, as Flash Media Live Encoder sends them.

Implements RTMP 1.0 §7.1.6.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from rtmplite.errors import RemoteError
from rtmplite.rtmp.wire.message import TIMESTAMP_MASK, Message, MessageType

_HEADER: Final = Struct(">II3x")  # type and length, time with its top byte last, stream id
MAX_PARTS: Final = 1024  # Own design: servers join some seconds of media, not minutes
_BACK_POINTER: Final = 4  # bytes after every part; of use in files only


def aggregated(message: Message) -> Iterator[Message]:
    """Give the parts of an aggregate message, on its stream and its time scale: §7.1.6.

    Not done: §7.1.6 [offset-zero]: none is sent by us.

    Each looks like an FLV tag (FLV 10.1 §E.4.1).  Raises RemoteError when a part goes beyond the
    end, or comes after `MAX_PARTS`; an aggregate within an aggregate is left out.
    """
    payload, at, count = message.payload, 0, 0
    offset: int | None = None
    while at < len(payload):
        count += 1
        if count > MAX_PARTS:
            raise RemoteError(f"an aggregate message of more than {MAX_PARTS} parts")
        body = at + _HEADER.size
        if body > len(payload):  # RTMP Errata §2 [errors-noticed]
            raise RemoteError("an aggregate message ends within a header")
        first, second = _HEADER.unpack_from(payload, at)
        type_id, length = first >> 24, first & 0xFFFFFF
        if body + length > len(payload):  # RTMP Errata §2 [errors-noticed]
            raise RemoteError("an aggregate message is shorter than its parts")
        time = (second & 0xFF) << 24 | second >> 8
        offset = message.timestamp - time if offset is None else offset  # §7.1.6 [offset]
        if type_id != MessageType.AGGREGATE:
            timestamp = (time + offset) & TIMESTAMP_MASK  # §7.1.6 [offset]
            # §7.1.6 [stream-overrides]
            yield Message(type_id, timestamp, message.stream_id, payload[body : body + length])
        at = body + length + _BACK_POINTER  # §7.1.6 [back-pointer]
