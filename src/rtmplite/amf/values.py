"""The values that AMF carries and Python has no word for.

Implements AMF0 §2.1.  Where Python has the type, it is used: `None`, `bool`, `float`,
`str`, `dict` for an anonymous object and `list` for a strict array.  The rest is here.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias


class Undefined:
    """The type of `UNDEFINED`, which is neither null nor missing: §2.8."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNDEFINED"

    def __bool__(self) -> bool:
        return False


class Unsupported:
    """The type of `UNSUPPORTED`, what a sender writes instead of what it cannot: §2.15."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSUPPORTED"

    def __bool__(self) -> bool:
        return False


UNDEFINED: Final = Undefined()
UNSUPPORTED: Final = Unsupported()


class EcmaArray(dict[str, "Value"]):
    """An array with names for indices, kept apart from a plain object: §2.10.

    Equal to a `dict` of the same members; only the marker on the wire differs.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"EcmaArray({super().__repr__()})"


class TypedObject(dict[str, "Value"]):
    """An object that names its class, the name being an alias both ends agreed on: §2.18."""

    __slots__ = ("class_name",)

    def __init__(self, class_name: str, members: "dict[str, Value] | None" = None) -> None:
        super().__init__(members or {})
        self.class_name = class_name

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TypedObject)
            and self.class_name == other.class_name
            and super().__eq__(other)
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __repr__(self) -> str:
        return f"TypedObject({self.class_name!r}, {super().__repr__()})"


@dataclass(frozen=True, slots=True)
class Date:
    """A moment: §2.13.

    `ms` counts milliseconds from 1970 in UTC.  `timezone` is what Flash writes into the reserved
    field (minutes), kept as found, and 0 unless given.
    """

    ms: float
    timezone: int = 0


@dataclass(frozen=True, slots=True)
class Xml:
    """The text of an XML document, as opaque to us as any string: §2.17."""

    text: str


Value: TypeAlias = (
    "bool | int | float | str | dict[str, Value] | list[Value]"
    " | Date | Xml | Undefined | Unsupported | None"
)
