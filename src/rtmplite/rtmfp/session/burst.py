"""Burst avoidance: a window that is open does not leave all at once.

Implements RFC 7016 §3.5.2.3, by its purpose.  There the count of packets starts anew with each
acknowledgement.  A receiver that reads a burst at once answers it once, and six packets a round
trip are all that ever leave.  So after six segments the rest of the window is spread over the
round trip, which is what an alarm is for; an acknowledgement lets six segments go at once.

    >>> from rtmplite.rtmfp.session.rtt import RoundTrip
    >>> timing = RoundTrip()
    >>> timing.srtt = 0.1
    >>> burst = Burst(timing)
    >>> burst.sent(BURST_BYTES + 580, 17400, 0.0)
    >>> burst.allows, round(burst.alarm, 6)     # a segment and a half, of fifteen in 0.1 s
    (False, 0.01)
    >>> burst.tick(burst.alarm, 17400)
    >>> burst.allows, burst.left, burst.alarm
    (True, 1160, inf)
"""

from math import inf
from typing import Final

from rtmplite.rtmfp.session.rtt import RoundTrip

MSS: Final = 1160  # bytes of user data in a datagram of usual size, about
BURST_BYTES: Final = 6 * MSS
PACED_SECONDS: Final = 0.0045  # a round trip that is shorter is no time to spread anything over


class Burst:
    """How many bytes of user data may leave at once: §3.5.2.3.

    `left` is what the burst may still take; the packet that uses it up may exceed it.  `alarm` is
    when the next segment may leave although nothing was acknowledged, infinite for never.

    Departs from RFC 7016 §3.5.2.3 [six-packets]: bytes are counted, and after six segments one more
    leaves each time that its share of the round trip has passed.  Six packets, however small, are
    the limit while the far end seems to be silent: after ERTO without an acknowledgement.
    """

    __slots__ = ("_is_answered", "_round_trip", "_since", "alarm", "left")

    def __init__(self, round_trip: RoundTrip) -> None:
        self._round_trip = round_trip
        self._is_answered = True
        self._since = inf  # the first packet after the last acknowledgement
        self.left = BURST_BYTES
        self.alarm = inf

    @property
    def allows(self) -> bool:
        """Whether a packet of user data may leave: §3.5.2.3."""
        return self.left > 0 or 0 <= self._spread < PACED_SECONDS

    @property
    def _spread(self) -> float:
        """Over how many seconds to spread a window, negative if it has to wait for an answer."""
        srtt = self._round_trip.srtt
        return -1.0 if srtt is None or not self._is_answered else srtt

    def sent(self, size: int, cwnd: int, now: float) -> None:
        """Count a packet of `size` bytes that leaves; `cwnd` is the congestion window: §3.5.2.3."""
        self._since = min(self._since, now)
        if now - self._since > self._round_trip.erto:
            self._is_answered = False
        self.left -= size if self._is_answered else max(size, MSS)
        spread = self._spread
        if self.left <= 0 and self.alarm == inf and spread >= PACED_SECONDS:
            self.alarm = now + spread * (MSS - self.left) / cwnd

    def acknowledged(self) -> None:
        """Let a whole burst go, as something has arrived: §3.5.2.3."""
        self._is_answered, self._since = True, inf
        self.left = max(self.left, BURST_BYTES)
        self.alarm = inf

    def timeout(self) -> None:
        """Let six packets go, and no more until an acknowledgement: §3.5.2.3."""
        self.left, self.alarm, self._is_answered = BURST_BYTES, inf, False

    def tick(self, now: float, cwnd: int) -> None:
        """Let one more segment go if the alarm is due, and what it is too late for: §3.5.2.3."""
        if now >= self.alarm:
            self.left = MSS
            if self._spread > 0:
                self.left += int((now - self.alarm) / self._spread * cwnd)
            self.alarm = inf
