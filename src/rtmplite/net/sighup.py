"""What SIGHUP means: to a service that files have changed, at a terminal that this has closed."""

import os
import signal
from collections.abc import Callable

import gevent


def on_hangup(end: Callable[[], object], reload: Callable[[], object]) -> None:
    """Call `end` at SIGHUP where somebody works at a terminal, and `reload` everywhere else.

    Looked at once, now: when the signal comes, the terminal may still be there or not.  Under
    nohup a terminal that closes means nothing.
    """
    is_ours = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and has_terminal()
    gevent.signal_handler(signal.SIGHUP, end if is_ours else reload)


def has_terminal() -> bool:
    """Whether a terminal controls this process, whatever its input and output are."""
    try:
        os.close(os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
