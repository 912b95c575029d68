"""The time of RTCP reports: as often as a share of the bandwidth allows.

Implements RFC 3550 §6.3, as §A.7 writes it.

The interval is drawn at random, and again before a report leaves, by the members known then
(§6.3.6, "timer reconsideration").

    >>> timer = RtcpTimer(now=0.0, random=lambda n: bytes([128] * n))
    >>> round(timer.deadline, 2), round(interval(2, 1, timer.bandwidth, True, 100), 1)
    (2.06, 5.0)
"""

from collections.abc import Callable
from typing import Final

# §6.2 [five-seconds]
MIN_SECONDS: Final = 5.0  # Source: §6.2, the least mean time between reports
SENDER_SHARE: Final = 0.25  # Source: §6.3.1, of the RTCP bandwidth
COMPENSATION: Final = 1.21828  # Source: §6.3.1, e - 3/2
# §6.2 [five-percent], RFC 3551 §2 [senders-can-report]
BANDWIDTH: Final = 400.0  # octets/s, §6.2: 5% of 64 kbit/s, the least a call asks for


def interval(
    members: int,
    senders: int,
    bandwidth: float,
    we_sent: bool,
    size: float,
    initial: bool = False,
    least: float = MIN_SECONDS,
) -> float:
    """Compute the deterministic interval Td in seconds: §6.3.1.

    `bandwidth` is the RTCP share of the session in octets a second, `size` the mean of
    compounds in octets with their IP and UDP headers.  The first report may come in half
    the time.  `least` is Tmin: 5 s, and less under AVPF (RFC 4585 §3.4).
    """
    sites = members
    if senders <= members * SENDER_SHARE:
        # RFC 3551 §2 [quarter-for-senders]
        bandwidth *= SENDER_SHARE if we_sent else 1 - SENDER_SHARE
        sites = senders if we_sent else members - senders
    return max(size * sites / bandwidth, least / 2 if initial else least)  # §6.2 [lower-bound]


class RtcpTimer:
    """The variables of §6.3, with their names: `tp`, `tn`, `members`, `senders`, `we_sent`.

    The owner keeps the last three true.  `random` gives as many octets as it is asked
    for; times are in seconds, `bandwidth` in octets a second, `least` is that of `interval`.
    """

    def __init__(
        self,
        now: float,
        random: Callable[[int], bytes],
        bandwidth: float = BANDWIDTH,
        size: float = 128.0,
        least: float = MIN_SECONDS,
    ) -> None:
        self._random, self.bandwidth, self.avg_rtcp_size = random, bandwidth, size
        self.least = least
        self.members = self.pmembers = 1
        self.senders, self.we_sent, self.initial = 0, False, True
        self.tp = now
        self.tn = now + self._draw()

    @property
    def deadline(self) -> float:
        """When to call `tick`: §6.3.6."""
        return self.tn

    @property
    def calculated(self) -> float:
        """Td as of now, in seconds: §6.3.1."""
        return interval(
            self.members,
            self.senders,
            self.bandwidth,
            self.we_sent,
            self.avg_rtcp_size,
            self.initial,
            self.least,
        )

    def tick(self, now: float) -> bool:
        """Say whether to report now; then call `sent`.  If not, `deadline` has moved: §6.3.6."""
        if now < self.tn:
            return False
        self.tn = self.tp + self._draw()
        self.pmembers = self.members
        return self.tn <= now  # §6.2 [waits-first]

    def sent(self, size: int, now: float) -> None:
        """Take note of a compound of `size` octets sent, and draw the next time: §6.3.6."""
        self.received(size)
        self.suppressed(now)

    def suppressed(self, now: float) -> None:
        """Draw the next time after a report that was left out: RFC 4585 §3.5.3."""
        self.tp, self.initial = now, False
        self.tn = now + self._draw()

    def skip_one(self) -> None:
        """Leave out the next report, since one has just left early: RFC 4585 §3.5.2."""
        self.tp, self.tn = self.tn, 2 * self.tn - self.tp  # RFC 4585 §3.4 [one-report-skipped]

    def received(self, size: int) -> None:
        """Take note of the size of a compound: §6.3.3."""
        self.avg_rtcp_size += (size - self.avg_rtcp_size) / 16

    def reconsider(self, now: float) -> None:
        """After `members` has shrunk, bring the next report forward: §6.3.4."""
        if self.members < self.pmembers:
            share = self.members / self.pmembers
            self.tn = now + share * (self.tn - now)
            self.tp = now - share * (now - self.tp)
            self.pmembers = self.members

    def _draw(self) -> float:
        """Draw T: Td times 0.5 to 1.5, compensated for reconsideration: §6.3.1."""
        return (
            self.calculated
            * (0.5 + int.from_bytes(self._random(4), "big") / (1 << 32))  # §6.3 [drawn-intervals]
            / COMPENSATION
        )
