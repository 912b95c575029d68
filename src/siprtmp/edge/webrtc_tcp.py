"""The TCP port of all browsers, for those whose network lets no UDP through.

Implements RFC 6544 §3 for a lite agent: browsers connect, and we never do.

Own design: a connection is one more address that a browser's packets come from and go to.  One from
which no check of a session has come for `GREETING_SECONDS` is closed, however busy it is, and a
host has few of these.  What a browser does not read in time is lost, as it would be by UDP.
"""

import socket
from collections.abc import Callable
from typing import Any, Final, Protocol

from gevent import get_hub

from p2psip.errors import RemoteError
from p2psip.nat.ice_credentials import HostPort
from p2psip.nat.stream_framing import FrameReader, framed
from p2psip.net.clock import monotonic
from p2psip.net.descriptors import STRANGERS, RefusalLog, is_out, is_scarce
from p2psip.net.stream_socket import StreamSocket
from p2psip.net.udp import READ, plain_socket
from p2psip.transaction.flow import rate_limit_key

MAX_PACKET: Final = 2048  # octets; a browser sends 1,200
MAX_CONNECTIONS: Final = 1024
MAX_STRANGERS: Final = 128  # of them without a check of a session so far ...
STRANGERS_OF_HOST: Final = 16  # ... and of those the ones of one host
GREETING_SECONDS: Final = 5.0  # a browser checks as soon as it is connected
MAX_QUEUED: Final = 1 << 18  # octets that a browser may leave unread: a second of 2 Mbit/s
SWEEP_SECONDS: Final = 1.0


class PacketPort(Protocol):
    """The port whose packets come by UDP as well."""

    def take(self, data: bytes, source: HostPort, now: float) -> None:
        """Take a packet of a browser, or of anybody."""

    def knows(self, source: HostPort) -> bool:
        """Whether a check of a session has come from there."""

    def lost(self, source: HostPort) -> None:
        """Forget an address, whose connection has ended."""


class WebRtcTcp:
    """The listener, and its connections by their far ends.  Closes `bound` with itself."""

    def __init__(self, bound: socket.socket, port: PacketPort) -> None:
        self.port = port
        self.connections: dict[HostPort, BrowserConnection] = {}
        self._socket, self._refusal_log = bound, RefusalLog("webrtc")
        bound.setblocking(False)
        bound.listen(128)
        loop = get_hub().loop
        self._watcher: Any = loop.io(bound.fileno(), READ)
        self._watcher.start(self._accept)
        self._sweeper: Any = loop.timer(SWEEP_SECONDS, SWEEP_SECONDS, ref=False)
        self._sweeper.start(self._sweep)

    def _accept(self) -> None:
        try:
            opened, source = self._socket.accept()
        except OSError as error:
            if not isinstance(error, BlockingIOError):
                self._refusal_log.log_once(error.strerror or str(error))
            if is_out(error):
                self._watcher.stop()  # the loop would spin on what it can't take: see `_sweep`
            return
        if self._has_place(source[:2], opened.fileno()):
            self.connections[source[:2]] = BrowserConnection(self, opened, source[:2])
        else:
            opened.close()

    def _has_place(self, source: HostPort, fd: int) -> bool:
        """Whether there is room for one more; of too many strangers the oldest gives way."""
        if self.port.knows(source) or is_scarce(fd, STRANGERS):
            return False  # one address is that of one peer
        strangers = [each for each in self.connections.values() if not each.is_known]
        host = rate_limit_key(source[0])
        of_host = [each for each in strangers if rate_limit_key(each.source[0]) == host]
        if len(of_host) >= STRANGERS_OF_HOST:
            of_host[0].close()
        elif len(strangers) >= MAX_STRANGERS:
            strangers[0].close()
        return len(self.connections) < MAX_CONNECTIONS

    def _sweep(self) -> None:
        self._watcher.start(self._accept)
        late = monotonic() - GREETING_SECONDS
        for each in list(self.connections.values()):
            if each.since < late and not each.is_known:
                each.close()

    def close(self) -> None:
        """End all connections, and the port."""
        for watcher in (self._watcher, self._sweeper):
            watcher.stop()
            watcher.close()
        self._socket.close()
        for each in list(self.connections.values()):
            each.close()


class BrowserConnection:
    """One connection of a browser, from the moment that it was taken."""

    def __init__(self, listener: WebRtcTcp, opened: socket.socket, source: HostPort) -> None:
        self.source, self.since = source, monotonic()
        self._listener, self._reader = listener, FrameReader(MAX_PACKET)
        self._stream = StreamSocket(opened, MAX_QUEUED, self._hear, self.close)

    @property
    def is_known(self) -> bool:
        """Whether a check of a session has come by it."""
        return self._listener.port.knows(self.source)

    @property
    def waiting(self) -> int:
        """How many octets the system has not taken yet."""
        return self._stream.waiting

    def _hear(self, data: bytes) -> None:
        try:
            packets = self._reader.put(data)
        except RemoteError:  # RFC 4571 §2 [predictable-fields-are-watched]
            self.close()
            return
        for packet in packets:  # RFC 6544 §3 [framed-by-4571]
            self._listener.port.take(packet, self.source, monotonic())

    def send(self, packet: bytes) -> None:
        """Send a packet, or lose it where too much waits."""
        self._stream.send(framed(packet))

    def close(self) -> None:
        """End the connection; its address is nobody's any more."""
        if self._listener.connections.pop(self.source, None) is None:
            return
        self._stream.close()
        self._listener.port.lost(self.source)


def bound_alike(udp: Callable[[], socket.socket], *, tries: int = 20) -> tuple[Any, Any]:
    """Sockets of UDP and TCP at the same host and port, which `udp` chooses.

    Raises OSError as `bind` does, for a port that is not free by either.
    """
    for left in reversed(range(tries)):
        datagrams = udp()
        stream = plain_socket(datagrams.family, socket.SOCK_STREAM)
        try:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            stream.bind(datagrams.getsockname())
        except OSError:
            datagrams.close()
            stream.close()
            if not left:
                raise
        else:
            return datagrams, stream
    raise AssertionError("the last try has raised")
