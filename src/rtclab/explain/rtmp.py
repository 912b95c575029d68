"""RTMP: the handshake, the chunks, and the messages that they complete.

Own design: see `explain.fields.field`.  The codec's reader finds the chunks, and is watched; a
second one, fed chunk by chunk, tells which chunk completes which message.

    >>> data = bytes.fromhex("03 0003e8 000001 08 01000000 b2")
    >>> [chunk] = chunks(Span.all(data), Context()).children
    >>> [f"{each.name} {each.value}" for each in chunk.children][:6]
    ['fmt 0', 'chunk stream 3', 'timestamp 1000', 'message length 1', 'message type 8', \
'message stream 1']
    >>> chunk.children[-1].name, chunk.children[-1].children[0].name
    ('audio message', 'audio')
"""

from dataclasses import replace
from typing import Final, NamedTuple

from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.fields.layout import Layout
from rtclab.explain.fields.source import Fault, fault_of, source_of
from rtclab.explain.rtmp_message import message, type_name
from rtmplite.errors import RtmpError
from rtmplite.rtmp.handshake import VERSION, ServerHandshake
from rtmplite.rtmp.wire import digest
from rtmplite.rtmp.wire.chunk_header import read_basic_header
from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.digest import PACKET_SIZE, PLAYER_TEXT, SERVER_TEXT
from rtmplite.rtmp.wire.message import Message

_HANDSHAKE: Final = 1 + 2 * PACKET_SIZE


def stream(span: Span, context: Context) -> Field:
    """Describe one direction of a connection: the handshake, and the chunks behind it."""
    layout = Layout("RTMP", span, ServerHandshake)
    fault: Fault | None = None
    if len(span):
        version = layout.number("version", 1)
        if version != VERSION:
            source = source_of(ServerHandshake)
            fault = Fault(f"RTMP version {version}", source.citation, source.name)
    for name in ("packet 1", "packet 2"):
        if layout.left:
            size = min(PACKET_SIZE, layout.left)
            layout.add(_packet(name, layout.span.part(layout.at, layout.at + size)))
    if layout.left:
        layout.add(chunks(layout.take(layout.left), context))
    return layout.done(fault=fault)


def _packet(name: str, span: Span) -> Field:
    layout = Layout(name, span)
    said = ""
    if len(span) == PACKET_SIZE:
        for text in (PLAYER_TEXT, SERVER_TEXT):
            if name == "packet 1" and (found := digest.find(bytes(span), text)):
                said = f"signed, {found[0].name}"
    if layout.left >= 8:
        layout.number("time", 4, "ms")
        layout.number("zero or version" if name == "packet 1" else "time 2", 4, show="#010x")
    if layout.left:
        layout.octets("random" if name == "packet 1" else "echo")
    field = layout.done(meaning=said)
    return replace(field, source=source_of(digest.find)) if said else field


class _Chunk(NamedTuple):
    """Where a chunk begins, and where its data begin and end."""

    start: int
    body: int
    end: int


class _Watched(ChunkReader):
    """Notes where chunks are.  Own design: see the module."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, int, int]] = []  # start, body, and size of the data

    def _whole(self, data: bytes, at: int) -> tuple[Message, int] | None:
        return None  # the usual way, which tells header from data

    def _header(self, data: bytes, at: int) -> int:
        body = super()._header(data, at)
        if body >= 0:
            self.found.append((at, body, self._left))
        return body


def chunks(span: Span, context: Context) -> Field:
    """Describe chunks, from the first octet on."""
    data, base = bytes(span), span.start
    watched = _Watched()
    fault: Fault | None = None
    try:
        watched.feed(data)
    except RtmpError as error:
        fault = fault_of(error)
    layout = Layout("chunks", span, ChunkReader)
    reader = ChunkReader()
    for at, body, size in watched.found:
        chunk = _Chunk(base + at, base + body, min(base + body + size, span.end))
        done: list[Message] = []
        failed: Fault | None = None
        try:
            done = reader.feed(data[at : chunk.end - base])
        except RtmpError as error:
            failed = fault_of(error)
        layout.add(_chunk(span, chunk, done, failed, context))
    if layout.left:
        layout.octets("rest", meaning="" if fault else "the beginning of a chunk")
        if fault is not None and not any(True for each in layout.fields for _ in each.faults()):
            layout.fields[-1] = replace(layout.fields[-1], fault=fault)
    return layout.done()


def _chunk(
    span: Span, chunk: _Chunk, done: list[Message], failed: Fault | None, context: Context
) -> Field:
    layout = Layout("chunk", span.part(chunk.start, chunk.end))
    fmt, number, after = read_basic_header(span.data, chunk.start)
    if after - chunk.start == 1:
        layout.bits(1, ("fmt", 2), ("chunk stream", 6))
    else:
        layout.bits(1, ("fmt", 2), ("form", 6, f"{after - chunk.start} octets"))
        layout.octets("chunk stream", after - chunk.start - 1, str(number))
    _header(layout, fmt, chunk.body)
    if layout.left:
        layout.add(_data(layout.take(layout.left), done, context))
    field = layout.done(fault=failed)
    source = source_of(read_basic_header)
    return replace(field, value=f"type {fmt} on {number}", source=source)


def _header(layout: Layout, fmt: int, body: int) -> None:
    """Take the fields that this type of chunk has."""
    if fmt < 3:
        layout.number("timestamp" if fmt == 0 else "timestamp delta", 3, "ms")
    if fmt < 2:
        layout.number("message length", 3)
        layout.number("message type", 1, type_name)
    if fmt == 0:
        layout.number("message stream", 4, "little-endian", order="little")
    if layout.at < body:
        layout.number("extended timestamp", 4, "ms")


def _data(span: Span, done: list[Message], context: Context) -> Field:
    """The data of a chunk: a part of a message, or the last part with the message."""
    if not done:
        return Field("data", span.start, span.end, meaning="a part of a message")
    whole = done[0]
    if len(whole.payload) == len(span):
        return message(span, whole, context)
    inner = message(Span.all(whole.payload), whole, context)
    return Field(
        "data",
        span.start,
        span.end,
        meaning=f"the end of a message of {len(whole.payload)} octets",
        children=(inner,),
        octets=whole.payload,
    )
