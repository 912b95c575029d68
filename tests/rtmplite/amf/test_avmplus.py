"""AMF0 hands to AMF3 what it cannot say, and nothing else unless it is told to."""

from contextlib import suppress

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.amf import amf0
from rtmplite.amf.values import (
    UNSUPPORTED,
    Array,
    Date,
    Dictionary,
    EcmaArray,
    Externalizable,
    Opaque,
    Traits,
    TypedObject,
    Vector,
    VectorKind,
    Xml,
    XmlDocument,
)
from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message, MessageType
from rtmplite.strategies import amf, amf3


@given(st.lists(amf3.values() | amf3.graphs(), max_size=3))
def test_every_value_survives_behind_the_switch(values):
    """Covers AMF0 §3.1 [avmplus-switches], AMF3 §4.1 [switch-in-a-message]."""
    back = amf0.decode(amf0.encode(*values, avmplus=True))
    assert all(map(amf.alike, back, values)) and len(back) == len(values)


@given(amf.values(), amf3.scalars())
def test_both_versions_mix(one, other):
    """Covers AMF0 §3.1 [avmplus-switches].

    Covers E-RTMP v2 §"Important AMF3-encoded Historical Specification Clarification" [back-to-amf0]
    [each-has-a-marker].
    """
    values = [[one, other], one, other]
    (kept, *_), *_ = back = amf0.decode(amf0.encode(*values, avmplus=True))
    assert amf.alike(back[2], other)
    if not isinstance(other, bytes | Vector | Xml):
        return
    assert amf.alike(back[0][1], other)
    assert amf.alike(kept, one) and amf.alike(back[1], one)


