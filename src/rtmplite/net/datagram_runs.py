"""Sends the datagrams of a turn, those in a row for one peer by one call, and reads them alike.

Own design: the packets of a burst take the way through the system once, and it cuts them apart
again (UDP_SEGMENT of Linux).  That is cheaper than one call for all peers, each with its packets.
Where `_datagrams.c` is compiled it reads all that waits, and the system may leave a burst together
up to there (UDP_GRO).

    >>> here = "192.0.2.1", 5000
    >>> queue = [(bytes(size), here) for size in (100, 100, 40, 100)]
    >>> run_end(queue, 0)                       # the shorter one ends a run
    3
"""

import logging
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING, Final

from rtmplite.net.tcp_connections import Socket
from rtmplite.rtmfp.wire.address import Address

if TYPE_CHECKING:
    from rtmplite.net._datagrams import receive
else:
    try:
        from rtmplite.net._datagrams import receive
    except ImportError:  # it is not compiled, or SIPRTMP_PURE is set, or this is no Linux
        receive = None

log = logging.getLogger(__name__)

MAX_SEGMENTS: Final = 64  # Linux's limit for one buffer, and ...
MAX_RUN: Final = 65_000  # ... octets of it
_UDP_SEGMENT: Final = 103  # Linux's numbers of options that Python has no names for
_UDP_GRO: Final = 104
DATAGRAM: Final = 16384  # bytes, more than any has; room for 64 KiB costs more than the call
_segment_size: Final = Struct("=H").pack
_MAPPED: Final = "::ffff:"  # how a socket for both families writes IPv4
Datagrams = Sequence[tuple[bytes, Address]]


def run_end(datagrams: Datagrams, at: int) -> int:
    """Give the end of the run at `at`: one destination, one length, and a shorter one behind."""
    first, destination = datagrams[at]
    size, after = len(first), at + 1
    most = min(len(datagrams), at + MAX_SEGMENTS, at + MAX_RUN // max(size, 1))
    while after < most and datagrams[after][1] == destination:
        length = len(datagrams[after][0])
        if length != size:
            return after + (0 < length < size)
        after += 1
    return after


class DatagramRuns:
    """Sends and reads by one UDP socket; what the system does not take counts as lost.

    Own design: only a socket of the system itself is given runs, not one of a capture.  One that
    `joins` may get runs: not where the system chooses between sockets by what a datagram says.
    """

    def __init__(self, opened: socket.socket, *, joins: bool = False) -> None:
        self._socket = opened
        self._is_v6 = opened.family == socket.AF_INET6
        self._cuts = type(opened) is Socket and sys.platform == "linux"
        self._receive = receive if self._cuts else None
        if joins and self._receive is not None:
            with suppress(OSError):  # an old kernel
                opened.setsockopt(socket.IPPROTO_UDP, _UDP_GRO, 1)

    def receive(self, most: int) -> list[tuple[bytes, Address]]:
        """Read what waits, until it is `most` datagrams or a run more."""
        found: list[tuple[bytes, Address]] = []
        try:
            if self._receive is not None:
                return self._receive(self._socket.fileno(), most)
            while len(found) < most:
                datagram, (host, port, *_) = self._socket.recvfrom(DATAGRAM)
                found.append((datagram, (host.removeprefix(_MAPPED), port)))
        except BlockingIOError:
            pass
        except OSError as error:  # ICMP has told of a closed port, say
            log.debug("cannot receive: %s", error)
        return found

    def send(self, datagrams: Datagrams) -> None:
        """Send all datagrams, each to its destination, in this order."""
        at, end = 0, len(datagrams)
        while at < end:
            after = run_end(datagrams, at) if self._cuts else at + 1
            if after == at + 1 or not self._send_run(datagrams[at:after]):
                for datagram, destination in datagrams[at:after]:
                    self._send_one(datagram, destination)
            at = after

    def _send_run(self, run: Datagrams) -> bool:
        """Send one buffer for the system to cut; False if nothing was sent."""
        cut = [(socket.IPPROTO_UDP, _UDP_SEGMENT, _segment_size(len(run[0][0])))]
        try:
            self._socket.sendmsg([each for each, _ in run], cut, 0, self._to(run[0][1]))
        except OSError:  # it cannot cut, or not for so narrow a link, or its buffer is full
            return False
        return True

    def _send_one(self, datagram: bytes, destination: Address) -> None:
        try:
            self._socket.sendto(datagram, self._to(destination))
        except OSError as error:
            log.debug("cannot send to %s:%d: %s", *destination, error)

    def _to(self, destination: Address) -> Address:
        if self._is_v6 and ":" not in destination[0]:
            return _MAPPED + destination[0], destination[1]
        return destination
