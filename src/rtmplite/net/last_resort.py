"""Ends a process whose orderly end takes too long, and one that Ctrl-C has interrupted.

Own design: a service manager, or a person, waits for a server only for some seconds.  Under a
flood, with thousands of clients to tell, or with a disk that hangs, an end may take longer.  What
was not done by then is as after a kill, which all our files bear.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Final

from gevent import get_hub

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


def interrupted_quietly() -> None:
    """Raise the KeyboardInterrupt of SIGINT in the main greenlet alone, wherever it came.

    Own design: Python raises it in the code that runs at that moment.  If that is a greenlet or a
    callback of the loop, gevent passes it on to the main greenlet, which is what we want, but
    prints it with a traceback before.
    """
    hub = get_hub()
    hub.NOT_ERROR = (*type(hub).NOT_ERROR, KeyboardInterrupt)
