"""Descriptors, of which the system gives each process a number: the last are not for strangers.

Own design: a new descriptor has the lowest number that is free, so that the number itself tells how
many are in use, by whatever.  What is kept is for media, files and whoever asks how things are.
"""

import errno
import logging
import os
import resource
from typing import Final

from p2psip.net.clock import monotonic

log: Final = logging.getLogger(__name__)

STRANGERS: Final = 4  # the part that is kept from clients that connect
MEDIA: Final = 8  # and from calls
AGAIN: Final = 60.0  # s from one line about it to the next

_OUT: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def is_scarce(fd: int, part: int) -> bool:
    """Whether a descriptor that was just opened is among the last one in `part`."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limit != resource.RLIM_INFINITY and fd >= limit - limit // part


def refuse_last(part: int) -> None:
    """Raise OSError if the next descriptor is among the last one in `part`; costs one call."""
    fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.close(fd)
    if is_scarce(fd, part):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def within(most: int) -> int:
    """So many connections, or half of all descriptors if that is less."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if limit == resource.RLIM_INFINITY else min(most, limit // 2)


def is_out(error: OSError) -> bool:
    """Whether it says that there are no more, or no memory for one."""
    return error.errno in _OUT


class Teller:
    """Says why nobody is let in, but not to each."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._told: float | None = None

    def tell(self, reason: str) -> None:
        """Write a line, if there was none a moment ago."""
        moment = monotonic()
        if self._told is None or moment >= self._told + AGAIN:
            self._told = moment
            log.warning("%s: cannot accept: %s", self._name, reason)
