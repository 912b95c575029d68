"""Neutral JSON: decoded values as any language can write them, and the comparison of two.

Own design: no specification has a JSON form for these protocols.  The rules are those of
docs/5-reference/oracle-protocol.md: a record is an object with the names of its fields, octets
are hexadecimal text, and a record that may be of several types has its type first.

    >>> from p2psip.rtp.packet import RtpPacket
    >>> written = to_neutral(RtpPacket(0, 7, 160, 51966, b"abc"))
    >>> written["sequence"], written["payload"], written["extension"]
    (7, '616263', None)
    >>> from_neutral(written, RtpPacket) == RtpPacket(0, 7, 160, 51966, b"abc")
    True
    >>> difference(written, written | {"sequence": 8}).place
    ('sequence',)
"""

import dataclasses
import re
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from inspect import Parameter, signature
from typing import Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

from rtclab.command_line.arguments import ConfigError

Json: TypeAlias = Any
EXACT: Final = 1 << 53  # what JSON numbers hold in every language is below
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
UNIONS: Final = (Union, types.UnionType)


class NeutralError(ConfigError):
    """JSON that is no value of the codec; the message names the member."""


def to_neutral(value: Any, *, typed: bool = False) -> Json:
    """Write a value; `typed` puts the name of its type first, where a reader cannot know it."""
    match value:
        case None | bool():
            return value
        case int():
            return int(value) if abs(value) < EXACT else str(int(value))
        case str():
            return text(value)
        case bytes():
            return value.hex()
    of: Any = type(value)
    names = field_names(of)
    if names is not None:
        head: dict[str, Json] = {"type": type_name(of)} if typed else {}
        hints = hints_of(of)
        return head | {
            name: to_neutral(getattr(value, name), typed=has_types(hints[name])) for name in names
        }
    return [to_neutral(each, typed=typed) for each in value]


def text(value: str) -> Json:
    """Write text as text, and octets in an unknown encoding as `{"octets": HEX}`."""
    octets = value.encode("utf-8", "surrogateescape")
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return {"octets": octets.hex()}


def from_neutral(written: Json, hint: Any, where: str = "value") -> Any:
    """Read a value of the type `hint`, the inverse of `to_neutral`.  Raises NeutralError."""
    if get_origin(hint) in UNIONS:
        return _one_of(written, get_args(hint), where)
    read = _READERS.get(hint)
    if read is not None:
        return read(written, where)
    if get_origin(hint) in (tuple, list):
        return _sequence(written, hint, where)
    names = field_names(hint)
    if names is None:
        known = written if issubclass(hint, StrEnum) else integer(written, where)
        try:
            return hint(known)
        except ValueError:
            raise NeutralError(f"{where}: no meaning for {known}") from None
    members = record(written, where)
    if unknown := [name for name in members if name not in (*names, "type")]:
        raise NeutralError(f"{where}: unknown {', '.join(unknown)}")
    hints = hints_of(hint)
    given = {
        name: from_neutral(members[name], hints[name], f"{where}.{name}")
        for name in names
        if name in members
    }
    parameters = signature(hint).parameters
    required = [name for name in names if parameters[name].default is Parameter.empty]
    if missing := [name for name in required if name not in members]:
        raise NeutralError(f"{where}: missing {', '.join(missing)}")
    return hint(**given)


def record(written: Json, where: str) -> dict[str, Json]:
    """Take an object.  Raises NeutralError."""
    if not isinstance(written, dict):
        raise NeutralError(f"{where} is no object")
    return written


def array(written: Json, where: str) -> list[Json]:
    """Take an array.  Raises NeutralError."""
    if not isinstance(written, list):
        raise NeutralError(f"{where} is no array")
    return written


def integer(written: Json, where: str) -> int:
    """Read a whole number, or the decimal digits of one.  Raises NeutralError."""
    if isinstance(written, str | int) and not isinstance(written, bool):
        try:
            return int(written)
        except ValueError:
            pass
    raise NeutralError(f"{where} is no whole number")


def octets(written: Json, where: str) -> bytes:
    """Read hexadecimal text.  Raises NeutralError."""
    try:
        return bytes.fromhex(written)
    except (TypeError, ValueError):
        raise NeutralError(f"{where} is no hexadecimal text") from None


def string(written: Json, where: str) -> str:
    """Read text, or the octets of text in an unknown encoding.  Raises NeutralError."""
    if isinstance(written, dict) and set(written) == {"octets"}:
        return octets(written["octets"], where).decode("utf-8", "surrogateescape")
    if not isinstance(written, str):
        raise NeutralError(f"{where} is no text")
    return written


