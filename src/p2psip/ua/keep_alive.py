"""When a registered flow wants its next keep-alive, and when a failed one may be formed again.

Implements RFC 5626 §4.4 and §4.5.

Own design: the answer to a keep-alive is not waited for.  A connection that leads nowhere is found
by the system, which reports it as lost; what a datagram keeps open is only an address translator,
and the next REGISTER tells whether the registrar is there.
"""

from collections.abc import Callable
from typing import Final

from p2psip.transaction.flow import Flow

STREAM_SECONDS: Final = (95.0, 120.0)  # Source: §4.4.1
DATAGRAM_SECONDS: Final = (24.0, 29.0)  # Source: §4.4.2
BASE_SECONDS: Final = 30.0  # Source: §4.5, with one flow, so that all have failed
MAX_SECONDS: Final = 1800.0  # Source: §4.5

Random = Callable[[int], bytes]


class KeepAlives:
    """The keep-alives of one flow: §4.4.  `at` is when the next is due, None without a flow."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.flow: Flow | None = None
        self.at: float | None = None
        self._bounds = STREAM_SECONDS

    def begin(self, flow: Flow, flow_timer: int, now: float) -> None:
        """Keep a flow alive; `flow_timer` is the registrar's wish in seconds, 0 for none: §4.4."""
        # §4.4.1 [stream-interval], §4.4.2 [datagram-interval]
        bounds = STREAM_SECONDS if flow.reliable else DATAGRAM_SECONDS
        if flow_timer:
            bounds = 0.8 * flow_timer, float(flow_timer)  # §4.4 [within-flow-timer] [jitter]
        self.flow, self._bounds = flow, bounds
        self.sent(now)

    def sent(self, now: float) -> None:
        """Choose the time of the next: §4.4.1."""
        self.at = now + between(*self._bounds, self._random)  # §4.4.1 [new-number-each-time]

    def stop(self) -> None:
        """Send no more."""
        self.flow = self.at = None


def retry_delay(failures: int, random: Random) -> float:
    """How long to wait after so many failures in a row, in seconds: §4.5."""
    most = min(MAX_SECONDS, BASE_SECONDS * 2 ** min(failures, 10))
    return between(most / 2, most, random)  # §4.5 [waits-for-the-delay]


def between(least: float, most: float, random: Random) -> float:
    """Draw a number between two bounds: §4.4."""
    return least + (most - least) * int.from_bytes(random(4), "big") / 2**32
