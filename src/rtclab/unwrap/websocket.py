"""WebSocket frames of one direction, put together to messages.

Implements RFC 6455 §5 as a rule book: unlike wsproto, which ends a connection at the first error as
an endpoint must, it reads on, and needs no extra.

    >>> reader = FrameReader(is_client=True)
    >>> list(reader.feed(bytes.fromhex("8985 37fa213d 7f9f4d5158")))
    [WebSocketMessage(opcode=9, data=b'Hello')]
    >>> next(reader.feed(bytes.fromhex("8900")))
    Breach(rule='ws-mask', what='a frame of a client without a mask', citation='')
"""

import base64
import binascii
import hashlib
import struct
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from rtclab.unwrap.breach import Breach

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10  # Source: RFC 6455 §5.2
_CONTINUATION: Final = 0
_KNOWN: Final = (_CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG)
_MOST_OF_CONTROL: Final = 125  # octets, Source: RFC 6455 §5.5
_EXTENDED: Final = {126: ("!H", 126), 127: ("!Q", 1 << 16)}  # form and least length of it
_MASK: Final = 4
MOST: Final = 16 << 20  # octets of a frame or a message that are read
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # Source: RFC 6455 §1.3


class WebSocketMessage(NamedTuple):
    """A whole message, or a control frame: RFC 6455 §5.4, §5.5."""

    opcode: int
    data: bytes


class _Frame(NamedTuple):
    first: int
    is_masked: bool
    is_longest: bool  # its length takes more octets than it needs
    data: bytes

    @property
    def opcode(self) -> int:
        return self.first & 0xF

    @property
    def is_final(self) -> bool:
        return bool(self.first & 0x80)


class _Head(NamedTuple):
    start: int  # of the data
    length: int
    is_masked: bool
    is_longest: bool

    @property
    def size(self) -> int:
        return self.start + self.length

    @classmethod
    def read(cls, octets: bytes | bytearray) -> "_Head | None":
        if len(octets) < 2:
            return None
        length, at, least = octets[1] & 0x7F, 2, 0
        if length in _EXTENDED:
            form, least = _EXTENDED[length]
            at += struct.calcsize(form)
            if len(octets) < at:
                return None
            (length,) = struct.unpack_from(form, octets, 2)
        is_masked = bool(octets[1] & 0x80)
        return cls(at + _MASK * is_masked, length, is_masked, length < least)


