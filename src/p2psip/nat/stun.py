"""STUN messages: a header of 20 octets, then attributes of type, length and value.

Implements RFC 8489 §5, with the attributes of §14.

A parsed message keeps its octets, because integrity and fingerprint are computed over them.

    >>> request = StunMessage.write(StunClass.REQUEST, BINDING, bytes(12), fingerprint=True)
    >>> request.data.hex(" ", 4)
    '00010008 2112a442 00000000 00000000 00000000 80280004 b2aaf9f6'
    >>> StunMessage.parse(request.data).fingerprint_holds()
    True
"""

import binascii
import hashlib
import hmac
import ipaddress
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, Self

from p2psip.errors import LocalError, RemoteError

MAGIC_COOKIE: Final = 0x2112A442  # Source: §5
HEADER_SIZE: Final = 20  # octets
MAX_SIZE: Final = 1280  # octets: §6.1 says 548 where the path is unknown; TURN carries data
BINDING: Final = 0x001  # Source: §18.2, the one method of this specification

_HEADER: Final = struct.Struct("!HHI12s")
_ATTRIBUTE: Final = struct.Struct("!HH")
_FINGERPRINT_XOR: Final = 0x5354554E  # Source: §14.7


class StunClass(IntEnum):
    """The two class bits C1 and C0 of a message type: Figure 3 of §5."""

    REQUEST = 0
    INDICATION = 1
    SUCCESS = 2
    ERROR = 3


class StunType(IntEnum):
    """The attribute types: §18.3."""

    MAPPED_ADDRESS = 0x0001
    USERNAME = 0x0006
    MESSAGE_INTEGRITY = 0x0008
    ERROR_CODE = 0x0009
    UNKNOWN_ATTRIBUTES = 0x000A
    REALM = 0x0014
    NONCE = 0x0015
    MESSAGE_INTEGRITY_SHA256 = 0x001C
    PASSWORD_ALGORITHM = 0x001D
    USERHASH = 0x001E
    XOR_MAPPED_ADDRESS = 0x0020
    PASSWORD_ALGORITHMS = 0x8002
    ALTERNATE_DOMAIN = 0x8003
    SOFTWARE = 0x8022
    ALTERNATE_SERVER = 0x8023
    FINGERPRINT = 0x8028


_SIGNATURES: Final = {
    "sha1": (StunType.MESSAGE_INTEGRITY, 20),
    "sha256": (StunType.MESSAGE_INTEGRITY_SHA256, 32),
}
_INTEGRITIES: Final = (
    StunType.MESSAGE_INTEGRITY,
    StunType.MESSAGE_INTEGRITY_SHA256,
    StunType.FINGERPRINT,
)


class StunAttribute(NamedTuple):
    """One attribute as it stands in a message, its padding left out: §14."""

    type: int
    value: bytes


