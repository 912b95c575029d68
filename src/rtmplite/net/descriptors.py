"""Keeps the last file descriptors of the process for media and files, when clients take many.

Own design: a new descriptor gets the lowest free number, so the number itself tells how many are in
use, whichever part of the program has opened them.  Nothing has to be counted.
"""

import errno
import logging
import resource
from typing import Final

from rtmplite.net.clock import now

log = logging.getLogger(__name__)

# The last one in so many is refused: to clients that connect, to files, to requests by HTTP.
STRANGERS: Final = 4
FILES: Final = 8
ASKING: Final = 16
MOST: Final = 65_536  # what we ask the system for, if it allows that many
AGAIN: Final = 60.0  # s between two log lines about it

_OUT: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def is_scarce(fd: int, part: int) -> bool:
    """Whether a new descriptor is among the last ones, one in `part` of all."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limit != resource.RLIM_INFINITY and fd >= limit - limit // part


def within(most: int, part: int = STRANGERS) -> int:
    """Reduce a number of connections to the descriptors there are, less one in `part`."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if limit == resource.RLIM_INFINITY else min(most, limit - limit // part)


def is_out(error: OSError) -> bool:
    """Whether an error means that the system has no descriptor left, or no memory for one."""
    return error.errno in _OUT


def raise_limit() -> None:
    """Raise the limit of descriptors to `MOST` or as far as allowed; it is mostly 1,024 before."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(MOST, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Door:
    """Lets a listener accept connections only while descriptors are not scarce."""

    def __init__(self, name: str, part: int = STRANGERS) -> None:
        self._name, self._part = name, part
        self._told: float | None = None

    def is_shut(self, fd: int) -> bool:
        """Whether a new connection must be closed at once; this is logged once a minute at most."""
        if not is_scarce(fd, self._part):
            return False
        self.tell("descriptors are scarce")
        return True

    def tell(self, reason: str) -> None:
        """Log why connections are not accepted, once a minute at most."""
        moment = now()
        if self._told is None or moment >= self._told + AGAIN:
            self._told = moment
            log.warning("%s: cannot accept: %s", self._name, reason)
