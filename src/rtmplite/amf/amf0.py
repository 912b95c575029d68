"""AMF0: a value is one marker byte, and the bytes that this marker requires.

Implements AMF0 §2 and §3.  Reading gives Python values (`rtmplite.amf.values` has the ones Python
lacks); writing turns them back:

    >>> encode("play", 4, None, "seed").hex(" ")
    '02 00 04 70 6c 61 79 00 40 10 00 00 00 00 00 00 05 02 00 04 73 65 65 64'
    >>> decode(encode("play", 4, None, "seed"))
    ['play', 4.0, None, 'seed']

What only AMF3 can say goes behind the marker that switches to it (§3.1).  An outermost value goes
there whole if any part of it needs AMF3, so that references stay in one table; if another part
needs AMF0, only the parts that need AMF3 do:

    >>> encode("call", b"raw").hex(" ")
    '02 00 04 63 61 6c 6c 11 0c 07 72 61 77'

Work and memory stay in proportion to the length of a message: nesting is limited by `MAX_DEPTH`,
memory by `rtmplite.amf.cursor`, and a count is not trusted before its items have arrived.
"""

from collections.abc import Callable, Mapping
from struct import Struct, error
from typing import Final

from rtmplite.amf import cursor as cost
from rtmplite.amf.amf3 import FLEX, Externals
from rtmplite.amf.amf3_reader import Amf3Reader, UnknownExternalError
from rtmplite.amf.amf3_writer import INTEGERS, Amf3Writer
from rtmplite.amf.cursor import MAX_DEPTH, Cursor
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
    Xml,
    XmlDocument,
)
from rtmplite.errors import LocalError, RemoteError

# Source: §2.1, and for all but the last four FLV 10.1 §E.4.4.2 [types]
NUMBER: Final = 0x00
BOOLEAN: Final = 0x01
STRING: Final = 0x02
OBJECT: Final = 0x03
MOVIECLIP: Final = 0x04
NULL: Final = 0x05
UNDEFINED_MARKER: Final = 0x06
REFERENCE: Final = 0x07
ECMA_ARRAY: Final = 0x08
OBJECT_END: Final = 0x09
STRICT_ARRAY: Final = 0x0A
DATE: Final = 0x0B
LONG_STRING: Final = 0x0C
UNSUPPORTED_MARKER: Final = 0x0D
RECORDSET: Final = 0x0E
XML_DOCUMENT: Final = 0x0F
TYPED_OBJECT: Final = 0x10
AVMPLUS: Final = 0x11

MAX_COMPLEX: Final = 0x10000  # what 16 bits can index: §2.9

_DOUBLE: Final = Struct(">d")  # §1.3 [big-endian]
_DATE: Final = Struct(">dh")  # FLV 10.1 §E.4.4.3 [date]
_U16: Final = Struct(">H")
_U32: Final = Struct(">I")
_END: Final = b"\x00\x00\x09"  # §2.11 [object-end], FLV 10.1 §E.4.4.7 [end-bytes]

_LONGEST_NAME: Final = 0xFFFF  # in bytes: AMF0 §2.5
_IN_BOTH: Final = frozenset({str, float, bool, type(None)})  # looked up first, being the most


def hands_over(value: Value, prefer: bool) -> bool:
    """Whether a value goes behind the switch whole, by choice with `prefer`: AMF0 §3.1."""
    if type(value) in _IN_BOTH:
        return False
    if not isinstance(value, dict | list):
        return only_amf3_has(value, prefer)
    found, seen, waiting = prefer, {id(value)}, [value]
    while waiting:
        inner = waiting.pop()
        for each in inner.values() if isinstance(inner, dict) else inner:
            if type(each) in _IN_BOTH:
                continue
            if isinstance(each, dict | list):
                if id(each) not in seen:
                    seen.add(id(each))
                    waiting.append(each)
            elif _only_amf0_has(each):
                return False
            elif only_amf3_has(each):
                found = True
        if _only_amf0_has(inner):
            return False
        found = found or only_amf3_has(inner)
    return found


def only_amf3_has(value: Value, prefer: bool = False) -> bool:
    """Whether AMF0 lacks a type, integers too with `prefer`: AMF0 §3.1, AMF0 §2.2."""
    match value:
        case bytes() | Array() | Dictionary() | Externalizable() | Vector() | Xml():
            return True
        case TypedObject() if value.traits != Traits(value.class_name):
            return True
        case TypedObject() if _long(value.class_name):
            return True
        case dict():
            return max(map(len, value), default=0) > _LONGEST_NAME // 4 and any(map(_long, value))
        case bool():
            return False
        case int():
            return prefer and value in INTEGERS
        case _:
            return False


