"""The values of AMF for which Python has no type.

Implements AMF0 §2.1 and AMF3 §3.1.  Where Python has the type, it is used: `None`, `bool`, `int`,
`float`, `str`, `dict` for an anonymous object, `list` for an array that is only dense, and `bytes`
for a ByteArray (AMF3 §3.14).  The rest is here, one class for each kind, so that a value can be
written again as the kind it was read as.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, Literal, Self, TypeAlias, TypeGuard


class Undefined:
    """The type of `UNDEFINED`, which is neither null nor missing: AMF0 §2.8 and AMF3 §3.2."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNDEFINED"

    def __bool__(self) -> bool:
        return False


class Unsupported:
    """The type of `UNSUPPORTED`, a value that cannot be written: AMF0 §2.15, not AMF3 §2.1."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSUPPORTED"

    def __bool__(self) -> bool:
        return False


UNDEFINED: Final = Undefined()
"""The only `Undefined`: AMF0 §2.8, AMF3 §3.2."""
UNSUPPORTED: Final = Unsupported()
"""The only `Unsupported`: AMF0 §2.15."""


class EcmaArray(dict[str, "Value"]):
    """An array with names for indices, kept apart from a plain object: AMF0 §2.10, AMF3 §3.11.

    Equal to a `dict` of the same members; only the marker on the wire differs.  `announced` is the
    count that its sender put before it, where that was not the number of members: Flash writes the
    length of the array there.
    """

    __slots__ = ("announced",)

    announced: int | None

    def __new__(cls, *args: object, **members: object) -> Self:
        self = super().__new__(cls)
        self.announced = None
        return self

    def __repr__(self) -> str:
        return f"EcmaArray({super().__repr__()})"


@dataclass(slots=True)
class Array:
    """An array with both portions, `dense` by number and `associative` by name: AMF3 §3.11."""

    dense: "list[Value]" = field(default_factory=list)
    associative: "dict[str, Value]" = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Traits:
    """The name and member names that all instances of a class share: AMF3 §3.12.

    `sealed` names the members that every instance has, in the order of their values; a `dynamic`
    class lets an instance have more.  `class_name` is empty for an anonymous class.
    """

    class_name: str = ""
    sealed: tuple[str, ...] = ()
    dynamic: bool = True


class TypedObject(dict[str, "Value"]):
    """An object with a class name, or all traits as `of`: AMF0 §2.18, AMF3 §3.12."""

    __slots__ = ("traits",)

    def __init__(self, of: str | Traits, members: "dict[str, Value] | None" = None) -> None:
        super().__init__(members or {})
        self.traits = Traits(of) if isinstance(of, str) else of

    @property
    def class_name(self) -> str:
        """The alias of the class, empty for an anonymous one: AMF0 §2.18."""
        return self.traits.class_name

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TypedObject) and self.traits == other.traits and super().__eq__(other)
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __repr__(self) -> str:
        plain = self.traits == Traits(self.class_name)
        return f"TypedObject({self.class_name if plain else self.traits!r}, {super().__repr__()})"


@dataclass(frozen=True, slots=True)
class Date:
    """A moment: AMF0 §2.13 and AMF3 §3.10.

    `ms` counts milliseconds from 1970 in UTC.  `timezone` is what Flash writes into the reserved
    field of AMF0 (minutes), kept as found, and 0 unless given; AMF3 has no such field.
    """

    ms: float
    timezone: int = 0


@dataclass(frozen=True, slots=True)
class XmlDocument:
    """The text of ActionScript's older XML class, opaque to us: AMF0 §2.17 and AMF3 §3.9."""

    text: str


@dataclass(frozen=True, slots=True)
class Xml:
    """The text of ActionScript's newer XML class, that of E4X: AMF3 §3.13."""

    text: str


class VectorKind(IntEnum):
    """The base types that a vector may have, by their markers: AMF3 §3.15."""

    INT = 0x0D
    UINT = 0x0E
    DOUBLE = 0x0F
    OBJECT = 0x10


@dataclass(slots=True)
class Vector:
    """An array of one type, of a `fixed` length or not: AMF3 §3.15.

    `items` are 32-bit integers, floats or, for a vector of objects, any values that the class
    `class_name` admits, `*` being any.
    """

    kind: VectorKind
    items: "list[Value]" = field(default_factory=list)
    fixed: bool = False
    class_name: str = ""


@dataclass(slots=True)
class Dictionary:
    """Pairs of a key, which may be any value, and a value: AMF3 §3.16.

    A list of pairs and no `dict`, since keys are told apart by identity and may be mutable.
    `weak` says that its owner does not keep keys alive.
    """

    entries: "list[tuple[Value, Value]]" = field(default_factory=list)
    weak: bool = False


@dataclass(slots=True)
class Externalizable:
    """An instance of a class with a format of its own that `externals` knows: AMF3 §3.12."""

    class_name: str
    content: "Value" = None


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that holds an instance of a class with an unknown format of its own.

    AMF3 §3.12 gives such a body no length, so nothing after it can be told apart either: `data` is
    everything from the beginning of the outermost value to the end of the message, in AMF0 (with
    the switch to AMF3, if there is one) or AMF3 as `version` says.  Written last, after the same
    values, it is what it was.
    """

    class_name: str
    data: bytes
    version: Literal[0, 3]


Value: TypeAlias = (
    "bool | int | float | str | bytes | dict[str, Value] | list[Value] | Array | Date | XmlDocument"
    " | Xml | Vector | Dictionary | Externalizable | Opaque | Undefined | Unsupported | None"
)


def is_number(value: Value) -> TypeGuard[int | float]:
    """Whether it is a number: AMF0 has one type of them (AMF0 §2.2), AMF3 two (AMF3 §3.6, §3.7)."""
    return isinstance(value, int | float) and not isinstance(value, bool)
