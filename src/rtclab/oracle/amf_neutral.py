"""AMF values as neutral JSON: doubles by their bits, containers once and then by their id.

Own design: JSON has one type of number, no identity and no NaN, and its objects need not keep the
order of their members, all of which the values of AMF0 §2 and AMF3 §3 have.

    >>> inner = {"x": 1.0}
    >>> for each in write([inner, inner]):
    ...     print(each)
    {'type': 'object', 'id': 1, 'members': [['x', {'type': 'double', 'bits': '3ff0000000000000'}]]}
    {'type': 'reference', 'id': 1}
"""

from collections.abc import Callable
from struct import pack, unpack
from typing import Any, Final

from rtclab.oracle.neutral import (
    Json,
    NeutralError,
    array,
    boolean,
    integer,
    octets,
    record,
    string,
    text,
)
from rtmplite.amf.values import (
    UNDEFINED,
    UNSUPPORTED,
    Array,
    Date,
    Dictionary,
    EcmaArray,
    Externalizable,
    Opaque,
    Traits,
    TypedObject,
    Undefined,
    Unsupported,
    Value,
    Vector,
    VectorKind,
    Xml,
    XmlDocument,
)

SHAPE: Final = (
    "value: [value]",
    "null, true, false and text stand for themselves",
    "double: bits (16 hexadecimal digits)",
    "integer: value number",
    "undefined, unsupported: no fields",
    "date: ms (the bits of a double), timezone number",
    "xml-document, xml: text text",
    "byte-array: octets octets",
    "object, ecma-array: id number, members [[text, value]]",
    "typed-object: id number, class text, sealed [text], dynamic boolean, members [[text, value]]",
    "strict-array: id number, items [value]",
    "array: id number, dense [value], associative [[text, value]]",
    "vector: id number, of (int, uint, double or object), fixed boolean, class text, items [value]",
    "dictionary: id number, weak boolean, entries [[value, value]]",
    "externalizable: id number, class text, content value",
    "reference: id number",
    "opaque: class text, octets octets, amf number",
)


def write(values: list[Value]) -> Json:
    """Write the values of one message; ids count its containers from 1, in order."""
    writer = _Writer()
    return [writer.value(each) for each in values]


def read(written: Json) -> list[Value]:
    """Read the values of one message.  Raises NeutralError."""
    reader = _Reader()
    return [reader.value(each, f"value[{at}]") for at, each in enumerate(array(written, "value"))]


def _bits(number: float) -> str:
    return pack(">d", number).hex()


class _Writer:
    def __init__(self) -> None:
        self.ids: dict[int, int] = {}

    def value(self, value: Value) -> Json:
        """Write one value."""
        match value:
            case None | bool():
                return value
            case str():
                return text(value)
            case int():
                return {"type": "integer", "value": value}
            case float():
                return {"type": "double", "bits": _bits(value)}
            case bytes():
                return {"type": "byte-array", "octets": value.hex()}
            case Undefined():
                return {"type": "undefined"}
            case Unsupported():
                return {"type": "unsupported"}
            case Date():
                return {"type": "date", "ms": _bits(value.ms), "timezone": value.timezone}
            case XmlDocument():
                return {"type": "xml-document", "text": text(value.text)}
            case Xml():
                return {"type": "xml", "text": text(value.text)}
            case Opaque():
                name, data = text(value.class_name), value.data.hex()
                return {"type": "opaque", "class": name, "octets": data, "amf": value.version}
        if id(value) in self.ids:
            return {"type": "reference", "id": self.ids[id(value)]}
        self.ids[id(value)] = len(self.ids) + 1
        kind, members = self.container(value)
        return {"type": kind, "id": self.ids[id(value)], **members}

    def container(self, value: Any) -> tuple[str, dict[str, Json]]:
        """Write a container: its kind, and the members behind its id."""
        match value:
            case list():
                return "strict-array", {"items": list(map(self.value, value))}
            case EcmaArray():
                return "ecma-array", {"members": self.members(value)}
            case TypedObject():
                traits = value.traits
                return "typed-object", {
                    "class": text(traits.class_name),
                    "sealed": list(map(text, traits.sealed)),
                    "dynamic": traits.dynamic,
                    "members": self.members(value),
                }
            case Array():
                dense = list(map(self.value, value.dense))
                return "array", {"dense": dense, "associative": self.members(value.associative)}
            case Vector():
                return "vector", {
                    "of": value.kind.name.lower(),
                    "fixed": value.fixed,
                    "class": text(value.class_name),
                    "items": list(map(self.value, value.items)),
                }
            case Dictionary():
                entries = [[self.value(key), self.value(each)] for key, each in value.entries]
                return "dictionary", {"weak": value.weak, "entries": entries}
            case Externalizable():
                named = text(value.class_name)
                return "externalizable", {"class": named, "content": self.value(value.content)}
        return "object", {"members": self.members(value)}

    def members(self, members: dict[str, Value]) -> Json:
        """Write names and values, as pairs in their order."""
        return [[text(name), self.value(each)] for name, each in members.items()]


