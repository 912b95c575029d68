"""What is to be posted to one URL: in order, signed, and again until it is taken.

Own design: one content is under way at a time, so that a service hears of things in the order in
which they happened.  The signature is that of the time and the content, as other services sign
theirs, so that nobody can forge a content, or send an old one again.
"""

import hmac
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

SIGNATURE: Final = "X-Siprtmp-Signature"
MAX_WAITING: Final = 1000  # contents for one URL ...
MAX_OCTETS: Final = 1 << 20  # ... and what they hold; the oldest give way
MAX_TRIES: Final = 10
FIRST_WAIT, LONGEST_WAIT = 1.0, 300.0  # s until the next try; each wait is twice the one before


@dataclass(frozen=True, slots=True)
class Delivery:
    """A content that is to be posted, and its signature."""

    body: bytes
    signature: str


class Deliveries:
    """Keeps contents until they are taken.

    `say(what, reason)` is told of "failed", when the service refuses for the first time in a row,
    and of "lost", when a content is given up.  With a `gap`, all that wait are given up together,
    and what it returns stands in their place, before the next content.
    """

    def __init__(
        self,
        secret: str,
        say: Callable[[str, str], object],
        gap: Callable[[], bytes] | None = None,
        max_octets: int = MAX_OCTETS,
    ) -> None:
        self.secret, self._say, self._gap = secret, say, gap
        self._max_octets = max_octets
        self._waiting: deque[bytes] = deque()
        self._octets = 0
        self._tries, self._at = 0, 0.0
        self._is_sending = self._has_gap = False

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def has_failed(self) -> bool:
        """Whether the last try was refused."""
        return self._tries > 0

    def add(self, body: bytes) -> None:
        """Take a content; if there are too many, the oldest that is not under way gives way."""
        first = 1 if self._is_sending else 0
        if self._is_full(body) and len(self._waiting) > first:
            self._say("lost", "too many wait")
        while self._is_full(body) and len(self._waiting) > first:
            self._leave_out(first)
        if self._has_gap and self._gap is not None:
            self._has_gap = False
            self._put(self._gap())
        self._put(body)

    @property
    def deadline(self) -> float | None:
        """When to ask for the next delivery; None if there is none, or one is under way."""
        return self._at if self._waiting and not self._is_sending else None

    def due(self, now: float, unix: float) -> Delivery | None:
        """The delivery that is to be tried now; tell `answered` what becomes of it."""
        if self.deadline is None or self._at > now:
            return None
        self._is_sending = True
        body = self._waiting[0]
        return Delivery(body, signature(self.secret.encode(), int(unix), body))

    def answered(self, reason: str, now: float) -> None:
        """The service has taken the content, if there is no `reason`; else it is tried again."""
        self._is_sending = False
        if not reason:
            self._next()
            return
        self._tries += 1
        if self._tries == 1:
            self._say("failed", reason)
        self._at = now + min(FIRST_WAIT * 2.0 ** (self._tries - 1), LONGEST_WAIT)
        if self._tries == MAX_TRIES:
            self._tries, self._at = 0, 0.0
            self._leave_out(0)
            self._say("lost", reason)

    def _is_full(self, body: bytes) -> bool:
        is_many = len(self._waiting) >= MAX_WAITING
        return is_many or self._octets + len(body) > self._max_octets

    def _leave_out(self, first: int) -> None:
        """Give up the oldest content from there on, or all if there is a `gap`."""
        if self._gap is None:
            self._octets -= len(self._waiting[first])
            del self._waiting[first]
            return
        self._has_gap = True
        while len(self._waiting) > first:
            self._octets -= len(self._waiting.pop())

    def _put(self, body: bytes) -> None:
        self._waiting.append(body)
        self._octets += len(body)

    def _next(self) -> None:
        self._octets -= len(self._waiting.popleft())
        self._tries, self._at = 0, 0.0


def signature(secret: bytes, unix: int, body: bytes) -> str:
    """The value of the header `SIGNATURE`: the time, and HMAC-SHA-256 of it, a dot and the content.

    >>> signature(b"secret", 1000, b"{}")[:16]
    't=1000,v1=026360'
    """
    # Resources §13.4 [signed-with-the-secret]
    digest = hmac.digest(secret, b"%d." % unix + body, sha256)
    return f"t={unix},v1={digest.hex()}"