def _only_amf0_has(value: Value) -> bool:
    """Whether AMF3 lacks the type, or reads it back as another: AMF3 §2.1."""
    match value:
        case Unsupported():
            return True
        case Date():
            return value.timezone != 0
        case EcmaArray():
            return not value or "" in value
        case TypedObject():
            return value.traits == Traits() or ("" in value and "" not in value.traits.sealed)
        case dict():
            return "" in value
        case _:
            return False


def _long(name: str) -> bool:
    return len(name.encode("utf-8", "replace")) > _LONGEST_NAME


def decode(data: bytes | memoryview, externals: Externals = FLEX) -> list[Value]:
    """Read every value of `data`, sharing one table of references as §2.9 describes.

    Behind the switch to AMF3 there are other tables (AMF3 §4.1), shared by all that is behind it;
    `externals` knows the classes there that write themselves, and others make the last value an
    `Opaque`.  Raises RemoteError if `data` ends within a value or holds a marker that cannot be
    one.
    """
    reader, values = Amf0Reader(data, externals=externals), []
    while reader.left:
        values.append(reader.outermost())
    return values


def decode_one(
    data: bytes | memoryview,
    offset: int = 0,
    seen: list[Value] | None = None,
    externals: Externals = FLEX,
) -> tuple[Value, int]:
    """Read the value at `offset`, sharing references in `seen`; and the next offset: §2.1, §2.9."""
    reader = Amf0Reader(data, offset, seen, externals)
    return reader.outermost(), reader.at


def encode(*values: Value, avmplus: bool = False, externals: Externals = FLEX) -> bytes:
    """Write values one after the other, a repeated container as a reference: §2.9.

    An `int` becomes a Number, and only what AMF0 lacks goes behind the switch to AMF3.  With
    `avmplus`, for a peer that has AMF3 (RTMP Errata §7.2), integers and containers go there too,
    and integers stay integers.  Raises LocalError for what neither version can say.
    """
    writer = _Writer(avmplus, externals)
    for index, value in enumerate(values):
        if isinstance(value, Opaque) and index == len(values) - 1:
            writer.parts += b"\x11" if value.version else b"", value.data
        else:
            writer.outermost(value)
    return b"".join(writer.parts)


