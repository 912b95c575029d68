"""Cookies: a responder forgets every hello, and recognizes the cookie that it answered with.

Implements RFC 7016 §3.5.1.1.2 and §3.5.1.2.

    generation | issued | proof of us | proof of the address
        1          8          16              16           bytes

The second proof covers the address, the first does not: so a cookie that comes back from another
address can be told from a forged one, and exchanged.

    >>> jar = CookieJar(bytes)
    >>> cookie = jar.issue(("192.0.2.1", 1935), 10.0)
    >>> jar.check(cookie, ("192.0.2.1", 1935), 11.0)
    Cookie(issued=10.0, is_here=True)
    >>> jar.check(cookie, ("192.0.2.2", 1935), 11.0)
    Cookie(issued=10.0, is_here=False)
    >>> jar.check(b"forged", ("192.0.2.1", 1935), 11.0)
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from struct import Struct
from typing import Final

from rtmplite.rtmfp.wire.address import Address

LIFETIME: Final = 120.0  # seconds; §3.5.1.1.2 [cookie-95-seconds]
_HEAD: Final = Struct("!BQ")  # generation of the secret, and time of issue in microseconds
_PROOF: Final = 16  # bytes of each HMAC
_SECRET: Final = 32
_TICKS: Final = 1_000_000  # of the time of issue, a second


@dataclass(frozen=True, slots=True)
class Cookie:
    """The contents of a cookie of ours: its time of issue, and whether its address is the sender's.

    Own design: RFC 7016 §3.5.1.1.2 leaves the content of a cookie to its maker.
    """

    issued: float
    is_here: bool


class CookieJar:
    """Makes cookies and recognizes them, remembering two secrets and nothing else: §3.5.1.1.2.

    `random(n)` gives n bytes.  A secret makes cookies for one `LIFETIME` and is accepted for
    another, so an attacker who learns an old secret can do nothing with it.
    """

    def __init__(self, random: Callable[[int], bytes]) -> None:
        self._random = random
        self._generation = 0
        self._secret = self._former = b""
        self._born = -inf

    def issue(self, address: Address, now: float) -> bytes:
        """Make a cookie for the host at `address`: §3.5.1.1.2 [cookie-of-address]."""
        self._rotate(now)
        head = _HEAD.pack(self._generation, round(now * _TICKS))
        own = _prove(self._secret, head)
        return head + own + _prove(self._secret, own, address)

    def check(self, cookie: bytes, address: Address, now: float) -> Cookie | None:
        """Read a cookie; None if not ours or too old: §3.5.1.1.2; elsewhere: §3.5.1.2."""
        self._rotate(now)
        if len(cookie) != _HEAD.size + 2 * _PROOF:
            return None
        head, own, here = cookie[: _HEAD.size], cookie[_HEAD.size : -_PROOF], cookie[-_PROOF:]
        generation, ticks = _HEAD.unpack(head)
        issued = ticks / _TICKS
        secret = self._secret if generation == self._generation else self._former
        # §3.5.1.1.2 [cookie-recognized] [cookie-lifetime]
        if not hmac.compare_digest(own, _prove(secret, head)) or now - issued > LIFETIME:
            return None
        return Cookie(issued, hmac.compare_digest(here, _prove(secret, own, address)))

    def _rotate(self, now: float) -> None:
        """Take a new secret when the one in use has served its time."""
        age = now - self._born
        if age < LIFETIME:
            return
        # A secret that has not been used lately made no cookie that is still good.
        self._former = self._secret if age < 2 * LIFETIME else self._random(_SECRET)
        self._secret, self._born = self._random(_SECRET), now
        self._generation = (self._generation + 1) & 0xFF


def _prove(secret: bytes, what: bytes, address: Address | None = None) -> bytes:
    if address is not None:
        what += f"{address[0]} {address[1]}".encode()
    return hmac.digest(secret, what, "sha256")[:_PROOF]
