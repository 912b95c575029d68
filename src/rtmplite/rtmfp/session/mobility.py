"""Checks that the far end has moved to the address that its packets come from now.

Implements RFC 7016 §3.5.4.2.  A packet from a new address proves nothing, since an attacker can
send copies of packets from elsewhere.  So a Ping goes to the new address, and its Reply has to
repeat something that only a host at that address has seen.
"""

from hashlib import blake2b
from hmac import compare_digest
from math import inf
from struct import Struct
from typing import Final

from rtmplite.rtmfp.wire.address import Address

MARKING: Final = b"M"
SECRET_BYTES: Final = 32  # §3.5.4.2 [own-secret]
PAUSE_SECONDS: Final = 1.0
MEMORY_SECONDS: Final = 120.0
_TIME: Final = Struct("!d")
_HASH_BYTES: Final = 16
_LENGTH: Final = len(MARKING) + _TIME.size + _HASH_BYTES


class Mobility:
    """The checks of one session, by MOB_SECRET, which only it has: §3.5.4.2."""

    __slots__ = ("_mob_rx_ts", "_mob_tx_ts", "_secret")

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._mob_tx_ts = self._mob_rx_ts = -inf

    def question(self, source: Address, now: float) -> bytes | None:
        """Return a Ping's message for `source`, None within a second of the last: §3.5.4.2."""
        if now - self._mob_tx_ts < PAUSE_SECONDS:  # §3.5.4.2 [check-new-address]
            return None
        self._mob_tx_ts = now  # §3.5.4.2 [check-new-address]
        head = MARKING + _TIME.pack(now)
        return head + self._hash(head, source)  # §3.5.4.2 [check-new-address]

    def is_answer(self, message: bytes, source: Address, now: float) -> bool:
        """Whether a Ping Reply proves that the far end is at `source`: §3.5.4.2, §3.5.3."""
        if len(message) != _LENGTH or not message.startswith(MARKING):
            return False
        head, proof = message[:-_HASH_BYTES], message[-_HASH_BYTES:]
        # §3.5.3 [verify-before-moving]
        if not compare_digest(proof, self._hash(head, source)):
            return False
        (asked,) = _TIME.unpack(head[len(MARKING) :])
        # §3.5.4.2 [answer-moves]
        if now - asked > MEMORY_SECONDS or asked <= self._mob_rx_ts:
            return False
        self._mob_rx_ts = asked  # §3.5.4.2 [answer-moves]
        return True

    def _hash(self, head: bytes, source: Address) -> bytes:
        where = f"{source[0]} {source[1]}".encode()
        return blake2b(head + where, key=self._secret, digest_size=_HASH_BYTES).digest()
