"""SIP messages: the start line, each header with its value, and the body.

Own design: see `explain.fields.field`.  Every line is given to the codec alone as well, so that
an error is found where it is; what only the whole shows is found by the word that the codec says.

    >>> field = message(Span.all(b"BYE sip:b@c SIP/2.0\\r\\nCSeq: one BYE\\r\\n\\r\\n"), Context())
    >>> [each.name for each in field.children]
    ['request line', 'CSeq']
    >>> [(each.name, each.fault.reason) for each in field.walk() if each.fault]
    [('BYE', 'Missing Via'), ('number', 'Bad Number')]
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from p2psip.errors import SipError
from p2psip.sip.framing import KeepAlive, StreamFramer
from p2psip.sip.grammar import LWS, split, split_list, text_of
from p2psip.sip.headers import LISTS, Headers
from p2psip.sip.message import (
    Request,
    Response,
    check_request,
    check_response,
    content_length,
    parse_message,
)
from p2psip.sip.multipart import is_multipart, parse_multipart
from rtclab.explain import sdp, sip_values
from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Field, Span, plain
from rtclab.explain.fields.layout import Layout, explained, refusal
from rtclab.explain.fields.source import meaning_of, source_of

SIP_START: Final = re.compile(
    rb"(?:\r\n)*(?:SIP/\d|[^\r\n]{1,2000} SIP/\d+\.\d+[ \t]*\r?\n)", re.IGNORECASE
)
_FOLD: Final = re.compile(rb"\r\n[ \t]+")
_LINE: Final = re.compile(rb"[^\r\n]+")
_DEEPEST: Final = 4  # of parts within parts, as `p2psip.sip.multipart` has it


def message(span: Span, context: Context) -> Field:
    """Describe the one message of a datagram."""
    data = bytes(span)
    start = span.start + len(data) - len(data.lstrip(b"\r\n"))
    found = span.data.find(b"\r\n\r\n", start, span.end)
    end = found if found >= 0 else span.end
    smooth = _smoothed(span, start, end)
    lines = [(each.start(), each.end()) for each in _LINE.finditer(smooth, start, end)]
    first = text_of(smooth[slice(*lines[0])]) if lines else ""
    is_response = first[:4].upper() == "SIP/"
    of = Response if is_response else Request
    name = " ".join(first.split(" ")[1:]) if is_response else first.partition(" ")[0]
    layout = Layout(plain(name) or "message", span, of, gaps=True)
    if lines:
        layout.add(_start_line(Span(smooth, *lines[0]), is_response))
    read: list[tuple[str, str]] = []
    for line in lines[1:]:
        field, pair = _header(Span(smooth, *line))
        layout.add(field)
        read += pair
    if found >= 0:
        _body(layout, Span(span.data, found + 4, span.end), read, context)
    return layout.done(fault=refusal(_checked, data))


def _checked(data: bytes) -> None:
    message = parse_message(data)
    if isinstance(message, Request):
        check_request(message)
    else:
        check_response(message)


def _smoothed(span: Span, start: int, end: int) -> bytes:
    """The buffer with spaces for folds: every octet stays where it is."""
    head = _FOLD.sub(lambda fold: b" " * len(fold[0]), span.data[start:end])
    return span.data[:start] + head + span.data[end:]


def _start_line(span: Span, is_response: bool) -> Field:
    def walk(layout: Layout) -> None:
        one, two, three = (*text_of(bytes(span)).split(" ", 2), "", "")[:3]
        if is_response:
            layout.place("version", one)
            layout.place("status", two)
            layout.place("reason", three)
            return
        layout.place("method", one)
        target = layout.place("uri", two)
        if target is not None:
            layout.fields[-1] = sip_values.uri(target)
        layout.place("version", three)

    name = "status line" if is_response else "request line"
    return explained(name, span, lambda data: parse_message(data + b"\r\n\r\n"), walk, gaps=True)


def _header(span: Span) -> tuple[Field, list[tuple[str, str]]]:
    """Describe one line, and give its name and value if it is a header."""
    text = text_of(bytes(span))
    try:
        [(name, value)] = Headers.parse_lines([text])
    except SipError:
        fault = refusal(lambda _: Headers.parse_lines([text]), b"")
        return Field("header", span.start, span.end, plain(text), fault=fault), []
    known = sip_values.KNOWN.get(name)
    written = text.partition(":")[0].rstrip(LWS)
    layout = Layout(name, span, known.of if known else None, gaps=True)
    layout.at = span.start + len(text.partition(":")[0].encode("utf-8", "surrogateescape")) + 1
    short = f"written {written}" if written != name else ""
    if known is None:
        layout.at = span.end
        return replace(layout.done(value), meaning=short), [(name, value)]
    fault = None
    for each in _values(name, value):
        found = layout.place("value", each)
        if found is not None:
            layout.fields[-1] = known.part(found)
    if name in LISTS:
        fault = refusal(lambda data: split_list(value), b"")
    field = layout.done(value, fault=fault)
    return _flattened(field, short), [(name, value)]


def _values(name: str, value: str) -> list[str]:
    """The values of a line, those that are lists cut at their commas."""
    if name not in LISTS:
        return [value] if value else []
    try:
        return [each for each in split(value, ",") if each]
    except SipError:
        return [value]


def _flattened(field: Field, short: str) -> Field:
    """A header of one value without the step between."""
    if short:
        field = replace(field, meaning=f"{short}; {field.meaning}" if field.meaning else short)
    if len(field.children) != 1:
        return field
    [only] = field.children
    fault = field.fault or only.fault
    if fault is not None and only.fault is not None and not only.children:
        return replace(field, children=(), fault=fault)
    return replace(field, children=only.children, fault=fault)


def _body(layout: Layout, span: Span, headers: list[tuple[str, str]], context: Context) -> None:
    read = Headers(headers)
    try:
        length = content_length(read)
    except SipError:
        length = None
    size = len(span) if length is None else min(length, len(span))
    kind = read.get("Content-Type", "")
    if size or not headers:
        layout.add(content(span.part(span.start, span.start + size), kind, context))
    layout.at = span.start + size
    if size < len(span):
        layout.octets("rest", meaning="dropped: behind the body")


def content(span: Span, content_type: str, context: Context, depth: int = 0) -> Field:
    """Describe a body by its Content-Type."""
    if content_type.partition(";")[0].strip(LWS).lower() == "application/sdp":
        return sdp.session(span, context)
    if is_multipart(content_type) and depth < _DEEPEST:
        return _parts(span, content_type, context, depth)
    text = bytes(span).decode("utf-8", "replace")
    return Field("body", span.start, span.end, plain(text), plain(content_type))


def _parts(span: Span, content_type: str, context: Context, depth: int) -> Field:
    def walk(layout: Layout) -> None:
        for part in parse_multipart(content_type, bytes(span)):
            start = span.data.find(part.body, layout.at, span.end)
            if start < 0 or not part.body:
                continue
            inner = span.part(start, start + len(part.body))
            kind = part.headers.get("Content-Type", "")
            layout.add(content(inner, kind, context, depth + 1))

    def parse(data: bytes) -> object:
        return parse_multipart(content_type, data)

    return explained("body", span, parse, walk, parse_multipart, gaps=True)


def stream(span: Span, context: Context) -> Field:
    """Describe what one direction of a connection carries."""
    layout = Layout("SIP stream", span, StreamFramer)
    for start, end, item in _items(span):
        if isinstance(item, KeepAlive):
            layout.add(
                Field(
                    item.name, start, end, item.value, meaning_of(KeepAlive), source_of(KeepAlive)
                )
            )
        else:
            layout.add(message(span.part(start, end), context))
    return layout.done()


def _items(span: Span) -> Iterator[tuple[int, int, object]]:
    """Yield the items of a stream with their places: the framer is fed octet by octet."""
    framer, start = StreamFramer(), span.start
    for at in range(span.start, span.end):
        for item in framer.feed(span.data[at : at + 1]):
            end = span.end if framer.broken else at + 1
            yield start, end, item
            start = end
        if framer.broken:
            return
