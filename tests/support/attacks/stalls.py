"""A test that counts milliseconds is void where the machine withheld a core for as long.

What is watched is this process and no peer: a gateway that is late by itself fails its test.
"""

import functools
import threading
import time
import warnings

ATTEMPTS = 3
STEP = 0.002  # s between two looks at the clock


class Watch:
    """How late a thread that only sleeps was woken at worst, in seconds."""

    def __init__(self):
        self.worst, self._over = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _look(self):
        while not self._over.is_set():
            before = time.monotonic()
            time.sleep(STEP)
            self.worst = max(self.worst, time.monotonic() - before - STEP)


def void_if_stalled(seconds):
    """Run a test again that failed while something else had both cores for `seconds`."""

    def decorate(test):
        @functools.wraps(test)
        def attempts(*args, **options):
            for left in reversed(range(ATTEMPTS)):
                try:
                    with Watch() as watch:
                        return test(*args, **options)
                except Exception as error:
                    if watch.worst < seconds or not left:
                        raise
                    said = f"void, the machine stood still for {watch.worst * 1000:.0f} ms: {error}"
                    warnings.warn(said, stacklevel=2)

        return attempts

    return decorate
