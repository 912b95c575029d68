"""AMF3 values, in trees and in graphs, and encodings of them that no writer chooses.

Own design, over the grammar of AMF3 §3.
"""

from collections.abc import Callable
from functools import cache
from struct import pack
from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from rtmplite.amf import amf3, u29
from rtmplite.amf.amf3 import FLEX
from rtmplite.amf.values import (
    UNDEFINED,
    Array,
    Date,
    Dictionary,
    EcmaArray,
    Externalizable,
    Opaque,
    Traits,
    TypedObject,
    Value,
    Vector,
    VectorKind,
    Xml,
    XmlDocument,
)

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_NAMES = st.text("abcé", min_size=1, max_size=2)
_SEALED = st.lists(st.text("xyz", max_size=2), max_size=3, unique=True).map(tuple)
_INTEGERS = st.integers(-(1 << 28), (1 << 28) - 1)
_ITEMS = {
    VectorKind.INT: st.integers(-(1 << 31), (1 << 31) - 1),
    VectorKind.UINT: st.integers(0, (1 << 32) - 1),
    VectorKind.DOUBLE: st.floats(),
}


@cache
def scalars() -> SearchStrategy[Value]:
    """Values that hold no others, of every kind: AMF3 §3.2 to §3.10, and §3.13 to §3.15."""
    return cast(
        SearchStrategy[Value],
        st.one_of(
            st.none(),
            st.booleans(),
            _INTEGERS,
            st.floats(),
            _TEXT,
            st.binary(max_size=12),
            st.builds(Date, st.floats()),
            st.builds(XmlDocument, _TEXT),
            st.builds(Xml, _TEXT),
            st.just(UNDEFINED),
            st.sampled_from(list(_ITEMS)).flatmap(_numbers),
        ),
    )


@cache
def _numbers(kind: VectorKind) -> SearchStrategy[Vector]:
    items = st.lists(cast(SearchStrategy[Value], _ITEMS[kind]), max_size=4)
    return st.builds(Vector, st.just(kind), items, st.booleans())


@cache
def values(max_leaves: int = 12) -> SearchStrategy[Value]:
    """Any value in which nothing occurs twice, up to a few levels deep: AMF3 §3.1."""
    return st.recursive(scalars(), _containers, max_leaves=max_leaves)


def _containers(inner: SearchStrategy[Value]) -> SearchStrategy[Value]:
    items = st.lists(inner, max_size=3)
    members = st.dictionaries(_NAMES, inner, max_size=3)
    named = st.dictionaries(_NAMES, inner, min_size=1, max_size=3)
    return cast(
        SearchStrategy[Value],
        st.one_of(
            items,
            members,
            named.map(EcmaArray),
            st.builds(Array, st.lists(inner, min_size=1, max_size=3), named),
            st.builds(_instance, _TEXT, _SEALED, st.booleans(), members, inner),
            st.builds(Vector, st.just(VectorKind.OBJECT), items, st.booleans(), _TEXT),
            st.builds(Dictionary, st.lists(st.tuples(inner, inner), max_size=3), st.booleans()),
            st.builds(Externalizable, st.sampled_from(list(FLEX)), inner),
        ),
    )


def _instance(
    name: str, sealed: tuple[str, ...], dynamic: bool, members: dict[str, Value], filling: Value
) -> Value:
    """An object of a class, unless it could as well be a plain one."""
    traits = Traits(name, sealed, dynamic)
    own = {each: filling if index == 0 else None for index, each in enumerate(sealed)}
    every = own | members if dynamic else own
    return every if traits == Traits() else TypedObject(traits, every)


@cache
def _makers() -> SearchStrategy[list[Callable[[], Value]]]:
    makers: list[Callable[[], Value]] = [list, dict, _typed, _array, _vector, _dictionary, _wrapped]
    return st.lists(st.sampled_from(makers), min_size=1, max_size=5)


@cache
def _links(count: int) -> SearchStrategy[list[Any]]:
    """What one of `count` containers holds: others by their index in a tuple, and scalars."""
    return st.lists(st.tuples(st.sampled_from(range(count))) | scalars(), max_size=3)


