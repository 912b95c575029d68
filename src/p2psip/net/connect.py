"""Opens connections to servers: without waiting, and from a port of ours if that can be.

Implements RFC 3261 §18.1.1 for the socket.
"""

import errno
import socket

from p2psip.net.udp import plain_socket
from p2psip.transaction.flow import HostPort


def connect(remote: HostPort, near: HostPort | None) -> tuple[socket.socket, bool] | None:
    """A socket on its way to `remote`, and whether it is there already; None if there is no way.

    `near` is the address that our Contact names, of a phone that accepts no connections: a proxy
    then finds the connection by it, as most of them do.  Another port is taken if that one cannot
    be used again so soon.  Raises OSError if there is no socket to be had.
    """
    found = _connect(remote, near) if near is not None else None
    return found or _connect(remote, None)


def _connect(remote: HostPort, near: HostPort | None) -> tuple[socket.socket, bool] | None:
    family = socket.AF_INET6 if ":" in remote[0] else socket.AF_INET
    opened = plain_socket(family, socket.SOCK_STREAM)
    opened.setblocking(False)
    try:
        if near is not None:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind(near)
        failed = opened.connect_ex(remote)
    except (OSError, OverflowError):  # no such port, or not for this family
        failed = errno.EHOSTUNREACH
    if failed in (0, errno.EINPROGRESS):
        return opened, failed == 0
    opened.close()
    return None
