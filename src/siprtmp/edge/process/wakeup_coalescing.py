"""Under load the loop sleeps briefly between two turns, so that each turn reads more packets.

Own design: with many calls a packet comes every fraction of a millisecond, and waking up for
each one costs more than the packet.  From `BUSY_CALLS` on, the loop sleeps `GATHER_SECONDS`
between two turns, as network cards coalesce interrupts.  Audio is delayed by that at most, a tenth
of a packet; a single call is not delayed at all.
"""

import time
from typing import Any, Final

from gevent import get_hub

BUSY_CALLS: Final = 10  # 1000 packets a second, one each way every 20 ms for each call
GATHER_SECONDS: Final = 0.002
_LAST: Final = -2  # a watcher's priority: after whatever sends at the end of a turn


class WakeupCoalescer:
    """Makes the loop sleep between turns while there are many calls."""

    def __init__(self) -> None:
        self._watcher: Any = get_hub().loop.prepare(ref=False, priority=_LAST)

    def set_calls(self, calls: int) -> None:
        """Take the number of calls, and start or stop sleeping."""
        if calls < BUSY_CALLS:
            self._watcher.stop()
        elif not self._watcher.active:
            self._watcher.start(time.sleep, GATHER_SECONDS)
