"""Ends a process whose orderly end takes too long.

Own design: a service manager, or a person, waits for a server only for some seconds.  Under a
flood, with thousands of clients to tell, or with a disk that hangs, an end may take longer.  What
was not done by then is as after a kill, which all our files bear.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Final

SECONDS: Final = 4.5  # from the signal on, so that every end takes less than five
UNFINISHED: Final = 1  # exit code


@contextmanager
def ended_within(seconds: float) -> Iterator[None]:
    """End the process by a thread, with `UNFINISHED`, if the block takes longer."""
    timer = Timer(seconds, os._exit, (UNFINISHED,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
