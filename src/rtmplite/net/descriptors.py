"""Descriptors, of which the system gives each process a number: the last are not for strangers.

A new descriptor has the lowest number that is free, so that the number itself tells how many are in
use.  Nothing is counted, and whatever else the process opens is counted with it.
"""

import errno
import logging
import resource
from typing import Final

from rtmplite.net.clock import now

log = logging.getLogger(__name__)

# The part of all that is kept: from clients that connect, from files, from questions by HTTP.
STRANGERS: Final = 4
FILES: Final = 8
ASKING: Final = 16
MOST: Final = 65_536  # what we ask the system for, if it allows that many
AGAIN: Final = 60.0  # s from one line about it to the next

_OUT: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def is_scarce(fd: int, part: int) -> bool:
    """Whether a descriptor that was just opened is among the last one in `part`."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limit != resource.RLIM_INFINITY and fd >= limit - limit // part


def within(most: int, part: int = STRANGERS) -> int:
    """So many connections, or all descriptors but the last one in `part` if that is less."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if limit == resource.RLIM_INFINITY else min(most, limit - limit // part)


def is_out(error: OSError) -> bool:
    """Whether it says that there are no more, or no memory for one."""
    return error.errno in _OUT


def raise_limit() -> None:
    """Ask for as many as an ordinary process may have; most systems give a thousand unasked."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(MOST, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Door:
    """A listener's: who comes through has a descriptor that is not among those that are kept."""

    def __init__(self, name: str, part: int = STRANGERS) -> None:
        self._name, self._part = name, part
        self._told: float | None = None

    def is_shut(self, fd: int) -> bool:
        """Whether a connection has to be closed at once; tells the operator, but not of each."""
        if not is_scarce(fd, self._part):
            return False
        self.tell("descriptors are scarce")
        return True

    def tell(self, reason: str) -> None:
        """Say why somebody is not let in, if that was not said a moment ago."""
        moment = now()
        if self._told is None or moment >= self._told + AGAIN:
            self._told = moment
            log.warning("%s: cannot accept: %s", self._name, reason)
