"""Keepalive: asks a silent far end whether it is still there, and gives it up in the end.

Implements RFC 7016 §3.5.4.1.

    >>> from rtmplite.rtmfp.session.rtt import RoundTrip
    >>> silence = Keepalive(RoundTrip(), 10.0, 60.0, 0.0)
    >>> silence.tick(9.0), silence.tick(10.0), silence.tick(11.0), silence.tick(13.0)
    (False, True, False, True)
    >>> silence.heard = 14.0
    >>> silence.tick(20.0), silence.tick(24.0), silence.is_lost(73.0), silence.is_lost(74.0)
    (False, True, False, True)
"""

from math import inf
from typing import Final

from rtmplite.rtmfp.session.rtt import RoundTrip

STALL_SECONDS: Final = 1.0  # without a packet, after user data


class Keepalive:
    """When to send an empty Ping, and when to give up: §3.5.4.1.

    After `interval` seconds without a packet a Ping goes, or sooner after `haste` seconds; after
    `timeout` seconds the far end is lost.  `heard` is when the last packet came.

    Own design: where user data came and then no packet for a second (`expects`), a Ping goes too.
    If this end has another address by now, as behind a NAT, its packets tell the far end of it;
    a receiver has no others to send.
    """

    __slots__ = (
        "_asked",
        "_pinged",
        "_round_trip",
        "expects",
        "haste",
        "heard",
        "interval",
        "timeout",
    )

    def __init__(self, round_trip: RoundTrip, interval: float, timeout: float, now: float) -> None:
        self._round_trip = round_trip
        self.interval, self.timeout = interval, timeout
        self.heard, self.haste, self.expects = now, inf, False
        self._pinged = self._asked = -inf  # the last Ping, and the first since a packet came

    @property
    def deadline(self) -> float:
        """When to call `tick` and `is_lost`: §3.5.4.1."""
        return min(self._due, self.heard + self.timeout)

    @property
    def _due(self) -> float:
        interval = min(self.interval, self.haste, STALL_SECONDS if self.expects else inf)
        # §3.5.4.1 [once-per-erto]
        return max(self.heard + interval, self._pinged + self._round_trip.erto)

    def hear(self, now: float) -> None:
        """Note a packet; if a Ping went before it the far end has nothing to send: §3.5.4.1."""
        if self._pinged > self.heard:
            self.expects = False
        self.heard = now

    def tick(self, now: float) -> bool:
        """Whether to send a Ping now: §3.5.4.1."""
        if now < self._due:  # §3.5.4.1 [once-per-erto]
            return False
        if self._pinged > self.heard:  # §3.5.4.1 [unanswered-backs-off]
            self._round_trip.back_off()
        else:
            self._asked = now
        self._pinged = now
        return True

    def unanswered(self, now: float) -> float:
        """For how many seconds a Ping has had no answer, 0 if none has to wait.  §3.5.4.1."""
        return now - self._asked if self._asked > self.heard else 0.0

    def is_lost(self, now: float) -> bool:
        """Whether no packet has come for `timeout` seconds: §3.5.4.1."""
        return now >= self.heard + self.timeout  # as `deadline` adds, or it would never pass
