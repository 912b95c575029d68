"""Control messages: every one looks as drawn, and short ones are refused."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from rtmplite.errors import RemoteError
from rtmplite.rtmp.wire.control import (
    Abort,
    Acknowledgement,
    LimitType,
    OtherUserControl,
    PingRequest,
    PingResponse,
    SetBufferLength,
    SetChunkSize,
    SetPeerBandwidth,
    StreamBegin,
    StreamDry,
    StreamEof,
    StreamIsRecorded,
    WindowAcknowledgementSize,
    parse_control,
)
from rtmplite.rtmp.wire.message import Message, MessageType
from rtmplite.strategies import rtmp


@given(rtmp.controls())
def test_what_is_written_reads_back(control):
    """Covers RTMP 1.0 §5.4 [control-types] [control-on-2], RTMP 1.0 §6.2 [on-stream-0]
    [event-type].
    """
    message = control.message()
    assert parse_control(message) == control == type(control).parse(bytes(control))
    assert (message.timestamp, message.stream_id) == (0, 0)
    assert parse_control(Message(message.type_id, 9, 9, message.payload)) == control


@pytest.mark.parametrize(
    ("control", "type_id", "payload"),
    [
        (SetChunkSize(4096), 1, "00001000"),
        (Abort(6), 2, "00000006"),
        (Acknowledgement(0x1_0000_0005), 3, "00000005"),
        (WindowAcknowledgementSize(2500000), 5, "002625a0"),
        (SetPeerBandwidth(2500000, LimitType.SOFT), 6, "002625a0 01"),
        (StreamBegin(1), 4, "0000 00000001"),
        (StreamEof(1), 4, "0001 00000001"),
        (StreamDry(1), 4, "0002 00000001"),
        (SetBufferLength(1, 3000), 4, "0003 00000001 00000bb8"),
        (StreamIsRecorded(1), 4, "0004 00000001"),
        (PingRequest(3343), 4, "0006 00000d0f"),
        (PingResponse(3343), 4, "0007 00000d0f"),
        (OtherUserControl(31, b"\0\0\0\1"), 4, "001f 00000001"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_message_looks_as_drawn(control, type_id, payload):
    """Covers RTMP 1.0 §5.4 [control-types] [control-on-2], RTMP 1.0 §7.1.7, §4 [big-endian].

    Covers RTMP Errata §2 [errors-noticed].
    And RTMP 1.0 §5.4.1 [size-at-least-1], RTMP 1.0
    §5.4.2 [abort-names-chunk-stream], §5.4.3 [sequence-number],
    §5.4.4 [window-size], §5.4.5 [limit-types].
    """
    raw = bytes.fromhex(payload)
    assert control.message() == Message(type_id, 0, 0, raw)
    assert bytes(parse_control(Message(type_id, 0, 0, raw))) == raw
    assert bytes(parse_control(Message(type_id, 0, 0, raw + b"more"))).startswith(raw)
    for end in range(2 if isinstance(control, OtherUserControl) else len(raw)):
        with pytest.raises(RemoteError):
            parse_control(Message(type_id, 0, 0, raw[:end]))


@pytest.mark.parametrize("size", ["00000000", "80000000", "ffffffff"])
def test_a_chunk_size_has_limits(size):
    """Covers RTMP 1.0 §5.4.1 [size-at-least-1] [size-top-bit-zero]."""
    assert [SetChunkSize.parse(bytes.fromhex(each)).size for each in ("00000001", "7fffffff")] == [
        1,
        0x7FFFFFFF,
    ]
    with pytest.raises(RemoteError):
        SetChunkSize.parse(bytes.fromhex(size))


def test_a_limit_is_of_one_of_three_types():
    """Covers RTMP 1.0 §5.4.5 [limit-types]."""
    assert [SetPeerBandwidth.parse(bytes(4) + bytes([n])).limit_type for n in range(3)] == [0, 1, 2]
    with pytest.raises(RemoteError):
        SetPeerBandwidth.parse(b"\0\0\0\0\3")


@pytest.mark.parametrize("type_id", [0, 7, 8, 9, 18, 20, 255])
def test_other_messages_are_no_control(type_id):
    """Covers RTMP 1.0 §5.4 [control-types]."""
    assert parse_control(Message(type_id, 0, 0, b"")) is None


@given(
    st.sampled_from([each for each in MessageType if each <= 6]),
    mutations(rtmp.controls().map(bytes)) | st.binary(max_size=12),
)
def test_nothing_else_ever_happens(type_id, payload):
    """Covers RTMP 1.0 §5.4, RTMP 1.0 §6.2, RTMP Errata §2 [errors-noticed]."""
    try:
        control = parse_control(Message(type_id, 0, 0, payload))
    except RemoteError:
        event("refused")
    else:
        event("read")
        assert payload.startswith(bytes(control))


@pytest.mark.parametrize(
    ("raw", "event"),
    [
        ("0000 00000005", StreamBegin(5)),
        ("0001 00000005", StreamEof(5)),
        ("0002 00000005", StreamDry(5)),
        ("0003 00000005 000003e8", SetBufferLength(5, 1000)),
        ("0004 00000005", StreamIsRecorded(5)),
        ("0006 12345678", PingRequest(0x12345678)),
        ("0007 12345678", PingResponse(0x12345678)),
    ],
)
def test_user_control_byte_by_byte(raw, event):
    """Covers RTMP 1.0 §7.1.7 [stream-begin] [stream-eof] [stream-dry] [set-buffer-length].

    And RTMP 1.0 §7.1.7 [stream-is-recorded] [ping-request] [ping-response], §6.2 [event-type].
    """
    message = Message(MessageType.USER_CONTROL, 0, 0, bytes.fromhex(raw))
    assert event.message() == message and parse_control(message) == event
