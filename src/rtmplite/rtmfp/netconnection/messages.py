"""The messages in flows between Flash clients and servers: RTMP's, each with a short header.

Implements RFC 7425 §5.  A flow's metadata say which message stream it belongs to, so a message has
only its type and its time before the payload; its length is that of the RTMFP message.

    >>> FlowMetadata.parse(bytes.fromhex("54430405"))
    FlowMetadata(stream_id=5, intent=<Intent.QUEUING_ORDER: 0>)
    >>> encode_message(8, 20, b"sound").hex(" ")
    '08 00 00 00 14 73 6f 75 6e 64'
    >>> parse_message(encode_message(8, 20, b"sound"), stream_id=5)
    Message(type_id=8, timestamp=20, stream_id=5, payload=b'sound')
"""

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import ClassVar, Final, Self, TypeAlias

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.wire.vlu import decode_vlu, encode_vlu
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message, MessageType

Address: TypeAlias = tuple[str, int]

SIGNATURE: Final = b"TC"  # §5.1.1 [signature]
MAX_STREAM_ID: Final = 0xFFFFFF  # 24 bits, the width in chunks: §5.1 [stream-id-range]
SET_PEER_INFO: Final = "setPeerInfo"
RELAY_COMMAND: Final = "standIn"  # own design: a client asks for a way to another through us
MAX_ADDRESSES: Final = 64  # own design: more than any host has

# Chunk size, abort, acknowledgement, window and bandwidth: RTMFP has its own means for these.
CHUNK_STREAM_TYPES: Final = frozenset({1, 2, 3, 5, 6})  # §5.1 [no-chunk-control]

# Own design, where §5.3.4 leaves the limits to the client; in seconds.
MIN_KEEPALIVE: Final = 5.0  # §5.3.4 [at-least-5]
MAX_KEEPALIVE: Final = 3600.0

_HEADER: Final = Struct(">BI")
_EVENT: Final = Struct(">HII")
_STREAM_ID_PRESENT: Final = 0x04
_NETWORK_ORDER: Final = 0x01


class Intent(IntEnum):
    """The order in which a sender wants its messages received: §5.1.1 [intent]."""

    QUEUING_ORDER = 0
    NETWORK_ORDER = 1


@dataclass(frozen=True, slots=True)
class FlowMetadata:
    """The metadata of a flow: its message stream, and a hint, `intent`: §5.1.1."""

    stream_id: int
    intent: Intent = Intent.QUEUING_ORDER

    @classmethod
    def parse(cls, metadata: bytes | memoryview) -> Self:
        """Read a flow's metadata, ignoring what follows; RemoteError to reject it: §5.1.1."""
        raw = bytes(metadata)
        if not raw.startswith(SIGNATURE):  # §5.1.1 [rejects-unknown] [signature]
            raise RemoteError(f"a flow of another kind: {raw[:8].hex()}")
        flags = int.from_bytes(raw[2:3])  # 0 if they are cut off
        if not flags & _STREAM_ID_PRESENT:  # §5.1.1 [rejects-without-stream]
            raise RemoteError("a flow without a stream id")
        stream_id, _ = decode_vlu(raw, 3)
        if stream_id > MAX_STREAM_ID:
            raise RemoteError(f"a flow for stream {stream_id}")
        return cls(stream_id, Intent(flags & _NETWORK_ORDER))

    def __bytes__(self) -> bytes:
        flags = _STREAM_ID_PRESENT | self.intent  # §5.1.1 [stream-id-present] [stream-id-given]
        # §5.1.1 [signature]
        return SIGNATURE + bytes((flags,)) + encode_vlu(self.stream_id)


def encode_message(type_id: int, timestamp: int, payload: bytes) -> bytes:
    """Give the RTMFP message for an RTMP one, `timestamp` in ms: §5.1.2.

    The time has 32 bits: §5.1.

    Neither stream nor flow shows in it, so the same bytes suit every player of a live stream.
    """
    # §5.1.2 [header], §5.1 [time-range]
    return _HEADER.pack(type_id, timestamp) + payload


def parse_message(data: bytes | memoryview, stream_id: int) -> Message:
    """Read a message of a flow of `stream_id`; RemoteError if too short: §5.1.2."""
    if len(data) < _HEADER.size:
        raise RemoteError(f"a message of {len(data)} bytes in a flow")
    type_id, timestamp = _HEADER.unpack_from(data)  # §5.1.2 [header]
    # §5.1.2 [stream-from-flow]
    return Message(type_id, timestamp, stream_id, bytes(data[_HEADER.size :]))