class Amf0Reader(Cursor):
    """One pass over `data`, with the table that references point into: §2.9."""

    def __init__(
        self,
        data: bytes | memoryview,
        at: int = 0,
        seen: list[Value] | None = None,
        externals: Externals = FLEX,
    ) -> None:
        super().__init__(data, at)
        self.seen = [] if seen is None else seen
        self.amf3 = Amf3Reader(self, externals)

    def outermost(self) -> Value:
        """Without an agreement on a class, the rest stays bytes (AMF3 §3.12)."""
        start = self.at
        try:
            return self.value()
        except UnknownExternalError as unknown:
            self.at = len(self.data)
            # AMF3 §3.12 [externalizable-is-agreed]
            return Opaque(unknown.class_name, self.data[start:], 0)

    def value(self) -> Value:
        marker = self.u8()
        self.spend(cost.SLOT)
        read = READERS.get(marker)  # §2.1 [markers]
        if read is None:
            # §2.6 [movieclip-reserved], §2.16 [recordset-reserved], §2.11 [object-end-only-there],
            # §2.1 [object-end-only-closes]
            raise RemoteError(_COMPLAINTS.get(marker, f"AMF0 has no marker {marker:#04x}"))
        return read(self)

    def u16(self) -> int:
        return int.from_bytes(self.take(2), "big")  # §1.3 [big-endian]

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "big")  # §1.3 [big-endian]

    def number(self) -> float:
        self.spend(cost.FLOAT)
        value: float = _DOUBLE.unpack(self.take(8))[0]  # §2.2 [number-is-double]
        return value

    def boolean(self) -> bool:
        return self.u8() != 0  # §2.3 [boolean-nonzero]

    def null(self) -> None:
        return None  # §2.7 [null-is-a-marker]

    def undefined(self) -> Undefined:
        return UNDEFINED  # §2.8 [undefined-is-a-marker]

    def unsupported(self) -> Unsupported:
        return UNSUPPORTED  # §2.15 [unsupported-is-a-marker]

    def string(self) -> str:
        return self.text(self.u16())  # §2.4 [string-u16], FLV 10.1 §E.4.4.10 [string]

    def long_string(self) -> str:
        # §2.14 [long-string-u32], FLV 10.1 §E.4.4.5 [long-string]
        return self.text(self.u32())

    def xml(self) -> XmlDocument:
        self.spend(cost.RECORD)
        return XmlDocument(self.long_string())  # §2.17 [xml-is-long-string]

    def date(self) -> Date:
        self.spend(cost.RECORD + cost.FLOAT)
        # §2.13 [date-layout], FLV 10.1 §E.4.4.3 [date]
        return Date(*_DATE.unpack(self.take(10)))

    def reference(self) -> Value:
        index = self.u16()  # §2.9 [reference-u16]
        if index >= len(self.seen):
            raise RemoteError(f"an AMF0 reference to value {index} of {len(self.seen)}")
        return self.seen[index]

    def object(self) -> Value:
        return self.members({})  # §2.5 [object-layout], FLV 10.1 §E.4.4.6 [end-follows]

    def ecma_array(self) -> Value:
        # Often wrong: §2.10 [ecma-array-layout], FLV 10.1 §E.4.4.4 [count-is-approximate]
        count = self.u32()
        array = EcmaArray()
        self.members(array)
        if count != len(array):
            self.spend(cost.INT)
            array.announced = count
        return array

    def typed_object(self) -> Value:
        self.spend(cost.RECORD)
        # §2.18 [typed-object-layout]; whoever has no such class finds a dict: §2.5
        # [unregistered-is-anonymous].
        return self.members(TypedObject(self.string()))

    def avmplus(self) -> Value:
        # §3.1 [avmplus-switches], AMF3 §4.1 [switch-in-a-message], and E-RTMP v2 §"Important
        # AMF3-encoded Historical Specification Clarification" [back-to-amf0].
        return self.amf3.value()

    def members(self, into: dict[str, Value]) -> Value:
        self.spend(cost.DICT)
        self.begin(into)
        while True:
            name = self.string()  # §2.10 [keys-are-text], FLV 10.1 §E.4.4.8 [name-then-value]
            if not name and self.data[self.at : self.at + 1] == _END[2:]:
                break
            if not into:
                self.spend(cost.FIRST_MEMBER)
            elif len(into) >= 5:
                self.spend(cost.MORE_MEMBERS)
            into[name] = self.value()
        self.at += 1  # over the marker that ends it: §2.11 [object-end]
        self.leave()
        return into

    def strict_array(self) -> Value:
        count = self.u32()  # §2.12 [strict-array-layout]
        self.expect(count)
        self.spend(cost.LIST)
        items: list[Value] = []
        self.begin(items)
        for _ in range(count):  # FLV 10.1 §E.4.4.9 [count-is-exact]
            items.append(self.value())
        self.leave()
        return items

    def begin(self, container: Value) -> None:
        """Number a complex value by where it begins, so that it may contain itself."""
        self.spend(cost.SLOT)
        self.seen.append(container)  # §2.9 [reference-from-0]
        self.enter()


# §2.1 [marker-values] [markers]
READERS: Final[Mapping[int, Callable[[Amf0Reader], Value]]] = {
    NUMBER: Amf0Reader.number,
    BOOLEAN: Amf0Reader.boolean,
    STRING: Amf0Reader.string,
    OBJECT: Amf0Reader.object,
    NULL: Amf0Reader.null,
    UNDEFINED_MARKER: Amf0Reader.undefined,
    REFERENCE: Amf0Reader.reference,
    ECMA_ARRAY: Amf0Reader.ecma_array,
    STRICT_ARRAY: Amf0Reader.strict_array,
    DATE: Amf0Reader.date,
    LONG_STRING: Amf0Reader.long_string,
    UNSUPPORTED_MARKER: Amf0Reader.unsupported,
    XML_DOCUMENT: Amf0Reader.xml,
    TYPED_OBJECT: Amf0Reader.typed_object,
    AVMPLUS: Amf0Reader.avmplus,
}

_COMPLAINTS: Final[Mapping[int, str]] = {
    MOVIECLIP: "AMF0 movie clips cannot be sent",  # §2.6
    RECORDSET: "AMF0 record sets cannot be sent",  # §2.16
    OBJECT_END: "an AMF0 object ends that never began",  # §2.11
}


