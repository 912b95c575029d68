"""Opens connections for the machines of relays, and serves them."""

import logging
import ssl
from collections.abc import Callable
from functools import partial
from typing import Final

import gevent
from gevent import socket

from rtmplite.errors import LocalError
from rtmplite.net.client.rtmfp_dial import dial
from rtmplite.net.clock import now
from rtmplite.net.rtmfp_port import RtmfpPort
from rtmplite.net.tcp_connections import Socket, TcpConnections
from rtmplite.net.tls import Tls, client_context
from rtmplite.relay.session import ChunkSession, FlowSession
from rtmplite.rtmfp.netconnection.connection import FlowEnd

log = logging.getLogger(__name__)

TIMEOUT: Final = 10.0  # s, for a connection to stand
FAREWELL: Final = 2.0  # s for the last messages to arrive, repeated if they are lost
LOOK: Final = 0.01  # s between looks whether they have


class Dialer(TcpConnections[ChunkSession]):
    """Connects the machines of clients; `tick` is called once a second, for relays' deadlines.

    Without `tls` the system's certificates are trusted, and loaded when the first is needed.
    `on_cut_short` is called for a connection by RTMFP whose streams have not arrived as a whole.
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
        self.on_cut_short: Callable[[FlowEnd], None] = _say_cut_short
        self._ports: dict[RtmfpPort, None] = {}  # one for each connection by RTMFP

    def dial(self, machine: ChunkSession | FlowSession) -> None:
        """Connect `machine` to its target; if that fails, its `connection_lost` is called."""
        if isinstance(machine, ChunkSession):
            gevent.spawn(self._dial, machine)
        else:
            gevent.spawn(self._dial_by_flows, machine)

    def farewell(self, *, is_patient: bool = False) -> None:
        """Wait until closed machines have told peers, and all has arrived if `is_patient`."""
        super().farewell()
        end = now() + FAREWELL
        while (waiting := [each for port in self._ports for each in port.connections]) and (
            now() < end or (is_patient and any(each.transport.holds_media for each in waiting))
        ):
            gevent.sleep(LOOK)

    def stop(self) -> None:
        """Close every socket, now."""
        super().stop()
        for port in list(self._ports):
            self._close(port)

    def _dial(self, machine: ChunkSession) -> None:
        target = machine.target
        try:
            waiting = socket.create_connection((target.host, target.port), TIMEOUT)
        except OSError as error:
            machine.transport.connection_lost(now(), error.strerror or str(error))
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

    def _dial_by_flows(self, machine: FlowSession) -> None:
        try:
            port, _, _ = dial(machine)
        except OSError as error:
            machine.transport.connection_lost(now(), error.strerror or str(error))
            return
        except LocalError as error:
            machine.transport.connection_lost(now(), str(error))
            return
        self._ports[port] = None
        port.on_over = partial(self._over, port)
        port.watch(machine)  # from now on, to hear if it is given up before there is a session

    def _over(self, port: RtmfpPort, machine: FlowEnd) -> None:
        if machine.transport.cut_short:
            self.on_cut_short(machine)
        gevent.spawn_later(FAREWELL, self._close, port)

    def _close(self, port: RtmfpPort) -> None:
        self._ports.pop(port, None)
        port.close()

    def _tick(self) -> None:
        super()._tick()
        self.tick(now())


def _say_cut_short(machine: FlowEnd) -> None:
    transport = machine.transport
    log.warning("not all has arrived at %s:%d: %s", *transport.peer_address, transport.cut_short)
