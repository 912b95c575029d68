"""The frames of RTWebSocket, and the messages in their flows.

Own design: see `explain.fields.field`.  A flow tells by its metadata that its messages are those of
a NetConnection.  Where it was opened before the octets begin, the messages must look like it.

    >>> field = frame(Span.all(bytes.fromhex("5a 05 8a78 a000")), Context())
    >>> field.name, [f"{each.name} {each.value}" for each in field.children]
    ('DataAck', ['kind 0x5a', 'flow ID 5', 'count 1400', 'window 4096'])
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.fields.layout import Layout, explained, refusal
from rtclab.explain.flv import named
from rtclab.explain.rtmfp_chunks import flow_message, flow_metadata, vlu
from rtmplite.errors import RtmpError
from rtmplite.rtmfp.netconnection.messages import SIGNATURE, FlowMetadata
from rtmplite.rtmp.wire.message import MessageType
from rtmplite.rtws.frames import (
    Abandon,
    AckWindow,
    Data,
    DataAck,
    FlowClose,
    FlowOpen,
    FlowRejection,
    FrameKind,
    LifeSign,
    parse_frame,
)

_MOST: Final = 1 << 22  # octets of the parts of one message
_HEADER: Final = 5  # octets of a message, before its payload
_CLASSES: Final[Mapping[int, type]] = {
    FrameKind.PING: LifeSign,
    FrameKind.ACK_WINDOW: AckWindow,
    FrameKind.FLOW_OPEN: FlowOpen,
    FrameKind.ABANDON: Abandon,
    FrameKind.FLOW_CLOSE: FlowClose,
    FrameKind.DATA_LAST: Data,
    FrameKind.RETURN_FLOW_OPEN: FlowOpen,
    FrameKind.DATA_MORE: Data,
    FrameKind.PING_REPLY: LifeSign,
    FrameKind.DATA_ACK: DataAck,
    FrameKind.CLOSE_ACK: FlowClose,
    FrameKind.FLOW_EXCEPTION: FlowRejection,
}


def frame(span: Span, context: Context) -> Field:
    """Describe a frame alone."""
    return Frames(context).describe(span)


def is_frame(data: bytes) -> bool:
    """Whether a binary message is a frame of a known kind, and whole."""
    try:
        return parse_frame(data) is not None
    except RtmpError:
        return False


class Frames:
    """Describes the frames of one direction, in which a message may have several parts."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._opened: dict[int, bytes] = {}  # metadata by flow
        self._parts: dict[int, bytearray] = {}

    def describe(self, span: Span) -> Field:
        """Describe the next frame."""
        kind = span.data[span.start] if len(span) else -1
        of = _CLASSES.get(kind)
        if of is None:
            ignored = explained("unknown frame", span, None, _unknown, parse_frame)
            return replace(ignored, meaning="ignored")

        def walk(layout: Layout) -> str | None:
            layout.number("kind", 1, named(FrameKind), show="#04x")
            return self._walks[kind](self, layout)

        return explained(of.__name__, span, parse_frame, walk, of)

    def _life(self, layout: Layout) -> None:
        if layout.left:
            layout.octets("message")

    def _ack_window(self, layout: Layout) -> None:
        vlu(layout, "size", "octets of data")

    def _open(self, layout: Layout) -> str:
        flow = vlu(layout, "flow ID")
        if layout.span.data[layout.span.start] == FrameKind.RETURN_FLOW_OPEN:
            vlu(layout, "answers", "a flow of the other end")
        self._opened[flow] = bytes(layout.span.part(layout.at))
        self._parts.pop(flow, None)
        if layout.left:
            span = layout.take(layout.left)
            if bytes(span).startswith(SIGNATURE):
                parse = FlowMetadata.parse
                layout.add(explained("metadata", span, parse, flow_metadata, FlowMetadata))
            else:
                layout.add(Field("metadata", span.start, span.end))
        return f"flow {flow}"

    def _abandon(self, layout: Layout) -> str:
        flow = vlu(layout, "flow ID")
        if layout.left:
            vlu(layout, "count", "less 1")
        self._parts.pop(flow, None)
        return f"flow {flow}"

    def _close(self, layout: Layout) -> str:
        flow = vlu(layout, "flow ID")
        if layout.span.data[layout.span.start] == FrameKind.FLOW_CLOSE:
            self._opened.pop(flow, None)
            self._parts.pop(flow, None)
        return f"flow {flow}"

    def _ack(self, layout: Layout) -> str:
        flow = vlu(layout, "flow ID")
        vlu(layout, "count", "octets of frames")
        vlu(layout, "window", "octets")
        return f"flow {flow}"

    def _rejection(self, layout: Layout) -> str:
        flow = vlu(layout, "flow ID")
        if layout.left:
            vlu(layout, "code")
        if layout.left:
            layout.text("text")
        return f"flow {flow}"

    def _data(self, layout: Layout) -> str:
        """Describe a part, and the message that ends with it."""
        flow = vlu(layout, "flow ID")
        span = layout.take(layout.left)
        place = "data", span.start, span.end
        if layout.span.data[layout.span.start] == FrameKind.DATA_MORE:
            self._parts.setdefault(flow, bytearray()).extend(bytes(span))
            if len(self._parts[flow]) > _MOST:
                del self._parts[flow]
            layout.add(Field(*place, meaning="a part of a message"))
        elif (parts := self._parts.pop(flow, None)) is not None:
            whole = bytes(parts) + bytes(span)
            said = f"the end of a message of {len(whole)} octets"
            inner = self._message(flow, Span.all(whole))
            layout.add(Field(*place, meaning=said, children=inner, octets=whole))
        elif len(span):
            layout.add(Field(*place, children=self._message(flow, span)))
        return f"flow {flow}"

    def _message(self, flow: int, span: Span) -> tuple[Field, ...]:
        """Describe a message, if it is one of a NetConnection."""
        metadata = self._opened.get(flow)
        if metadata is None:
            kind = span.data[span.start] if len(span) >= _HEADER else -1
            is_known = kind in tuple(MessageType)
        else:
            is_known = refusal(FlowMetadata.parse, metadata) is None
        return (flow_message(span, self._context),) if is_known else ()

    _walks: Final[Mapping[int, Callable[["Frames", Layout], str | None]]] = {
        FrameKind.PING: _life,
        FrameKind.ACK_WINDOW: _ack_window,
        FrameKind.FLOW_OPEN: _open,
        FrameKind.ABANDON: _abandon,
        FrameKind.FLOW_CLOSE: _close,
        FrameKind.DATA_LAST: _data,
        FrameKind.RETURN_FLOW_OPEN: _open,
        FrameKind.DATA_MORE: _data,
        FrameKind.PING_REPLY: _life,
        FrameKind.DATA_ACK: _ack,
        FrameKind.CLOSE_ACK: _close,
        FrameKind.FLOW_EXCEPTION: _rejection,
    }


def _unknown(layout: Layout) -> None:
    if layout.left:
        layout.number("kind", 1, show="#04x")
    if layout.left:
        layout.octets("payload")
