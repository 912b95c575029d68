"""The RTMP listener: it accepts, and `peers` does the rest.

Applications are called in the hub: they must not block.
"""

import errno
import ipaddress
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from typing import Final

import gevent

from rtmplite.net.clock import now
from rtmplite.net.peers import WATCH_READ, Peer, Peers, Socket
from rtmplite.net.tls import Tls
from rtmplite.rtmp.server import ServerConnection

log = logging.getLogger(__name__)

BACKLOG: Final = 1024
CONNECTIONS: Final = 10_000
CONNECTIONS_OF_ONE: Final = 2_000  # address; many people may share one
LOOK: Final = 0.05  # s between looks whether all have left who were asked to
ACCEPTS: Final = 64  # per wake-up, so that a storm of callers does not starve the connected
CLOSED: Final = "NetConnection.Connect.Closed"

_OUT_OF_DESCRIPTORS: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class RtmpServer(Peers[ServerConnection]):
    """One listening address; `make_connection` gives the machine for a caller from `(host, port)`.

    `merge_ms` holds output back for that long; `max_connections` are kept, `max_per_address` from
    one address, more are hung up on.  With `tls` it is RTMPS that is spoken: TLS, and RTMP within.
    """

    def __init__(
        self,
        host: str,
        port: int,
        make_connection: Callable[[tuple[str, int]], ServerConnection],
        *,
        merge_ms: float = 0.0,
        max_connections: int = CONNECTIONS,
        max_per_address: int = CONNECTIONS_OF_ONE,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(merge_ms)
        self._host, self._port = host, port
        self._make_connection, self._max_connections = make_connection, max_connections
        self._max_per_address = max_per_address
        self._sources: dict[ServerConnection, str] = {}
        self._from = Counter[str]()
        self._tls = tls
        self._listener: socket.socket | None = None
        self._accepting = True

    def start(self) -> None:
        """Listen.  Raises OSError if the address cannot be had."""
        family, kind, protocol, _, address = socket.getaddrinfo(
            self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = Socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
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

    def ask_to_reconnect(self, tc_url: str | None = None) -> list[ServerConnection]:
        """Ask all who know how to come back, to `tc_url` if given; gives those who were asked.

        They are served until they leave: E-RTMP v2 §"Message Flow When Handling
        NetConnection.Connect.ReconnectRequest".
        """
        return [
            peer.machine for peer in list(self._peers) if peer.machine.request_reconnect(tc_url)
        ]

    def stop(self, drain: float = 0.0, reconnect_to: str | None = None) -> None:
        """Stop listening, tell every client, and close; a second time does nothing.

        With `drain`, clients are asked to reconnect, to `reconnect_to` if given, and have so many
        seconds to do it; only those who do not know how are not waited for.  In the end it waits
        a moment for those who are still sending to read it, as `_say_goodbye` explains.
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
        """Drop a peer whose socket is closed, and make room for another from its address."""
        super().forget(peer)
        source = self._sources.pop(peer.machine, None)
        if source is not None:
            self._from[source] -= 1
            if not self._from[source]:
                del self._from[source]

    def cut_off(self, machine: ServerConnection) -> None:
        """Tell the operator why; the peer hears nothing but the end."""
        log.warning("%s:%d is cut off: %s", *machine.peer_address, machine.reason)

    def _accept(self) -> None:
        assert self._listener is not None
        for _ in range(ACCEPTS):
            try:
                connected, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                log.warning("cannot accept: %s", error)
                if error.errno in _OUT_OF_DESCRIPTORS:  # a ready listener would wake us for ever
                    self._accepting = False  # until the next tick
                    self._acceptor.stop()
                return
            if len(self._peers) >= self._max_connections:
                log.warning("refusing %s: %d connections", address[0], len(self._peers))
                connected.close()
                continue
            source = _source(address[0])
            if self._from[source] >= self._max_per_address:
                log.warning("refusing %s: %d connections of its own", source, self._from[source])
                connected.close()
                continue
            connected.setblocking(False)
            machine = self._make_connection((address[0], address[1]))
            machine.peer_address = (address[0], address[1])
            self._sources[machine] = source
            self._from[source] += 1
            self.adopt(connected, machine, Tls(self._tls) if self._tls else None)

    def _tick(self) -> None:
        super()._tick()
        if not self._accepting:
            self._accepting = True
            self._acceptor.start(self._accept)


def _source(host: str) -> str:
    """What counts as one address: of IPv6 it is the /64, which is what one customer has."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return host
