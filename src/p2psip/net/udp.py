"""The UDP side of a SIP listener: a datagram is a message, or a STUN request.

Implements RFC 3261 §18.1.1 and §18.2.1 for UDP, and RFC 5626 §8.

Own design: what has come is read at once, since the system's own queue serves whoever sends most;
here it waits in one queue for each host (`host_queues`).
"""

import socket
from collections.abc import Callable
from typing import Final

from gevent import get_hub
from gevent.monkey import get_original

from p2psip.nat import stun_server
from p2psip.nat.stun import is_stun
from p2psip.net.host_queues import HostQueues
from p2psip.net.host_scheduler import HostScheduler
from p2psip.net.tap import Tapping
from p2psip.transaction.flow import Flow, HostPort

READ: Final = 1  # libev's number for an io watcher that waits for input
BURST: Final = 256  # datagrams read per wake-up, which takes a millisecond
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
        self._queues = HostQueues[HostPort](scheduler or HostScheduler(), self._serve)
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
        self._queues.close()

    def _receive(self) -> None:
        for _ in range(BURST):
            try:
                # RFC 3261 §18.1.1 [whole-datagrams]
                data, source = self._socket.recvfrom(MAX_DATAGRAM)
            except BlockingIOError:
                return
            except OSError:
                return  # the datagrams behind it are read at the next wake-up
            self._queues.keep(data, source[:2], source[0])

    def _serve(self, data: bytes, source: HostPort) -> None:
        flow = Flow("UDP", source, self.address)
        if is_stun(data):  # a phone's keep-alive: RFC 5626 §8 [stun-server]
            self._tell_address(data, flow)
        else:
            self._on_message(data, flow)

    def _tell_address(self, data: bytes, flow: Flow) -> None:
        said = stun_server.answer(data, flow.remote)
        if said is not None:
            self.send(said, flow)
            return
        for each in self.on_stun:
            each(data, flow.remote)