@cache
@st.composite
def graphs(draw: DrawFn) -> Value:
    """Containers that hold each other and themselves: AMF3 §2.2."""
    nodes: list[Value] = [make() for make in draw(_makers())]
    for node in nodes:
        links = [
            nodes[each[0]] if type(each) is tuple else each for each in draw(_links(len(nodes)))
        ]
        for index, link in enumerate(links):
            _join(node, f"n{index}", link)
    return nodes[0]


def _typed() -> Value:
    return TypedObject(Traits("T", ("s",), True), {"s": None})


def _array() -> Value:
    return Array([None], {"a": None})


def _vector() -> Value:
    return Vector(VectorKind.OBJECT, [], class_name="*")


def _dictionary() -> Value:
    return Dictionary()


def _wrapped() -> Value:
    return Externalizable("flex.messaging.io.ArrayCollection")


def _join(node: Value, name: str, link: Value) -> None:
    match node:
        case list():
            node.append(link)
        case dict():
            node[name] = link
        case Array():
            node.dense.append(link)
            node.associative[name] = link
        case Vector():
            node.items.append(link)
        case Dictionary():
            node.entries.append((link, link))
        case Externalizable():
            node.content = link


@cache
def encoded() -> SearchStrategy[bytes]:
    """Some values as our own writer puts them: AMF3 §3.1."""
    trees = st.lists(values(), min_size=1, max_size=4)
    return (trees | graphs().map(lambda graph: [graph])).map(lambda some: amf3.encode(*some))


@cache
def unusual() -> SearchStrategy[tuple[bytes, Value]]:
    """One value and an encoding of it that is legal, or accepted, but not the usual one.

    AMF3 §1.3.1 for integers longer than needed, §3.8 and §3.12 for what could have been a
    reference, and §3.10 and §3.15 for bits that say nothing.
    """
    return st.one_of(
        _INTEGERS.map(lambda value: (b"\x04" + _longest(value & u29.MAX), cast(Value, value))),
        _NAMES.map(_twice),
        st.tuples(_NAMES, scalars()).map(_traits_again),
        st.tuples(st.floats(), st.integers(0, u29.MAX >> 1)).map(_dated),
        st.integers(1, 255).map(_fixed),
    )


def _longest(value: int) -> bytes:
    """In four bytes, whether they are needed or not: only the last has all its bits."""
    return bytes((*(value >> shift & 0x7F | 0x80 for shift in (22, 15, 8)), value & 0xFF))


def _twice(text: str) -> tuple[bytes, Value]:
    raw = text.encode()
    one = b"\x06" + u29.pack(len(raw) << 1 | 1) + raw
    return b"\x09\x05\x01" + one + one, [text, text]


def _traits_again(given: tuple[str, Value]) -> tuple[bytes, Value]:
    """Two instances of one class, the second of which tells its traits again."""
    name, value = given
    raw = name.encode()
    text = u29.pack(len(raw) << 1 | 1) + raw
    one = b"\x0a\x13" + text + text + b"\x01"
    traits = Traits(name, (name,), False)
    instances: list[Value] = [TypedObject(traits, {name: None}) for _ in range(2)]
    return b"\x09\x07\x01" + one + one + amf3.encode(value), [*instances, value]


def _dated(given: tuple[float, int]) -> tuple[bytes, Value]:
    ms, unused = given
    return b"\x08" + u29.pack(unused << 1 | 1) + pack(">d", ms), Date(ms)


def _fixed(flag: int) -> tuple[bytes, Value]:
    return bytes((0x0D, 1, flag)), Vector(VectorKind.INT, [], True)


@cache
def unagreed() -> SearchStrategy[tuple[bytes, Opaque]]:
    """An externalizable instance of an unknown class, ending nobody knows where: AMF3 §3.12."""
    around = st.sampled_from([b"", b"\x09\x03\x01", b"\x0a\x0b\x01\x03a"])
    return st.builds(_unagreed, around, _NAMES, st.binary(max_size=12))


def _unagreed(around: bytes, letters: str, body: bytes) -> tuple[bytes, Opaque]:
    raw = f"nobody.{letters}".encode()
    data = around + b"\x0a\x07" + u29.pack(len(raw) << 1 | 1) + raw + body
    return data, Opaque(raw.decode(), data, 3)
