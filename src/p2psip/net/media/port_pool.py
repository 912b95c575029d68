"""Pairs of media ports, drawn at random from a range.

Implements RFC 3550 §11, an even port for RTP and the odd one above for RTCP.

Own design: the ports of one call must not tell those of the next, or a stranger who sends to the
first ports of a range would reach every call.
"""

import errno
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from gevent.monkey import get_original

from p2psip.errors import LocalError
from p2psip.net.tap import Tapping

ANYWHERE: Final = (32768, 65535)  # the range if none is given
TRIES: Final = 64  # draws from that range before we give up

_Socket: Final[type[socket.socket]] = get_original("socket", "socket")  # never a cooperative one


class NoPortsError(LocalError):
    """No pair of ports is free; the caller answers 503 (RFC 3261 §21.5.4)."""


class PublicPorts(NamedTuple):
    """Where others send to a pair of ports: an address, a port for RTP and one for RTCP."""

    host: str
    port: int
    rtcp_port: int


class MediaRelay(Protocol):
    """A socket whose peers a server has to be told of."""

    on_lost: Callable[[str], object]
    on_answer: Callable[[], object]

    def permit(self, hosts: Iterable[str]) -> None:
        """Let peers at these hosts send to us; `on_answer` is called when the server has."""

    def permits(self, host: str) -> bool:
        """Whether the server lets packets through to this host."""


class MediaPair(NamedTuple):
    """The sockets of a stream, and where others outside send to them if that is known."""

    rtp: Any  # a socket, or what behaves like one
    rtcp: Any
    public: PublicPorts | None = None
    relays: Sequence[MediaRelay] = ()


class PortPool:
    """Pairs of ports from `low` to `high`, or from `ANYWHERE` if both are 0.

    A pair is drawn from the half that has been free for longest.  So packets still on their way to
    a call that has ended do not reach a new one.  `random(n)` gives n octets; `pairs` counts all of
    them, taken or free.
    """

    def __init__(
        self, low: int = 0, high: int = 0, *, random: Callable[[int], bytes] = os.urandom
    ) -> None:
        if not 0 <= low <= high <= 0xFFFF or (high and low < 1024):
            raise LocalError(f"{low}-{high} is not a range of ports from 1024 to 65535")
        self._random = random
        self._anywhere = high == 0
        self._free = deque(range(low + low % 2, high, 2))  # RFC 3551 §8 [even-port]
        self.pairs = (ANYWHERE[1] - ANYWHERE[0] + 1) // 2 if self._anywhere else len(self._free)

    @property
    def free(self) -> int | None:
        """The number of free pairs, for status pages; None without a range."""
        return None if self._anywhere else len(self._free)

    def bind(self, ip: str) -> tuple[socket.socket, socket.socket]:
        """Bind an RTP and an RTCP socket of a free pair: RFC 3550 §11.  NoPortsError, OSError."""
        taken: list[int] = []
        try:
            for _ in range(TRIES if self._anywhere else len(self._free)):
                taken.append(port := self._draw())
                pair = _bind_pair(ip, port)
                if pair is not None:
                    del taken[-1]
                    return pair
        finally:
            for port in taken:
                self.release(port)
        raise NoPortsError("no free pair of RTP ports")

    def open(self, ip: str) -> MediaPair:
        """Open the sockets of one stream, as `bind` does."""
        return MediaPair(*self.bind(ip))

    def release(self, port: int) -> None:
        """Take back the RTP port of a pair whose sockets are closed."""
        if not self._anywhere:
            self._free.append(port)

    def _draw(self) -> int:
        number = int.from_bytes(self._random(4), "big")
        if self._anywhere:
            low, high = ANYWHERE
            return low + 2 * (number % ((high - low + 1) // 2))  # RFC 3551 §8 [even-port]
        index = number % ((len(self._free) + 1) // 2)
        port = self._free[index]
        del self._free[index]
        return port


def _bind_pair(ip: str, port: int) -> tuple[socket.socket, socket.socket] | None:
    """Bind `port` and the one above; None if either is taken."""
    first = _bind(ip, port)
    if first is None:
        return None
    second = _bind(ip, port + 1)  # §6 [two-ports], §11 [ports-differ], RFC 3551 §8 [odd-port-above]
    if second is None:
        first.close()
        return None
    return first, second


def _bind(ip: str, port: int) -> socket.socket | None:
    opened = _Socket(socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        opened.setblocking(False)
        opened.bind((ip, port))
    except OSError as error:
        opened.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    return Tapping.current.datagrams(opened)
