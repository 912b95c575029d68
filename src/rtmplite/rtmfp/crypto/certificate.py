"""Certificates: the public identity of an endpoint, and the fingerprint that names it.

Implements RFC 7425 §4.3.1 to §4.3.3, §4.3.6 and §4.4.4.

    canonical section: options | marker | more options and markers
    `-------- hashed --------'

    >>> encoded = build(accepts_ancillary_data=True, groups=(14, 2), extra=b"\\x00" * 4)
    >>> encoded.hex(" ")
    '01 0a 02 15 0e 02 15 02 05 0e 00 00 00 00'
    >>> Certificate.parse(encoded).ephemeral_groups
    (14, 2)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto import fields
from rtmplite.rtmfp.crypto.params import CertificateOption
from rtmplite.rtmfp.wire.option import Option, encode_options
from rtmplite.rtmfp.wire.vlu import decode_counted, encode_vlu


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate that has been read: §4.3.1.

    `static_keys` are public keys by group id.  `extra_randomness` has the values of the canonical
    section and of the rest.  Groups are in the order of the certificate.
    """

    canonical: bytes
    hostname: bytes | None = None
    accepts_ancillary_data: bool = False
    ephemeral_groups: tuple[int, ...] = ()
    static_keys: Mapping[int, int] = field(default_factory=dict)
    extra_randomness: tuple[bytes, ...] = ()

    @classmethod
    def parse(cls, encoded: bytes | memoryview) -> "Certificate":
        """Read a certificate, ignoring unknown options: §4.3.3.  RemoteError if malformed."""
        encoded = bytes(encoded)
        size = canonical_length(encoded)
        options, rest = fields.read(encoded[:size]), fields.read(encoded[size:])
        groups = fields.values(options, CertificateOption.SUPPORTED_EPHEMERAL_GROUP)
        keys = fields.values(options, CertificateOption.STATIC_PUBLIC_KEY)
        if (
            groups and keys
        ):  # §4.3.3.4 [ephemeral-excludes-static], §4.3.3.5 [static-excludes-ephemeral]
            raise RemoteError("a certificate with static and ephemeral Diffie-Hellman keys")
        random = fields.values(options + rest, CertificateOption.EXTRA_RANDOMNESS)
        accepts = fields.values(options, CertificateOption.ACCEPTS_ANCILLARY_DATA)
        return cls(
            encoded[:size],
            # §4.3.3.1 [hostname-once] [hostname-canonical]
            hostname=fields.only(options, CertificateOption.HOSTNAME),
            accepts_ancillary_data=bool(accepts),  # §4.3.3.2 [ancillary-canonical]
            # §4.3.3.4 [several-groups] [group-canonical]
            ephemeral_groups=tuple(map(fields.read_group, groups)),
            # §4.3.3.5 [several-keys] [key-canonical]; of two keys in a group the last one counts
            static_keys=dict(map(fields.read_key, keys)),
            extra_randomness=tuple(random),
        )

    @property
    def groups(self) -> tuple[int, ...]:
        """The ids of the certificate's groups, of static or ephemeral keys: §4.6.1."""
        return tuple(self.static_keys) or self.ephemeral_groups

    @property
    def fingerprint(self) -> bytes:
        """The SHA-256 of the canonical section, or peer id: §4.3.2 [fingerprint]."""
        return sha256(self.canonical).digest()


def canonical_length(encoded: bytes) -> int:
    """Count the bytes before the first Marker, or all: §4.3.1.  RemoteError as `fields.read`."""
    end = 0
    for _ in range(fields.OPTIONS_MOST + 1):
        option, at = decode_counted(encoded, end) if end < len(encoded) else (b"", end)
        if not option:  # §4.3.1 [canonical-section]
            return end
        end = at
    raise RemoteError(f"more than {fields.OPTIONS_MOST} options")


def build(
    *,
    hostname: bytes | None = None,
    accepts_ancillary_data: bool = False,
    groups: Iterable[int] = (),
    keys: Iterable[tuple[int, int]] = (),
    extra: bytes = b"",
) -> bytes:
    """Write a certificate that consists of its canonical section: §4.3.1, §4.3.3.

    `groups` are for ephemeral keys, `keys` are group ids with static public keys; a certificate
    has one or the other.  The certificates of servers differ only by `extra` randomness: §4.3.3.3.
    """
    options: list[Option] = []
    if hostname is not None:
        options.append(Option(CertificateOption.HOSTNAME, hostname))
    if accepts_ancillary_data:
        options.append(Option(CertificateOption.ACCEPTS_ANCILLARY_DATA))
    for group in groups:
        option = Option(CertificateOption.SUPPORTED_EPHEMERAL_GROUP, encode_vlu(group))
        options.append(option)
    for group, public in keys:
        value = fields.write_key(group, public)
        options.append(Option(CertificateOption.STATIC_PUBLIC_KEY, value))
    if extra:  # §4.3.3.3 [extra-unique]
        options.append(Option(CertificateOption.EXTRA_RANDOMNESS, extra))
    return encode_options(options)
