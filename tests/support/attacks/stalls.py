"""Whether the machine withheld a core from programs that a test judges by milliseconds.

Own design: timers of real programs fire by the wall.  A program that waited for a core is asked
again, or throws away sound that came late; so the test judges that as strictly as it can and goes
on.  What Linux counts is the wait for a core alone: a gateway that is late by itself has none.
"""

import os
import threading
import time
from collections import deque
from typing import Self

from support.limits import core_waits

STEP = 0.05  # s between two looks, each of which reads some dozens of files
SPAN = 0.1  # s


class Watch:
    """For how long, in the worst SPAN, a program that the test started waited for a core."""

    def __init__(self) -> None:
        self.worst, self._over = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def begin(self) -> None:
        """Forget what was: a program waits while it starts, and then is not judged yet."""
        self.worst = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        looks: deque[tuple[float, dict[str, float]]] = deque()
        while not self._over.is_set():
            now, waits = time.monotonic(), core_waits(os.getpid())
            for own in os.listdir("/proc/self/task"):  # they compute before no timer
                waits.pop(own, None)
            looks.append((now, waits))
            while now - looks[0][0] > SPAN + STEP and len(looks) > 2:
                looks.popleft()
            then = looks[0][1]
            waited = (waits[each] - then[each] for each in waits if each in then)
            self.worst = max((self.worst, *waited))
            time.sleep(STEP)
            late = time.monotonic() - now - STEP  # Linux counts nothing if its machine stands still
            self.worst = max(self.worst, late)
