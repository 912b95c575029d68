"""Reads AMF3: a marker, mostly a U29, and the value that the two describe.

Implements AMF3 §3.  The lowest bit of the U29 tells a value that follows from a reference to one
that came before.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from struct import Struct, unpack
from typing import Final, Protocol, TypeVar

from rtmplite.amf import cursor as cost
from rtmplite.amf import u29
from rtmplite.amf.cursor import Cursor
from rtmplite.amf.values import (
    UNDEFINED,
    Array,
    Date,
    Dictionary,
    EcmaArray,
    Externalizable,
    Traits,
    TypedObject,
    Value,
    Vector,
    VectorKind,
    Xml,
    XmlDocument,
)
from rtmplite.errors import RemoteError

_T = TypeVar("_T")
_DOUBLE: Final = Struct(">d")
_PLAIN: Final = Traits()
_SMALL: Final = range(-5, 257)  # integers that CPython keeps anyway


class Marker(IntEnum):
    """The type of the value that follows: §3.1 [marker-values]."""

    UNDEFINED = 0x00
    NULL = 0x01
    FALSE = 0x02
    TRUE = 0x03
    INTEGER = 0x04
    DOUBLE = 0x05
    STRING = 0x06
    XML_DOCUMENT = 0x07
    DATE = 0x08
    ARRAY = 0x09
    OBJECT = 0x0A
    XML = 0x0B
    BYTE_ARRAY = 0x0C
    VECTOR_INT = 0x0D
    VECTOR_UINT = 0x0E
    VECTOR_DOUBLE = 0x0F
    VECTOR_OBJECT = 0x10
    DICTIONARY = 0x11


class UnknownExternalError(RemoteError):
    """An instance of a class whose own format is unknown: §3.12.

    Nothing after its class name can be read, though the peer is right: the readers of whole
    messages make an `Opaque` of it.
    """

    def __init__(self, class_name: str) -> None:
        super().__init__(f"the body of {class_name or 'an anonymous class'} has its own format")
        self.class_name = class_name


class ExternalReader(Protocol):
    """Reads the body of one externalizable class into `Externalizable.content`: §3.12."""

    def read(self, reader: "Amf3Reader") -> Value:
        """Read the body, raising nothing but RemoteError: §3.12."""


class Amf3Reader:
    """The values of one message, and the tables that they refer to: §2.2."""

    def __init__(self, cursor: Cursor, externals: Mapping[str, ExternalReader]) -> None:
        """Begin with empty tables, as every message does: §4.1."""
        self.cursor = cursor
        self.externals = externals
        # §4.1 [tables-are-reset], §2.2 [tables-are-kept] [three-tables]
        self.strings: list[str] = []
        self.objects: list[Value] = []
        self.traits: list[Traits | str] = []  # just a name for a class that writes itself

    def value(self) -> Value:
        """Read one value: §3.1.  RemoteError if broken; UnknownExternalError is one."""
        marker = self.cursor.u8()  # §3.1 [markers]
        self.cursor.spend(cost.SLOT)
        simple = _SIMPLE.get(marker)
        if simple is not None:
            return simple(self)
        read = _COMPLEX.get(marker)
        if read is None:
            raise RemoteError(f"AMF3 has no marker {marker:#04x}")
        header = self.cursor.u29()
        if header & 1:
            return read(self, header >> 1)
        return _at(self.objects, header >> 1)  # §3.1 [objects-by-reference]

    def string(self) -> str:
        """Read a string without its marker, as names are written: §1.3.2."""
        header = self.cursor.u29()
        if not header & 1:  # §1.3.2 [string-header]
            return _at(self.strings, header >> 1)  # §3.8 [string-by-reference]
        text = self.cursor.text(header >> 1)  # §1.3.2 [string-header]
        if text:  # §1.3.2 [empty-is-no-reference]
            self.cursor.spend(cost.SLOT)
            self.strings.append(text)  # §3.8 [string-by-reference]
        return text

    def remember(self, value: Value) -> None:
        """Number a value by where it begins, so that it may contain itself: §2.2."""
        self.cursor.spend(cost.SLOT)
        self.objects.append(value)  # §2.2 [from-zero]

    def undefined(self) -> Value:
        """Read §3.2."""
        return UNDEFINED  # §3.2 [undefined-is-a-marker]

    def null(self) -> Value:
        """Read §3.3."""
        return None  # §3.3 [null-is-a-marker]

    def false(self) -> Value:
        """Read §3.4."""
        return False  # §3.4 [false-is-a-marker]

    def true(self) -> Value:
        """Read §3.5."""
        return True  # §3.5 [true-is-a-marker]

    def integer(self) -> int:
        value = u29.signed(self.cursor.u29())  # §3.6 [integer-is-signed]
        if value not in _SMALL:
            self.cursor.spend(cost.INT)
        return value

    def double(self) -> float:
        """Read a number without its marker: §3.7."""
        self.cursor.spend(cost.FLOAT)
        value: float = _DOUBLE.unpack(self.cursor.take(8))[0]  # §3.7 [double-is-double]
        return value

    def xml_document(self, length: int) -> Value:
        """Read §3.9."""
        return self._record(XmlDocument(self.cursor.text(length)))  # §3.9 [xml-document-layout]

    def xml(self, length: int) -> Value:
        """Read §3.13."""
        return self._record(Xml(self.cursor.text(length)))  # §3.13 [xml-layout]

    def date(self, _unused: int) -> Value:
        """Read §3.10."""
        return self._record(Date(self.double()))  # §3.10 [date-layout]

    def byte_array(self, length: int) -> Value:
        raw = self.cursor.take(length)  # §3.14 [byte-array-layout]
        self.cursor.spend(length)
        return self._record(raw)

    def array(self, count: int) -> Value:
        """Read an array, a `list` unless it has names: §3.11."""
        self.cursor.expect(count)
        self.cursor.spend(cost.LIST)
        name = self.string()  # §3.11 [array-layout]
        dense: list[Value] = []
        associative: dict[str, Value] = {}
        value: Value = dense
        if name and count:
            value = Array(dense, associative)
        elif name:
            value = associative = EcmaArray()
        self._record(value)  # §3.1 [objects-by-reference]
        self.cursor.enter()
        self._named(associative, name)  # §3.11 [array-layout]
        for _ in range(count):
            dense.append(self.value())  # §3.11 [array-layout]
        self.cursor.leave()
        return value

    def object(self, header: int) -> Value:
        """Read an object, a `dict` unless it has a class or sealed members: §3.12."""
        traits = self._traits(header)
        if isinstance(traits, str):
            return self._external(traits)
        value: dict[str, Value] = {} if traits == _PLAIN else TypedObject(traits)
        self.cursor.spend(cost.DICT)
        self.remember(value)  # §3.1 [objects-by-reference]
        self.cursor.enter()
        for name in traits.sealed:
            self._put(value, name)  # §3.12 [sealed-then-dynamic]
        if traits.dynamic:  # §3.12 [sealed-then-dynamic]
            self._named(value, self.string())
        self.cursor.leave()
        return value

    def vector(self, kind: VectorKind, count: int) -> Value:
        """Read numbers of 4 or 8 bytes each: §3.15."""
        code, size = _NUMBERS[kind]  # §3.15 [vector-layout]
        fixed = self.cursor.u8() != 0  # §3.15 [vector-fixed]
        self.cursor.expect(count, size)
        self.cursor.spend(cost.LIST + count * (cost.INT + 16))
        # §3.15 [vector-layout]
        items = list(unpack(f">{count}{code}", self.cursor.take(count * size)))
        return self._record(Vector(kind, items, fixed))  # §3.1 [objects-by-reference]

    def vector_of_objects(self, count: int) -> Value:
        fixed = self.cursor.u8() != 0  # §3.15 [vector-fixed]
        self.cursor.expect(count)
        self.cursor.spend(cost.LIST)
        vector = Vector(VectorKind.OBJECT, [], fixed, self.string())  # §3.15 [vector-type-name]
        self._record(vector)  # §3.1 [objects-by-reference]
        self.cursor.enter()
        for _ in range(count):
            vector.items.append(self.value())  # §3.15 [vector-layout]
        self.cursor.leave()
        return vector

    def dictionary(self, count: int) -> Value:
        value = Dictionary(weak=self.cursor.u8() != 0)  # §3.16 [dictionary-weak]
        self.cursor.expect(count, 2)
        self.cursor.spend(cost.LIST)
        self._record(value)  # §3.1 [objects-by-reference]
        self.cursor.enter()
        for _ in range(count):
            self.cursor.spend(cost.PAIR)
            # §3.16 [dictionary-layout] [any-key]
            value.entries.append((self.value(), self.value()))
        self.cursor.leave()
        return value

    def _record(self, value: Value) -> Value:
        self.cursor.spend(cost.RECORD)
        self.remember(value)
        return value

    def _named(self, into: dict[str, Value], name: str) -> None:
        while name:  # §3.12 [dynamic-until-empty], and the same in §3.11
            self._put(into, name)
            name = self.string()

    def _put(self, into: dict[str, Value], name: str) -> None:
        if not into:
            self.cursor.spend(cost.FIRST_MEMBER)
        elif len(into) >= 5:
            self.cursor.spend(cost.MORE_MEMBERS)
        into[name] = self.value()

    def _traits(self, header: int) -> Traits | str:
        if not header & 1:  # §3.12 [traits-header]
            return _at(self.traits, header >> 1)  # §3.12 [traits-by-reference]
        self.cursor.spend(2 * cost.RECORD)
        if header & 2:  # §3.12 [traits-header]
            class_name = self.string()
            self.traits.append(class_name)  # §3.12 [traits-by-reference]
            return class_name
        count = header >> 3  # §3.12 [traits-header]
        self.cursor.expect(count)
        self.cursor.spend(count * 3 * 8)
        class_name = self.string()  # §3.12 [anonymous-has-no-name]
        sealed = tuple([self.string() for _ in range(count)])
        traits = Traits(class_name, sealed, bool(header & 4))  # §3.12 [traits-header]
        self.traits.append(traits)  # §3.12 [traits-by-reference]
        return traits

    def _external(self, class_name: str) -> Value:
        external = self.externals.get(class_name)  # §3.12 [externalizable-is-agreed]
        if external is None:
            raise UnknownExternalError(class_name)
        value = Externalizable(class_name)
        self._record(value)  # §3.1 [objects-by-reference]
        self.cursor.enter()
        value.content = external.read(self)  # §3.12 [externalizable-is-agreed]
        self.cursor.leave()
        return value


def _at(table: list[_T], index: int) -> _T:
    if index >= len(table):
        raise RemoteError(f"an AMF3 reference to number {index} of {len(table)}")
    return table[index]


_NUMBERS: Final[Mapping[VectorKind, tuple[str, int]]] = {
    VectorKind.INT: ("i", 4),
    VectorKind.UINT: ("I", 4),
    VectorKind.DOUBLE: ("d", 8),
}

_SIMPLE: Final[Mapping[int, Callable[[Amf3Reader], Value]]] = {
    Marker.UNDEFINED: Amf3Reader.undefined,
    Marker.NULL: Amf3Reader.null,
    Marker.FALSE: Amf3Reader.false,
    Marker.TRUE: Amf3Reader.true,
    Marker.INTEGER: Amf3Reader.integer,
    Marker.DOUBLE: Amf3Reader.double,
    Marker.STRING: Amf3Reader.string,
}

# Those that a reference may stand for; the number is the U29 without its lowest bit.
_COMPLEX: Final[Mapping[int, Callable[[Amf3Reader, int], Value]]] = {
    Marker.XML_DOCUMENT: Amf3Reader.xml_document,
    Marker.DATE: Amf3Reader.date,
    Marker.ARRAY: Amf3Reader.array,
    Marker.OBJECT: Amf3Reader.object,
    Marker.XML: Amf3Reader.xml,
    Marker.BYTE_ARRAY: Amf3Reader.byte_array,
    Marker.VECTOR_INT: lambda reader, count: reader.vector(VectorKind.INT, count),
    Marker.VECTOR_UINT: lambda reader, count: reader.vector(VectorKind.UINT, count),
    Marker.VECTOR_DOUBLE: lambda reader, count: reader.vector(VectorKind.DOUBLE, count),
    Marker.VECTOR_OBJECT: Amf3Reader.vector_of_objects,
    Marker.DICTIONARY: Amf3Reader.dictionary,
}
