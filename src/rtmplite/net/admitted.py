"""Connects to hosts that clients have named, at those addresses alone that the operator admits.

Own design: the check is on the very address that is connected to, since a name may have another one
a moment later.  Few names are looked up at once, so that others do not wait for the resolver.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from gevent import socket
from gevent.lock import BoundedSemaphore

Admits: TypeAlias = Callable[[str, str, int], bool]  # a host, one of its addresses, a port
LOOK_UPS: Final = 4
_looking_up = BoundedSemaphore(LOOK_UPS)


def connect(host: str, port: int, admits: Admits, timeout: float | None = None) -> socket.socket:
    """Connect to the first address that is admitted and answers.  Raises OSError.

    `timeout` is in seconds, for each address.
    """
    with _looking_up:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    admitted = [each for each in found if admits(host, str(each[4][0]), port)]
    why = OSError("no address of this host is admitted")
    for family, kind, protocol, _, address in admitted:
        connected = socket.socket(family, kind, protocol)
        try:
            connected.settimeout(timeout)
            connected.connect(address)
            return connected
        except OSError as error:
            why = error
            connected.close()
        except BaseException:  # a timeout leaves no socket open either
            connected.close()
            raise
    raise why
