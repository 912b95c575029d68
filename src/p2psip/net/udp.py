"""The UDP side of a SIP listener: a datagram is a message, or a STUN request.

Implements RFC 3261 §18.1.1 and §18.2.1 for UDP, and RFC 5626 §8.

Own design: what has come is read at once, since the system's own queue serves whoever sends most;
here it waits in one queue for each host, and hosts have their turns (`scheduler`).  Where there is
too much, the host with most loses its oldest.
"""

import socket
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from gevent import get_hub
from gevent.monkey import get_original

from p2psip.nat import stun_server
from p2psip.nat.stun import is_stun
from p2psip.net.host_scheduler import HostScheduler
from p2psip.net.tap import Tapping
from p2psip.transaction.flow import Flow, HostPort, rate_limit_key

READ: Final = 1  # libev's number for an io watcher that waits for input
BURST: Final = 256  # datagrams read per wake-up, which takes a millisecond
MAX_WAITING: Final = 1 << 20  # octets of datagrams that wait for their turn ...
OVERHEAD: Final = 256  # ... each with those that it takes beside its content
MAX_DATAGRAM: Final = 65_535
BUFFER: Final = 1 << 20  # octets the system may keep for us while the loop is busy

plain_socket: Final[type[socket.socket]] = get_original("socket", "socket")


class UdpListener:
    """One bound socket; `on_message(data, flow)` is called in the hub and must not wait.

    RFC 3261 §18.2.1.  Each of `on_stun`, (data, source), is given STUN other than requests to us.
    `scheduler` are shared with other listeners, or its own.
    """

    def __init__(
        self,
        bound: socket.socket,
        on_message: Callable[[bytes, Flow], None],
        scheduler: HostScheduler | None = None,
    ) -> None:
        self._socket, self._on_message = Tapping.current.datagrams(bound), on_message
        self._scheduler = scheduler or HostScheduler()
        self._of_host: dict[str, _Waiting] = {}
        self._waiting = 0  # octets, of all hosts
        self._closed = False
        self.on_stun: list[Callable[[bytes, HostPort], object]] = []
        self.address: HostPort = bound.getsockname()[:2]
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        self._watcher = get_hub().loop.io(bound.fileno(), READ)
        self._watcher.start(self._receive)

    def send(self, data: bytes, flow: Flow) -> bool:
        """Send one datagram; False when the system refuses it: RFC 3261 §18.4.

        Departs from RFC 3261 §18.4: what ICMP says later is not heard, since anybody can forge it
        and end a call so; a request that nobody answers ends by its own timer.
        """
        try:
            # RFC 3581 §3 [answers-where-it-sent] and §4 [answers-from-there]
            # RFC 3261 §18.1.1 [hears-by-udp]
            self._socket.sendto(data, flow.remote)
        except BlockingIOError:
            return True  # lost on the way, as UDP may; the transaction repeats it
        except (OSError, OverflowError):  # no route, no such port
            return False  # RFC 3261 §18.4 [unreachable-is-told]
        return True

    def close(self) -> None:
        self._watcher.stop()
        self._watcher.close()
        self._socket.close()
        self._of_host.clear()
        self._closed = True

    def _receive(self) -> None:
        for _ in range(BURST):
            try:
                # RFC 3261 §18.1.1 [whole-datagrams]
                data, source = self._socket.recvfrom(MAX_DATAGRAM)
            except BlockingIOError:
                return
            except OSError:
                return  # the datagrams behind it are read at the next wake-up
            self._keep(data, source[:2])

    def _keep(self, data: bytes, source: HostPort) -> None:
        """Have a datagram wait for the turn of its host."""
        host = rate_limit_key(source[0])
        if (waiting := self._of_host.get(host)) is None:
            waiting = self._of_host[host] = _Waiting()
            self._scheduler.add(host, partial(self._serve, host))
        self._waiting += waiting.add(data, source)
        while self._waiting > MAX_WAITING:
            fullest = max(self._of_host.values(), key=lambda each: each.size)
            self._waiting -= fullest.take()[2]

    def _serve(self, host: str) -> bool:
        """Give one datagram of a host to its receiver; whether there are more."""
        if not (waiting := self._of_host.pop(host, _Waiting())).datagrams:
            return False
        self._waiting -= waiting.size
        data, source, _ = waiting.take()
        flow = Flow("UDP", source, self.address)
        if is_stun(data):  # a phone's keep-alive: RFC 5626 §8 [stun-server]
            self._tell_address(data, flow)
        else:
            self._on_message(data, flow)
        if not waiting.datagrams or self._closed:
            return False
        self._waiting += waiting.size
        self._of_host[host] = waiting
        return True

    def _tell_address(self, data: bytes, flow: Flow) -> None:
        said = stun_server.answer(data, flow.remote)
        if said is not None:
            self.send(said, flow)
            return
        for each in self.on_stun:
            each(data, flow.remote)


class _Waiting:
    """The datagrams of one host, and the octets that they take."""

    def __init__(self) -> None:
        self.datagrams: deque[tuple[bytes, HostPort, int]] = deque()
        self.size = 0

    def add(self, data: bytes, source: HostPort) -> int:
        size = len(data) + OVERHEAD
        self.datagrams.append((data, source, size))
        self.size += size
        return size

    def take(self) -> tuple[bytes, HostPort, int]:
        taken = self.datagrams.popleft()
        self.size -= taken[2]
        return taken
