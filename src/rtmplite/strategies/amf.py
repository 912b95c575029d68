"""AMF0 values, and encodings of them that no writer chooses but every reader must accept.

Own design, over the grammar of AMF0 §2.
"""

from collections.abc import Callable, Collection
from functools import cache
from struct import pack
from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from rtmplite.amf import amf0
from rtmplite.amf.values import (
    UNDEFINED,
    UNSUPPORTED,
    Array,
    Date,
    Dictionary,
    EcmaArray,
    Externalizable,
    Opaque,
    TypedObject,
    Value,
    Vector,
    XmlDocument,
)
from rtmplite.strategies import amf3

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_INT16 = st.integers(-(1 << 15), (1 << 15) - 1)


@cache
def scalars() -> SearchStrategy[Value]:
    """Values that hold no others, of every kind: AMF0 §2.2 to §2.8, and AMF0 §2.13 to §2.17."""
    return cast(
        SearchStrategy[Value],
        st.one_of(
            st.none(),
            st.booleans(),
            st.floats(),
            _TEXT,
            st.builds(Date, st.floats(), _INT16),
            st.builds(XmlDocument, _TEXT),
            st.sampled_from([UNDEFINED, UNSUPPORTED]),
        ),
    )


def _containers(inner: SearchStrategy[Value]) -> SearchStrategy[Value]:
    members = st.dictionaries(_TEXT, inner, max_size=4)
    return cast(
        SearchStrategy[Value],
        st.one_of(
            st.lists(inner, max_size=4),
            members,
            members.map(EcmaArray),
            st.builds(TypedObject, _TEXT, members),
        ),
    )


@cache
def values(max_leaves: int = 12) -> SearchStrategy[Value]:
    """Any value, up to a few levels deep: AMF0 §2.1."""
    return st.recursive(scalars(), _containers, max_leaves=max_leaves)


@cache
def _makers() -> SearchStrategy[list[Callable[[], Value]]]:
    makers: list[Callable[[], Value]] = [list, dict, EcmaArray, _typed]
    return st.lists(st.sampled_from(makers), min_size=1, max_size=5)


@cache
def _links(count: int) -> SearchStrategy[list[Any]]:
    """What one of `count` containers holds: others by their index in a tuple, and scalars."""
    return st.lists(st.tuples(st.sampled_from(range(count))) | scalars(), max_size=3)


@cache
@st.composite
def graphs(draw: DrawFn) -> Value:
    """Containers that hold each other and themselves: AMF0 §2.9."""
    nodes: list[Value] = [make() for make in draw(_makers())]
    for node in nodes:
        links = [
            nodes[each[0]] if type(each) is tuple else each for each in draw(_links(len(nodes)))
        ]
        if isinstance(node, list):
            node.extend(links)
        elif isinstance(node, dict):
            node.update({f"n{index}": link for index, link in enumerate(links)})
    return nodes[0]


def _typed() -> Value:
    return TypedObject("T", {})


@cache
def encoded() -> SearchStrategy[bytes]:
    """Some values as our own writer puts them: AMF0 §2.1."""
    return st.lists(values(), min_size=1, max_size=4).map(lambda some: amf0.encode(*some))


@cache
def unusual() -> SearchStrategy[tuple[bytes, Value]]:
    """One value and an encoding of it that is legal, or accepted, but not the usual one.

    AMF0 §2.14 for a short text, §2.3 for other truths than 1, FLV 10.1 §E.4.4.4 for a count that
    is only approximate, AMF0 §2.9 for references, and names that are empty (AMF0 §2.5).
    """
    counts = st.integers(0, 0xFFFFFFFF)
    return st.one_of(
        _TEXT.map(lambda text: (_long(text), cast(Value, text))),
        st.integers(1, 255).map(lambda byte: (bytes((1, byte)), cast(Value, True))),
        st.tuples(counts, st.dictionaries(_TEXT, values(3), max_size=3)).map(_miscounted),
        values(4).map(_repeated),
        scalars().map(_nameless),
    )


def _long(text: str) -> bytes:
    raw = text.encode()
    return b"\x0c" + pack(">I", len(raw)) + raw


def _miscounted(given: tuple[int, dict[str, Value]]) -> tuple[bytes, Value]:
    count, members = given
    return b"\x08" + pack(">I", count) + amf0.encode(members)[1:], EcmaArray(members)


def _repeated(value: Value) -> tuple[bytes, Value]:
    """An object, then a reference to it: the array around both has index 0."""
    inner: Value = {"x": value}
    return b"\x0a" + pack(">I", 2) + amf0.encode(inner) + b"\x07\x00\x01", [inner, inner]


def _nameless(value: Value) -> tuple[bytes, Value]:
    return b"\x03\x00\x00" + amf0.encode(value) + b"\x00\x00\x09", {"": value}


@cache
def unagreed() -> SearchStrategy[tuple[bytes, Opaque]]:
    """The same as `amf3.unagreed` behind the switch to AMF3: AMF0 §3.1, AMF3 §3.12."""
    around = st.sampled_from([b"", b"\x0a\0\0\0\1", b"\x03\0\1a"])
    return st.builds(_switched, around, amf3.unagreed())


def _switched(around: bytes, drawn: tuple[bytes, Opaque]) -> tuple[bytes, Opaque]:
    octets, value = drawn
    data = around + b"\x11" + octets
    return data, Opaque(value.class_name, data, 0)


def alike(one: Value, other: Value) -> bool:
    """Own design: whether values are the same to types, bits of numbers and references."""
    return _Comparison().same(one, other)


class _Comparison:
    """Which container of one side has been met where on the other."""

    def __init__(self) -> None:
        self.met: dict[int, int] = {}
        self.back: dict[int, int] = {}
        self.compared: set[tuple[int, int]] = set()

    def same(self, one: Value, other: Value) -> bool:
        if type(one) is not type(other):
            return False
        if isinstance(one, list | dict | Array | Vector | Dictionary | Externalizable):
            known = (
                self.met.setdefault(id(one), id(other)),
                self.back.setdefault(id(other), id(one)),
            )
            if known != (id(other), id(one)):
                return False
            if known in self.compared:
                return True
            self.compared.add(known)
        match one, other:
            case float(a), float(b):
                return pack(">d", a) == pack(">d", b)
            case Date(), Date():
                return one.timezone == other.timezone and self.same(one.ms, other.ms)
            case list(a), list(b):
                return self.all(a, b)
            case dict(a), dict(b):
                traits = getattr(a, "traits", None) == getattr(b, "traits", None)
                return traits and list(a) == list(b) and self.all(a.values(), b.values())
            case Array(), Array():
                return self.same(one.dense, other.dense) and self.same(
                    one.associative, other.associative
                )
            case Vector(), Vector():
                named = one.kind, one.fixed, one.class_name
                return named == (other.kind, other.fixed, other.class_name) and self.all(
                    one.items, other.items
                )
            case Dictionary(), Dictionary():
                return one.weak == other.weak and self.all(
                    [each for pair in one.entries for each in pair],
                    [each for pair in other.entries for each in pair],
                )
            case Externalizable(), Externalizable():
                return one.class_name == other.class_name and self.same(one.content, other.content)
            case _:
                return one == other

    def all(self, some: Collection[Value], others: Collection[Value]) -> bool:
        return len(some) == len(others) and all(map(self.same, some, others))
