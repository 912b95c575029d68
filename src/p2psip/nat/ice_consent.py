"""The consent of a peer to be sent to, asked for while a pair is in use.

Implements RFC 7675 §5.1 and §5.2.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from p2psip.nat.ice_candidate import HostPort, IceBase
from p2psip.nat.ice_checklist import IcePair
from p2psip.nat.ice_credentials import IceCredentials
from p2psip.nat.stun import StunClass, StunMessage

EXPIRY: Final = 30.0  # s without an answer.  Source: §5.1
INTERVAL: Final = 5.0  # s between requests, on average.  Source: §5.1
SPREAD: Final = 0.8, 0.4  # the least factor of an interval, and what is drawn.  Source: §5.1
MAX_OPEN: Final = 8  # Own design: requests whose answer may come; there are 7 in 30 s at most
FORBIDDEN: Final = 403  # Source: §5.2


class IceConsent:
    """The consent to use one pair: §5.1, from `begin` until it `is_lost`."""

    def __init__(self, random: Callable[[int], bytes]) -> None:
        self._random = random
        self.pair: IcePair | None = None
        self.is_lost = False
        self._theirs, self._ours = IceCredentials("", ""), ""
        self._open: deque[bytes] = deque(maxlen=MAX_OPEN)
        self._ask_at = self._until = 0.0

    def begin(self, pair: IcePair, theirs: IceCredentials, ours: str, now: float) -> None:
        """Begin with a pair that a check has just found: the answer to that was consent: §5.1."""
        self.pair, self.is_lost = pair, False
        self._theirs, self._ours = theirs, ours
        self._open.clear()
        self._until = now + EXPIRY
        self._plan(now)

    def _plan(self, now: float) -> None:
        least, drawn = SPREAD
        # §5.1 [interval-is-drawn] [interval-of-5-s] [4-s-at-least]
        self._ask_at = now + INTERVAL * (least + drawn * self._random(1)[0] / 255)

    def ask_at_once(self, now: float) -> None:
        """Ask at the next `tick`, since the connection has ended: RFC 6544 §11.1."""
        self._ask_at = now

    @property
    def deadline(self) -> float | None:
        """When to call `tick`: §5.1."""
        return None if self.pair is None else min(self._ask_at, self._until)

    def tick(self, now: float, attributes: tuple[tuple[int, bytes], ...]) -> bytes | None:
        """Take the time; return a request to send by the pair, once: §5.1."""
        if self.pair is None:
            return None
        if now >= self._until:
            self._lose()  # §5.1 [consent-ends-after-30-s]
            return None
        if now < self._ask_at:
            return None
        self._plan(now)
        self._open.append(self._random(12))  # §5.1 [new-transaction-each]
        return self._theirs.check(self._ours, self._open[-1], attributes).data

    def answered(self, response: StunMessage, base: IceBase, source: HostPort, now: float) -> bool:
        """Take an answer; whether it was one to a request of ours: §5.1."""
        if self.pair is None or response.transaction_id not in self._open:
            return False
        is_from_there = (base, source) == (self.pair.base, self.pair.remote.address)
        if is_from_there and response.integrity_holds(self._theirs.key):
            self._open.remove(response.transaction_id)
            error = response.error() if response.kind is StunClass.ERROR else None
            if response.kind is StunClass.SUCCESS:
                self._until = now + EXPIRY  # §5.1 [answers-give-consent]
            elif error is not None and error[0] == FORBIDDEN:
                self._lose()  # §5.2: revoked at once
        return True

    def _lose(self) -> None:
        self._open.clear()  # §5.1 [lost-consent-forgets-its-requests]
        self.pair, self.is_lost = None, True

    def end(self) -> None:
        """Ask no more: §5.1."""
        self.pair = None
