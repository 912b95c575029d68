"""Handles SIGHUP: a service reads its files again, a program at a terminal ends."""

import os
import signal
from collections.abc import Callable

import gevent


def on_hangup(end: Callable[[], object], reload: Callable[[], object]) -> None:
    """Call `end` at SIGHUP if the process has a terminal, else `reload`.

    The terminal is looked for now, as it may be gone when the signal comes.  Under nohup `reload`
    is called.
    """
    is_ours = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and has_terminal()
    gevent.signal_handler(signal.SIGHUP, end if is_ours else reload)


def has_terminal() -> bool:
    """Whether a terminal controls this process, even with input and output redirected."""
    try:
        os.close(os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
