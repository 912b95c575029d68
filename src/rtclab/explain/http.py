"""HTTP of one direction of a connection, and the WebSocket that it may become.

Own design: see `explain.fields.field`.  The reader of frames says what is wrong with each, and
puts messages together.

    >>> data = b"GET / HTTP/1.1\\r\\nUpgrade: websocket\\r\\n\\r\\n\\x89\\x80\\1\\2\\3\\4"
    >>> [each.name for each in stream(Span.all(data), Context()).children]
    ['HTTP', 'WebSocket frame']
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from rtclab.explain import rtws, sip
from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.fields.layout import Layout, explained
from rtclab.explain.fields.source import Fault
from rtclab.explain.sip import SIP_START
from rtclab.unwrap.breach import Breach
from rtclab.unwrap.http import HttpMessage, HttpWay, read_head
from rtclab.unwrap.websocket import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    TEXT,
    FrameReader,
    WebSocketMessage,
    frame_size,
    protocols,
)

_OPCODES: Final[Mapping[int, str]] = {
    0: "continuation",
    TEXT: "text",
    BINARY: "binary",
    CLOSE: "close",
    PING: "ping",
    PONG: "pong",
}
_MOST_OF_HEAD: Final = 14  # octets before the data of a frame, Source: RFC 6455 §5.2
_END: Final = b"\r\n\r\n"


def stream(span: Span, context: Context) -> Field:
    """Describe messages with their bodies, and frames behind an upgrade."""

    def walk(layout: Layout) -> None:
        while layout.left:
            end = span.data.find(_END, layout.at, span.end)
            if end < 0:
                return
            head = layout.take(end + len(_END) - layout.at)
            message = read_head(bytes(head)[: -len(_END)])
            layout.add(_head(head, message))
            if message.is_upgrade:
                _frames(layout, message, context)
            elif size := min(message.length or 0, layout.left):
                layout.octets("body", size)

    return explained("HTTP stream", span, None, walk, HttpWay)


def _head(span: Span, message: HttpMessage) -> Field:
    layout = Layout("HTTP", span, HttpMessage, gaps=True)
    layout.place("start line", message.start)
    for name, value in message.headers.items():
        layout.place(name, value)
    return layout.done(message.start)


class _Carried:
    """Describes what the messages of a WebSocket are: SIP, RTWebSocket, or unknown here.

    Own design: RTWebSocket has no name of its own in the handshake, so the octets tell.  Binary
    messages are its frames from the first one on that its codec reads.
    """

    def __init__(self, head: HttpMessage, context: Context) -> None:
        self._is_sip, self._is_rtws = "sip" in protocols(head.headers), False
        self._frames, self._context = rtws.Frames(context), context

    def describe(self, message: WebSocketMessage) -> Field | None:
        """Describe a message, None where nothing in it is known."""
        span = Span.all(message.data)
        if self._is_sip or SIP_START.match(message.data):
            is_empty = not message.data.strip(b"\r\n")  # to keep the connection alive
            return None if is_empty else sip.message(span, self._context)
        if message.opcode != BINARY:
            return None
        self._is_rtws = self._is_rtws or rtws.is_frame(message.data)
        return self._frames.describe(span) if self._is_rtws else None


def _frames(layout: Layout, head: HttpMessage, context: Context) -> None:
    reader, carried = FrameReader(is_client=head.is_request), _Carried(head, context)
    while layout.left:
        size = frame_size(bytes(layout.span.part(layout.at, layout.at + _MOST_OF_HEAD)))
        span = layout.take(min(size or layout.left, layout.left))
        found = list(reader.feed(bytes(span)))
        layout.add(_frame(span, found, carried))


def _frame(span: Span, found: list[WebSocketMessage | Breach], carried: _Carried) -> Field:
    """Describe a frame, and the message that ends with it."""
    whole = next((each for each in found if isinstance(each, WebSocketMessage)), None)
    breach = next((each for each in found if isinstance(each, Breach)), None)
    fault = None if breach is None else Fault(breach.what, breach.citation)

    def walk(layout: Layout) -> None:
        layout.bits(1, ("final", 1), ("reserved", 3), ("opcode", 4, _opcode))
        masked, length = layout.bits(1, ("masked", 1), ("length", 7))
        if length > 125:
            layout.number("extended length", 2 if length == 126 else 8)
        if masked:
            layout.octets("mask", 4)
        inner = None
        if whole is not None and whole.opcode < CLOSE:
            inner = carried.describe(whole)
        if whole is not None and inner is not None:
            data = layout.take(layout.left)
            said = "without the mask, put together"
            field = Field("data", data.start, data.end, meaning=said, octets=whole.data)
            layout.add(replace(field, children=(inner,)))
        elif layout.left:
            layout.octets("data")

    return replace(explained("WebSocket frame", span, None, walk, FrameReader), fault=fault)


def _opcode(number: int) -> str:
    return _OPCODES.get(number, "unknown")
