"""AMF0 and AMF3: every value with its marker, those within it, and the names of members.

Own design: see `explain.fields.field`.  The codec's own readers read; here they are watched, as
each begins and ends a value.

    >>> from rtmplite.amf import amf0
    >>> data = amf0.encode("connect", 1.0, {"app": "live"})
    >>> field = values(Span.all(data), Context())
    >>> [(each.value, each.meaning) for each in field.children]
    [('"connect"', 'string'), ('1.0', 'number'), ('1 member', 'object')]
    >>> [(each.name, each.value) for each in field.children[2].children]
    [('name', 'app'), ('app', '"live"'), ('object end', '')]
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import MAX_TEXT, Field, Span, plain
from rtclab.explain.fields.source import Source, fault_of, source_of
from rtmplite.amf import amf0, amf3
from rtmplite.amf.amf0 import READERS, Amf0Reader
from rtmplite.amf.amf3 import FLEX
from rtmplite.amf.amf3_reader import Amf3Reader, Marker, UnknownExternalError
from rtmplite.amf.cursor import Cursor
from rtmplite.amf.values import Date, Value
from rtmplite.errors import RtmpError

_METHODS: Final = {
    Marker.VECTOR_INT: Amf3Reader.vector,
    Marker.VECTOR_UINT: Amf3Reader.vector,
    Marker.VECTOR_DOUBLE: Amf3Reader.vector,
    Marker.VECTOR_OBJECT: Amf3Reader.vector_of_objects,
}


class _Record:
    """The fields under way, the outermost first; positions are moved by `base`."""

    def __init__(self, base: int) -> None:
        self.base = base
        self.open: list[list[Field]] = [[]]
        self.label = ""
        self.blamed: RtmpError | None = None

    def watch(
        self, cursor: Cursor, read: Callable[[], Value], kind: str, source: Source | None
    ) -> Value:
        """Read a value, and add its field; also where it is refused, which is passed on."""
        name, self.label, start, shown = self.label or "value", "", cursor.at, ""
        self.open.append([])
        refused: RtmpError | None = None
        try:
            value = read()
            shown = _shown(value)
            return value
        except RtmpError as error:
            refused = error
            raise
        finally:
            children = tuple(self.open.pop())
            span = self._moved((start, max(cursor.at, start)))
            self._add(Field(plain(name), *span, plain(shown), kind, source, children))
            if refused is not None and not isinstance(refused, UnknownExternalError):
                self.fail(refused)

    def fail(self, error: RtmpError) -> None:
        """Blame the value that was closed last, unless one within it is to blame."""
        if self.blamed is not error and self.open[-1]:
            self.blamed = error
            self.open[-1][-1] = replace(self.open[-1][-1], fault=fault_of(error))

    def name(self, span: tuple[int, int], text: str, name: str = "name") -> None:
        """Add the name of a member; the next value goes by it."""
        self._add(Field(name, *self._moved(span), plain(text)))
        self.label = text

    def _moved(self, span: tuple[int, int]) -> tuple[int, int]:
        return self.base + span[0], self.base + span[1]

    def _add(self, field: Field) -> None:
        self.open[-1].append(field)


class _Amf0(Amf0Reader):
    """Reads AMF0, and records where.  Own design: see the module."""

    def __init__(self, data: bytes, record: _Record) -> None:
        super().__init__(data)
        self.record = record
        self.amf3 = _Amf3(self, record)

    def value(self) -> Value:
        read = READERS.get(self.data[self.at] if self.left else 0)
        kind = "" if read is None else read.__name__.replace("_", " ")
        source = None if read is None else source_of(read)
        return self.record.watch(self, super().value, kind, source)

    def string(self) -> str:
        start = self.at
        text = super().string()
        if not text and self.data[self.at : self.at + 1] == b"\x09":
            self.record.name((start, self.at + 1), "", "object end")
        else:
            self.record.name((start, self.at), text)
        return text


class _Amf3(Amf3Reader):
    """Reads AMF3, and records where.  Own design: see the module."""

    def __init__(self, cursor: Cursor, record: _Record) -> None:
        super().__init__(cursor, FLEX)
        self.record = record

    def value(self) -> Value:
        cursor = self.cursor
        marker = cursor.data[cursor.at] if cursor.left else 0xFF
        known = Marker(marker) if marker in tuple(Marker) else None
        kind = f"AMF3 {known.name.lower().replace('_', ' ')}" if known is not None else ""
        source = None if known is None else source_of(_method(known))
        return self.record.watch(cursor, super().value, kind, source)

    def string(self) -> str:
        start = self.cursor.at
        text = super().string()
        self.record.name((start, self.cursor.at), text)
        return text

    def _put(self, into: dict[str, Value], name: str) -> None:
        self.record.label = name
        super()._put(into, name)


def _method(marker: Marker) -> object:
    return _METHODS.get(marker) or getattr(Amf3Reader, marker.name.lower())


def _shown(value: Value) -> str:
    """A value in a word; of a container how many are in it."""
    match value:
        case dict() | list():
            noun = "member" if isinstance(value, dict) else "item"
            return f"{len(value)} {noun}{'' if len(value) == 1 else 's'}"
        case str():
            return json.dumps(value[: MAX_TEXT + 1], ensure_ascii=False)
        case Date():
            return f"{value.ms:.0f} ms since 1970"
        case bytes():
            return f"{len(value)} octets"
        case None | bool() | int() | float():
            return json.dumps(value)
    return type(value).__name__


def values(span: Span, context: Context) -> Field:
    """Describe values of AMF0, to the end."""
    data, record = bytes(span), _Record(span.start)
    reader = _Amf0(data, record)
    try:
        while reader.left:
            record.label = ""
            reader.outermost()
    except RtmpError:
        pass  # it is in the record
    return _whole("AMF0", span, record, source_of(amf0.decode))


def amf3_values(span: Span, context: Context) -> Field:
    """Describe values of AMF3, to the end."""
    record = _Record(span.start)
    cursor = Cursor(bytes(span))
    reader = _Amf3(cursor, record)
    try:
        while cursor.left:
            record.label = ""
            reader.value()
    except UnknownExternalError:
        pass  # the rest is in a format of its own
    except RtmpError:
        pass  # it is in the record
    return _whole("AMF3", span, record, source_of(amf3.decode))


def _whole(name: str, span: Span, record: _Record, source: Source) -> Field:
    children = record.open[0]
    end = children[-1].end if children else span.start
    if end < span.end and children:
        children.append(Field("rest", end, span.end, meaning="not described"))
    return Field(name, span.start, span.end, source=source, children=tuple(children))