def boolean(written: Json, where: str) -> bool:
    """Take true or false.  Raises NeutralError."""
    if not isinstance(written, bool):
        raise NeutralError(f"{where} is neither true nor false")
    return written


_READERS: Final[dict[Any, Callable[[Json, str], Any]]] = {
    bool: boolean,
    int: integer,
    str: string,
    bytes: octets,
}


def _sequence(written: Json, hint: Any, where: str) -> Any:
    items, inner = array(written, where), get_args(hint)
    if get_origin(hint) is tuple and inner[-1] is not Ellipsis:
        if len(items) != len(inner):
            raise NeutralError(f"{where} is not {len(inner)} items long")
        kinds: Sequence[Any] = inner
    else:
        kinds = [inner[0]] * len(items)
    found = [
        from_neutral(item, each, f"{where}[{at}]")
        for at, (item, each) in enumerate(zip(items, kinds, strict=True))
    ]
    return get_origin(hint)(found)


def _one_of(written: Json, hints: Sequence[Any], where: str) -> Any:
    if written is None and types.NoneType in hints:
        return None
    left = [hint for hint in flat(hints) if hint is not types.NoneType]
    if len(left) == 1:
        return from_neutral(written, left[0], where)
    name = record(written, where).get("type")
    for hint in left:
        if type_name(hint) == name:
            return from_neutral(written, hint, where)
    raise NeutralError(f"{where}: unknown type {name!r}")


def flat(hints: Sequence[Any]) -> Iterator[Any]:
    """The types of a union, those of inner unions included."""
    for hint in hints:
        if get_origin(hint) in UNIONS:
            yield from flat(get_args(hint))
        else:
            yield hint


@cache
def field_names(of: Any) -> tuple[str, ...] | None:
    """The fields of a dataclass or of a named tuple, in order; None for a type without fields."""
    if dataclasses.is_dataclass(of):
        return tuple(each.name for each in dataclasses.fields(of) if each.compare)
    return getattr(of, "_fields", None)


@cache
def hints_of(of: Any) -> dict[str, Any]:
    """The types of the fields of a record."""
    return get_type_hints(of)


@cache
def type_name(of: Any) -> str:
    """The name of a type as neutral JSON has it: `ReceiverReport` is `receiver-report`."""
    return _CAPITAL.sub("-", of.__name__).lower()


def has_types(hint: Any) -> bool:
    """Whether a value of this type may be, or hold, a record of several types."""
    if get_origin(hint) in UNIONS:
        return len([each for each in flat(get_args(hint)) if field_names(each) is not None]) > 1
    return any(has_types(inner) for inner in get_args(hint))


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where two values differ, and what both have there.

    `names` are the types of the records on the way to it and their fields; `place` is the last of
    these types with the fields behind it, the same at whatever depth the record is.
    """

    names: tuple[str, ...]
    place: tuple[str, ...]
    expected: Json
    answered: Json


@dataclass(slots=True)
class Members:
    """The members that an answer left out, and those it has too many, by path."""

    missing: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)


def difference(expected: Json, answered: Json, seen: Members | None = None) -> Difference | None:
    """Give the first difference between two neutral values, None where they agree.

    A member that the answer leaves out is not compared, and noted in `seen`.
    """
    return _difference(expected, answered, (), (), Members() if seen is None else seen)


def _difference(
    one: Json, other: Json, names: tuple[str, ...], place: tuple[str, ...], seen: Members
) -> Difference | None:
    if isinstance(one, dict) and isinstance(other, dict):
        if isinstance(one.get("type"), str):
            names, place = (*names, one["type"]), (one["type"],)
        seen.unknown.update(".".join((*place, name)) for name in other if name not in one)
        seen.missing.update(".".join((*place, name)) for name in one if name not in other)
        both = [
            (one[name], other[name], (*names, name), (*place, name))
            for name in one
            if name in other
        ]
    elif isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return Difference(names, place, one, other)
        both = [(mine, theirs, names, place) for mine, theirs in zip(one, other, strict=True)]
    else:
        return None if _same(one, other) else Difference(names, place, one, other)
    found = (_difference(*pair, seen) for pair in both)
    return next((each for each in found if each), None)


def _same(one: Json, other: Json) -> bool:
    """Compare two scalars; a number may be written as a float, and a large one as a number."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, str) and isinstance(other, int):
        return one == str(other)
    return bool(one == other)
