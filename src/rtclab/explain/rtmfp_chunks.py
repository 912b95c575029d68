"""The chunks of RTMFP's packets by their types, and the messages in flows.

Own design: see `explain.fields.field`.

    >>> from rtmplite.rtmfp.wire.chunks import Ping, encode_chunk
    >>> field = Chunks(Context()).describe(Span.all(encode_chunk(Ping(b"hi"))))
    >>> field.name, [each.name for each in field.children]
    ('Ping', ['type', 'length', 'message'])
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final

from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.fields.layout import Layout, explained
from rtclab.explain.flv import named
from rtclab.explain.rtmp_message import message, type_name
from rtmplite.errors import RtmpError
from rtmplite.rtmfp.crypto.certificate import Certificate
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.keying import Component
from rtmplite.rtmfp.crypto.params import CertificateOption, EpdOption, KeyingOption
from rtmplite.rtmfp.netconnection.messages import FlowMetadata, parse_message
from rtmplite.rtmfp.wire import chunks
from rtmplite.rtmfp.wire.address import Origin, SocketAddress, parse_address
from rtmplite.rtmfp.wire.chunks import PARSERS, UnknownChunk
from rtmplite.rtmfp.wire.flow_chunks import (
    RETURN_FLOW_ASSOCIATION,
    USER_METADATA,
    FragmentControl,
    NextUserData,
    UserData,
)
from rtmplite.rtmfp.wire.option import Option
from rtmplite.rtmfp.wire.vlu import decode_vlu

_MOST: Final = 1 << 22  # octets of the fragments of one message
Walk = Callable[[Layout], None]


class Chunks:
    """Describes the chunks of one packet, each of which may go on with the one before."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._previous: UserData | None = None

    def describe(self, span: Span) -> Field:
        """Describe one chunk with its header."""
        kind = span.data[span.start]
        parse = PARSERS.get(kind)
        of = UnknownChunk if parse is None else getattr(parse, "__self__", UnknownChunk)

        def walk(layout: Layout) -> None:
            layout.number("type", 1, show="#04x")
            layout.number("length", 2)
            describe = _WALKS.get(of)
            if describe is not None:
                describe(layout)
            elif of in (UserData, NextUserData):
                self._user_data(layout, of is UserData)
            elif layout.left:
                layout.octets("message" if of in _MESSAGES else "payload")

        check = None if parse is None else lambda data: parse(data[3:])
        return explained(of.__name__, span, check, walk, of)

    def _user_data(self, layout: Layout, is_first: bool) -> None:
        """Describe a fragment of a message, and the message where it is whole."""
        payload = bytes(layout.span.part(layout.at))
        listed, _, _, _, _, _ = layout.bits(
            *(1, ("options follow", 1), ("reserved", 1)),
            *(("fragment control", 2, named(FragmentControl)), ("reserved", 2)),
            *(("abandon", 1), ("final", 1)),
        )
        if is_first:
            for name in ("flow ID", "sequence number", "FSN offset"):
                vlu(layout, name)
        if listed:
            options(layout, _FLOW_OPTIONS, marked=True)
        read = self._read(payload, is_first)
        if layout.left:
            layout.add(self._content(layout.take(layout.left), read))

    def _read(self, payload: bytes, is_first: bool) -> UserData | None:
        try:
            if is_first:
                self._previous = UserData.parse(payload)
            elif self._previous is not None:
                self._previous = NextUserData.parse(payload).after(self._previous)
        except RtmpError:
            self._previous = None
        return self._previous

    def _content(self, span: Span, read: UserData | None) -> Field:
        if read is None:
            return Field("data", span.start, span.end)
        if read.fragment_control == FragmentControl.WHOLE:
            return flow_message(span, self.context)
        whole = self._joined(read)
        if whole is None:
            return Field("data", span.start, span.end, meaning="a part of a message")
        return Field(
            "data",
            span.start,
            span.end,
            meaning=f"the end of a message of {len(whole)} octets",
            children=(flow_message(Span.all(whole), self.context),),
            octets=whole,
        )

    def _joined(self, read: UserData) -> bytes | None:
        """Keep a fragment; answer the message that it ends, if all parts were there."""
        key, parts = (self.context.way, read.flow_id), self.context.parts
        known = parts.setdefault(key, [])
        if read.fragment_control == FragmentControl.BEGIN:
            known.clear()
        elif not known or known[-1][0] + 1 != read.sequence_number:
            known.clear()
            return None
        known.append((read.sequence_number, read.data))
        if sum(len(data) for _, data in known) > _MOST:
            known.clear()
        if read.fragment_control != FragmentControl.END or not known:
            return None
        whole = b"".join(data for _, data in known)
        known.clear()
        return whole


def flow_message(span: Span, context: Context) -> Field:
    """Describe a message of a flow, which is one of RTMP with a short header."""

    def parse(data: bytes) -> object:
        return parse_message(data, 0)

    def walk(layout: Layout) -> None:
        layout.number("message type", 1, type_name)
        layout.number("timestamp", 4, "ms")
        whole = parse_message(bytes(span), 0)
        if layout.left:
            layout.add(message(layout.take(layout.left), whole, context))

    return explained("flow message", span, parse, walk, parse_message)


def vlu(layout: Layout, name: str, meaning: str = "") -> int:
    """Take a number of variable length."""
    value, end = decode_vlu(layout.span.data, layout.at)
    layout.octets(name, end - layout.at, str(value), meaning)
    return value