class TransportAddress(NamedTuple):
    """An IP address in its shortest text and a port, as sockets have them: §14.1."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StunMessage:
    """One STUN message and its octets: §5; `method` has 12 bits, `transaction_id` 12 octets."""

    kind: StunClass
    method: int
    transaction_id: bytes
    attributes: tuple[StunAttribute, ...]
    data: bytes

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read a datagram, without what stands behind an integrity: §6.3, §14.5.  RemoteError."""
        if len(data) < HEADER_SIZE:
            raise RemoteError("shorter than a STUN header")
        kind, length, cookie, transaction_id = _HEADER.unpack_from(data)
        if kind & 0xC000:  # §5 [top-bits-zero]
            raise RemoteError("not STUN: the first two bits are not zero")
        if cookie != MAGIC_COOKIE:  # §5 [magic-cookie]
            raise RemoteError("not STUN, or STUN as of RFC 3489: no magic cookie")
        if length % 4 or HEADER_SIZE + length != len(data):  # §5 [length-without-header]
            raise RemoteError(f"a STUN length of {length} in {len(data)} octets")
        method = kind & 0xF | kind >> 1 & 0x70 | kind >> 2 & 0xF80
        class_ = StunClass(kind >> 7 & 2 | kind >> 4 & 1)
        attributes = tuple(_counted(_attributes(data)))
        return cls(class_, method, transaction_id, attributes, bytes(data))

    @classmethod
    def write(
        cls,
        kind: StunClass,
        method: int,
        transaction_id: bytes,
        attributes: Iterable[tuple[int, bytes]] = (),
        *,
        key: bytes | None = None,
        digest: str = "sha1",
        fingerprint: bool = False,
    ) -> Self:
        """Make a message: §6.1; sign it with `key` if there is one: §14.5, with "sha256" §14.6.

        Raises LocalError for a method of more than 12 bits, another size of transaction ID, or
        more than 64 KiB.
        """
        if method >> 12 or len(transaction_id) != 12:
            raise LocalError("a STUN method has 12 bits, a transaction ID 12 octets")
        listed = [StunAttribute(*attribute) for attribute in attributes]
        head = method & 0xF | (method & 0x70) << 1 | (method & 0xF80) << 2
        head |= (kind & 1) << 4 | (kind & 2) << 7
        body = b"".join(_packed(attribute) for attribute in listed)
        if len(body) > 0xFF00:
            raise LocalError("a STUN message of more than 64 KiB")
        if key is not None:
            signature, size = _SIGNATURES[digest]
            signed = _headed(head, transaction_id, body, 4 + size) + body
            listed.append(StunAttribute(signature, _hmac(key, signed, digest)))
            body += _packed(listed[-1])
        if fingerprint:  # §14.7 [fingerprint-last]
            summed = _headed(head, transaction_id, body, 8) + body
            listed.append(StunAttribute(StunType.FINGERPRINT, _fingerprint(summed)))
            body += _packed(listed[-1])
        data = _headed(head, transaction_id, body, 0) + body
        return cls(kind, method, transaction_id, tuple(listed), data)

    def get(self, wanted: int) -> bytes | None:
        """Return the value of the first attribute of a type: §14 has the others ignored."""
        # §14 [may-appear-again] [first-counts]
        return next((value for kind, value in self.attributes if kind == wanted), None)

    def text(self, wanted: StunType) -> str | None:
        """Read an attribute as UTF-8, or raise RemoteError where it is none: §14.9."""
        value = self.get(wanted)
        try:
            return None if value is None else value.decode()
        except UnicodeDecodeError:
            raise RemoteError(f"{wanted.name} is not UTF-8") from None

    def unknown(self, known: Iterable[int]) -> tuple[int, ...]:
        """List the types that demand to be understood, those below 0x8000, and are not: §14."""
        understood = {*known, *_INTEGRITIES}
        # §6.3 [optional-ignored] [unexpected-ignored]
        return tuple(
            kind for kind, _ in self.attributes if kind < 0x8000 and kind not in understood
        )

    def mapped_address(self) -> TransportAddress | None:
        """Read the address that a server saw: §14.2, or §14.1 from a server of RFC 3489 times."""
        value = self.get(StunType.XOR_MAPPED_ADDRESS)
        if value is not None:
            return read_address(value, self.transaction_id)
        value = self.get(StunType.MAPPED_ADDRESS)
        return None if value is None else read_address(value)

    def error(self) -> tuple[int, str] | None:
        """Read the code and the reason phrase of an error response: §14.8."""
        value = self.get(StunType.ERROR_CODE)
        if value is None:
            return None
        # §14.8 [class-3-to-6] [number-0-to-99]
        if len(value) < 4 or not 3 <= value[2] & 7 <= 6 or value[3] > 99:
            raise RemoteError("an ERROR-CODE out of range")
        # §14.8 [reserved-ignored]
        return (value[2] & 7) * 100 + value[3], value[4:].decode(errors="replace")

    def fingerprint_holds(self) -> bool:
        """Tell whether the last attribute is the right FINGERPRINT: §14.7."""
        last = self.attributes[-1] if self.attributes else None
        if last is None or last.type != StunType.FINGERPRINT:
            return False
        return hmac.compare_digest(last.value, _fingerprint(self.data[:-8]))

    def integrity_holds(self, key: bytes) -> bool:
        """Tell whether the message was signed with `key`: §14.6, or §14.5 where only that is there.

        A digest of SHA-256 may be cut to 16 octets or more, by fours.
        """
        for kind, digest, least in (
            (StunType.MESSAGE_INTEGRITY_SHA256, "sha256", 16),
            (StunType.MESSAGE_INTEGRITY, "sha1", 20),
        ):
            at = next((at for at, seen, _ in _attributes(self.data) if seen == kind), None)
            value = self.get(kind)
            if at is None or value is None:
                continue
            body = self.data[HEADER_SIZE:at]
            # the length counts up to the end of the integrity: §14.5
            first, transaction_id = struct.unpack_from("!H6x12s", self.data)
            head = _headed(first, transaction_id, body, 4 + len(value))
            right = _hmac(key, head + body, digest)[: len(value)]
            if len(value) % 4:  # §14.6 [cut-by-fours]
                return False
            # §14.6 [cut-to-16-or-more]
            return len(value) >= least and hmac.compare_digest(value, right)
        return False


