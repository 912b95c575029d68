"""A message is what RTMP says it is, and cannot be changed by those it is shared with."""

import pytest

from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.chunk_writer import encode_absolute
from rtmplite.rtmp.wire.message import MessageType


def test_a_message_has_the_fields_that_chunks_need():
    """Covers RTMP 1.0 §5.1 [message-fields]."""
    (message,) = ChunkReader().feed(encode_absolute(MessageType.AUDIO, 20, 1, b"...", 4, 128))
    assert (message.type_id, message.timestamp, message.stream_id) == (8, 20, 1)
    assert len(message.payload) == 3
    with pytest.raises(AttributeError):
        message.timestamp = 40


def test_types_have_their_numbers():
    """Covers RTMP 1.0 §7.1.2 [types], RTMP 1.0 §7.1.4 [type], RTMP 1.0 §7.1.5 [type].

    And RTMP 1.0 §7.1.6 [type], RTMP Errata §7 [virtual-header].
    """
    control = {"SET_CHUNK_SIZE": 1, "ABORT": 2, "ACKNOWLEDGEMENT": 3, "USER_CONTROL": 4}
    limits = {"WINDOW_ACKNOWLEDGEMENT_SIZE": 5, "SET_PEER_BANDWIDTH": 6}
    media = {"AUDIO": 8, "VIDEO": 9, "DATA": 18, "DATA_AMF3": 15, "AGGREGATE": 22}
    calls = {"COMMAND": 20, "COMMAND_AMF3": 17, "SHARED_OBJECT": 19, "SHARED_OBJECT_AMF3": 16}
    numbers = {each.name: each.value for each in MessageType}
    assert numbers == control | limits | media | calls
    (message,) = ChunkReader().feed(encode_absolute(MessageType.VIDEO, 1, 1, b"", 4, 128))
    assert message.type_id == MessageType.VIDEO
