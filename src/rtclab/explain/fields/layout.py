"""Lists the fields of a piece of a buffer, from its first octet to its last.

Own design: a describer walks through the octets in the order of the codec and takes a field after
the other.  Where the octets end too soon the walk ends, and the codec's error has its place.

    >>> from p2psip.errors import RemoteError
    >>> def walk(layout):
    ...     version, count = layout.bits(1, ("version", 2), ("count", 6))
    ...     layout.number("length", 2, "octets")
    >>> def parse(data):
    ...     raise RemoteError("a length beyond the end")
    >>> field = explained("packet", Span.all(b"\\x81\\x00\\x05?"), parse, walk)
    >>> [(each.name, each.value, each.span) for each in field.children]
    [('version', '2', (0, 2)), ('count', '1', (2, 8)), ('length', '5', (8, 24)), ('rest', '', \
(24, 32))]
    >>> [each.name for each in field.walk() if each.fault]
    ['length']
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from p2psip.errors import SipError
from rtclab.explain.fields.field import Field, Span, plain
from rtclab.explain.fields.source import Fault, Source, fault_of, meaning_of, source_of
from rtmplite.errors import RtmpError

_WORD: Final = re.compile(r"[a-z0-9]+")
REFUSALS: Final = (SipError, RtmpError)
Meaning = str | Callable[[int], str]


class EndError(Exception):
    """The octets end within a field."""


class Layout:
    """The fields found so far in a span; `at` is where the next one begins.

    With `gaps`, as in text, the octets between fields need no description.
    """

    def __init__(self, name: str, span: Span, of: object = None, *, gaps: bool = False) -> None:
        self.name, self.span, self.of, self.gaps = name, span, of, gaps
        self.at = span.start
        self.fields: list[Field] = []

    @property
    def left(self) -> int:
        """How many octets remain."""
        return self.span.end - self.at

    def add(self, field: Field) -> Field:
        """Put a field that was described elsewhere; the next one begins after it."""
        self.fields.append(field)
        self.at = field.end
        return field

    def take(self, size: int) -> Span:
        """Step over octets that are described elsewhere; raises EndError if they are missing."""
        if not 0 <= size <= self.left:
            raise EndError
        self.at += size
        return self.span.part(self.at - size, self.at)

    def octets(
        self,
        name: str,
        size: int | None = None,
        value: str = "",
        meaning: str = "",
        of: object = None,
    ) -> bytes:
        """Take octets that mean nothing more here, all that remain by default."""
        span = self.take(self.left if size is None else size)
        source = source_of(of) if of is not None else None
        self.fields.append(Field(name, span.start, span.end, plain(value), meaning, source))
        return bytes(span)

    def text(self, name: str, size: int | None = None, meaning: str = "", of: object = None) -> str:
        """Take octets that are text."""
        span = self.take(self.left if size is None else size)
        text = bytes(span).decode("utf-8", "surrogateescape")
        source = source_of(of) if of is not None else None
        self.fields.append(Field(name, span.start, span.end, plain(text), meaning, source))
        return text

    def number(
        self,
        name: str,
        size: int,
        meaning: Meaning = "",
        *,
        order: str = "big",
        signed: bool = False,
        show: str = "d",
        of: object = None,
    ) -> int:
        """Take octets that are a number; `show` is how, as `format` has it."""
        span = self.take(size)
        little = order == "little"
        value = int.from_bytes(bytes(span), "little" if little else "big", signed=signed)
        said = meaning if isinstance(meaning, str) else meaning(value)
        source = source_of(of) if of is not None else None
        self.fields.append(Field(name, span.start, span.end, format(value, show), said, source))
        return value

    def bits(self, size: int, *parts: tuple[str, int] | tuple[str, int, Meaning]) -> list[int]:
        """Take octets in which several numbers stand, each of so many bits."""
        span = self.take(size)
        whole, at, values = int.from_bytes(bytes(span), "big"), 0, []
        for name, width, *said in parts:
            value = whole >> (8 * size - at - width) & ((1 << width) - 1)
            meaning: Meaning = said[0] if said else ""
            text = meaning if isinstance(meaning, str) else meaning(value)
            first, last = span.start + at // 8, span.start + (at + width - 1) // 8 + 1
            field = Field(name, first, last, str(value), text, bits=(at % 8, width))
            self.fields.append(field)
            values.append(value)
            at += width
        return values

    def place(
        self, name: str, text: str, value: str = "", meaning: str = "", of: object = None
    ) -> Span | None:
        """Find a text behind the fields so far, as a codec gave it; None if it is not there."""
        wanted = text.encode("utf-8", "surrogateescape")
        start = self.span.data.find(wanted, self.at, self.span.end)
        if start < 0 or not wanted:
            return None
        self.at = start + len(wanted)
        source = source_of(of) if of is not None else None
        shown = plain(value or text)
        self.fields.append(Field(plain(name), start, self.at, shown, meaning, source))
        return self.span.part(start, self.at)

    def done(self, value: str = "", meaning: str = "", fault: Fault | None = None) -> Field:
        """Close the list; octets that nobody took are the rest, and the fault finds its place."""
        if self.left > 0 and self.fields and not self.gaps:
            self.octets("rest", meaning="not described")
        source: Source | None = None if self.of is None else source_of(self.of)
        meaning = meaning or ("" if self.of is None else meaning_of(self.of))
        field = Field(self.name, self.span.start, self.span.end, plain(value), meaning, source)
        return _blamed(replace(field, children=tuple(self.fields)), fault, self.span.data)


def _blamed(field: Field, fault: Fault | None, data: bytes) -> Field:
    """Put a fault where it belongs, see `_place`, or on the whole.

    Nowhere if a field within has it already, as its codec was asked before; and where a field
    within has another one, on the whole.
    """
    found = list(field.faults())
    if fault is None or any(each.reason == fault.reason for each in found):
        return field
    children = list(field.children)
    place = None if found else _place(children, fault, data)
    if place is None:
        return field if field.fault else replace(field, fault=fault)
    children[place] = replace(children[place], fault=fault)
    return replace(field, children=tuple(children))


def _place(children: list[Field], fault: Fault, data: bytes) -> int | None:
    """Which of the fields is to blame.

    The one whose text the codec was looking at, else the one that the reason names, else the
    octets that nobody described.
    """
    held = [data[each.start : each.end].strip() for each in children]
    for given in fault.given:
        if given and given in held:
            return held.index(given)
    words = set(_WORD.findall(fault.reason.lower()))
    for place, each in enumerate(children):
        named = set(_WORD.findall(each.name.lower()))
        if named and named <= words:
            return place
    return len(children) - 1 if children and children[-1].name == "rest" else None


def refusal(parse: Callable[[bytes], object], data: bytes) -> Fault | None:
    """Ask a codec; what it has against the octets, None for nothing."""
    try:
        parse(data)
    except REFUSALS as error:
        return fault_of(error)
    return None


def explained(
    name: str,
    span: Span,
    parse: Callable[[bytes], object] | None,
    walk: Callable[[Layout], str | None],
    of: object = None,
    *,
    gaps: bool = False,
) -> Field:
    """Describe a span by `walk`, which may return its value, and judge it by `parse`."""
    layout = Layout(name, span, of, gaps=gaps)
    fault = None if parse is None else refusal(parse, bytes(span))
    value: str | None = None
    try:
        value = walk(layout)
    except EndError:
        fault = fault or Fault(f"{name} ends too soon")
    except REFUSALS as error:
        fault = fault or fault_of(error)
    if fault is not None and of is not None and not fault.citation:
        source = source_of(of)
        name = fault.name or source.name
        fault = replace(fault, citation=source.citation, name=name)
    return layout.done(value or "", fault=fault)
