"""Connections that we open for machines: a relay says to whom, this does the rest."""

import ssl
from collections.abc import Callable
from typing import Final

import gevent
from gevent import socket

from rtmplite.net.clock import now
from rtmplite.net.peers import Peers, Socket
from rtmplite.net.tls import Tls, client_context
from rtmplite.rtmp.client import ClientConnection

TIMEOUT: Final = 10.0  # s, for a connection to stand


class Dialer(Peers[ClientConnection]):
    """Gives sockets to clients' machines; `tick` is called once a second, for who has deadlines.

    Without `tls` the system's certificates are trusted, and loaded when the first is needed.
    """

    def __init__(
        self,
        *,
        merge_ms: float = 0.0,
        tls: ssl.SSLContext | None = None,
        tick: Callable[[float], None] = lambda now: None,
    ) -> None:
        super().__init__(merge_ms)
        self._tls, self.tick = tls, tick

    def dial(self, machine: ClientConnection) -> None:
        """Connect `machine` to its target; it hears by `connection_lost` if that fails."""
        gevent.spawn(self._dial, machine)

    def _dial(self, machine: ClientConnection) -> None:
        target = machine.target
        try:
            waiting = socket.create_connection((target.host, target.port), TIMEOUT)
        except OSError as error:
            machine.connection_lost(now(), error.strerror or str(error))
            return
        connected = Socket(fileno=waiting.detach())
        if machine.closed:  # in the meantime
            connected.close()
            return
        connected.setblocking(False)
        tls = None
        if target.secure:
            self._tls = self._tls or client_context()
            tls = Tls(self._tls, target.host)
        self.adopt(connected, machine, tls)

    def _tick(self) -> None:
        super()._tick()
        self.tick(now())
