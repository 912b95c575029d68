"""RTMP's messages by their types: control, sound and pictures, commands, data, shared objects.

Own design: see `explain.fields.field`.

    >>> from rtmplite.rtmp.wire.control import SetChunkSize
    >>> told = SetChunkSize(4096).message()
    >>> field = message(Span.all(told.payload), told, Context())
    >>> field.name, [f"{each.name} {each.value}" for each in field.children]
    ('set chunk size message', ['size 4096'])
"""

from collections.abc import Callable
from dataclasses import fields

from rtclab.explain import amf, flv
from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.fields.layout import Layout, explained
from rtmplite.amf import amf0
from rtmplite.errors import RtmpError
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.aggregate import aggregated
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message, MessageType
from rtmplite.rtmp.wire.shared_object import (
    EVENTS,
    OtherSharedObjectEvent,
    SharedObject,
    SharedObjectEventType,
)

_Walk = Callable[[Layout, Context], str | None]


def type_name(kind: int) -> str:
    """Name a type of message."""
    known = kind in tuple(MessageType)
    return MessageType(kind).name.lower().replace("_", " ") if known else ""


def message(span: Span, whole: Message, context: Context) -> Field:
    """Describe the payload of a message."""
    name = f"{type_name(whole.type_id) or f'type {whole.type_id}'} message"
    if whole.type_id in (MessageType.AUDIO, MessageType.VIDEO) and len(span):
        body = flv.body(span, whole.type_id, context)
        return Field(name, span.start, span.end, children=(body,))
    parse, walk, of = _reading(whole)
    return explained(name, span, parse, lambda layout: walk(layout, context), of)


def _reading(whole: Message) -> tuple[Callable[[bytes], object] | None, _Walk, object]:
    """How a message is judged and walked through, and the class that stands for it."""
    match whole.type_id:
        case MessageType.COMMAND | MessageType.COMMAND_AMF3:
            return (lambda _: Command.parse(whole)), _amf, Command
        case MessageType.DATA | MessageType.DATA_AMF3:
            return None, _amf, amf0.decode
        case MessageType.SHARED_OBJECT | MessageType.SHARED_OBJECT_AMF3:
            return (lambda _: SharedObject.parse(whole)), _shared_object, SharedObject
        case MessageType.AGGREGATE:
            return (lambda _: list(aggregated(whole))), _aggregate, aggregated
    try:
        read = control.parse_control(whole)
    except RtmpError:
        read = None
    parse = (lambda _: control.parse_control(whole)) if whole.type_id <= 6 else None
    return parse, _control(whole, read), type(read) if read is not None else None


def _control(whole: Message, read: control.Control | None) -> _Walk:
    """Take the numbers of a control message, by the names of its class."""

    def walk(layout: Layout, context: Context) -> str | None:
        if whole.type_id == MessageType.USER_CONTROL:
            layout.number("event type", 2, flv.named(control.UserControlType))
        if read is None or isinstance(read, control.OtherUserControl):
            if layout.left:
                layout.octets("payload")
            return None
        for each in fields(read):
            size = 1 if each.name == "limit_type" else 4
            layout.number(each.name.replace("_", " "), size)
        if layout.left:
            layout.octets("more", meaning="ignored")
        return type(read).__name__

    return walk


def _amf(layout: Layout, context: Context) -> None:
    """A command or data: a zero before it where the type is that of AMF3."""
    first = layout.span.data[layout.at] if layout.left else 1
    if first == 0 and layout.left > 1 and not _is_number(layout):
        layout.number("format", 1)
    if layout.left:
        inner = amf.values(layout.take(layout.left), context)
        layout.fields += inner.children


def _is_number(layout: Layout) -> bool:
    """Whether a leading zero is the marker of a number; commands and data begin with a string."""
    following = layout.span.data[layout.at + 1]
    return following not in (0x02, 0x11)


def _shared_object(layout: Layout, context: Context) -> str:
    if layout.name.startswith("shared object amf3"):
        layout.number("format", 1)
    name = layout.text("name", layout.number("name length", 2))
    layout.number("version", 4)
    layout.number("flags", 4)
    layout.octets("reserved", 4)
    while layout.left:
        head = bytes(layout.span.part(layout.at, layout.at + 5))
        size = min(5 + int.from_bytes(head[1:], "big"), layout.left)
        layout.add(_event(layout.take(size), context))
    return name


def _event(span: Span, context: Context) -> Field:
    """An event of a shared object; its data are named as the fields of its class."""
    kind = span.data[span.start]
    known = EVENTS.get(kind)

    def walk(layout: Layout) -> None:
        layout.number("type", 1, flv.named(SharedObjectEventType))
        layout.number("length", 4)
        for each in fields(known) if known is not None else ():
            if each.name in ("name", "code", "level"):
                layout.text(each.name, layout.number(f"{each.name} length", 2))
            elif layout.left:
                layout.add(amf.values(layout.take(layout.left), context))
        if layout.left:
            layout.octets("data")

    of = known or OtherSharedObjectEvent
    check = None if known is None else (lambda data: known.parse(data[5:]))
    return explained(of.__name__, span, check, walk, of)


def _aggregate(layout: Layout, context: Context) -> None:
    while layout.left:
        head = bytes(layout.span.part(layout.at, layout.at + 11))
        size = 11 + int.from_bytes(head[1:4], "big")
        if len(head) == 11 and size <= layout.left:
            layout.add(flv.tag(layout.take(size), context))
            if layout.left >= 4:
                layout.number("back pointer", 4)
        else:
            layout.octets("rest")
