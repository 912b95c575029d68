"""Encrypts and verifies packets: AES in CBC mode, a checksum or an HMAC, sequence numbers.

Implements RFC 7425 §4.7.

    SSEQ (optional) | checksum (without HMAC) | packet | ff ff ...    encrypted, 16 bytes a block
    blocks | truncated HMAC (with HMAC)                               sent

    >>> cipher = default_cipher()
    >>> cipher.open(cipher.seal(b"packet")).hex(" ")
    '70 61 63 6b 65 74 ff ff ff ff ff ff ff ff'
"""

from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto.params import (
    BLOCK,
    DEFAULT_SESSION_KEY,
    KEY_LENGTH,
    PADDING,
    REPLAY_WINDOW,
)
from rtmplite.rtmfp.wire.vlu import decode_vlu, encode_vlu, vlu_length

try:
    from rtmplite.rtmfp.crypto._blocks import checksum, mix
except ImportError:  # it is not compiled, or SIPRTMP_PURE is set
    from rtmplite.rtmfp.crypto.blocks import checksum, mix

_CHECKSUM_LENGTH: Final = 2
_PADDINGS: Final = tuple(PADDING * length for length in range(BLOCK))


class CbcEncryptor:
    """AES-128-CBC with an initialization vector of zeros for every packet: §4.7.1.

    Own design: a key schedule for every packet would cost more than its encryption, so one CBC
    object encrypts all packets.  It XORs the last block of one packet into the first block of the
    next; so we XOR that block into it as well, and the two cancel out.
    """

    def __init__(self, key: bytes) -> None:
        self._encrypt = _cbc(key).encryptor().update
        self._last = bytes(BLOCK)

    def encrypt(self, plain: bytes) -> bytes:
        """Encrypt the blocks of one packet: §4.7.1 [zero-iv]; RFC 7016 §2.2.3 [cbc]."""
        blocks = self._encrypt(mix(plain, self._last))
        self._last = blocks[-BLOCK:]
        return blocks


class CbcDecryptor:
    """Decrypts the output of `CbcEncryptor`, whatever it has decrypted before: §4.7.1.

    Own design: one CBC object for all packets, as there; it XORs the block before into the first
    block of a packet, and we XOR it out again.
    """

    def __init__(self, key: bytes) -> None:
        self._decrypt = _cbc(key).decryptor().update
        self._last = bytes(BLOCK)

    def decrypt(self, blocks: bytes) -> bytes:
        """Decrypt one packet: §4.7.1 [zero-iv]; RFC 7016 §2.2.3 [packets-stand-alone]."""
        plain = mix(self._decrypt(blocks), self._last)
        self._last = blocks[-BLOCK:]
        return plain


def _cbc(key: bytes) -> Cipher[modes.CBC]:
    return Cipher(algorithms.AES(key), modes.CBC(bytes(BLOCK)))  # §4.7.1 [aes-128-cbc]


class ReplayWindow:
    """The latest session sequence numbers that were seen: §4.7.3.3.

    A number below the window counts as seen.  Before the first number the window ends at -1.
    """

    def __init__(self, size: int = REPLAY_WINDOW) -> None:
        self._mask = (1 << size) - 1
        self._highest = -1
        self._seen = 0  # bit n: the highest less n

    def is_new(self, number: int) -> bool:
        """Whether a number has not been seen: §4.7.3.3 [duplicate-discarded]."""
        behind = self._highest - number
        # §4.7.3.3 [window-of-32]
        return behind < 0 or (behind < self._mask.bit_length() and not self._seen >> behind & 1)

    def add(self, number: int) -> None:
        """Mark a number that `is_new` as seen: §4.7.3.3."""
        ahead = number - self._highest
        if ahead <= 0:
            self._seen |= 1 << -ahead
            return
        self._highest = number
        # A peer may skip any number of 64 bits; to shift by that would take all memory.
        self._seen = (self._seen << ahead & self._mask) if ahead <= self._mask.bit_length() else 0
        self._seen |= 1


@dataclass(frozen=True, slots=True)
class Protection:
    """The protection of the packets of one direction: §4.6.3, §4.6.4 and §4.6.6.

    `hmac_length` 0 means the simple checksum, and `hmac_key` is not used.
    """

    key: bytes = field(repr=False)
    hmac_key: bytes = field(default=b"", repr=False)
    hmac_length: int = 0
    numbered: bool = False