class _Writer:
    """The output so far, with the place of each container in it."""

    def __init__(self, avmplus: bool, externals: Externals) -> None:
        self.parts: list[bytes] = []
        self.seen: dict[int, int] = {}
        self.prefer_amf3 = avmplus
        self.amf3 = Amf3Writer(externals)
        self.amf3.parts = self.parts

    def outermost(self, value: Value) -> None:
        """Write one value, all of it in the same version if possible."""
        if hands_over(value, self.prefer_amf3):
            self.switch(value, 0)
        else:
            self.value(value, 0)

    def value(self, value: Value, depth: int) -> None:
        match value:
            case None:
                self.parts.append(b"\x05")
            case bool():
                self.parts.append(b"\x01\x01" if value else b"\x01\x00")
            case str():
                self.string(value)
            case float():
                self.parts += b"\x00", _DOUBLE.pack(value)
            case _ if only_amf3_has(value, self.prefer_amf3):
                self.switch(value, depth)
            case int():
                self.integer(value)
            case dict() | list():
                self.container(value, depth)
            case Date():
                # §2.13 [date-layout] [date-zone-empty], FLV 10.1 §E.4.4.3 [date]
                self.parts += b"\x0b", _DATE.pack(value.ms, value.timezone)
            case XmlDocument():
                raw = value.text.encode("utf-8", "replace")  # §1.3.1 [utf8]
                self.parts += b"\x0f", _U32.pack(len(raw)), raw
            case Undefined():
                # §2.12 [gaps-are-undefined], FLV 10.1 §E.4.4.9 [gaps-are-undefined]
                self.parts.append(b"\x06")
            case Unsupported():
                self.parts.append(b"\x0d")
            case _:
                raise LocalError(f"AMF0 has no type for {type(value).__name__}")

    def switch(self, value: Value, depth: int) -> None:
        # §3.1 [avmplus-switches], AMF3 §4.1 [switch-in-a-message], and E-RTMP v2 §"Important
        # AMF3-encoded Historical Specification Clarification" [each-has-a-marker].
        self.parts.append(b"\x11")
        self.amf3.depth = depth
        self.amf3.value(value)

    def integer(self, value: int) -> None:
        try:
            self.parts += b"\x00", _DOUBLE.pack(value)
        except (OverflowError, error):
            raise LocalError("an integer beyond what a Number can hold") from None

    def string(self, text: str) -> None:
        raw = text.encode("utf-8", "replace")  # §1.3.1 [utf8]
        if len(raw) > 0xFFFF:
            # §2.4 [long-when-over-64k]
            self.parts += b"\x0c", _U32.pack(len(raw)), raw
        else:
            self.parts += b"\x02", _U16.pack(len(raw)), raw

    def name(self, text: str) -> None:
        raw = text.encode("utf-8", "replace")  # §1.3.1 [utf8]
        if len(raw) > 0xFFFF:
            raise LocalError("an AMF0 name holds at most 65535 bytes")
        self.parts += _U16.pack(len(raw)), raw

    def container(self, value: dict[str, Value] | list[Value], depth: int) -> None:
        known = self.seen.get(id(value), MAX_COMPLEX)
        if known < MAX_COMPLEX:
            # §2.9 [repeat-by-reference] [reference-u16], §2.5 [same-by-reference]
            self.parts += b"\x07", _U16.pack(known)
            return
        if depth == MAX_DEPTH:
            raise LocalError(f"AMF0 values nested more than {MAX_DEPTH} deep")
        self.seen[id(value)] = len(self.seen)
        if isinstance(value, list):
            # §2.12 [strict-array-layout], FLV 10.1 §E.4.4.9 [count-is-exact]
            self.parts += b"\x0a", _U32.pack(len(value))
            for item in value:
                self.value(item, depth + 1)
            return
        match value:
            case EcmaArray():
                count = len(value) if value.announced is None else value.announced
                # §2.10 [ecma-array-layout], FLV 10.1 §E.4.4.4 [array-with-names]
                self.parts += b"\x08", _U32.pack(count)
            case TypedObject():
                self.parts.append(b"\x10")
                self.name(value.class_name)
            case _:
                self.parts.append(b"\x03")
        for name, member in value.items():
            self.name(name)
            self.value(member, depth + 1)
        self.parts.append(_END)  # §2.11 [object-end], FLV 10.1 §E.4.4.6 [end-follows]
