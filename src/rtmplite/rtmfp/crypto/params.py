"""The numbers of the Flash cryptography profile, and the choices it leaves open.

Implements RFC 7425 §4.
"""

from enum import IntEnum
from typing import Final

DEFAULT_SESSION_KEY: Final = b"Adobe Systems 02"  # §4.1 [default-key]

BLOCK: Final = 16  # bytes of an AES block: §4.7.2
KEY_LENGTH: Final = 16  # what AES-128 takes of the 32 bytes derived: §4.6.3 [first-128-bits]
FINGERPRINT_LENGTH: Final = 32  # SHA-256: §4.3.2
HMAC_LENGTHS: Final = range(4, 33)  # §4.5.2.4, §4.6.4
PADDING: Final = b"\xff"  # what fills the last block: §4.7.2
NO_SIGNATURE: Final = b"X"  # what a Flash Player sends where it signs nothing: §4.3.5

# Own design: §4.7.3.3 asks for at least 32 numbers; a path of several links at tens of thousands of
# packets a second delivers them in greater disorder, and each number costs one bit.
REPLAY_WINDOW: Final = 256

# Own design: nobody guesses 16 of the 32 bytes, and RTMFP's author sends as many.
HMAC_LENGTH: Final = 16

# Own design: the most that §4.5.2.2 calls useful; Flash Players and RTMFP's author send as much.
SALT_LENGTH: Final = 64


class CertificateOption(IntEnum):
    """The option types of certificates: §4.3.3."""

    HOSTNAME = 0x00
    ACCEPTS_ANCILLARY_DATA = 0x0A
    EXTRA_RANDOMNESS = 0x0E
    SUPPORTED_EPHEMERAL_GROUP = 0x15
    STATIC_PUBLIC_KEY = 0x1D


class SignatureOption(IntEnum):
    """The option types of signatures: §4.3.5.1."""

    SIMPLE_PASSWORD = 0x1D


class EpdOption(IntEnum):
    """The option types of Endpoint Discriminators: §4.4.2."""

    REQUIRED_HOSTNAME = 0x00
    ANCILLARY_DATA = 0x0A
    FINGERPRINT = 0x0F


class KeyingOption(IntEnum):
    """The option types of session keying components: §4.5.2."""

    EPHEMERAL_PUBLIC_KEY = 0x0D
    EXTRA_RANDOMNESS = 0x0E
    HMAC_NEGOTIATION = 0x1A
    GROUP_SELECT = 0x1D
    SEQUENCE_NUMBER_NEGOTIATION = 0x1E