class RtmfpUserControlType(IntEnum):
    """The user control events that only RTMFP has: §5.2, §5.3.4."""

    FLOW_SYNCHRONIZATION = 34
    SET_KEEPALIVE_TIMERS = 41


class _Event:
    """A user control event of two numbers: §5.2 and §5.3.4."""

    __slots__ = ()
    event_type: ClassVar[RtmfpUserControlType]

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read the fields after the event type: §5.2, §5.3.4; RemoteError if they are too short."""
        if len(data) < 8:
            raise RemoteError(f"an event {cls.event_type} of {len(data)} bytes")
        return cls(int.from_bytes(data[:4]), int.from_bytes(data[4:8]))  # type: ignore[call-arg]

    def message(self) -> Message:
        """Wrap it; time and stream are 0 and say nothing: §5.2 [time-ignored]."""
        return Message(MessageType.USER_CONTROL, 0, 0, bytes(self))  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True)
class FlowSynchronization(_Event):
    """A barrier across `count` flows, told apart by `sync_id`: §5.2 [sync-layout]."""

    event_type = RtmfpUserControlType.FLOW_SYNCHRONIZATION
    sync_id: int
    count: int

    def __bytes__(self) -> bytes:
        return _EVENT.pack(self.event_type, self.sync_id, self.count)


@dataclass(frozen=True, slots=True)
class SetKeepaliveTimers(_Event):
    """A server's advice when to look for us and peers, in ms: §5.3.4 [timer-layout]."""

    event_type = RtmfpUserControlType.SET_KEEPALIVE_TIMERS
    server_period: int
    peer_period: int

    def __bytes__(self) -> bytes:
        return _EVENT.pack(self.event_type, self.server_period, self.peer_period)


Control: TypeAlias = control.Control | FlowSynchronization | SetKeepaliveTimers

_EVENTS: Final[Mapping[int, type[FlowSynchronization | SetKeepaliveTimers]]] = {
    RtmfpUserControlType.FLOW_SYNCHRONIZATION: FlowSynchronization,
    RtmfpUserControlType.SET_KEEPALIVE_TIMERS: SetKeepaliveTimers,
}


def parse_control(message: Message) -> Control | None:
    """Read a user control message, None for any other; RemoteError if too short: §5.1."""
    if message.type_id in CHUNK_STREAM_TYPES:  # §5.1 [ignores-chunk-control]
        return None
    parsed = control.parse_control(message)
    if isinstance(parsed, control.OtherUserControl) and (kind := _EVENTS.get(parsed.event_type)):
        return kind.parse(parsed.data)
    return parsed


def keepalive_period(milliseconds: int) -> float:
    """Give the seconds to use where a server advises so many ms: §5.3.4 [client-minimum]."""
    return min(max(milliseconds / 1000, MIN_KEEPALIVE), MAX_KEEPALIVE)


def peer_info(addresses: Iterable[Address]) -> Command:
    """Tell a server where else we are, but not link-local or loopback: §5.3.3."""
    # §5.3.3 [no-local]
    shown = [_show(host, port) for host, port in addresses if _is_reachable(host)]
    return Command(SET_PEER_INFO, 0.0, None, tuple(shown))  # §5.3.3 [layout]


def parse_peer_info(command: Command) -> tuple[Address, ...]:
    """Give the addresses of a setPeerInfo command: §5.3.3 [address-format].

    What is no address is left out.  Own design: and so is what comes after the first 64.
    """
    read = [_read(each) for each in command.args[:MAX_ADDRESSES] if isinstance(each, str)]
    return tuple(each for each in read if each is not None)


def is_behind_nat(listed: Iterable[Address], observed: Address) -> bool:
    """Tell whether a client's address is not its own: §5.3.3 [nat-if-unlisted]."""
    return _canonical(observed) not in {_canonical(each) for each in listed}


def _show(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _read(text: str) -> Address | None:
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 1 << 16):
        return None
    bracketed = host.startswith("[") and host.endswith("]")
    try:
        address = ipaddress.ip_address(host[1:-1] if bracketed else host)
    except ValueError:
        return None
    return (str(address), int(port)) if bracketed == (address.version == 6) else None


def _is_reachable(host: str) -> bool:
    address = ipaddress.ip_address(host)
    return not (address.is_loopback or address.is_link_local or address.is_unspecified)


def _canonical(address: Address) -> Address:
    return str(ipaddress.ip_address(address[0])), address[1]
