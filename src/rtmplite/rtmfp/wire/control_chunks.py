"""The chunks about a session rather than its flows: fragments, forwarded hellos, ping, close.

Implements RFC 7016 §2.3.1, §2.3.3, §2.3.9, §2.3.10, §2.3.17 and §2.3.18.

    >>> Fragment(7, 1, b"rest", more_fragments=True).encode().hex(" ")
    '80 07 01 72 65 73 74'

All parsers raise RemoteError for a payload that is cut off, and nothing else.
"""

from dataclasses import dataclass
from typing import ClassVar, Final, Self

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.wire.address import SocketAddress, parse_address
from rtmplite.rtmfp.wire.vlu import decode_counted, decode_vlu, encode_counted, encode_vlu

_MORE_FRAGMENTS: Final = 0x80  # bit M: §2.3.1


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece, by number from 0, of a packet too large for the path: §2.3.1."""

    type_id: ClassVar[int] = 0x7F
    packet_id: int
    fragment_number: int
    packet_fragment: bytes
    more_fragments: bool = False

    def __post_init__(self) -> None:
        if not self.packet_fragment:  # §2.3.1 [fragment-not-empty]
            raise LocalError("a fragment of nothing")

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload: §2.3.1."""
        packet_id, at = decode_vlu(payload, 1)  # §2.3.1 [fragment-layout]
        number, at = decode_vlu(payload, at)
        if at == len(payload):  # §2.3.1 [fragment-not-empty]
            raise RemoteError("a fragment of nothing")
        more = bool(payload[0] & _MORE_FRAGMENTS)  # §2 [reserved-ignored]
        return cls(packet_id, number, payload[at:], more)

    def encode(self) -> bytes:
        """Write the payload: §2.3.1 [fragment-layout], §2 [reserved-clear]."""
        flags = bytes((_MORE_FRAGMENTS if self.more_fragments else 0,))
        numbers = encode_vlu(self.packet_id) + encode_vlu(self.fragment_number)
        return flags + numbers + self.packet_fragment


@dataclass(frozen=True, slots=True)
class ForwardedInitiatorHello:
    """FIHello: an introducer forwards the hello of an initiator at `reply_address`: §2.3.3."""

    type_id: ClassVar[int] = 0x0F
    endpoint_discriminator: bytes
    reply_address: SocketAddress
    tag: bytes

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload: §2.3.3 [fihello-layout]."""
        epd, at = decode_counted(payload)
        reply_address, at = parse_address(payload, at)
        return cls(epd, reply_address, payload[at:])

    def encode(self) -> bytes:
        """Write the payload: §2.3.3 [fihello-layout]."""
        return encode_counted(self.endpoint_discriminator) + self.reply_address.encode() + self.tag


@dataclass(frozen=True, slots=True)
class Ping:
    """Ping: asks the far end to return `message`: §2.3.9."""

    type_id: ClassVar[int] = 0x01
    message: bytes = b""

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload, all of it message: §2.3.9 [ping-layout]."""
        return cls(payload)

    def encode(self) -> bytes:
        """Write the payload: §2.3.9 [ping-layout]."""
        return self.message


@dataclass(frozen=True, slots=True)
class PingReply:
    """Ping Reply: returns the message of a Ping: §2.3.10."""

    type_id: ClassVar[int] = 0x41
    message_echo: bytes = b""

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload, all of it message: §2.3.10 [ping-reply-layout]."""
        return cls(payload)

    def encode(self) -> bytes:
        """Write the payload: §2.3.10 [ping-reply-layout]."""
        return self.message_echo


@dataclass(frozen=True, slots=True)
class SessionClose:
    """Session Close Request: asks the far end to close the session: §2.3.17."""

    type_id: ClassVar[int] = 0x0C

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read a payload that should be empty: §2.3.17 [close-layout]."""
        return cls()

    def encode(self) -> bytes:
        """Write the payload, which is empty: §2.3.17 [close-layout]."""
        return b""


@dataclass(frozen=True, slots=True)
class SessionCloseAck:
    """Session Close Acknowledgement: the sender has closed the session: §2.3.18."""

    type_id: ClassVar[int] = 0x4C

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read a payload that should be empty: §2.3.18 [close-ack-layout]."""
        return cls()

    def encode(self) -> bytes:
        """Write the payload, which is empty: §2.3.18 [close-ack-layout]."""
        return b""
