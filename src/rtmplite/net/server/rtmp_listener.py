"""The RTMP listener: it accepts connections, and `tcp_connections` serves them.

Applications are called in the hub, so they must not block.
"""

import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final

import gevent

from rtmplite.net.clock import now
from rtmplite.net.connection_limit import ConnectionLimit
from rtmplite.net.descriptors import Door, is_out
from rtmplite.net.tcp_connections import WATCH_READ, Peer, Socket, TcpConnections
from rtmplite.net.tls import Tls
from rtmplite.rtmp.server import ServerConnection

log = logging.getLogger(__name__)

BACKLOG: Final = 1024
LOOK: Final = 0.05  # s between looks whether the clients asked to reconnect have left
ACCEPTS: Final = 64  # per wake-up, so that many new clients do not starve the others
CLOSED: Final = "NetConnection.Connect.Closed"


def listening(host: str, port: int, *options: int) -> socket.socket:
    """Open a socket that listens, with these further `options` on; OSError if it cannot be had."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = Socket(family, kind, protocol)
    try:
        for option in (socket.SO_REUSEADDR, *options):
            listener.setsockopt(socket.SOL_SOCKET, option, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


class RtmpListener(TcpConnections[ServerConnection]):
    """One listening address; `make_connection` gives the machine for a caller from `(host, port)`.

    `merge_ms` holds output back for so many milliseconds.  A client that `connection_limit` does
    not admit is disconnected; listeners may share it.  With `tls` this is RTMPS: RTMP within TLS.
    `opened` is a socket that listens there already, for a server of several processes.
    """

    def __init__(
        self,
        host: str,
        port: int,
        make_connection: Callable[[tuple[str, int]], ServerConnection],
        *,
        merge_ms: float = 0.0,
        connection_limit: ConnectionLimit | None = None,
        tls: ssl.SSLContext | None = None,
        opened: socket.socket | None = None,
    ) -> None:
        super().__init__(merge_ms)
        self._host, self._port, self._opened = host, port, opened
        self._make_connection, self._tls = make_connection, tls
        self._limit = ConnectionLimit() if connection_limit is None else connection_limit
        self._listener: socket.socket | None = None
        self._accepting, self._door = True, Door("rtmp" if tls is None else "rtmps")

    def start(self) -> None:
        """Listen.  Raises OSError if the address cannot be had."""
        listener = self._opened or listening(self._host, self._port)
        listener.setblocking(False)
        self._listener = listener
        self._acceptor = self._loop.io(listener.fileno(), WATCH_READ)
        self._acceptor.start(self._accept)
        super().start()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that it listens on, the real port even if 0 was asked for."""
        assert self._listener is not None, "not started"
        host, port = self._listener.getsockname()[:2]
        return host, port

    def renew(self, tls: ssl.SSLContext) -> None:
        """Use another certificate for new connections."""
        self._tls = tls

    def ask_to_reconnect(self, tc_url: str | None = None) -> list[ServerConnection]:
        """Ask all clients that can do so to reconnect, to `tc_url` if given; gives those asked.

        They are served until they leave: E-RTMP v2 §"Message Flow When Handling
        NetConnection.Connect.ReconnectRequest".
        """
        return [
            peer.machine for peer in list(self._peers) if peer.machine.request_reconnect(tc_url)
        ]

    def stop(self, drain: float = 0.0, reconnect_to: str | None = None) -> None:
        """Stop listening, tell every client, and close; a second time does nothing.

        With `drain`, clients are asked to reconnect, to `reconnect_to` if given, and those that
        can have so many seconds to do it.  In the end it waits a moment for clients to read that
        they are closed, as `_say_goodbye` explains.
        """
        if self._listener is None:
            return
        self._acceptor.stop()
        self._acceptor.close()
        self._listener.close()
        self._listener = None
        asked = self.ask_to_reconnect(reconnect_to) if drain else []
        end = now() + drain
        while now() < end and not all(machine.closed for machine in asked):
            gevent.sleep(LOOK)
        for peer in list(self._peers):
            peer.guard(peer.machine.close, now(), "server stopped", CLOSED)
        self.farewell()
        super().stop()

    def forget(self, peer: Peer[ServerConnection]) -> None:
        """Remove a peer whose socket is closed, and make room for another one."""
        if peer in self._peers:
            self._limit.leaves(peer.machine.peer_address[0])
        super().forget(peer)

    def cut_off(self, machine: ServerConnection) -> None:
        """Log the reason; the peer only sees the end of the connection."""
        log.warning("%s:%d is cut off: %s", *machine.peer_address, machine.reason)

    def _accept(self) -> None:
        assert self._listener is not None
        for _ in range(ACCEPTS):
            try:
                connected, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                self._door.tell(error.strerror or str(error))
                if is_out(error):  # a ready listener would wake us for ever
                    self._accepting = False  # until the next tick
                    self._acceptor.stop()
                return
            if self._door.is_shut(connected.fileno()) or not self._limit.admits(address[0]):
                connected.close()
                continue
            connected.setblocking(False)
            machine = self._make_connection((address[0], address[1]))
            machine.transport.peer_address = (address[0], address[1])
            self.adopt(connected, machine, Tls(self._tls) if self._tls else None)

    def _tick(self) -> None:
        super()._tick()
        if not self._accepting:
            self._accepting = True
            self._acceptor.start(self._accept)
