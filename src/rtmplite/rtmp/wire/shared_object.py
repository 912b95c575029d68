"""Shared object messages, by which clients and server keep shared data the same.

Implements RTMP 1.0 §7.1.3, which names the fields and the events; how wide the fields are, and what
the data of each event holds, is in Field §"Shared object events".

    >>> use = SharedObject("users", 0, Flags.NONE, (Use(), RequestChange("ann", 1.0)))
    >>> SharedObject.parse(use.message())
    SharedObject(name='users', version=0, flags=<Flags.NONE: 0>, events=(Use(), \
RequestChange(name='ann', value=1.0)))
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from struct import Struct
from typing import ClassVar, Final, Self, TypeAlias

from rtmplite.amf import amf0
from rtmplite.amf.values import Value
from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmp.wire.message import Message, MessageType

# Own design: reading AMF takes a second for every few megabytes.
MAX_MESSAGE: Final = 256 * 1024  # bytes
MAX_EVENTS: Final = 4096

_HEADER: Final = Struct(">III")  # version, flags, and four bytes that are zero
_EVENT: Final = Struct(">BI")
_LENGTH: Final = Struct(">H")
_U32: Final = 0xFFFFFFFF


class SharedObjectEventType(IntEnum):
    """The first byte of an event: §7.1.3 [event-types]."""

    USE = 1
    RELEASE = 2
    REQUEST_CHANGE = 3
    CHANGE = 4
    SUCCESS = 5
    SEND_MESSAGE = 6
    STATUS = 7
    CLEAR = 8
    REMOVE = 9
    REQUEST_REMOVE = 10
    USE_SUCCESS = 11


class Flags(IntFlag):
    """The kind of object: Field §"Shared object events".  Other bits are kept."""

    NONE = 0
    PERSISTENT = 2


class _Bare:
    """An event without data: §7.1.3."""

    __slots__ = ()
    event_type: ClassVar[SharedObjectEventType]

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read nothing: data of a newer peer is ignored (RTMP Errata §2)."""
        return cls()

    def encode(self, amf3: bool) -> bytes:
        """Write nothing: §7.1.3."""
        return b""


class _Named:
    """An event about a slot: Field §"Shared object events"."""

    __slots__ = ()
    event_type: ClassVar[SharedObjectEventType]
    name: str

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read the name: §7.1.3; RemoteError if it is cut off."""
        return cls(_text(data, 0)[0])  # type: ignore[call-arg]

    def encode(self, amf3: bool) -> bytes:
        """Write the name: §7.1.3; LocalError if it is too long."""
        return _raw(self.name)


class _Slot:
    """An event with a new value of a slot: Field §"Shared object events"."""

    __slots__ = ()
    event_type: ClassVar[SharedObjectEventType]
    name: str
    value: Value

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read name and value: §7.1.3; RemoteError if either is cut off."""
        name, at = _text(data, 0)
        return cls(name, amf0.decode_one(data, at)[0])  # type: ignore[call-arg]

    def encode(self, amf3: bool) -> bytes:
        """Write name and value: §7.1.3; LocalError if AMF has no such value."""
        return _raw(self.name) + amf0.encode(self.value, avmplus=amf3)


@dataclass(frozen=True, slots=True)
class Use(_Bare):
    """A client begins to use the object: §7.1.3."""

    event_type = SharedObjectEventType.USE


@dataclass(frozen=True, slots=True)
class Release(_Bare):
    """A client stops using the object: §7.1.3."""

    event_type = SharedObjectEventType.RELEASE


@dataclass(frozen=True, slots=True)
class RequestChange(_Slot):
    """A client wants a slot to have this value: §7.1.3."""

    event_type = SharedObjectEventType.REQUEST_CHANGE
    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Change(_Slot):
    """The server says that a slot has this value: §7.1.3."""

    event_type = SharedObjectEventType.CHANGE
    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Success(_Named):
    """The server has made the change that this client requested: §7.1.3."""

    event_type = SharedObjectEventType.SUCCESS
    name: str


@dataclass(frozen=True, slots=True)
class SendMessage:
    """A call to all users, from a client and from the server; the name comes first: §7.1.3."""

    event_type: ClassVar[SharedObjectEventType] = SharedObjectEventType.SEND_MESSAGE
    values: tuple[Value, ...]

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read all values: §7.1.3; RemoteError if one is cut off."""
        return cls(tuple(amf0.decode(data)))

    def encode(self, amf3: bool) -> bytes:
        """Write all values: §7.1.3; LocalError if AMF has no such value."""
        return amf0.encode(*self.values, avmplus=amf3)


@dataclass(frozen=True, slots=True)
class Status:
    """The server reports an error: §7.1.3."""

    event_type: ClassVar[SharedObjectEventType] = SharedObjectEventType.STATUS
    code: str
    level: str

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read both texts: §7.1.3; RemoteError if one is cut off."""
        code, at = _text(data, 0)
        return cls(code, _text(data, at)[0])

    def encode(self, amf3: bool) -> bytes:
        """Write both texts: §7.1.3."""
        return _raw(self.code) + _raw(self.level)


@dataclass(frozen=True, slots=True)
class Clear(_Bare):
    """The server has removed all slots: §7.1.3."""

    event_type = SharedObjectEventType.CLEAR


@dataclass(frozen=True, slots=True)
class Remove(_Named):
    """The server has removed a slot: §7.1.3."""

    event_type = SharedObjectEventType.REMOVE
    name: str


