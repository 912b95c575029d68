"""The chunks that two endpoints exchange before they share a session: hellos and keying.

Implements RFC 7016 §2.3.2, §2.3.4, §2.3.5, §2.3.6, §2.3.7 and §2.3.8.

    >>> hello = InitiatorHello(bytes.fromhex("03 0a 72 3a"), tag=b"tagtag")
    >>> hello.encode().hex(" ")
    '04 03 0a 72 3a 74 61 67 74 61 67'
    >>> InitiatorHello.parse(hello.encode()) == hello
    True

Each class is the payload of one chunk type; `rtmplite.rtmfp.wire.chunks` puts type and length
before it.  All parsers raise RemoteError for a payload that is cut off, and nothing else.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Final, Self

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.wire.address import SocketAddress, parse_address
from rtmplite.rtmfp.wire.vlu import decode_counted, encode_counted

_SESSION_ID_BYTES: Final = 4  # Source: §2.3.7, §2.3.8


@dataclass(frozen=True, slots=True)
class InitiatorHello:
    """IHello: asks for an endpoint; every answer repeats `tag`: §2.3.2."""

    type_id: ClassVar[int] = 0x30
    endpoint_discriminator: bytes
    tag: bytes

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload: §2.3.2 [ihello-layout]."""
        epd, at = decode_counted(payload)
        return cls(epd, payload[at:])

    def encode(self) -> bytes:
        """Write the payload: §2.3.2 [ihello-layout]."""
        return encode_counted(self.endpoint_discriminator) + self.tag


@dataclass(frozen=True, slots=True)
class ResponderHello:
    """RHello: answers an IHello with a certificate, and a cookie to send back: §2.3.4."""

    type_id: ClassVar[int] = 0x70
    tag_echo: bytes
    cookie: bytes
    responder_certificate: bytes

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload: §2.3.4 [rhello-layout]."""
        tag_echo, at = decode_counted(payload)
        cookie, at = decode_counted(payload, at)
        return cls(tag_echo, cookie, payload[at:])

    def encode(self) -> bytes:
        """Write the payload: §2.3.4 [rhello-layout]."""
        head = encode_counted(self.tag_echo) + encode_counted(self.cookie)
        return head + self.responder_certificate


# Own design: more than an initiator tries at all (§3.5.1.1.1); the others are not read, since 64
# KiB of them would take 50 ms.
MAX_DESTINATIONS: Final = 64


@dataclass(frozen=True, slots=True)
class ResponderRedirect:
    """Redirect: names more addresses to try; an empty list means its own source: §2.3.5."""

    type_id: ClassVar[int] = 0x71
    tag_echo: bytes
    redirect_destinations: tuple[SocketAddress, ...] = ()

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload: §2.3.5."""
        tag_echo, at = decode_counted(payload)  # §2.3.5 [redirect-layout]
        destinations: list[SocketAddress] = []
        while at < len(payload) and len(destinations) < MAX_DESTINATIONS:
            address, at = parse_address(payload, at)  # §2.3.5 [redirect-layout]
            destinations.append(address)
        return cls(tag_echo, tuple(destinations))

    def encode(self) -> bytes:
        """Write the payload: §2.3.5 [redirect-layout]."""
        addresses = (address.encode() for address in self.redirect_destinations)
        return encode_counted(self.tag_echo) + b"".join(addresses)

    @property
    def is_implied(self) -> bool:
        """Whether the packet's own source is to be tried: §2.3.5 [implied-redirect]."""
        return not self.redirect_destinations


@dataclass(frozen=True, slots=True)
class RHelloCookieChange:
    """RHello Cookie Change: asks to sign again, with a cookie for the new address: §2.3.6."""

    type_id: ClassVar[int] = 0x79
    old_cookie: bytes
    new_cookie: bytes

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload: §2.3.6 [cookie-change-layout]."""
        old_cookie, at = decode_counted(payload)
        return cls(old_cookie, payload[at:])

    def encode(self) -> bytes:
        """Write the payload: §2.3.6 [cookie-change-layout]."""
        return encode_counted(self.old_cookie) + self.new_cookie


@dataclass(frozen=True, slots=True)
class InitiatorInitialKeying:
    """IIKeying: cookie, certificate and the initiator's half of the session's keys: §2.3.7.

    `initiator_session_id` (32 bits) is the session ID for packets to the initiator.  `received`
    holds the signed bytes of a chunk that was parsed, since a length may be written in more bytes
    than needed; it stays empty in a chunk that is to be sent.
    """

    type_id: ClassVar[int] = 0x38
    initiator_session_id: int
    cookie_echo: bytes
    initiator_certificate: bytes
    session_key_initiator_component: bytes
    signature: bytes
    received: bytes = field(default=b"", repr=False, compare=False)

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload: §2.3.7 [iikeying-layout]."""
        session_id, at = _decode_session_id(payload)
        cookie, at = decode_counted(payload, at)
        certificate, at = decode_counted(payload, at)
        component, at = decode_counted(payload, at)
        return cls(session_id, cookie, certificate, component, payload[at:], payload[:at])

    @property
    def signed_parameters(self) -> bytes:
        """The signed part of the payload, all before the signature: §2.3.7 [iikeying-signed]."""
        return self.received or b"".join(
            (
                _encode_session_id(self.initiator_session_id),
                encode_counted(self.cookie_echo),
                encode_counted(self.initiator_certificate),
                encode_counted(self.session_key_initiator_component),
            )
        )

    def encode(self) -> bytes:
        """Write the payload: §2.3.7 [iikeying-layout]."""
        return self.signed_parameters + self.signature


@dataclass(frozen=True, slots=True)
class ResponderInitialKeying:
    """RIKeying: the responder's half of the keys, which opens the session: §2.3.8.

    `responder_session_id` (32 bits) is the session ID for packets to the responder; `received` is
    as in `InitiatorInitialKeying`.
    """

    type_id: ClassVar[int] = 0x78
    responder_session_id: int
    session_key_responder_component: bytes
    signature: bytes
    received: bytes = field(default=b"", repr=False, compare=False)

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload: §2.3.8 [rikeying-layout]."""
        session_id, at = _decode_session_id(payload)
        component, at = decode_counted(payload, at)
        return cls(session_id, component, payload[at:], payload[:at])

    @property
    def signed_parameters_portion(self) -> bytes:
        """The payload up to the signature: §2.3.8 [rikeying-layout]."""
        return self.received or _encode_session_id(self.responder_session_id) + encode_counted(
            self.session_key_responder_component
        )

    def signed_parameters(self, initiator_component: bytes) -> bytes:
        """Return the signed bytes: this portion and the initiator's: §2.3.8 [rikeying-signed]."""
        return self.signed_parameters_portion + initiator_component

    def encode(self) -> bytes:
        """Write the payload: §2.3.8 [rikeying-layout]."""
        return self.signed_parameters_portion + self.signature


def _encode_session_id(session_id: int) -> bytes:
    if not 0 <= session_id < 1 << 32:
        raise LocalError(f"{session_id} is no session ID of 32 bits")
    return session_id.to_bytes(_SESSION_ID_BYTES, "big")


def _decode_session_id(payload: bytes) -> tuple[int, int]:
    """Read the four bytes that both keyings begin with."""
    if len(payload) < _SESSION_ID_BYTES:  # §2
        raise RemoteError("a session ID is cut off")
    return int.from_bytes(payload[:_SESSION_ID_BYTES], "big"), _SESSION_ID_BYTES
