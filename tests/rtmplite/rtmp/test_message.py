"""A message is what RTMP says it is, and cannot be changed by those it is shared with."""

from dataclasses import FrozenInstanceError

import pytest

from rtmplite.rtmp.chunk import ChunkReader, MessageType, encode_absolute


def test_a_message_has_the_fields_that_chunks_need():
    """Covers RTMP 1.0 §5.1 [message-fields]."""
    (message,) = ChunkReader().feed(encode_absolute(MessageType.AUDIO, 20, 1, b"...", 4, 128))
    assert (message.type_id, message.timestamp, message.stream_id) == (8, 20, 1)
    assert len(message.payload) == 3
    with pytest.raises(FrozenInstanceError):
        message.timestamp = 40


def test_types_have_their_numbers():
    """Covers RTMP 1.0 §7.1.2 [types], RTMP 1.0 §7.1.4 [type], RTMP 1.0 §7.1.5 [type].

    And RTMP 1.0 §7.1.6 [type], RTMP Errata §7 [virtual-header].
    """
    wanted = {"AUDIO": 8, "VIDEO": 9, "DATA": 18, "DATA_AMF3": 15, "AGGREGATE": 22}
    assert {name: MessageType[name].value for name in wanted} == wanted
    (message,) = ChunkReader().feed(encode_absolute(MessageType.VIDEO, 1, 1, b"", 4, 128))
    assert message.type_id == MessageType.VIDEO