class _Reader:
    def __init__(self) -> None:
        self.known: dict[int, Value] = {}

    def value(self, written: Json, where: str) -> Value:
        """Read one value."""
        if written is None or isinstance(written, bool):
            return written
        if isinstance(written, str) or (isinstance(written, dict) and set(written) == {"octets"}):
            return string(written, where)
        given = record(written, where)
        kind = string(given.get("type"), f"{where}.type")
        try:
            if kind == "reference":
                return self.known[integer(given["id"], where)]
            if kind in _CONTAINERS:
                container = _CONTAINERS[kind](given, where)
                self.known[integer(given["id"], where)] = container
                self.fill(container, given, where)
                return container
            return _SCALARS[kind](given, where)
        except KeyError as error:
            raise NeutralError(f"{where}: no {error} for the type {kind!r}") from None

    def fill(self, into: Any, given: dict[str, Json], where: str) -> None:
        """Put in what a container holds, which may be the container itself."""
        match into:
            case list():
                into.extend(self.items(given["items"], where))
            case dict():
                into.update(self.members(given["members"], where))
            case Array():
                into.dense.extend(self.items(given["dense"], where))
                into.associative.update(self.members(given["associative"], where))
            case Vector():
                into.items.extend(self.items(given["items"], where))
            case Dictionary():
                for pair in array(given["entries"], where):
                    if len(entry := self.items(pair, where)) != 2:
                        raise NeutralError(f"{where}: an entry is a key and a value")
                    into.entries.append((entry[0], entry[1]))
            case Externalizable():
                into.content = self.value(given["content"], where)

    def items(self, written: Json, where: str) -> list[Value]:
        """Read values in their order."""
        return [self.value(each, f"{where}[{at}]") for at, each in enumerate(array(written, where))]

    def members(self, written: Json, where: str) -> dict[str, Value]:
        """Read pairs of a name and a value."""
        found: dict[str, Value] = {}
        for pair in array(written, where):
            if len(array(pair, where)) != 2:
                raise NeutralError(f"{where}: a member is a name and a value")
            name = string(pair[0], where)
            found[name] = self.value(pair[1], f"{where}.{name}")
        return found


def _double(bits: Json, where: str) -> float:
    data = octets(bits, where)
    if len(data) != 8:
        raise NeutralError(f"{where}: a double has 16 digits")
    return float(unpack(">d", data)[0])


def _typed(given: dict[str, Json], where: str) -> Value:
    sealed = tuple(string(each, where) for each in array(given.get("sealed", []), where))
    dynamic = boolean(given.get("dynamic", True), where)
    return TypedObject(Traits(string(given["class"], where), sealed, dynamic))


def _vector(given: dict[str, Json], where: str) -> Value:
    kind = VectorKind[string(given["of"], where).upper()]
    return Vector(kind, [], boolean(given["fixed"], where), string(given["class"], where))


_CONTAINERS: Final[dict[str, Callable[[dict[str, Json], str], Value]]] = {
    "object": lambda given, where: {},
    "strict-array": lambda given, where: [],
    "ecma-array": lambda given, where: EcmaArray(),
    "typed-object": _typed,
    "array": lambda given, where: Array(),
    "vector": _vector,
    "dictionary": lambda given, where: Dictionary([], boolean(given["weak"], where)),
    "externalizable": lambda given, where: Externalizable(string(given["class"], where)),
}
_SCALARS: Final[dict[str, Callable[[dict[str, Json], str], Value]]] = {
    "integer": lambda given, where: integer(given["value"], where),
    "double": lambda given, where: _double(given["bits"], where),
    "byte-array": lambda given, where: octets(given["octets"], where),
    "undefined": lambda given, where: UNDEFINED,
    "unsupported": lambda given, where: UNSUPPORTED,
    "date": lambda given, where: Date(
        _double(given["ms"], where), integer(given["timezone"], where)
    ),
    "xml-document": lambda given, where: XmlDocument(string(given["text"], where)),
    "xml": lambda given, where: Xml(string(given["text"], where)),
    "opaque": lambda given, where: Opaque(
        string(given["class"], where),
        octets(given["octets"], where),
        3 if integer(given["amf"], where) == 3 else 0,
    ),
}
