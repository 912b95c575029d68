"""Protocol control and user control: the messages about the connection itself.

Implements RTMP 1.0 §5.4 (types 1, 2, 3, 5, 6) and RTMP 1.0 §6.2 (type 4).  Every class is one
payload: `parse` reads it, `bytes` writes it, `message` wraps it for chunk stream 2.

    >>> parse_control(SetPeerBandwidth(2500000, LimitType.DYNAMIC).message())
    SetPeerBandwidth(size=2500000, limit_type=<LimitType.DYNAMIC: 2>)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import ClassVar, Final, Self, TypeAlias

from rtmplite.errors import RemoteError
from rtmplite.rtmp.wire.chunk_header import MAX_CHUNK_SIZE
from rtmplite.rtmp.wire.message import Message, MessageType

_U32: Final = Struct(">I")  # RTMP 1.0 §4 [big-endian]
_U32_U8: Final = Struct(">IB")
_EVENT: Final = Struct(">H")
_EVENT_U32: Final = Struct(">HI")
_EVENT_U32_U32: Final = Struct(">HII")


class LimitType(IntEnum):
    """The type of the limit of a Set Peer Bandwidth: §5.4.5 [limit-types]."""

    HARD = 0
    SOFT = 1
    DYNAMIC = 2


class UserControlType(IntEnum):
    """The first two bytes of a user control message: RTMP 1.0 §7.1.7."""

    STREAM_BEGIN = 0
    STREAM_EOF = 1
    STREAM_DRY = 2
    SET_BUFFER_LENGTH = 3
    STREAM_IS_RECORDED = 4
    PING_REQUEST = 6
    PING_RESPONSE = 7


def _fields(layout: Struct, payload: bytes | memoryview) -> tuple[int, ...]:
    """Unpack the start of a payload; the rest is ignored."""
    if len(payload) < layout.size:  # RTMP Errata §2 [errors-noticed]
        raise RemoteError(f"a control message of {len(payload)} bytes, {layout.size} needed")
    return layout.unpack_from(payload)


class _Payload:
    """Base of all control messages: it makes a `Message` of them."""

    __slots__ = ()
    type_id: ClassVar[MessageType]

    @classmethod
    def parse(cls, payload: bytes | memoryview) -> Self:
        """Read the one number of most of them (§5.4); RemoteError if it is too short."""
        return cls(*_fields(_U32, payload))

    def message(self) -> Message:
        """Wrap the payload for message stream 0, at the ignored time 0 (§5.4, §6.2)."""
        # §5.4 [control-on-2], §6.2 [on-stream-0]
        return Message(self.type_id, 0, 0, bytes(self))  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True)
class SetChunkSize(_Payload):
    """The sender's chunks hold up to `size` bytes from here on: §5.4.1."""

    type_id = MessageType.SET_CHUNK_SIZE
    size: int

    @classmethod
    def parse(cls, payload: bytes | memoryview) -> Self:
        """Read §5.4.1; RemoteError for a size of 0 or with its first bit set."""
        (size,) = _fields(_U32, payload)
        if not 1 <= size <= MAX_CHUNK_SIZE:  # §5.4.1 [size-at-least-1] [size-top-bit-zero]
            raise RemoteError(f"a chunk size of {size}")
        return cls(size)

    def __bytes__(self) -> bytes:
        return _U32.pack(self.size)


@dataclass(frozen=True, slots=True)
class Abort(_Payload):
    """Forget the message under way on a chunk stream: §5.4.2, with RTMP Errata §6."""

    type_id = MessageType.ABORT
    chunk_stream_id: int

    def __bytes__(self) -> bytes:
        return _U32.pack(self.chunk_stream_id)  # §5.4.2 [abort-names-chunk-stream]


@dataclass(frozen=True, slots=True)
class Acknowledgement(_Payload):
    """The number of bytes that have arrived, modulo 2**32 (§5.4.3)."""

    type_id = MessageType.ACKNOWLEDGEMENT
    sequence_number: int

    def __bytes__(self) -> bytes:
        return _U32.pack(self.sequence_number & 0xFFFFFFFF)  # §5.4.3 [sequence-number]


@dataclass(frozen=True, slots=True)
class WindowAcknowledgementSize(_Payload):
    """After how many bytes the sender wants to hear an Acknowledgement: §5.4.4."""

    type_id = MessageType.WINDOW_ACKNOWLEDGEMENT_SIZE
    size: int

    def __bytes__(self) -> bytes:
        return _U32.pack(self.size)  # §5.4.4 [window-size]


@dataclass(frozen=True, slots=True)
class SetPeerBandwidth(_Payload):
    """A limit on the peer's unacknowledged bytes: §5.4.5; `bandwidth` obeys it."""

    type_id = MessageType.SET_PEER_BANDWIDTH
    size: int
    limit_type: LimitType

    @classmethod
    def parse(cls, payload: bytes | memoryview) -> Self:
        """Read §5.4.5; RemoteError if it is too short or the limit type unknown."""
        size, limit_type = _fields(_U32_U8, payload)
        if limit_type > LimitType.DYNAMIC:
            raise RemoteError(f"a bandwidth limit of type {limit_type}")
        return cls(size, LimitType(limit_type))

    def __bytes__(self) -> bytes:
        return _U32_U8.pack(self.size, self.limit_type)  # §5.4.5 [limit-types]


