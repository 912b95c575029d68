"""Shared object messages: what was written is read, and nothing else does any harm."""

from contextlib import suppress

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmp.wire import shared_object as said
from rtmplite.rtmp.wire.message import Message, MessageType
from rtmplite.rtmp.wire.shared_object import (
    MAX_EVENTS,
    MAX_MESSAGE,
    Flags,
    SharedObject,
    SharedObjectEventType,
)
from rtmplite.strategies import shared
from rtmplite.strategies.amf import alike

HEADER = bytes.fromhex("0001 61 00000007 00000002 00000000")


def event_bytes(text):
    """One message with an event, in hexadecimal digits, in it."""
    return Message(MessageType.SHARED_OBJECT, 0, 0, HEADER + bytes.fromhex(text))


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("01 00000000", said.Use()),
        ("02 00000000", said.Release()),
        ("03 0000000b 0003 666f6f 02 0003 626172", said.RequestChange("foo", "bar")),
        ("04 0000000b 0003 666f6f 02 0003 626172", said.Change("foo", "bar")),
        ("05 00000005 0003 666f6f", said.Success("foo")),
        ("06 0000000c 02 0003 666f6f 02 0003 626172", said.SendMessage(("foo", "bar"))),
        ("07 0000000a 0001 63 0005 6572726f72", said.Status("c", "error")),
        ("08 00000000", said.Clear()),
        ("09 00000005 0003 666f6f", said.Remove("foo")),
        ("0a 00000005 0003 666f6f", said.RequestRemove("foo")),
        ("0b 00000000", said.UseSuccess()),
        ("0c 00000002 abcd", said.OtherSharedObjectEvent(12, b"\xab\xcd")),
    ],
)
def test_every_event_byte_by_byte(text, event):
    """Covers RTMP 1.0 §7.1.3 [event-types] [layout], Field §"Shared object events"."""
    message = event_bytes(text)
    read = SharedObject.parse(message)
    assert read == SharedObject("a", 7, Flags.PERSISTENT, (event,)) and read.is_persistent
    assert read.message() == message
    assert [each.value for each in SharedObjectEventType] == list(range(1, 12))


@given(shared.messages(), st.booleans())
def test_what_is_written_is_read(given_message, amf3):
    """Covers RTMP 1.0 §7.1.3 [types] [layout]; type 16 by RTMP Errata §7.2's pattern.

    Covers E-RTMP v2 §"Enabling AMF3 in RTMP" [amf3-steps], and E-RTMP v2 §"Important AMF3-encoded
    Historical Specification Clarification" [format-0].
    """
    message = given_message.message(amf3)
    assert message[:3] == (16 if amf3 else 19, 0, 0)
    read = SharedObject.parse(message)
    assert alike_events(read, given_message)
    assert read.name == given_message.name and read.version == given_message.version
    assert read.flags == given_message.flags


def said_by(event, field):
    """What an event says; tuples are no AMF values."""
    said = getattr(event, field)
    return list(said) if isinstance(said, tuple) else said


def alike_events(one, other):
    """Whether the same is said, down to the bits of numbers; integers may have become doubles."""
    if len(one.events) != len(other.events):
        return False
    return all(
        type(a) is type(b)
        and all(
            alike(said_by(a, field), said_by(b, field))
            for field in getattr(type(a), "__slots__", ())
        )
        for a, b in zip(one.events, other.events, strict=True)
    )


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\0",
        b"\0\5abc",
        HEADER[:-1],
        HEADER + b"\1\0\0\0",
        HEADER + b"\1\0\0\0\1",
        HEADER + bytes.fromhex("05 00000004 0003 666f"),
        HEADER + bytes.fromhex("03 00000005 0003 666f6f"),
        HEADER + bytes.fromhex("07 00000003 0001 63"),
        HEADER + bytes.fromhex("01 00000000") * (MAX_EVENTS + 1),
        HEADER + bytes(MAX_MESSAGE),
    ],
)
def test_what_is_broken_is_refused(raw):
    """Covers RTMP 1.0 §7.1.3 [layout].

    Covers E-RTMP v2 §"Important AMF3-encoded Historical Specification Clarification" [format-0].
    """
    for type_id, payload in ((19, raw), (16, b"\0" + raw), (16, b"\1" + raw)):
        with pytest.raises(RemoteError):
            SharedObject.parse(Message(type_id, 0, 0, payload))


def test_other_messages_are_none():
    """Covers RTMP 1.0 §7.1.3."""
    with pytest.raises(RemoteError, match="type 20"):
        SharedObject.parse(Message(MessageType.COMMAND, 0, 0, HEADER))
    with pytest.raises(LocalError):
        bytes(SharedObject("x" * 70_000, 0, Flags.NONE, ()))


@given(mutations(shared.messages().map(bytes)) | st.binary(max_size=200), st.booleans())
def test_nothing_else_ever_happens(raw, amf3):
    """Covers RTMP 1.0 §7.1.3."""
    message = Message(16 if amf3 else 19, 0, 0, b"\0" + raw if amf3 else raw)
    read = []

    def parse():
        with suppress(RemoteError):
            read.append(SharedObject.parse(message))

    assert peak(parse) <= 32 * len(raw) + 65536
    event("read" if read else "refused")


@pytest.mark.parametrize("unit", ["01 00000000", "05 00000002 0000", "03 00000003 0000 05"])
def test_memory_follows_the_input(unit):
    """Covers RTMP 1.0 §7.1.3: many small events."""
    message = event_bytes(unit * 3000)
    assert peak(lambda: SharedObject.parse(message)) <= 32 * len(message.payload) + 65536


def test_what_is_reserved_is_ignored():
    """Covers RTMP Errata §2 [reserved-ignored] [reserved-zero]."""
    other = HEADER[:-4] + b"\xde\xad\xbe\xef"
    assert SharedObject.read(other) == SharedObject.read(HEADER)
    assert bytes(SharedObject.read(other)) == HEADER