@given(amf.values())
def test_what_amf0_has_stays_in_amf0(value):
    """Covers AMF0 §3.1."""
    assert not amf0.encode(value).startswith(b"\x11")


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (b"raw", "11 0c 07 726177"),
        (Xml("<a/>"), "11 0b 09 3c612f3e"),
        (Vector(VectorKind.INT), "11 0d 01 00"),
        (Dictionary(), "11 11 01 00"),
        (Array([None], {"a": None}), "11 09 03 03 61 01 01 01"),
        (Externalizable("flex.messaging.io.ArrayList"), "11 0a 07 37"),
        (TypedObject(Traits("P", (), False)), "11 0a 03 03 50"),
        ({"a": b"raw"}, "11 0a 0b 01 03 61 0c 07 726177 01"),
        ([5, b"raw"], "11 09 05 01 04 05 0c 07 726177"),
        ([EcmaArray(), b"raw"], "0a 00000002 08 00000000 000009 11 0c 07 726177"),
        ([UNSUPPORTED, [b"raw"]], "0a 00000002 0d 0a 00000001 11 0c 07 726177"),
        ([Date(0.0, 60), b"raw"], "0a 00000002 0b 0000000000000000 003c 11 0c 07 726177"),
        ({"": b"raw"}, "03 0000 11 0c 07 726177 000009"),
        (EcmaArray({"": b"raw"}), "08 00000001 0000 11 0c 07 726177 000009"),
        (TypedObject("", {"a": b"raw"}), "10 0000 0001 61 11 0c 07 726177 000009"),
        ({"a" * 65536: None}, "11 0a 0b 01"),
        (TypedObject("a" * 65536), "11 0a 0b 88 80 01"),
        (5, "00 4014000000000000"),
        (XmlDocument("<a/>"), "0f 00000004"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_only_what_must_goes_behind_the_switch(value, encoded):
    """Covers AMF0 §3.1 [avmplus-switches]."""
    raw = amf0.encode(value)
    assert raw.startswith(bytes.fromhex(encoded))
    (back,) = amf0.decode(raw)
    assert (back == value and type(back) is type(value)) or value == 5


def test_a_peer_with_amf3_gets_integers():
    """Covers AMF0 §3.1 [avmplus-switches], AMF3 §3.6 [integer-is-signed]."""
    raw = amf0.encode("go", 1.0, 5, [6], 1 << 28, [UNSUPPORTED, 7], True, avmplus=True)
    assert amf.alike(amf0.decode(raw), ["go", 1.0, 5, [6], float(1 << 28), [UNSUPPORTED, 7], True])
    assert amf0.encode(1 << 28, avmplus=True) == amf0.encode(float(1 << 28))
    assert raw.startswith(amf0.encode("go", 1.0) + bytes.fromhex("11 04 05 11 09 03 01 04 06"))


def test_tables_are_shared_behind_all_switches_of_a_message():
    """Covers AMF3 §4.1 [tables-are-reset] [switch-in-a-message]."""
    item = {"ab": b"raw"}
    raw = amf0.encode(item, item)
    assert raw.endswith(bytes.fromhex("11 0a 00"))
    one, other = amf0.decode(raw)
    assert one is other and one == item


def test_depth_counts_both_sides_of_the_switch():
    """Covers AMF0 §3.1 [avmplus-switches]."""
    value = b"raw"
    for _ in range(32):
        value = Vector(VectorKind.OBJECT, [value])
    for _ in range(32):
        value = [value, UNSUPPORTED]
    assert amf.alike(amf0.decode(amf0.encode(value)), [value])
    with pytest.raises(LocalError, match="deep"):
        amf0.encode([value])
    with pytest.raises(RemoteError, match="deep"):
        amf0.decode(b"\x0a\x00\x00\x00\x01" + amf0.encode(value))


switched = st.tuples(amf3.values() | amf.values(), st.booleans()).map(
    lambda given: amf0.encode(given[0], avmplus=given[1])
)
wounded = mutations(st.lists(switched, min_size=1, max_size=3).map(b"".join))


@given(st.tuples(switched, wounded).map(b"".join) | wounded)
def test_nothing_else_ever_happens(raw):
    """Covers AMF0 §3.1."""
    reached = 0
    with suppress(RemoteError):
        _, reached = amf0.decode_one(raw)
    event("passed the first value" if reached else "failed in the first value")
    assert peak(lambda: _swallow(raw)) <= 32 * len(raw) + 65536


@given(wounded)
def test_whatever_was_read_can_be_written(raw):
    """Covers AMF0 §3.1 [avmplus-switches]."""
    with suppress(RemoteError):
        values = amf0.decode(raw)
        assert len(amf0.decode(amf0.encode(*values))) == len(values)
        assert amf.alike(amf0.decode(amf0.encode(*values, avmplus=True)), values)


@pytest.mark.parametrize(
    "raw",
    ["11 01", "11 0a 0b 01 01", "11 0a 03 01 03 0000 09", "11 04 8200 05", "11 0a 01 0a 00000000"],
)
def test_memory_follows_the_input(raw):
    """Covers AMF0 §3.1."""
    many = bytes.fromhex("11 0a 03 01") + bytes.fromhex(raw) * 5000
    assert peak(lambda: _swallow(many)) <= 32 * len(many) + 16384


def _swallow(raw):
    with suppress(RemoteError):
        amf0.decode(raw)


@pytest.mark.parametrize("around", ["", "0a 00000002", "03 0001 61"])
def test_a_class_that_writes_itself_stays_bytes(around):
    """Covers AMF3 §3.12 [externalizable-is-agreed], AMF0 §3.1 [avmplus-switches]."""
    raw = amf0.encode("go", b"ab") + bytes.fromhex(around + "11 0a 07 03 50 c0ffee")
    name, first, rest = amf0.decode(raw)
    assert (name, first) == ("go", b"ab") and isinstance(rest, Opaque) and rest.class_name == "P"
    assert amf0.encode(name, first, rest) == raw
    with pytest.raises(LocalError, match="Opaque"):
        amf0.encode([rest])


def test_opaque_values_move_between_versions():
    """Covers AMF3 §3.12."""
    inner = bytes.fromhex("0a 07 03 50 c0ffee")
    assert amf0.encode("go", Opaque("P", inner, 3)) == amf0.encode("go") + b"\x11" + inner


def test_commands_of_type_17_carry_amf3():
    """Covers AMF3 §4.1 [switch-in-a-message], RTMP Errata §7.2."""
    command = Command("call", 4.0, None, (5, {"a": [6]}, Dictionary([(b"k", Date(1.0))])))
    message = command.message(1, type_id=MessageType.COMMAND_AMF3)
    assert bytes(message.payload).startswith(b"\0" + amf0.encode("call", 4.0, None) + b"\x11\x04")
    assert amf.alike(list(Command.parse(message).args), list(command.args))


def test_any_command_may_carry_what_only_amf3_has():
    """Covers AMF0 §3.1 [avmplus-switches]."""
    command = Command("call", 4.0, None, (b"raw",))
    message = command.message()
    assert Command.parse(message) == command
    extended = Message(MessageType.COMMAND_AMF3, 0, 0, b"\0" + bytes(message.payload))
    assert Command.parse(extended) == command
