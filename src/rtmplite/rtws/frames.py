"""The frames of RTWebSocket: each is one binary message of a WebSocket.

Implements Field §"RTWebSocket frames".  The first byte is the kind, and numbers are VLUs, as in
RTMFP; RFC 7016 §2.1.2.  A frame has no length of its own, so its last field reaches to its end.

    >>> bytes(FlowOpen(5, b"TC")).hex(" ")
    '10 05 54 43'
    >>> parse_frame(bytes.fromhex("5a 05 8a78 a000"))
    DataAck(flow_id=5, count=1400, window=4096)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Self, TypeAlias

from rtmplite.rtmfp.wire.vlu import decode_vlu, encode_vlu


class FrameKind(IntEnum):
    """The kinds of frames: Field §"RTWebSocket frames"."""

    PING = 0x01
    ACK_WINDOW = 0x0A
    FLOW_OPEN = 0x10
    ABANDON = 0x1A
    FLOW_CLOSE = 0x1C
    DATA_LAST = 0x1D
    RETURN_FLOW_OPEN = 0x30
    DATA_MORE = 0x3D
    PING_REPLY = 0x41
    DATA_ACK = 0x5A
    CLOSE_ACK = 0x5C
    FLOW_EXCEPTION = 0x5E


_BYTE: Final[Mapping[int, bytes]] = {kind: bytes((kind,)) for kind in FrameKind}


@dataclass(frozen=True, slots=True)
class LifeSign:
    """Asks for a reply with the same bytes, or is that reply: Field §"RTWebSocket frames"."""

    message: bytes = b""
    is_reply: bool = False

    def __bytes__(self) -> bytes:
        # Field §"RTWebSocket frames" [first-byte]
        return _BYTE[FrameKind.PING_REPLY if self.is_reply else FrameKind.PING] + self.message


@dataclass(frozen=True, slots=True)
class AckWindow:
    """After how many bytes to acknowledge at once: Field §"RTWebSocket acknowledgements"."""

    size: int

    def __bytes__(self) -> bytes:
        return _BYTE[FrameKind.ACK_WINDOW] + encode_vlu(self.size)


@dataclass(frozen=True, slots=True)
class FlowOpen:
    """Opens a flow, which may answer one of the far end: Field §"RTWebSocket flows".

    `answers` is the identifier of the flow that the receiver sends, None without one.
    """

    flow_id: int
    metadata: bytes
    answers: int | None = None

    def __bytes__(self) -> bytes:
        if self.answers is None:
            return _BYTE[FrameKind.FLOW_OPEN] + encode_vlu(self.flow_id) + self.metadata
        ids = encode_vlu(self.flow_id) + encode_vlu(self.answers)
        return _BYTE[FrameKind.RETURN_FLOW_OPEN] + ids + self.metadata


@dataclass(frozen=True, slots=True)
class Data:
    """A part of a message, the last one unless there is `more`: Field §"RTWebSocket frames".

    `size` is that of the whole frame, which acknowledgements count.
    """

    flow_id: int
    data: bytes
    more: bool = False

    @property
    def size(self) -> int:
        """The bytes of the frame: Field §"RTWebSocket acknowledgements" [count-with-headers]."""
        return 1 + len(encode_vlu(self.flow_id)) + len(self.data)

    def __bytes__(self) -> bytes:
        kind = FrameKind.DATA_MORE if self.more else FrameKind.DATA_LAST
        return _BYTE[kind] + encode_vlu(self.flow_id) + self.data


@dataclass(frozen=True, slots=True)
class Abandon:
    """Says that so many messages will not come whole: Field §"RTWebSocket flows" [abandons]."""

    flow_id: int
    count: int = 1

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read what follows the kind; without a number it is one message.  RemoteError."""
        flow_id, at = decode_vlu(data, 1)
        # Field §"RTWebSocket frames" [absent-is-one]
        return cls(flow_id, 1 + decode_vlu(data, at)[0] if at < len(data) else 1)

    def __bytes__(self) -> bytes:
        count = encode_vlu(self.count - 1) if self.count > 1 else b""
        return _BYTE[FrameKind.ABANDON] + encode_vlu(self.flow_id) + count


