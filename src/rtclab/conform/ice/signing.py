"""Messages whose octets are not those that our codec writes, signed all the same.

Implements RFC 8489 §14.5 and §14.7.
"""

import binascii
import hmac
import struct
from typing import Final

from p2psip.nat.stun import HEADER_SIZE, StunType

_FINGERPRINT_XOR: Final = 0x5354554E
_INTEGRITY, _FINGERPRINT = 24, 8  # octets of both attributes


def bare(check: bytes) -> bytes:
    """A check without its signature and its fingerprint, its last attributes (RFC 8489 §14.5)."""
    return check[: -_INTEGRITY - _FINGERPRINT]


def sealed(message: bytes, password: str) -> bytes:
    """Sign a bare message, and give it a fingerprint (RFC 8489 §14.5)."""
    told = _with_length(message, _INTEGRITY)
    digest = hmac.digest(password.encode(), told, "sha1")
    return fingerprinted(told + struct.pack("!HH", StunType.MESSAGE_INTEGRITY, 20) + digest)


def fingerprinted(message: bytes) -> bytes:
    """Give a message the fingerprint that it lacks (RFC 8489 §14.7)."""
    told = _with_length(message, _FINGERPRINT)
    summed = binascii.crc32(told) ^ _FINGERPRINT_XOR
    return told + struct.pack("!HHI", StunType.FINGERPRINT, 4, summed)


def _with_length(message: bytes, more: int) -> bytes:
    length = len(message) + more - HEADER_SIZE
    return message[:2] + struct.pack("!H", length) + message[4:]