@dataclass(frozen=True, slots=True)
class RequestRemove(_Named):
    """A client wants a slot to be removed: §7.1.3."""

    event_type = SharedObjectEventType.REQUEST_REMOVE
    name: str


@dataclass(frozen=True, slots=True)
class UseSuccess(_Bare):
    """The server lets a client use the object: §7.1.3."""

    event_type = SharedObjectEventType.USE_SUCCESS


@dataclass(frozen=True, slots=True)
class OtherSharedObjectEvent:
    """An event that §7.1.3 does not list; Adobe's own use three more."""

    event_type: int
    data: bytes

    def encode(self, amf3: bool) -> bytes:
        """Write the message: §7.1.3."""
        return self.data


Event: TypeAlias = (
    Use | Release | RequestChange | Change | Success | SendMessage | Status | Clear | Remove
    | RequestRemove | UseSuccess | OtherSharedObjectEvent
)  # fmt: skip

EVENTS: Final[
    Mapping[
        int,
        type[
            Use | Release | RequestChange | Change | Success | SendMessage | Status | Clear
            | Remove | RequestRemove | UseSuccess
        ],
    ]
] = {
    each.event_type: each
    for each in (
        Use, Release, RequestChange, Change, Success, SendMessage, Status, Clear, Remove,
        RequestRemove, UseSuccess,
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SharedObject:
    """One message: the object's name, its version as the sender knows it, and events: §7.1.3."""

    name: str
    version: int
    flags: Flags
    events: tuple[Event, ...]

    @property
    def is_persistent(self) -> bool:
        """Whether it is to outlive its users: Field §"Shared object events"."""
        return bool(self.flags & Flags.PERSISTENT)

    @classmethod
    def parse(cls, message: Message) -> Self:
        """Read type 19, or 16 with its leading zero: §7.1.3.  RemoteError if wrong or large."""
        payload = message.payload
        if len(payload) > MAX_MESSAGE:
            raise RemoteError(f"a shared object message of {len(payload)} bytes")
        # E-RTMP v2 §"Enabling AMF3 in RTMP" [amf3-steps]
        if message.type_id == MessageType.SHARED_OBJECT_AMF3:
            # E-RTMP v2 §"Important AMF3-encoded Historical Specification Clarification" [format-0]
            if payload[:1] != b"\x00":
                raise RemoteError("a type 16 message in an unknown format")
            payload = payload[1:]
        elif message.type_id != MessageType.SHARED_OBJECT:
            raise RemoteError(f"message type {message.type_id} is no shared object")
        return cls.read(payload)

    @classmethod
    def read(cls, payload: bytes) -> Self:
        """Read a payload of type 19, which is also how objects are stored (§7.1.3)."""
        name, at = _text(payload, 0)  # §7.1.3 [layout]
        if at + _HEADER.size > len(payload):
            raise RemoteError("a shared object message ends within its header")
        # §7.1.3 [layout], RTMP Errata §2 [reserved-ignored]
        version, flags, _ = _HEADER.unpack_from(payload, at)
        at += _HEADER.size  # §7.1.3 [layout]
        events: list[Event] = []
        while at < len(payload):  # §7.1.3 [layout]
            if at + _EVENT.size > len(payload) or len(events) == MAX_EVENTS:
                raise RemoteError("a shared object message with a broken event, or too many")
            event_type, length = _EVENT.unpack_from(payload, at)
            at += _EVENT.size
            data = payload[at : at + length]  # §7.1.3 [layout]
            if len(data) < length:
                raise RemoteError("a shared object message is shorter than its events")
            at += length  # §7.1.3 [layout]
            known = EVENTS.get(event_type)  # §7.1.3 [event-types]
            events.append(known.parse(data) if known else OtherSharedObjectEvent(event_type, data))
        return cls(name, version, Flags(flags), tuple(events))

    def __bytes__(self) -> bytes:
        return self.payload(amf3=False)

    def payload(self, amf3: bool) -> bytes:
        """Write it, in AMF3 if so wanted: §7.1.3.  LocalError if it cannot be written."""
        # §7.1.3 [layout], RTMP Errata §2 [reserved-zero]
        parts = [_raw(self.name), _HEADER.pack(self.version & _U32, self.flags & _U32, 0)]
        for event in self.events:
            data = event.encode(amf3)
            parts += _EVENT.pack(event.event_type, len(data)), data  # §7.1.3 [layout]
        return b"".join(parts)

    def message(self, amf3: bool = False) -> Message:
        """Wrap it for message stream 0, as type 19 or 16 (§7.1.3)."""
        if amf3:
            payload = b"\x00" + self.payload(amf3)
            # §7.1.3 [types]
            return Message(MessageType.SHARED_OBJECT_AMF3, 0, 0, payload)
        # §7.1.3 [types]
        return Message(MessageType.SHARED_OBJECT, 0, 0, self.payload(amf3))


def _text(data: bytes, at: int) -> tuple[str, int]:
    """Read a name and its end; bytes that are not UTF-8 become U+FFFD, as in AMF0 §1.3.1."""
    if at + _LENGTH.size > len(data):
        raise RemoteError("a shared object message ends within a name")
    (length,) = _LENGTH.unpack_from(data, at)
    end = at + _LENGTH.size + length
    if end > len(data):
        raise RemoteError("a shared object message ends within a name")
    return data[at + _LENGTH.size : end].decode(errors="replace"), end


def _raw(text: str) -> bytes:
    data = text.encode(errors="replace")
    if len(data) > 0xFFFF:
        raise LocalError(f"a name of {len(data)} bytes")
    return _LENGTH.pack(len(data)) + data
