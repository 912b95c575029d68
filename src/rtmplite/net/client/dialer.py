"""Opens connections for the machines of relays, and serves them."""

import logging
import os
import ssl
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import gevent
from gevent import socket

from rtmplite.errors import LocalError, RemoteError
from rtmplite.net import admitted
from rtmplite.net.client.http_tunnel import HttpTunnel
from rtmplite.net.clock import now
from rtmplite.net.rtmfp_port import RtmfpPort
from rtmplite.net.tcp_connections import Socket, TcpConnections
from rtmplite.net.tls import Tls, client_context
from rtmplite.relay.session import ChunkSession, FlowSession
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.rtmfp.netconnection.client import FlowClient
from rtmplite.rtmfp.netconnection.connection import FlowEnd
from rtmplite.rtmfp.p2p.peers import Peers
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmp.client import Target

log = logging.getLogger(__name__)

TIMEOUT: Final = 10.0  # s, for a connection to stand
FAREWELL: Final = 2.0  # s for the last messages to arrive, repeated if they are lost
LOOK: Final = 0.01  # s between looks whether they have

_IN_URIS: Final = "%:/?#[]@!$&'()*+,;="  # what RFC 3986 §2.1, §2.2 let stand, besides letters


def dial(machine: FlowClient) -> tuple[RtmfpPort, Peers, bytes]:
    """Begin to connect `machine` to its target; gives its port, its peers and its peer id.

    The machine is told of the session, and by `connection_lost` if there will be none; from then on
    the port serves it.  Raises OSError for a name without an address, LocalError for
    a URL that is too long to ask for.
    """
    found = _resolve(machine.target)
    # RFC 7425 §7 [new-certificate] [static-clients], RFC 7425 §5.3 [certificate-once]
    make = gevent.get_hub().threadpool.apply
    profile: FlashProfile = make(FlashProfile.client, (os.urandom,))
    port: RtmfpPort
    peers = Peers(
        machine,
        os.urandom,
        lambda stream: port.watch(stream),
        on_server=lambda: port.watch(machine),
    )
    here = "::" if any(":" in host for host, _ in found) else "0.0.0.0"
    port = RtmfpPort(here, 0, profile, peers)
    peers.endpoint = port.endpoint
    port.start()
    machine.transport.addresses = lambda: _own_addresses(found, port.address[1])
    try:
        # RFC 7425 §5.3.1 [epd-is-uri], RFC 7425 §6.1 [all-addresses]
        peers.connect(Epd(ancillary_data=_uri(machine.target)).encode(), found, now())
    except LocalError:
        port.close()
        raise
    port.flush()  # this turn may have begun before there was a watcher for its end
    return port, peers, profile.peer_id


def _uri(target: Target) -> bytes:
    """The URI in the hello to a server (RFC 7425 §6.1); escapes stay."""
    return quote(target.tc_url, safe=_IN_URIS).encode()  # RFC 7425 §6.1 [path-encoding]


def _resolve(target: Target) -> list[Address]:
    """All addresses of a server (RFC 7425 §6.1).  Raises OSError."""
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_DGRAM)
    # RFC 7425 §6.1 [all-addresses]
    return list(dict.fromkeys((str(address[0]), target.port) for *_, address in found))


def _own_addresses(servers: Iterable[Address], port: int) -> list[Address]:
    """Our addresses on the interfaces to the servers; nothing is sent: RFC 7425 §5.3.3."""
    own = []
    for host, server_port in servers:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((host, server_port))
            except OSError:
                continue
            own.append((probe.getsockname()[0], port))  # RFC 7425 §5.3.3 [all-interfaces]
    return own


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

    def dial_admitted(self, admits: admitted.Admits, machine: ChunkSession | FlowSession) -> None:
        """Do the same, at an address that the operator admits, and by TCP alone.

        Own design: the same holds for a server that this one redirects us to.
        """
        if isinstance(machine, ChunkSession) and not machine.target.by_http:
            connect = partial(admitted.connect, admits=admits, timeout=TIMEOUT)
            gevent.spawn(self._dial_by, connect, machine)
        else:
            gevent.spawn(machine.transport.connection_lost, now(), "by RTMP or RTMPS alone")

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
        def connect(*address: Any) -> socket.socket:
            if machine.target.by_http:
                return HttpTunnel(machine.target, TIMEOUT).socket
            return socket.create_connection(address, TIMEOUT)

        self._dial_by(connect, machine)

    def _dial_by(self, connect: Callable[[str, int], socket.socket], machine: ChunkSession) -> None:
        target = machine.target
        try:
            waiting = connect(target.host, target.port)
        except (OSError, RemoteError) as error:
            machine.transport.connection_lost(now(), getattr(error, "strerror", "") or str(error))
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
