"""Writes AMF3, repeated values as references.

Implements AMF3 §3.
"""

from collections.abc import Mapping
from struct import Struct, error, pack
from typing import Final, Protocol

from rtmplite.amf import u29
from rtmplite.amf.amf3_reader import Marker
from rtmplite.amf.cursor import MAX_DEPTH
from rtmplite.amf.values import (
    Array,
    Date,
    Dictionary,
    EcmaArray,
    Externalizable,
    Opaque,
    Traits,
    TypedObject,
    Undefined,
    Value,
    Vector,
    VectorKind,
    Xml,
    XmlDocument,
)
from rtmplite.errors import LocalError

INTEGERS: Final = range(-(1 << 28), 1 << 28)  # Source: §3.6

_DOUBLE: Final = Struct(">d")
_CODES: Final = {VectorKind.INT: "i", VectorKind.UINT: "I", VectorKind.DOUBLE: "d"}
_PLAIN: Final = Traits()


class ExternalWriter(Protocol):
    """Writes the body of one class: §3.12."""

    def write(self, writer: "Amf3Writer", content: Value) -> None:
        """Write a value that `ExternalReader.read` returned: §3.12."""


class Amf3Writer:
    """The output so far, and the tables of its values: §2.2."""

    def __init__(self, externals: Mapping[str, ExternalWriter]) -> None:
        """Begin with empty tables, as every message does: §4.1."""
        self.parts: list[bytes] = []
        self.externals = externals
        self.depth = 0
        # §4.1 [tables-are-reset], §2.2 [tables-are-kept] [three-tables]
        self.strings: dict[str, int] = {}
        self.objects: dict[int, int] = {}  # by identity, which the next line keeps from reuse
        self.written: list[Value] = []
        self.traits: dict[Traits | str, int] = {}

    def value(self, value: Value) -> None:
        """Write one value: §3.1.  LocalError if AMF3 cannot express it."""
        match value:
            case None:
                self._marker(Marker.NULL)  # §3.1 [markers]
            case bool():
                self._marker(Marker.TRUE if value else Marker.FALSE)  # §3.1 [markers]
            case int() if value in INTEGERS:
                self._marker(Marker.INTEGER)  # §3.1 [markers]
                self.u29(value & u29.MAX)
            case int() | float():
                self._marker(Marker.DOUBLE)  # §3.1 [markers], §3.6 [large-integer-is-double]
                self.double(value)
            case str():
                self._marker(Marker.STRING)  # §3.1 [markers], §3.8 [one-string]
                self.string(value)
            case Undefined():
                self._marker(Marker.UNDEFINED)  # §3.1 [markers]
            case _:
                self._complex(value)

    def u29(self, value: int) -> None:
        """Write an integer without its marker (§1.3.1)."""
        self.parts.append(u29.pack(value))  # §1.3.1 [u29-layout]

    def double(self, value: float) -> None:
        """Write a number without its marker: §3.7."""
        try:
            self.parts.append(_DOUBLE.pack(value))  # §3.7 [double-is-double]
        except (OverflowError, error):
            raise LocalError("an integer beyond what a double can hold") from None

    def string(self, text: str) -> None:
        """Write a string without its marker: §1.3.2 and §3.8."""
        known = self.strings.get(text)
        if known is not None:
            self.u29(known << 1)  # §3.8 [string-by-reference]
            return
        if text:  # §1.3.2 [empty-is-no-reference], §3.8 [empty-never-referred]
            self.strings[text] = len(self.strings)
        self._raw(text.encode("utf-8", "replace"))  # §1.3.2 [utf8] [string-header]

    def _marker(self, marker: int) -> None:
        self.parts.append(bytes((marker,)))

    def _raw(self, raw: bytes) -> None:
        # §1.3.2 [string-header] [string-limit], §3.14 [byte-array-layout]
        # §3.14 [byte-array-limit]
        self.u29(len(raw) << 1 | 1)
        self.parts.append(raw)

    def _complex(self, value: Value) -> None:
        """Write a value of the reference table, or a reference to it: §3.1."""
        marker = _marker_of(value)
        self._marker(marker)
        known = self.objects.get(id(value))
        if known is not None:
            self.u29(known << 1)  # §3.1 [objects-by-reference]
            return
        if not isinstance(value, bytes) or len(value) > 1:  # Python has but one of each shorter
            self.objects[id(value)] = len(self.written)  # §2.2 [from-zero]
        self.written.append(value)
        match value:
            case XmlDocument() | Xml():
                # §3.9 [xml-document-layout], §3.13 [xml-layout]
                self._raw(value.text.encode("utf-8", "replace"))
            case Date():
                self.u29(1)  # §3.10 [date-layout] [date-has-no-zone]
                self.double(value.ms)
            case bytes():
                self._raw(value)  # §3.14 [byte-array-layout]
            case _:
                self._container(value)

    def _container(self, value: Value) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise LocalError(f"AMF values nested more than {MAX_DEPTH} deep")
        match value:
            case list():
                self._array(value, {})
            case EcmaArray():
                self._array([], value)
            case Array():
                self._array(value.dense, value.associative)
            case dict():
                self._object(value)
            case Vector():
                self._vector(value)
            case Dictionary():
                self._dictionary(value)
            case Externalizable():
                self._external(value)
        self.depth -= 1

    def _array(self, dense: list[Value], associative: dict[str, Value]) -> None:
        self.u29(len(dense) << 1 | 1)  # §3.11 [array-layout]
        self._named(associative)
        for item in dense:
            self.value(item)

    def _named(self, members: dict[str, Value], besides: tuple[str, ...] = ()) -> None:
        for name, member in members.items():
            if name in besides:
                continue
            if not name:
                raise LocalError("AMF3 ends its members with an empty name, so none can have it")
            self.string(name)
            self.value(member)
        self.string("")  # §3.12 [dynamic-until-empty], and the same in §3.11

    def _object(self, value: dict[str, Value]) -> None:
        traits = value.traits if isinstance(value, TypedObject) else _PLAIN
        if not traits.dynamic and not value.keys() <= set(traits.sealed):
            raise LocalError(f"{traits.class_name} has no members but {traits.sealed}")
        if not self._known_traits(traits):
            self.u29(len(traits.sealed) << 4 | traits.dynamic << 3 | 3)  # §3.12 [traits-header]
            self.string(traits.class_name)  # §3.12 [anonymous-has-no-name]
            for name in traits.sealed:
                self.string(name)
        for name in traits.sealed:
            if name not in value:
                raise LocalError(f"{traits.class_name} without its member {name}")
            self.value(value[name])  # §3.12 [sealed-then-dynamic]
        if traits.dynamic:  # §3.12 [sealed-then-dynamic]
            self._named(value, traits.sealed)

    def _known_traits(self, traits: Traits | str) -> bool:
        """Refer to traits if they were written before: §3.12."""
        known = self.traits.get(traits)
        if known is None:
            self.traits[traits] = len(self.traits)
            return False
        self.u29(known << 2 | 1)  # §3.12 [traits-by-reference]
        return True

    def _external(self, value: Externalizable) -> None:
        external = self.externals.get(value.class_name)  # §3.12 [externalizable-is-agreed]
        if external is None:
            raise LocalError(f"nobody told how {value.class_name} writes itself")
        if not self._known_traits(value.class_name):
            self.u29(7)  # §3.12 [traits-header]
            self.string(value.class_name)
        external.write(self, value.content)  # §3.12 [externalizable-is-agreed]

    def _vector(self, vector: Vector) -> None:
        self.u29(len(vector.items) << 1 | 1)  # §3.15 [vector-layout]
        self.parts.append(b"\x01" if vector.fixed else b"\x00")  # §3.15 [vector-fixed]
        if vector.kind is VectorKind.OBJECT:
            self.string(vector.class_name)  # §3.15 [vector-type-name]
            for item in vector.items:
                self.value(item)
            return
        try:
            code = f">{len(vector.items)}{_CODES[vector.kind]}"
            self.parts.append(pack(code, *vector.items))  # §3.15 [vector-layout]
        except (error, OverflowError) as wrong:
            raise LocalError(f"no item for a vector of {vector.kind.name}: {wrong}") from None

    def _dictionary(self, value: Dictionary) -> None:
        """Write §3.16.

        Departs from AMF3 §3.16 [integer-keys-as-text]: an integer key was read from somebody who
        wrote it as one, and should reach the next as what it is.
        """
        self.u29(len(value.entries) << 1 | 1)  # §3.16 [dictionary-layout]
        self.parts.append(b"\x01" if value.weak else b"\x00")  # §3.16 [dictionary-weak]
        for key, item in value.entries:
            self.value(key)  # §3.16 [any-key]
            self.value(item)


def _marker_of(value: Value) -> int:
    match value:
        case list() | EcmaArray() | Array():
            return Marker.ARRAY
        case dict() | Externalizable():
            return Marker.OBJECT
        case Date():
            return Marker.DATE
        case bytes():
            return Marker.BYTE_ARRAY
        case XmlDocument():
            return Marker.XML_DOCUMENT
        case Xml():
            return Marker.XML
        case Vector():
            return value.kind
        case Dictionary():
            return Marker.DICTIONARY
        case Opaque():
            raise LocalError("an opaque value can only be the last of a message")
        case _:
            raise LocalError(f"AMF3 has no type for {type(value).__name__}")
