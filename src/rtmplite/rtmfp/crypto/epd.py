"""Endpoint Discriminators: they select an endpoint by hostname, URL or fingerprint.

Implements RFC 7425 §4.4.

    >>> Epd(ancillary_data=b"rtmfp://example.com/live").encode()
    b'\\x19\\nrtmfp://example.com/live'
"""

from dataclasses import dataclass

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto import fields
from rtmplite.rtmfp.crypto.certificate import Certificate
from rtmplite.rtmfp.crypto.params import FINGERPRINT_LENGTH, EpdOption
from rtmplite.rtmfp.wire.option import Option, encode_options


@dataclass(frozen=True, slots=True)
class Epd:
    """The options of a discriminator: a URI in UTF-8, or 32 bytes of fingerprint: §4.4.2."""

    required_hostname: bytes | None = None
    ancillary_data: bytes | None = None
    fingerprint: bytes | None = None

    @classmethod
    def parse(cls, encoded: bytes | memoryview) -> "Epd":
        """Read a discriminator, ignoring unknown options: §4.4.2.  RemoteError if malformed."""
        options = fields.read(encoded)
        fingerprint = fields.only(options, EpdOption.FINGERPRINT)  # §4.4.2.3 [fingerprint-once]
        if fingerprint is not None and len(fingerprint) != FINGERPRINT_LENGTH:
            # §4.4.2.3 [32-bytes]
            raise RemoteError(f"a fingerprint of {len(fingerprint)} bytes")
        return cls(
            fields.only(options, EpdOption.REQUIRED_HOSTNAME),  # §4.4.2.1 [hostname-once]
            fields.only(options, EpdOption.ANCILLARY_DATA),  # §4.4.2.2 [ancillary-once]
            fingerprint,
        )

    def encode(self) -> bytes:
        """Write the options that are set: §4.4.1.

        With a fingerprint alone this is the Canonical Endpoint Discriminator of 34 bytes, as
        lengths and types are always written in as few bytes as possible: §4.4.4 [canonical-epd].
        """
        fields_of_types = (
            (EpdOption.REQUIRED_HOSTNAME, self.required_hostname),
            (EpdOption.ANCILLARY_DATA, self.ancillary_data),
            (EpdOption.FINGERPRINT, self.fingerprint),
        )
        return encode_options(
            Option(kind, value) for kind, value in fields_of_types if value is not None
        )

    def selects(self, certificate: Certificate) -> bool:
        """Whether this selects a certificate: §4.4.3 [selection-method], Figure 1."""
        if self.fingerprint is not None:  # §4.4.3 [fingerprint-decides]
            return self.fingerprint == certificate.fingerprint
        if self.required_hostname is not None and self.required_hostname != certificate.hostname:
            return False  # §4.4.3 [hostname-identical]
        if self.ancillary_data is not None:
            return certificate.accepts_ancillary_data  # §4.4.3 [ancillary-accepted]
        return self.required_hostname is not None  # §4.4.3 [one-option-at-least]
