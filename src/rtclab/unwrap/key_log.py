"""The secrets of DTLS sessions that their ends have logged, and the keys of SRTP made of them.

Implements RFC 5764 §4.2 for whoever looks on: the key log has what the two ends share, and the
hellos of a capture have the rest.

Own design: the log is a text with a line for each secret, as Firefox and OpenSSL write it where
SSLKEYLOGFILE names a file: a label, the client's random in hexadecimal digits,
and the secret.  DTLS 1.2 has the master secret, `CLIENT_RANDOM`; DTLS 1.3 has `EXPORTER_SECRET`.

    >>> line = "CLIENT_RANDOM " + "00" * 32 + " " + "11" * 48
    >>> [found] = read_key_log([line]).values()
    >>> hello = DtlsHello(bytes(32), 0xC02B, (1,))
    >>> ours, theirs = exported(found, bytes(32), hello)
    >>> ours.suite.name, len(ours.key), ours == theirs
    ('AES_CM_128_HMAC_SHA1_80', 16, False)
"""

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple

from p2psip.srtp.suites import (
    AEAD_AES_128_GCM,
    AEAD_AES_256_GCM,
    AES_CM_128_HMAC_SHA1_32,
    AES_CM_128_HMAC_SHA1_80,
    SrtpSuite,
)

LABEL: Final = b"EXTRACTOR-dtls_srtp"  # Source: RFC 5764 §4.2
# As RFC 5764 and RFC 7714 §14.2 have them, without those that encrypt nothing
PROFILES: Final[Mapping[int, SrtpSuite]] = {
    1: AES_CM_128_HMAC_SHA1_80,
    2: AES_CM_128_HMAC_SHA1_32,
    7: AEAD_AES_128_GCM,
    8: AEAD_AES_256_GCM,
}
MASTER, EXPORTER = "CLIENT_RANDOM", "EXPORTER_SECRET"
RANDOM_OCTETS: Final = 32
MASTER_OCTETS: Final = 48
# Cipher suites whose secrets are made with SHA-384; the others have SHA-256
_SHA384: Final = frozenset(
    {0x009D, 0x009F, 0x00A1, 0x00A3, 0x1302, 0xC024, 0xC026, 0xC028, 0xC02A}
    | {0xC02C, 0xC02E, 0xC030, 0xC032, 0xC0AD, 0xC0AF}
)
_MOST: Final = 10_000  # lines of a log that are kept


@dataclass(frozen=True, slots=True)
class SrtpMaster:
    """A master key and salt of one direction, for one suite: RFC 3711 §3.2.1."""

    suite: SrtpSuite
    key: bytes = field(repr=False)
    salt: bytes = field(repr=False)


class DtlsSecret(NamedTuple):
    """What a log has of one session, by its label: RFC 5764 §4.2."""

    label: str
    secret: bytes


class DtlsHello(NamedTuple):
    """What a server's hello chooses; with DTLS 1.3 all profiles that the client offers."""

    random: bytes
    cipher_suite: int
    profiles: tuple[int, ...]


def read_key_log(lines: Iterable[str]) -> dict[bytes, DtlsSecret]:
    """Read a key log by the randoms of clients; lines of other kinds are left out.

    Raises ValueError for a line of these kinds that is wrong.
    """
    found: dict[bytes, DtlsSecret] = {}
    for line in lines:
        label, *digits = line.split() or [""]
        if label not in (MASTER, EXPORTER) or len(found) >= _MOST:
            continue
        if len(digits) != 2:
            raise ValueError(f"{label} without a random and a secret")
        random, secret = map(bytes.fromhex, digits)
        is_long = len(secret) == MASTER_OCTETS if label == MASTER else len(secret) in (32, 48)
        if len(random) != RANDOM_OCTETS or not is_long:
            raise ValueError(f"{label} with a random or a secret of another length")
        found[random] = DtlsSecret(label, secret)
    return found


def exported(known: DtlsSecret, random: bytes, hello: DtlsHello) -> list[SrtpMaster]:
    """Make the masters of both directions, for each profile that may have been agreed on.

    `random` is the client's.  The client's master comes before the server's: RFC 5764 §4.2.
    """
    return list(chain.from_iterable(_both(known, random, hello, each) for each in hello.profiles))


def _both(known: DtlsSecret, random: bytes, hello: DtlsHello, profile: int) -> Iterator[SrtpMaster]:
    suite = PROFILES.get(profile)
    if suite is None:
        return
    key, salt = suite.key_octets, suite.salt_octets
    name = "sha384" if hello.cipher_suite in _SHA384 else "sha256"
    if known.label == MASTER:
        block = _prf(known.secret, LABEL + random + hello.random, 2 * (key + salt), name)
    else:
        block = _exporter(known.secret, 2 * (key + salt), name)
    # RFC 5764 §4.2: both keys, and behind them both salts, the client's first
    yield SrtpMaster(suite, block[:key], block[2 * key : 2 * key + salt])
    yield SrtpMaster(suite, block[key : 2 * key], block[2 * key + salt :])


def _prf(secret: bytes, seed: bytes, size: int, name: str) -> bytes:
    """Stretch the master secret by a label and a seed, as RFC 5246 has it."""
    made, at = b"", seed
    while len(made) < size:
        at = hmac.digest(secret, at, name)
        made += hmac.digest(secret, at + seed, name)
    return made[:size]


def _exporter(secret: bytes, size: int, name: str) -> bytes:
    """Stretch the exporter's secret of DTLS 1.3 by the label, as RFC 8446 and RFC 9147 have it."""
    nothing = hashlib.new(name).digest()
    derived = _expanded(secret, LABEL, nothing, len(nothing), name)
    return _expanded(derived, b"exporter", nothing, size, name)


def _expanded(secret: bytes, label: bytes, context: bytes, size: int, name: str) -> bytes:
    full = b"dtls13" + label
    info = size.to_bytes(2) + bytes((len(full),)) + full + bytes((len(context),)) + context
    made, block, count = b"", b"", 0
    while len(made) < size:
        count += 1
        block = hmac.digest(secret, block + info + bytes((count,)), name)
        made += block
    return made[:size]
