"""The RTMP message, which chunks carry and commands are made of.

Implements RTMP 1.0 §6.1, read with RTMP Errata §7: the header shown there is never on the wire
as drawn; the chunk stream and RTMFP each map its fields in their own way.
"""

from enum import IntEnum
from typing import Final, NamedTuple

from rtmplite.flv.tag import TIMESTAMP_MASK

__all__ = ["MAX_PAYLOAD", "TIMESTAMP_MASK", "Message", "MessageType"]

MAX_PAYLOAD: Final = 0xFFFFFF  # bytes, what 24 bits of length can say: RTMP Errata §7


class MessageType(IntEnum):
    """The message types in use, from §5.4, §6.2 and §7.1."""

    SET_CHUNK_SIZE = 1
    ABORT = 2
    ACKNOWLEDGEMENT = 3
    USER_CONTROL = 4
    WINDOW_ACKNOWLEDGEMENT_SIZE = 5
    SET_PEER_BANDWIDTH = 6
    AUDIO = 8  # §7.1.4 [type]
    VIDEO = 9  # §7.1.5 [type]
    DATA_AMF3 = 15  # §7.1.2 [types]
    SHARED_OBJECT_AMF3 = 16
    COMMAND_AMF3 = 17
    DATA = 18  # §7.1.2 [types]
    SHARED_OBJECT = 19
    COMMAND = 20
    AGGREGATE = 22  # §7.1.6 [type]


class Message(NamedTuple):
    """One message: §6.1.1 and §6.1.2, with the fields that RTMP 1.0 §5.1 demands.

    Its header is nowhere drawn as there: RTMP Errata §7 [virtual-header].

    `type_id` is 0 to 255, known to `MessageType` or not; `timestamp` is in milliseconds modulo
    2**32; `stream_id` names the message stream, 0 being the connection itself.
    """

    type_id: int
    timestamp: int
    stream_id: int
    payload: bytes
