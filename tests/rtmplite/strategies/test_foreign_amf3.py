"""Py3AMF reads what the strategies of AMF3 draw as our codec means it.

Own design: a second opinion on valid input.  `docs/3-howto/use-as-oracle.md` says what Py3AMF
cannot read.
"""

import importlib.util
import os
from struct import pack

import pytest
from support.oracle import drawn

from rtmplite.amf import amf3 as ours
from rtmplite.amf.values import (
    UNDEFINED,
    Array,
    Date,
    Dictionary,
    EcmaArray,
    Externalizable,
    TypedObject,
    Vector,
    Xml,
    XmlDocument,
)
from rtmplite.strategies import amf3

UNKNOWN = (Vector, Dictionary, Externalizable)
CONTAINERS = (list, dict, Array)
TOGETHER = 5  # values of one message

pytestmark = pytest.mark.timeout(2400)


@pytest.fixture
def read(monkeypatch):
    """Give a function that reads all values of a message.

    Dates are left as seconds and XML as text, of which Py3AMF would make a `datetime` and a tree:
    neither takes everything that AMF3 may carry.  It would import a module that has the name of a
    class, too.
    """
    if importlib.util.find_spec("pyamf") is None:
        missing = "Py3AMF is not installed: pip install .[test]"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    import pyamf
    from pyamf import amf3, util, xml

    def load_class(name):
        raise pyamf.UnknownClassAlias(name)

    monkeypatch.setattr(pyamf, "load_class", load_class)
    monkeypatch.setattr(util, "get_datetime", lambda seconds: seconds)
    monkeypatch.setattr(xml, "fromstring", lambda text, **_: text.decode())

    def read(data):
        decoder = amf3.Decoder(data)
        while not decoder.stream.at_eof():
            yield decoder.readElement()

    return read


def parts(value):
    """The values that a container holds."""
    match value:
        case Array():
            return [*value.associative.values(), *value.dense]
        case dict():
            return list(value.values())
        case list():
            return value
        case _:
            return []


def kinds(value):
    """The types of a value and of all within it, each container once."""
    found, left, met = set(), [value], set()
    while left:
        one = left.pop()
        found.add(type(one))
        if id(one) not in met:
            met.add(id(one))
            left += parts(one)
    return found


def is_known(value):
    """Whether Py3AMF can read it all."""
    return kinds(value).isdisjoint(UNKNOWN)


def same(value, read, met):
    """Whether that was read; what occurs twice must be one and the same thing on both sides."""
    if isinstance(value, CONTAINERS):
        if id(value) in met:
            return met[id(value)] is read
        met[id(value)] = read
    match value:
        case bool() | None:
            return read is value
        case int() | str():
            return type(read) is type(value) and read == value
        case float():
            return type(read) is float and pack(">d", read) == pack(">d", value)
        case bytes():
            return type(read).__name__ == "ByteArray" and bytes(read) == value
        case Date():
            return pack(">d", read) == pack(">d", value.ms / 1000.0)
        case Xml() | XmlDocument():
            return read == value.text
        case list():
            return type(read) is list and alike(value, read, met)
        case _ if value is UNDEFINED:
            return type(read).__name__ == "UndefinedType"
    return in_class(value, read) and alike(parts(value), list(read.values()), met)


def in_class(value, read):
    """Whether an object was read, or an array with names, and which names."""
    names, kind = list(value.associative if isinstance(value, Array) else value), "ASObject"
    if isinstance(value, Array | EcmaArray):
        kind, names = "MixedArray", [*names, *range(len(getattr(value, "dense", ())))]
    elif getattr(value, "class_name", ""):
        kind = "TypedObject"
        assert read.alias == value.class_name
    return type(read).__name__ == kind and list(read) == names


def alike(some, others, met):
    """Whether each is the same as the other in its place."""
    return len(some) == len(others) and all(
        same(one, other, met) for one, other in zip(some, others, strict=True)
    )


@pytest.mark.parametrize("shape", [amf3.values(), amf3.graphs()], ids=["trees", "graphs"])
def test_values(read, shape):
    """Covers AMF3 §2 and §3: each kind, and what is written as a reference to something before.

    Several values share the tables of one message (AMF3 §4.1).
    """
    known = [each for each in drawn(shape) if is_known(each)]
    for at in range(0, len(known), TOGETHER):
        some = known[at : at + TOGETHER]
        assert alike(some, list(read(ours.encode(*some))), {}), some
    assert len(set().union(*map(kinds, known)) & {*CONTAINERS, EcmaArray, TypedObject}) > 1


def test_unusual_encodings(read):
    """Covers AMF3 §1.3.1, §3.8, §3.10 and §3.12."""
    for data, value in drawn(amf3.unusual()):
        if is_known(value):
            assert alike([value], list(read(data)), {}), data
