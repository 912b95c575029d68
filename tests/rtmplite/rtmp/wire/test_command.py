"""Commands: a name, a number, an object and the rest, in both kinds of message."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.amf import amf0
from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmp.wire.command import MAX_COMMAND, Command, error, on_status, result
from rtmplite.rtmp.wire.message import Message, MessageType
from rtmplite.strategies import amf, rtmp

KINDS = [MessageType.COMMAND, MessageType.COMMAND_AMF3]


@given(rtmp.commands(), st.sampled_from(KINDS), st.integers(0, 3), rtmp.timestamps())
def test_what_is_written_reads_back(command, kind, stream_id, timestamp):
    """Covers RTMP 1.0 §7.1.1 [types] [parts], RTMP Errata §7.2 [format-zero] [switch-by-marker].

    Covers E-RTMP v1 §"Action Message Format (AMF0 vs AMF3)" [amf3-too], E-RTMP v2 §"Enabling AMF3
    in RTMP" [amf3-steps].
    """
    message = command.message(stream_id, timestamp, kind)
    assert (message.type_id, message.timestamp, message.stream_id) == (kind, timestamp, stream_id)
    back = Command.parse(message)
    assert (back.name, back.transaction_id) == (command.name, command.transaction_id)
    assert amf.alike([back.object, *back.args], [command.object, *command.args])


def test_the_answers_look_like_this():
    """Covers RTMP 1.0 §7.2 [same-id] [result-or-error], RTMP 1.0 §7.2.2 [on-status] [number-0]."""
    assert result(4.0, None, 1.0) == Command("_result", 4.0, None, (1.0,))
    reason = RemoteError("no such stream", "NetStream.Play.StreamNotFound")
    information = {
        "level": "error",
        "code": "NetStream.Play.StreamNotFound",
        "description": "no such stream",
    }
    assert error(5.0, reason) == Command("_error", 5.0, None, (information,))
    status = on_status("status", "NetStream.Play.Start", "Started.", details="seed")
    assert (status.name, status.transaction_id, status.object) == ("onStatus", 0.0, None)
    assert list(status.args[0].items()) == [
        ("level", "status"),
        ("code", "NetStream.Play.Start"),
        ("description", "Started."),
        ("details", "seed"),
    ]


def test_integers_go_behind_the_marker_of_amf3():
    """Covers RTMP Errata §7.2 [switch-by-marker] [format-zero]."""
    message = Command("call", 2.0, None, (7,)).message(type_id=MessageType.COMMAND_AMF3)
    assert message.payload == b"\x00" + amf0.encode("call", 2.0, None) + b"\x11\x04\x07"
    assert type(Command.parse(message).args[0]) is int


def test_what_is_missing_reads_as_nothing():
    """Covers RTMP 1.0 §7.1.1 [parts]."""
    for values in (("closeStream",), ("closeStream", 0.0), ("closeStream", 0.0, None)):
        bare = Message(MessageType.COMMAND, 0, 0, amf0.encode(*values))
        assert Command.parse(bare) == Command("closeStream", 0.0, None, ())
    numbered = Message(MessageType.COMMAND, 0, 0, amf0.encode("closeStream", 3.0))
    assert Command.parse(numbered).transaction_id == 3.0


@pytest.mark.parametrize(
    ("type_id", "payload"),
    [
        (20, b""),
        (20, amf0.encode(1.0, "play")),
        (20, amf0.encode("play", "4")),
        (20, amf0.encode({}, 4.0)),
        (20, amf0.encode("play", 4.0)[:-1]),
        (17, b""),
        (17, b"\x03" + amf0.encode("play", 4.0)),
        (17, amf0.encode("play", 4.0)),
        (18, amf0.encode("onMetaData", 0.0)),
    ],
)
def test_what_is_no_command_is_refused(type_id, payload):
    """Covers RTMP 1.0 §7.1.1 [types] [parts], RTMP Errata §7.2 [format-zero].

    Covers E-RTMP v2 §"Important AMF3-encoded Historical Specification Clarification" [format-0].
    """
    with pytest.raises(RemoteError):
        Command.parse(Message(type_id, 0, 0, payload))


def test_a_command_that_would_take_seconds_to_read_is_refused():
    """Sixteen megabytes of nulls are a legal RTMP message."""
    start = amf0.encode("play", 0.0)
    longest = start + b"\x05" * (MAX_COMMAND - len(start))
    assert len(Command.parse(Message(MessageType.COMMAND, 0, 0, longest)).args) > 60_000
    with pytest.raises(RemoteError):
        Command.parse(Message(MessageType.COMMAND, 0, 0, longest + b"\x05"))


def test_other_messages_are_our_bug():
    """Covers RTMP 1.0 §7.1.1."""
    with pytest.raises(LocalError):
        Command("play").message(type_id=MessageType.DATA)


@given(
    st.sampled_from(KINDS),
    mutations(rtmp.commands().map(lambda c: c.message().payload)) | st.binary(),
)
def test_nothing_else_ever_happens(kind, payload):
    """Covers RTMP 1.0 §7.1.1."""
    payload = payload if kind == MessageType.COMMAND else b"\0" + payload
    outcome = []

    def read():
        try:
            outcome.append(Command.parse(Message(kind, 0, 0, payload)))
        except RemoteError:
            outcome.append(None)

    assert peak(read) <= 32 * len(payload) + 65536
    event("read" if outcome[0] else "refused")