class Sealer:
    """The sending half of a cipher: §4.7.2."""

    def __init__(self, protection: Protection) -> None:
        self._cbc = CbcEncryptor(protection.key[:KEY_LENGTH])  # §4.6.3 [first-128-bits]
        self._mac = _keyed(protection)
        self._hmac_length = protection.hmac_length
        self._checksum_length = 0 if self._mac else _CHECKSUM_LENGTH
        self._next = 0 if protection.numbered else None  # §4.6.6 [starts-at-zero]

    def seal(self, packet: bytes) -> bytes:
        """Number, pad, authenticate and encrypt one packet, which is never empty: §4.7.2."""
        number = b""
        if self._next is not None:
            number = encode_vlu(self._next)  # §4.6.6 [64-bits]
            self._next += 1  # §4.6.6 [increments-by-one], §4.7.3.3 [numbers-never-repeat]
        header = len(number) + self._checksum_length
        # §4.7.2 [pad-with-ff]; RFC 7016 §2.2.4 [pad-0xff]
        padding = _PADDINGS[-(header + len(packet)) % BLOCK]
        if self._mac is None:
            packet += padding
            # §4.7.3.1 [checksum-after-padding] [odd-byte-low],
            # §4.7.2 [plain-layout] [checksum-unless-hmac]
            plain = b"".join((number, checksum(packet).to_bytes(_CHECKSUM_LENGTH), packet))
            return self._cbc.encrypt(plain)
        # §4.7.2 [plain-layout]
        blocks = self._cbc.encrypt(b"".join((number, packet, padding)))
        mac = self._mac.copy()
        mac.update(blocks)
        return blocks + mac.finalize()[: self._hmac_length]  # §4.7.3.2 [encrypt-then-mac]

    def room(self, size: int) -> int:
        """Return the length of the longest packet that seals to at most `size` bytes: §4.7.2."""
        blocks = (size - self._hmac_length) // BLOCK * BLOCK
        number = 0 if self._next is None else vlu_length(self._next)
        return max(0, blocks - number - self._checksum_length)


class Opener:
    """The receiving half of a cipher: §4.7.2, §4.7.3."""

    def __init__(self, protection: Protection) -> None:
        self._cbc = CbcDecryptor(protection.key[:KEY_LENGTH])  # §4.6.3 [first-128-bits]
        self._mac = _keyed(protection)
        self._hmac_length = protection.hmac_length
        self._window = ReplayWindow() if protection.numbered else None

    def open(self, encrypted: bytes | memoryview) -> bytes:
        """Verify and decrypt; padding stays.  RemoteError if forged or repeated: §4.7.2."""
        blocks = bytes(encrypted)
        if self._mac is not None:
            blocks = self._authenticated(blocks, self._mac.copy())
        if len(blocks) % BLOCK or not blocks:  # §4.7.2 [encrypted-layout]
            raise RemoteError(f"{len(blocks)} bytes are no whole blocks")
        plain = self._cbc.decrypt(blocks)
        # §4.6.6 [64-bits], §4.7.2 [plain-layout]
        number, start = (None, 0) if self._window is None else decode_vlu(plain)
        if self._mac is None:
            start += _CHECKSUM_LENGTH
            # §4.7.3.1 [checksum-mismatch-discarded] [odd-byte-low]
            if int.from_bytes(plain[start - 2 : start]) != checksum(plain[start:]):
                # RFC 7016 §2.2.3 [unverified-discarded]
                raise RemoteError("the checksum does not match")
        if self._window is not None and number is not None:
            # §4.7.3.3 [duplicate-discarded]; RFC 7016 §2.2.3 [replays-noticed]
            if not self._window.is_new(number):
                raise RemoteError(f"packet {number} has been seen, or is too old to tell")
            self._window.add(number)
        return plain[start:]

    def _authenticated(self, encrypted: bytes, mac: HMAC) -> bytes:
        """Remove the HMAC and verify it: §4.7.3.2."""
        blocks, received = encrypted[: -self._hmac_length], encrypted[-self._hmac_length :]
        mac.update(blocks)
        # §4.7.3.2 [hmac-mismatch-discarded]
        if not compare_digest(mac.finalize()[: self._hmac_length], received):
            # RFC 7016 §2.2.3 [unverified-discarded]
            raise RemoteError("the HMAC does not match")
        return blocks


class FlashCipher:
    """The cipher of one session, with a key and a protection for each direction.

    RFC 7425 §4.7; it is a `rtmplite.rtmfp.crypto.profile.PacketCipher`.  `protections` are those
    that it was made of, of what is sent and what is received.
    """

    def __init__(self, send: Protection, receive: Protection) -> None:
        self.protections = send, receive
        sealer, opener = Sealer(send), Opener(receive)
        self.seal, self.room, self.open = sealer.seal, sealer.room, opener.open


def default_cipher() -> FlashCipher:
    """Give the cipher of the Default Session Key: §4.1, §4.6.4, §4.6.6; RFC 7016 §2.2.3."""
    # §4.1 [default-key] [default-checksum-no-sseq], RFC 7016 §2.2.3 [default-key]
    protection = Protection(DEFAULT_SESSION_KEY)
    return FlashCipher(protection, protection)


def _keyed(protection: Protection) -> HMAC | None:
    """Prepare the HMAC of a direction, to be copied for each packet; None for a checksum."""
    if not protection.hmac_length:
        return None
    return HMAC(protection.hmac_key, SHA256())