class _Event(_Payload):
    """A user control message whose data is one number: RTMP 1.0 §7.1.7."""

    __slots__ = ()
    type_id = MessageType.USER_CONTROL
    event_type: ClassVar[UserControlType]

    @classmethod
    def parse(cls, payload: bytes | memoryview) -> Self:
        """Read the data after the event type: RTMP 1.0 §7.1.7; RemoteError if too short."""
        _, number = _fields(_EVENT_U32, payload)
        return cls(number)  # type: ignore[call-arg]

    def _pack(self, number: int) -> bytes:
        return _EVENT_U32.pack(self.event_type, number)


@dataclass(frozen=True, slots=True)
class _StreamEvent(_Event):
    """A user control message whose number is a message stream: RTMP 1.0 §7.1.7."""

    stream_id: int

    def __bytes__(self) -> bytes:
        return self._pack(self.stream_id)


class StreamBegin(_StreamEvent):
    """A message stream can be used now: RTMP 1.0 §7.1.7."""

    __slots__ = ()
    event_type = UserControlType.STREAM_BEGIN  # RTMP 1.0 §7.1.7 [stream-begin]


class StreamEof(_StreamEvent):
    """Playback has ended: RTMP 1.0 §7.1.7."""

    __slots__ = ()
    event_type = UserControlType.STREAM_EOF  # RTMP 1.0 §7.1.7 [stream-eof]


class StreamDry(_StreamEvent):
    """The publisher has sent nothing for a while: RTMP 1.0 §7.1.7."""

    __slots__ = ()
    event_type = UserControlType.STREAM_DRY  # RTMP 1.0 §7.1.7 [stream-dry]


@dataclass(frozen=True, slots=True)
class SetBufferLength(_Event):
    """The length of the player's buffer, in ms: RTMP 1.0 §7.1.7."""

    event_type = UserControlType.SET_BUFFER_LENGTH  # RTMP 1.0 §7.1.7 [set-buffer-length]
    stream_id: int
    milliseconds: int

    @classmethod
    def parse(cls, payload: bytes | memoryview) -> Self:
        """Read both numbers: RTMP 1.0 §7.1.7; RemoteError if too short."""
        _, stream_id, milliseconds = _fields(_EVENT_U32_U32, payload)
        return cls(stream_id, milliseconds)  # RTMP 1.0 §7.1.7 [set-buffer-length]

    def __bytes__(self) -> bytes:
        # RTMP 1.0 §7.1.7 [set-buffer-length]
        return _EVENT_U32_U32.pack(self.event_type, self.stream_id, self.milliseconds)


class StreamIsRecorded(_StreamEvent):
    """The stream that will be played is a recording: RTMP 1.0 §7.1.7."""

    __slots__ = ()
    event_type = UserControlType.STREAM_IS_RECORDED  # RTMP 1.0 §7.1.7 [stream-is-recorded]


@dataclass(frozen=True, slots=True)
class PingRequest(_Event):
    """Asks for an answer; `timestamp` is the sender's, in ms: RTMP 1.0 §7.1.7."""

    event_type = UserControlType.PING_REQUEST  # RTMP 1.0 §7.1.7 [ping-request]
    timestamp: int

    def __bytes__(self) -> bytes:
        return self._pack(self.timestamp)


@dataclass(frozen=True, slots=True)
class PingResponse(_Event):
    """The answer to a ping; `timestamp` is the request's: RTMP 1.0 §7.1.7."""

    event_type = UserControlType.PING_RESPONSE  # RTMP 1.0 §7.1.7 [ping-response]
    timestamp: int

    def __bytes__(self) -> bytes:
        return self._pack(self.timestamp)


@dataclass(frozen=True, slots=True)
class OtherUserControl(_Payload):
    """A user control event that RTMP 1.0 §7.1.7 does not list; Adobe's own use several."""

    type_id = MessageType.USER_CONTROL
    event_type: int
    data: bytes

    @classmethod
    def parse(cls, payload: bytes | memoryview) -> Self:
        """Split event type and data as RTMP 1.0 §6.2 does; RemoteError if too short."""
        (event_type,) = _fields(_EVENT, payload)
        return cls(event_type, bytes(payload[2:]))

    def __bytes__(self) -> bytes:
        return _EVENT.pack(self.event_type) + self.data


UserControl: TypeAlias = (
    StreamBegin
    | StreamEof
    | StreamDry
    | SetBufferLength
    | StreamIsRecorded
    | PingRequest
    | PingResponse
    | OtherUserControl
)
Control: TypeAlias = (
    SetChunkSize
    | Abort
    | Acknowledgement
    | WindowAcknowledgementSize
    | SetPeerBandwidth
    | UserControl
)

_EVENTS: Final[Mapping[int, type[UserControl]]] = {
    each.event_type: each
    for each in (
        StreamBegin,
        StreamEof,
        StreamDry,
        SetBufferLength,
        StreamIsRecorded,
        PingRequest,
        PingResponse,
    )
}
_CONTROLS: Final[Mapping[int, type[Control]]] = {
    each.type_id: each
    for each in (SetChunkSize, Abort, Acknowledgement, WindowAcknowledgementSize, SetPeerBandwidth)
}


def parse_control(message: Message) -> Control | None:
    """Read types 1 to 6, None for another (§5.4).  RemoteError if short or out of range."""
    if message.type_id == MessageType.USER_CONTROL:
        (event_type,) = _fields(_EVENT, message.payload)  # RTMP 1.0 §6.2 [event-type]
        return _EVENTS.get(event_type, OtherUserControl).parse(message.payload)
    kind = _CONTROLS.get(message.type_id)
    return kind.parse(message.payload) if kind else None  # §5.4 [control-types]