@dataclass(frozen=True, slots=True)
class FlowClose:
    """Ends a flow behind its last message, or acknowledges that: Field §"RTWebSocket flows"."""

    flow_id: int
    is_ack: bool = False

    def __bytes__(self) -> bytes:
        kind = FrameKind.CLOSE_ACK if self.is_ack else FrameKind.FLOW_CLOSE
        return _BYTE[kind] + encode_vlu(self.flow_id)


@dataclass(frozen=True, slots=True)
class DataAck:
    """Acknowledges `count` more bytes of a flow's data frames, and lets `window` be in flight.

    Field §"RTWebSocket acknowledgements".
    """

    flow_id: int
    count: int
    window: int

    def __bytes__(self) -> bytes:
        numbers = encode_vlu(self.flow_id), encode_vlu(self.count), encode_vlu(self.window)
        return _BYTE[FrameKind.DATA_ACK] + b"".join(numbers)


@dataclass(frozen=True, slots=True)
class FlowRejection:
    """Rejects a flow, with a code and a text if there is a reason: Field §"RTWebSocket flows"."""

    flow_id: int
    code: int | None = None
    text: bytes = b""

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read what follows the kind: Field §"RTWebSocket frames".  RemoteError."""
        flow_id, at = decode_vlu(data, 1)
        if at >= len(data):
            return cls(flow_id)
        code, at = decode_vlu(data, at)
        return cls(flow_id, code, data[at:])

    def __bytes__(self) -> bytes:
        head = _BYTE[FrameKind.FLOW_EXCEPTION] + encode_vlu(self.flow_id)
        return head if self.code is None else head + encode_vlu(self.code) + self.text


Frame: TypeAlias = (
    LifeSign | AckWindow | FlowOpen | Data | Abandon | FlowClose | DataAck | FlowRejection
)


def _open(data: bytes) -> FlowOpen:
    flow_id, at = decode_vlu(data, 1)
    return FlowOpen(flow_id, data[at:])


def _open_return(data: bytes) -> FlowOpen:
    flow_id, at = decode_vlu(data, 1)
    answers, at = decode_vlu(data, at)
    return FlowOpen(flow_id, data[at:], answers)


def _data(data: bytes) -> Data:
    flow_id, at = decode_vlu(data, 1)
    return Data(flow_id, data[at:], more=data[0] == FrameKind.DATA_MORE)


def _ack(data: bytes) -> DataAck:
    flow_id, at = decode_vlu(data, 1)
    count, at = decode_vlu(data, at)
    return DataAck(flow_id, count, decode_vlu(data, at)[0])


_PARSERS: Final[Mapping[int, Callable[[bytes], Frame]]] = {
    FrameKind.PING: lambda data: LifeSign(data[1:]),
    FrameKind.ACK_WINDOW: lambda data: AckWindow(decode_vlu(data, 1)[0]),
    FrameKind.FLOW_OPEN: _open,
    FrameKind.ABANDON: Abandon.parse,
    FrameKind.FLOW_CLOSE: lambda data: FlowClose(decode_vlu(data, 1)[0]),
    FrameKind.DATA_LAST: _data,
    FrameKind.RETURN_FLOW_OPEN: _open_return,
    FrameKind.DATA_MORE: _data,
    FrameKind.PING_REPLY: lambda data: LifeSign(data[1:], is_reply=True),
    FrameKind.DATA_ACK: _ack,
    FrameKind.CLOSE_ACK: lambda data: FlowClose(decode_vlu(data, 1)[0], is_ack=True),
    FrameKind.FLOW_EXCEPTION: FlowRejection.parse,
}


def parse_frame(data: bytes | memoryview) -> Frame | None:
    """Read a frame, None for one that is empty or of an unknown kind; RemoteError if cut off.

    Field §"RTWebSocket frames" [unknown-ignored]: so that a later kind ends no session.
    """
    raw = bytes(data)
    parse = _PARSERS.get(raw[0]) if raw else None
    return None if parse is None else parse(raw)
