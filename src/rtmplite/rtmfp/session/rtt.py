"""Measures the round trip time by timestamps that the far end echoes.

Implements RFC 7016 §3.5.2.2.  Each end stamps its packets with a clock of 4 ms a tick.  An echo is
the far end's timestamp plus the time since it came, so that a delay before the echo is sent does
not count.

    >>> near, far = RoundTrip(), RoundTrip()
    >>> near.stamp(10.0)                     # timestamp, echo
    (2500, None)
    >>> far.heard(2500, None, 10.1)
    >>> far.stamp(10.3)                      # its own clock; the timestamp it heard plus 0.2 s
    (2575, 2550)
    >>> near.heard(2575, 2550, 10.4)         # 0.4 s there and back, less 0.2 s held back
    >>> round(near.srtt, 3), round(near.erto, 3)
    (0.2, 0.8)
"""

from typing import Final

TICKS_PER_SECOND: Final = 250  # §3.5.2.2 [echo-ticks]
MODULO: Final = 65536
ECHO_SECONDS: Final = 128.0
MRTO_SECONDS: Final = 0.25
ERTO_SECONDS: Final = 3.0
ERTO_LEAST_SECONDS: Final = 0.25
ERTO_MOST_SECONDS: Final = 10.0
ACK_DELAY_SECONDS: Final = 0.2
BACKOFF: Final = 1.4142


class RoundTrip:
    """The timestamps of one session, and the timeouts measured with them: §3.5.2.2.

    `srtt` is None before the first measurement; `rttvar`, `mrto` and `erto` are seconds too.
    """

    __slots__ = (
        "erto",
        "mrto",
        "rttvar",
        "srtt",
        "ts_echo_rx",
        "ts_echo_tx",
        "ts_rx",
        "ts_rx_time",
        "ts_tx",
    )

    def __init__(self) -> None:
        # §3.5.2.2 [echo-initial]
        self.ts_rx: int | None = None
        self.ts_rx_time = float("-inf")
        self.ts_echo_tx: int | None = None
        self.ts_tx: int | None = None
        self.ts_echo_rx: int | None = None
        self.srtt: float | None = None
        self.rttvar = 0.0
        self.mrto = MRTO_SECONDS
        self.erto = ERTO_SECONDS  # §3.5.2.2 [erto-initial]

    def stamp(self, now: float) -> tuple[int | None, int | None]:
        """Return timestamp and echo of a packet, None where unchanged: §3.5.2.2."""
        # §2.2.4 [clock-250-hz]
        timestamp: int | None = int(now * TICKS_PER_SECOND) % MODULO
        if timestamp == self.ts_tx:  # §3.5.2.2 [echo-when-new]
            timestamp = None
        else:
            self.ts_tx = timestamp
        if self.ts_rx is None:
            return timestamp, None
        elapsed = now - self.ts_rx_time
        if elapsed > ECHO_SECONDS:  # §3.5.2.2 [echo-forgets]
            self.ts_rx = self.ts_echo_tx = None
            return timestamp, None
        # §3.5.2.2 [echo-ticks], §2.2.4 [echo-estimates]
        echo: int | None = (self.ts_rx + int(elapsed * TICKS_PER_SECOND)) % MODULO
        if echo == self.ts_echo_tx:  # §3.5.2.2 [echo-when-new]
            echo = None
        else:
            self.ts_echo_tx = echo
        return timestamp, echo

    def heard(self, timestamp: int | None, echo: int | None, now: float) -> None:
        """Take the timestamp and the echo of a received packet; None if it has none."""
        if timestamp is not None and timestamp != self.ts_rx:  # §3.5.2.2 [echo-remembers]
            self.ts_rx, self.ts_rx_time = timestamp, now
        if echo is not None and echo != self.ts_echo_rx:
            self.ts_echo_rx = echo
            ticks = (int(now * TICKS_PER_SECOND) - echo) % MODULO
            if ticks <= MODULO // 2 - 1:  # §3.5.2.2 [rtt-valid]
                self._measure(ticks / TICKS_PER_SECOND)

    def reset(self) -> None:
        """Forget what time-outs have added to ERTO, as the path is another one now: §3.5.4.2."""
        self.erto = ERTO_SECONDS if self.srtt is None else max(self.mrto, ERTO_LEAST_SECONDS)

    def back_off(self) -> None:
        """Raise ERTO after a timeout, or a Ping without a reply: §3.5.2.2 [erto-backoff]."""
        capped = min(self.erto * BACKOFF, ERTO_MOST_SECONDS)
        self.erto = max(capped, self.mrto)

    def _measure(self, rtt: float) -> None:
        """Take one measurement, in seconds, into the average: §3.5.2.2 [rtt-smoothed]."""
        if self.srtt is None:
            self.srtt, self.rttvar = rtt, rtt / 2
        else:
            self.rttvar = (3 * self.rttvar + abs(self.srtt - rtt)) / 4
            self.srtt = (7 * self.srtt + rtt) / 8
        # §3.5.2.2 [erto-allows-delay] [erto-not-below-rtt] [erto-measured]
        self.mrto = self.srtt + 4 * self.rttvar + ACK_DELAY_SECONDS
        self.erto = max(self.mrto, ERTO_LEAST_SECONDS)  # §3.5.2.2 [erto-least]
