"""STUN and TURN: the header, each attribute with its value, and ChannelData.

Own design: see `explain.fields.field`.  A fingerprint is verified; an integrity cannot be, since
its key is not in the message.

    >>> data = StunMessage.write(StunClass.REQUEST, BINDING, bytes(12), fingerprint=True).data
    >>> field = message(Span.all(data), Context())
    >>> field.value, [each.name for each in field.children][-1], field.children[-1].meaning
    ('Binding request', 'FINGERPRINT', 'holds')
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from p2psip.errors import RemoteError, SipError
from p2psip.nat.stun import (
    BINDING,
    HEADER_SIZE,
    StunAttribute,
    StunClass,
    StunMessage,
    StunType,
    read_address,
)
from p2psip.nat.turn import OVERHEAD, TurnMethod, TurnType, read_channel_data
from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.fields.layout import Layout, explained, refusal
from rtclab.explain.fields.source import Fault, fault_of
from rtclab.unwrap.turn import PADDED, RESERVED, is_old_channel

_PLAIN_ADDRESSES: Final = {StunType.MAPPED_ADDRESS, StunType.ALTERNATE_SERVER}
_MASKED_ADDRESSES: Final = {
    StunType.XOR_MAPPED_ADDRESS,
    TurnType.XOR_PEER_ADDRESS,
    TurnType.XOR_RELAYED_ADDRESS,
}
_TEXTS: Final = {
    StunType.USERNAME,
    StunType.REALM,
    StunType.NONCE,
    StunType.SOFTWARE,
    StunType.ALTERNATE_DOMAIN,
}
_NUMBERS: Final[Mapping[int, str]] = {TurnType.LIFETIME: "s"}


def message(span: Span, context: Context) -> Field:
    """Describe a STUN message."""
    data = bytes(span)

    def walk(layout: Layout) -> str:
        named = _kind(data)
        layout.number("type", 2, named, show="#06x")
        layout.number("length", 2, "octets behind the header")
        layout.number("cookie", 4, show="#010x")
        transaction_id = layout.octets("transaction ID", 12)
        while layout.left:
            layout.add(_attribute(layout, data, transaction_id))
        return named

    return explained("STUN", span, StunMessage.parse, walk, StunMessage)


def _kind(data: bytes) -> str:
    """The method and class of a message, as the codec reads a header alone."""
    head = data[:2] + bytes(2) + data[4:20]
    try:
        read = StunMessage.parse(head)
    except SipError:
        return ""
    known = {BINDING: "Binding"} | {each: each.name.replace("_", " ") for each in TurnMethod}
    method = known.get(read.method, f"method {read.method:#x}").capitalize()
    return f"{method} {StunClass(read.kind).name.lower()}"


def _name(kind: int) -> str:
    for names in (StunType, TurnType):
        if kind in tuple(names):
            return names(kind).name.replace("_", "-")
    return f"attribute {kind:#06x}"


def _attribute(layout: Layout, data: bytes, transaction_id: bytes) -> Field:
    head = bytes(layout.span.part(layout.at, layout.at + 4))
    kind, length = int.from_bytes(head[:2], "big"), int.from_bytes(head[2:], "big")
    size = min(4 + length + -length % 4, layout.left)
    span = layout.span.part(layout.at, layout.at + size)
    inner = Layout(_name(kind), span, StunAttribute)
    shown, meaning = "", ""
    fault: Fault | None = None
    if size < 4 + length:
        return inner.done(meaning="beyond the end")
    inner.number("type", 2, show="#06x")
    inner.number("length", 2)
    value = bytes(span.part(inner.at, inner.at + length))
    if kind in _READERS:
        try:
            shown = _READERS[kind](value, transaction_id)
        except SipError as error:
            fault = fault_of(error)
    elif kind in _NUMBERS:
        shown, meaning = str(int.from_bytes(value, "big")), _NUMBERS[kind]
    elif kind == StunType.FINGERPRINT:
        fault = refusal(_fingerprinted, data)
        meaning = "" if fault else "holds"
    if length:
        inner.octets("value", length, shown)
    if inner.left:
        inner.octets("padding")
    return inner.done(shown, meaning, fault)


def _fingerprinted(data: bytes) -> None:
    if not StunMessage.parse(data).fingerprint_holds():
        raise RemoteError("the FINGERPRINT does not hold")


def _address(value: bytes, transaction_id: bytes | None) -> str:
    host, port = read_address(value, transaction_id)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _error(value: bytes, transaction_id: bytes) -> str:
    attributes = (StunAttribute(StunType.ERROR_CODE, value),)
    found = StunMessage(StunClass.ERROR, BINDING, transaction_id, attributes, b"").error()
    return "{} {}".format(*found) if found else ""


def _plain_address(value: bytes, transaction_id: bytes) -> str:
    return _address(value, None)


def _text(value: bytes, transaction_id: bytes) -> str:
    return value.decode("utf-8", "replace")


_READERS: Final[Mapping[int, Callable[[bytes, bytes], str]]] = {
    **dict.fromkeys(_PLAIN_ADDRESSES, _plain_address),
    **dict.fromkeys(_MASKED_ADDRESSES, _address),
    **dict.fromkeys(_TEXTS, _text),
    StunType.ERROR_CODE: _error,
}


def stream(span: Span, context: Context) -> Field:
    """Describe what one direction of a connection carries: messages one behind the other.

    ChannelData between them are padded to four octets: RFC 8656 §12.5.
    """

    def walk(layout: Layout) -> None:
        while layout.left:
            head = bytes(span.part(layout.at, layout.at + 4))
            length, is_data = int.from_bytes(head[2:], "big"), head[0] >> 6 == 1
            size = OVERHEAD + length + -length % PADDED if is_data else HEADER_SIZE + length
            describe = channel_data if is_data else message
            layout.add(describe(layout.take(min(size, layout.left)), context))

    return explained("STUN stream", span, None, walk, StunMessage)


def channel_data(span: Span, context: Context) -> Field:
    """Describe relayed data in their short form."""

    def walk(layout: Layout) -> None:
        if layout.number("channel", 2, show="#06x") in RESERVED:
            fault = Fault("a channel of the reserved numbers, 0x5000 to 0x7fff", "RFC 8656 §12")
            layout.fields[-1] = replace(layout.fields[-1], fault=fault)
        size = layout.number("length", 2)
        layout.octets("data", size)
        if 0 < layout.left < PADDED:
            layout.octets("padding")

    def parse(data: bytes) -> None:
        if read_channel_data(data) is None and not is_old_channel(data):
            raise RemoteError("no ChannelData, or cut short")

    return explained("ChannelData", span, parse, walk, read_channel_data)
