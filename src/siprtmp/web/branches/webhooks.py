"""A webhook: the events for one web service, in order, signed, and again until it takes them.

Own design: one event is under way at a time, so that a service hears them in the order in which
they happened.  The signature is that of the time and the content, as other services sign theirs, so
that nobody can forge an event, or send an old one again.
"""

import hmac
import json
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

SIGNATURE: Final = "X-Siprtmp-Signature"
MAX_WAITING: Final = 1000  # events for one service; the oldest give way
MAX_TRIES: Final = 10
FIRST_WAIT, LONGEST_WAIT = 1.0, 300.0  # s until the next try; each wait is twice the one before
_ID_OCTETS: Final = 12

Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class Delivery:
    """A content that is to be posted, and its signature."""

    body: bytes
    signature: str


class Webhook:
    """Keeps the events for one service until it has them.

    `random` makes the identifiers of events; `say(what, reason)` is told of "failed", when the
    service refuses for the first time in a row, and of "lost", when an event is given up.
    """

    def __init__(
        self,
        secret: str,
        events: Collection[str],
        random: Callable[[int], bytes],
        say: Callable[[str, str], object],
    ) -> None:
        self._secret, self._events = secret.encode(), frozenset(events)
        self._random, self._say = random, say
        self._waiting: deque[bytes] = deque()
        self._tries, self._at = 0, 0.0
        self._is_sending = False

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, event: Row, at: str) -> None:
        """Take an event that happened at a time; one that the service does not hear of is left out.

        If there are too many, the oldest that is not under way gives way.
        """
        if event.get("event") not in self._events:
            return
        if len(self._waiting) >= MAX_WAITING:
            del self._waiting[1 if self._is_sending else 0]
            self._say("lost", "too many wait")
        whole = {"id": self._random(_ID_OCTETS).hex(), "at": at, **event}
        self._waiting.append(json.dumps(whole).encode("ascii"))

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
        return Delivery(body, signature(self._secret, int(unix), body))

    def answered(self, reason: str, now: float) -> None:
        """The service has taken the event, if there is no `reason`; else it is tried again."""
        self._is_sending = False
        if not reason:
            self._next()
            return
        self._tries += 1
        if self._tries == 1:
            self._say("failed", reason)
        self._at = now + min(FIRST_WAIT * 2.0 ** (self._tries - 1), LONGEST_WAIT)
        if self._tries == MAX_TRIES:
            self._next()
            self._say("lost", reason)

    def _next(self) -> None:
        self._waiting.popleft()
        self._tries, self._at = 0, 0.0


def signature(secret: bytes, unix: int, body: bytes) -> str:
    """The value of the header `SIGNATURE`: the time, and HMAC-SHA-256 of it, a dot and the content.

    >>> signature(b"secret", 1000, b"{}")[:16]
    't=1000,v1=026360'
    """
    digest = hmac.digest(secret, b"%d." % unix + body, sha256)
    return f"t={unix},v1={digest.hex()}"