def options(layout: Layout, names: Mapping[int, str], *, marked: bool = False) -> None:
    """Take options up to a Marker, or all that remain."""
    while layout.left:
        length, at = decode_vlu(layout.span.data, layout.at)
        if not length:
            layout.octets("marker", at - layout.at)
            if marked:
                return
            continue
        span = layout.take(at - layout.at + length)
        layout.add(explained("option", span, None, lambda inner: _option(inner, names), Option))


def _option(layout: Layout, names: Mapping[int, str]) -> str:
    vlu(layout, "length")
    kind = vlu(layout, "type")
    name = names.get(kind, f"option {kind:#04x}")
    if kind == USER_METADATA and names is _FLOW_OPTIONS and layout.left:
        span = layout.take(layout.left)
        layout.add(explained("metadata", span, FlowMetadata.parse, flow_metadata, FlowMetadata))
    elif layout.left:
        value = bytes(layout.span.part(layout.at))
        shown = value.decode() if value.isascii() and value.decode().isprintable() else ""
        layout.octets("value", value=shown)
    return name


def flow_metadata(layout: Layout) -> None:
    """Take the metadata of a flow of a NetConnection."""
    layout.text("signature", 2)
    layout.bits(1, ("reserved", 5), ("stream ID follows", 1), ("reserved", 1), ("network order", 1))
    vlu(layout, "stream ID")


def _counted(name: str, of: object = None, names: Mapping[int, str] | None = None) -> Walk:
    """Octets behind their length, or options."""

    def walk(layout: Layout) -> None:
        size = vlu(layout, f"{name} length")
        span = layout.take(size)
        layout.add(_field(name, span, of, names))

    return walk


def _rest(name: str, of: object = None, names: Mapping[int, str] | None = None) -> Walk:
    def walk(layout: Layout) -> None:
        if layout.left:
            layout.add(_field(name, layout.take(layout.left), of, names))

    return walk


def _field(name: str, span: Span, of: object, names: Mapping[int, str] | None) -> Field:
    if names is None:
        return Field(name, span.start, span.end)
    parse: Callable[[bytes], object] | None = getattr(of, "parse", None)
    known = names
    return explained(name, span, parse, lambda inner: options(inner, known), of)


def _address(layout: Layout) -> None:
    data = bytes(layout.span)
    begin = layout.at - layout.span.start
    read, end = parse_address(data, begin)
    inner = Layout("address", layout.take(end - begin), SocketAddress)
    inner.bits(1, ("IPv6", 1), ("reserved", 5), ("origin", 2, named(Origin)))
    inner.octets("IP address", end - begin - 3, read.ip)
    inner.number("port", 2)
    layout.add(inner.done(f"{read.ip} port {read.port}"))


def _addresses(layout: Layout) -> None:
    while layout.left:
        _address(layout)


def _number(name: str, size: int = 0) -> Walk:
    def walk(layout: Layout) -> None:
        if size:
            layout.number(name, size)
        else:
            vlu(layout, name)

    return walk


def _runs(layout: Layout) -> None:
    while layout.left:
        vlu(layout, "missing", "less 1")
        if layout.left:
            vlu(layout, "received", "less 1")


def _more(layout: Layout) -> None:
    layout.bits(1, ("more fragments", 1), ("reserved", 7))


def _names(options_of: type[IntEnum]) -> Mapping[int, str]:
    return {each: each.name.lower().replace("_", " ") for each in options_of}


def _all(*walks: Walk) -> Walk:
    def walk(layout: Layout) -> None:
        for each in walks:
            each(layout)

    return walk


_FLOW_OPTIONS: Final = {
    USER_METADATA: "user metadata",
    RETURN_FLOW_ASSOCIATION: "return flow association",
}
_EPD, _CERTIFICATE, _KEYING = map(_names, (EpdOption, CertificateOption, KeyingOption))
_MESSAGES: Final = (chunks.Ping, chunks.PingReply)
_ACK: Final = (_number("flow ID"), _number("buffer blocks"), _number("cumulative ack"))
# In the order of RFC 7016 §2.3; user data have a function of their own.
_WALKS: Final[Mapping[object, Walk]] = {
    chunks.Fragment: _all(
        _more, _number("packet ID"), _number("fragment number"), _rest("packet fragment")
    ),
    chunks.InitiatorHello: _all(_counted("endpoint discriminator", Epd, _EPD), _rest("tag")),
    chunks.ForwardedInitiatorHello: _all(
        _counted("endpoint discriminator", Epd, _EPD), _address, _rest("tag")
    ),
    chunks.ResponderHello: _all(
        _counted("tag echo"),
        _counted("cookie"),
        _rest("responder certificate", Certificate, _CERTIFICATE),
    ),
    chunks.ResponderRedirect: _all(_counted("tag echo"), _addresses),
    chunks.RHelloCookieChange: _all(_counted("old cookie"), _rest("new cookie")),
    chunks.InitiatorInitialKeying: _all(
        _number("initiator session ID", 4),
        _counted("cookie echo"),
        _counted("initiator certificate", Certificate, _CERTIFICATE),
        _counted("session key initiator component", Component, _KEYING),
        _rest("signature"),
    ),
    chunks.ResponderInitialKeying: _all(
        _number("responder session ID", 4),
        _counted("session key responder component", Component, _KEYING),
        _rest("signature"),
    ),
    chunks.DataAckBitmap: _all(*_ACK, _rest("bitmap")),
    chunks.DataAckRanges: _all(*_ACK, _runs),
    chunks.BufferProbe: _number("flow ID"),
    chunks.FlowException: _all(_number("flow ID"), _number("exception")),
}
