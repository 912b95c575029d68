"""Under load the loop waits a moment before it looks again, and then finds more to do.

Own design: with many calls a packet comes every fraction of a millisecond, and waking up for
each one costs more than the packet.  From `BUSY_CALLS` on, the loop sleeps `GATHER_SECONDS`
between two looks, as network cards do with their interrupts.  Sound is late by that at most,
a tenth of a packet; a single call is not late at all.
"""

import time
from typing import Any, Final

from gevent import get_hub

BUSY_CALLS: Final = 10  # 1000 packets a second, one each way every 20 ms for each call
GATHER_SECONDS: Final = 0.002
_LAST: Final = -2  # a watcher's priority: after whatever sends at the end of a turn


class WakeupCoalescer:
    """Watches how many calls there are.  Own design: see the module."""

    def __init__(self) -> None:
        self._watcher: Any = get_hub().loop.prepare(ref=False, priority=_LAST)

    def set_calls(self, calls: int) -> None:
        """There are so many now.  Own design."""
        if calls < BUSY_CALLS:
            self._watcher.stop()
        elif not self._watcher.active:
            self._watcher.start(time.sleep, GATHER_SECONDS)
