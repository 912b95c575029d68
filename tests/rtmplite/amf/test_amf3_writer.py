"""What AMF3 cannot say is refused before it is sent."""

import pytest

from rtmplite.amf import amf3
from rtmplite.amf.values import (
    UNSUPPORTED,
    Date,
    Dictionary,
    EcmaArray,
    Externalizable,
    Opaque,
    Traits,
    TypedObject,
    Vector,
    VectorKind,
)
from rtmplite.errors import LocalError
from rtmplite.strategies import amf


@pytest.mark.parametrize(
    "value",
    [
        UNSUPPORTED,
        object(),
        1 << 1024,
        {"": 1},
        EcmaArray({"": 1}),
        TypedObject(Traits("P", ("a",), False), {"a": 1, "b": 2}),
        TypedObject(Traits("P", ("a",), False)),
        Vector(VectorKind.INT, [1 << 31]),
        Vector(VectorKind.UINT, ["1"]),
        Externalizable("of.some.other"),
        [Opaque("of.some.other", b"", 3)],
        Opaque("of.some.other", b"", 0),
        Date(1 << 1024),
    ],
    ids=lambda value: str(value)[:16],
)
def test_what_amf3_cannot_say_is_our_bug(value):
    """Covers AMF3 §3.12 [dynamic-until-empty]."""
    with pytest.raises(LocalError):
        amf3.encode(value)


def test_lengths_have_28_bits():
    """Covers AMF3 §1.3.2 [string-limit], AMF3 §3.14 [byte-array-limit]: one line serves both."""
    with pytest.raises(LocalError, match="29 bits"):
        amf3.encode(bytes(1 << 28))


@pytest.mark.parametrize(
    "around",
    [
        lambda value: [value],
        lambda value: {"a": value},
        lambda value: Dictionary([(1, value)]),
        lambda value: Vector(VectorKind.OBJECT, [value]),
        lambda value: Externalizable("flex.messaging.io.ArrayList", value),
    ],
)
def test_depth_is_limited_on_the_way_out_too(around):
    """Covers AMF3 §2.2."""
    value = Date(1.0)
    for _ in range(64):
        value = around(value)
    assert amf.alike(amf3.decode(amf3.encode(value)), [value])
    with pytest.raises(LocalError, match="deep"):
        amf3.encode(around(value))


def test_an_integer_key_stays_an_integer():
    """Covers AMF3 §3.16 [any-key]."""
    raw = amf3.encode(Dictionary([(7, None)]))
    assert raw == bytes.fromhex("11 03 00 04 07 01")
    assert amf3.decode(raw) == [Dictionary([(7, None)])]


def test_short_byte_arrays_are_not_mistaken_for_one():
    """Covers AMF3 §3.14 [byte-array-layout]: Python shares what Flash can change one by one."""
    raw = bytes.fromhex("09 07 01 0c 01 0c 01 09 01 01")
    values = amf3.decode(raw + bytes.fromhex("09 06"))
    assert amf3.encode(*values) == raw + bytes.fromhex("09 06")