class FrameReader:
    """The frames of one end, which masks them if it is the client: RFC 6455 §5.1.

    `is_lost` when a frame is longer than `MOST`: nothing is read any more.
    """

    def __init__(self, *, is_client: bool) -> None:
        self._is_client = is_client
        self._buffer, self._message = bytearray(), bytearray()
        self._opcode: int | None = None  # of the message whose fragments come
        self._is_closed = self.is_lost = False

    def feed(self, data: bytes) -> Iterator[WebSocketMessage | Breach]:
        """Take octets; yield messages, and what is wrong with frames: RFC 6455 §5.2."""
        if self.is_lost:
            return
        self._buffer += data
        while (frame := self._next()) is not None:
            yield from self._judge(frame)
            yield from self._take(frame)

    def _next(self) -> _Frame | None:
        """Take the next frame off, None while it is not whole: RFC 6455 §5.2."""
        head = _Head.read(self._buffer)
        if head is None:
            return None
        if head.length + len(self._message) > MOST:
            self.is_lost = True
            self._buffer.clear()
        if len(self._buffer) < head.size:
            return None
        first, data = self._buffer[0], bytes(self._buffer[head.start : head.size])
        if head.is_masked:
            data = _unmasked(data, bytes(self._buffer[head.start - _MASK : head.start]))
        del self._buffer[: head.size]
        return _Frame(first, head.is_masked, head.is_longest, data)

    def _judge(self, frame: _Frame) -> Iterator[Breach]:
        if frame.is_masked != self._is_client:
            end = "a client without a mask" if self._is_client else "a server with a mask"
            yield Breach("ws-mask", f"a frame of {end}")
        if frame.first & 0x70:
            yield Breach("ws-frame", f"reserved bits {frame.first >> 4 & 7:03b} are set")
        if frame.opcode not in _KNOWN:
            yield Breach("ws-frame", f"a frame of opcode {frame.opcode}")
        if frame.is_longest:
            yield Breach("ws-frame", "a length in more octets than it needs")
        if frame.opcode >= CLOSE and (len(frame.data) > _MOST_OF_CONTROL or not frame.is_final):
            what = f"a control frame of {len(frame.data)} octets, or of several parts"
            yield Breach("ws-frame", what, "RFC 6455 §5.5")
        if self._is_closed and frame.opcode < CLOSE:
            yield Breach("ws-after-close", f"a frame of opcode {frame.opcode} behind Close")

    def _take(self, frame: _Frame) -> Iterator[WebSocketMessage | Breach]:
        """Put fragments together: RFC 6455 §5.4."""
        if frame.opcode >= CLOSE:
            self._is_closed |= frame.opcode == CLOSE
            yield WebSocketMessage(frame.opcode, frame.data)
            return
        is_first = frame.opcode != _CONTINUATION
        if is_first == (self._opcode is not None):
            what = "a new message within another" if is_first else "the continuation of nothing"
            yield Breach("ws-fragments", what)
            self._message.clear()
        if is_first:
            self._opcode = frame.opcode
        self._message += frame.data
        if not frame.is_final:
            return
        whole, opcode = bytes(self._message), self._opcode or BINARY
        self._message.clear()
        self._opcode = None
        if opcode == TEXT and not _is_text(whole):
            yield Breach("ws-frame", "a text that is no UTF-8", "RFC 6455 §5.6")
        yield WebSocketMessage(opcode, whole)


def frame_size(octets: bytes) -> int | None:
    """How many octets a frame has, by the first ones: RFC 6455 §5.2."""
    head = _Head.read(octets)
    return None if head is None else head.size


def request_breaches(headers: Mapping[str, str]) -> Iterator[Breach]:
    """Judge a request for an upgrade: RFC 6455 §4.1."""
    try:
        key = base64.b64decode(headers.get("sec-websocket-key", ""), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != 16:
        yield Breach("ws-handshake", "no Sec-WebSocket-Key of 16 octets")
    version = headers.get("sec-websocket-version", "none")
    if version != "13":
        yield Breach("ws-handshake", f"Sec-WebSocket-Version is {version}, not 13")


def answer_breaches(asked: Mapping[str, str], said: Mapping[str, str]) -> Iterator[Breach]:
    """Judge the agreement of a server: RFC 6455 §4.2.2."""
    key = asked.get("sec-websocket-key", "").encode("latin-1", "replace")
    digest = hashlib.sha1(key + _GUID, usedforsecurity=False).digest()
    if said.get("sec-websocket-accept", "") != base64.b64encode(digest).decode():
        what = "Sec-WebSocket-Accept does not fit the key"
        yield Breach("ws-handshake", what, "RFC 6455 §4.2.2")
    chosen = said.get("sec-websocket-protocol")
    if chosen is not None and chosen not in protocols(asked):
        what = f"the subprotocol {chosen} was not asked for"
        yield Breach("ws-handshake", what, "RFC 6455 §4.2.2")


def protocols(headers: Mapping[str, str]) -> list[str]:
    """List the subprotocols of a handshake: RFC 6455 §4.1."""
    return [each.strip() for each in headers.get("sec-websocket-protocol", "").split(",")]


def _unmasked(data: bytes, key: bytes) -> bytes:
    """Masking again takes the mask off."""
    mask = (key * (len(data) // _MASK + 1))[: len(data)]
    return (int.from_bytes(data) ^ int.from_bytes(mask)).to_bytes(len(data))


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
