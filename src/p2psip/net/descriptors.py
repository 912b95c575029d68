"""File descriptors: the last ones of the process are kept from new connections and calls.

Own design: the system gives a new descriptor the lowest free number, so the number itself tells how
many are in use.  Those kept are for media, files and the status page.
"""

import errno
import logging
import os
import resource
from typing import Final

from p2psip.net.clock import monotonic

log: Final = logging.getLogger(__name__)

STRANGERS: Final = 4  # one part in so many is kept from new connections
MEDIA: Final = 8  # one part in so many is kept from new calls
AGAIN: Final = 60.0  # s between two log lines

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
    """The lesser of `most` and half of all descriptors: a limit of connections."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if limit == resource.RLIM_INFINITY else min(most, limit // 2)


def is_out(error: OSError) -> bool:
    """Whether an error means that descriptors, or the memory for one, have run out."""
    return error.errno in _OUT


class RefusalLog:
    """Logs why connections are not accepted, once in `AGAIN` seconds."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._told: float | None = None

    def log_once(self, reason: str) -> None:
        """Log a reason, unless one was logged shortly before."""
        moment = monotonic()
        if self._told is None or moment >= self._told + AGAIN:
            self._told = moment
            log.warning("%s: cannot accept: %s", self._name, reason)
