"""The digests in the random bytes of a handshake, as Adobe's own peers have them.

No published text has them; the ledger does: Field §"Digest handshake" for the keys and what is
signed, Field §"Digest offset schemes" for where.  A Flash Player decodes H.264 and AAC only from
a server that signs, so a server for it has to.

Here, a packet is any of C1, S1, C2 and S2: 1536 bytes.
"""

from hmac import compare_digest
from hmac import digest as hmac
from typing import Final, NamedTuple

PACKET_SIZE: Final = 1536  # bytes: RTMP 1.0 §5.2.3
DIGEST_SIZE: Final = 32  # bytes, HMAC-SHA256: Field §"Digest handshake"

_SALT: Final = bytes.fromhex("f0eec24a8068bee82e00d0d1029e7e576eec5d2d29806fab93b8e636cfeb31ae")
# Source: Field §"Digest handshake"; the text signs packets 1, with the salt it signs packets 2.
PLAYER_TEXT: Final = b"Genuine Adobe Flash Player 001"
SERVER_TEXT: Final = b"Genuine Adobe Flash Media Server 001"
PLAYER_KEY: Final = PLAYER_TEXT + _SALT
SERVER_KEY: Final = SERVER_TEXT + _SALT


class Scheme(NamedTuple):
    """A place of the digest: Field §"Digest offset schemes".

    The four bytes at `pointer` add up, modulo 728, to its distance from their own end.
    """

    name: str
    pointer: int


SCHEMES: Final = (Scheme("digest0", 8), Scheme("digest1", 772))


def offset(packet: bytes, scheme: Scheme) -> int:
    """Tell where in `packet` its digest begins: Field §"Digest offset schemes"."""
    start = scheme.pointer
    return sum(packet[start : start + 4]) % 728 + start + 4


def sign(packet: bytes, scheme: Scheme, key: bytes) -> bytes:
    """Put the digest, which is not signed itself, into `packet`: Field §"Digest handshake"."""
    start = offset(packet, scheme)
    before, after = packet[:start], packet[start + DIGEST_SIZE :]
    return before + hmac(key, before + after, "sha256") + after


def find(packet: bytes, key: bytes) -> tuple[Scheme, bytes] | None:
    """Find the scheme and digest of `packet`, None if unsigned: Field §"Digest handshake"."""
    for scheme in SCHEMES:
        start = offset(packet, scheme)
        digest = packet[start : start + DIGEST_SIZE]
        unsigned = packet[:start] + packet[start + DIGEST_SIZE :]
        if compare_digest(hmac(key, unsigned, "sha256"), digest):
            return scheme, digest
    return None


def answer(filler: bytes, peer_digest: bytes, key: bytes) -> bytes:
    """Make S2 or C2 that proves `key`, from 1504 bytes: Field §"Digest handshake"."""
    return filler + hmac(hmac(key, peer_digest, "sha256"), filler, "sha256")


def answers(packet: bytes, own_digest: bytes, key: bytes) -> bool:
    """Tell whether an S2 or C2 answers the digest we sent: Field §"Digest handshake"."""
    filler = packet[:-DIGEST_SIZE]
    return compare_digest(answer(filler, own_digest, key), packet)