def is_stun(data: bytes) -> bool:
    """Tell STUN from RTP and SIP on the same port, by cookie and first bits: §6.3."""
    return len(data) >= HEADER_SIZE and data[0] < 64 and data[4:8] == b"\x21\x12\xa4\x42"


def read_address(value: bytes, transaction_id: bytes | None = None) -> TransportAddress:
    """Read MAPPED-ADDRESS (§14.1), or XOR-MAPPED-ADDRESS of that transaction (§14.2).

    Raises RemoteError for another family, or another length than its own.
    """
    # §14.1 [ipv4-32-bits] [ipv6-128-bits]
    if (len(value), value[1:2]) not in ((8, b"\1"), (20, b"\2")):
        raise RemoteError("an address of no family, or of a wrong length")
    if transaction_id is not None:
        value = value[:2] + _masked(value[2:], transaction_id)
    return TransportAddress(str(ipaddress.ip_address(value[4:])), int.from_bytes(value[2:4]))


def write_address(address: tuple[str, int], transaction_id: bytes | None = None) -> bytes:
    """Write MAPPED-ADDRESS (§14.1), or XOR-MAPPED-ADDRESS of that transaction (§14.2)."""
    try:
        packed = ipaddress.ip_address(address[0]).packed
        value = struct.pack("!H", address[1]) + packed
    except (ValueError, struct.error) as error:
        raise LocalError(f"no transport address: {error}") from None
    if transaction_id is not None:
        value = _masked(value, transaction_id)
    return bytes((0, 1 if len(packed) == 4 else 2)) + value  # §14.1 [first-octet]


def write_error(code: int, reason: str) -> bytes:
    """Write ERROR-CODE, a code of 300 to 699: §14.8."""
    if not 300 <= code <= 699:  # §14.8 [class-3-to-6]
        raise LocalError(f"{code} is not an error code of STUN")
    # §14.8 [reserved-zero] [number-0-to-99]
    return bytes((0, 0, code // 100, code % 100)) + reason.encode()


def long_term_key(username: str, realm: str, password: str) -> bytes:
    """Hash the key of the long-term mechanism, which is SIP's HA1: §9.2.2.

    >>> long_term_key("user", "realm", "pass").hex()
    '8493fbc53ba582fb4c044c456bdc40eb'
    """
    return hashlib.md5(f"{username}:{realm}:{password}".encode(), usedforsecurity=False).digest()


def _attributes(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield place, type and value of each attribute."""
    at = HEADER_SIZE
    while at < len(data):  # the length was found to be a multiple of four: four octets are there
        kind, length = _ATTRIBUTE.unpack_from(data, at)
        value = data[at + 4 : at + 4 + length]
        if len(value) != length:
            raise RemoteError("a STUN attribute beyond the end")
        yield at, kind, value
        at += 4 + length + -length % 4


def _counted(attributes: Iterable[tuple[int, int, bytes]]) -> Iterator[StunAttribute]:
    behind = -1  # the place of the last one of _INTEGRITIES, which stand in this order
    for _, kind, value in attributes:
        if kind in _INTEGRITIES:
            place = _INTEGRITIES.index(StunType(kind))
            if place > behind:
                yield StunAttribute(kind, value)
            behind = max(behind, place)
        elif behind < 0:  # §14.5
            yield StunAttribute(kind, value)  # §9 [ends-at-sha1] [ends-at-sha256]


def _packed(attribute: StunAttribute) -> bytes:
    kind, value = attribute
    # §14 [type-length-value] [length-before-padding] [ends-on-four]
    # §14 [padding-zero]
    return _ATTRIBUTE.pack(kind, len(value)) + value + bytes(-len(value) % 4)


def _headed(kind: int, transaction_id: bytes, body: bytes, more: int) -> bytes:
    return _HEADER.pack(kind, len(body) + more, MAGIC_COOKIE, transaction_id)


def _hmac(key: bytes, text: bytes, digest: str) -> bytes:
    return hmac.digest(key, text, digest)


def _fingerprint(text: bytes) -> bytes:
    return (binascii.crc32(text) ^ _FINGERPRINT_XOR).to_bytes(4)


def _masked(value: bytes, transaction_id: bytes) -> bytes:
    """XOR port and address with cookie and transaction ID: §14.2."""
    cookie = MAGIC_COOKIE.to_bytes(4)
    mask = cookie[:2] + cookie + transaction_id
    return bytes(octet ^ hidden for octet, hidden in zip(value, mask, strict=False))
