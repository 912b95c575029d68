"""The RTMFP listener: it admits clients, and introduces them to each other or relays for them.

Applications are called in the hub, so they must not block.
"""

import ipaddress
import logging
import os
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import gevent

from rtmplite.errors import LocalError
from rtmplite.net import addresses
from rtmplite.net.clock import now
from rtmplite.net.connection_limit import ConnectionLimit
from rtmplite.net.rtmfp_port import RtmfpPort
from rtmplite.net.server.settings import PEER_MODES, RtmfpSettings
from rtmplite.rtmfp.crypto.certificate import Certificate
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.rtmfp.endpoint.endpoint import DEFAULT_LIMITS, Endpoint
from rtmplite.rtmfp.endpoint.endpoint_listener import EndpointListener
from rtmplite.rtmfp.endpoint.limits import StartupLimits
from rtmplite.rtmfp.endpoint.session_table import ALL_IDS
from rtmplite.rtmfp.netconnection.connection import FlowEnd
from rtmplite.rtmfp.netconnection.server import RtmfpServerConnection
from rtmplite.rtmfp.p2p.introducer import Introducer
from rtmplite.rtmfp.p2p.peer_relay import AGAIN, SESSIONS, PeerRelays, RelayEndpoint
from rtmplite.rtmfp.session.limits import SessionBudget
from rtmplite.rtmfp.session.session import SessionListener
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmfp.wire.startup_chunks import InitiatorHello

if TYPE_CHECKING:
    from rtmplite.rtmfp.endpoint.initiator import Opening
    from rtmplite.rtmfp.session.session import Session

log = logging.getLogger(__name__)

CLOSED: Final = "NetConnection.Connect.Closed"
FAREWELL: Final = 0.5  # s for all clients together to hear that everything stops
LOOK: Final = 0.01  # s between looks whether they have heard it

FIGURES: Final = (
    *("sessions", "unproven", "closing", "openings", "keyings", "flows"),
    *("buffered", "reassemblies", "relayed", "ignored", "invalid", "evicted"),
)
NO_FIGURES: Final = dict.fromkeys(FIGURES, 0)

MakeConnection = Callable[[Address], RtmfpServerConnection]

_LIMITS: Final = StartupLimits(sessions=SESSIONS, unproven=SESSIONS)


@dataclass(frozen=True, slots=True)
class PeerConnectivity:
    """Says how the clients of a server reach each other by RTMFP.

    The server introduces them, or relays between them, or both, or neither.  `relay_host` is the
    relay's address for clients, if it is not that of the listener.
    """

    introduces: bool = True
    relays: bool = False
    relay_host: str | None = None


INTRODUCED: Final = PeerConnectivity()


@dataclass(frozen=True, slots=True)
class OtherServers:
    """Names other servers for clients: for all if `refers`, else while this one is full."""

    addresses: tuple[Address, ...] = ()
    refers: bool = False


NO_OTHER_SERVERS: Final = OtherServers()


@dataclass(frozen=True, slots=True)
class Asked:
    """The hello by which a client of `apps` at `source` looks for a peer: RFC 7016 §3.5.1.6."""

    epd: bytes
    tag: bytes
    source: Address
    apps: Sequence[str]


def peer_connectivity(settings: RtmfpSettings) -> PeerConnectivity:
    """Read how clients reach each other.  Raises LocalError for wrong options."""
    way = settings.rtmfp_peers
    if way not in PEER_MODES:
        raise LocalError(f"--rtmfp-peers {way} is none of {', '.join(PEER_MODES)}")
    host = settings.rtmfp_relay_host
    if host is not None:
        _resolved(host, 0, "--rtmfp-relay-host", socket.AI_NUMERICHOST)
    return PeerConnectivity(way in ("introduce", "both"), way in ("relay", "both"), host)


def other_servers(settings: RtmfpSettings) -> OtherServers:
    """Read the addresses of other servers for clients.  Raises LocalError for a wrong address."""
    all_to, too_many_to = settings.rtmfp_redirect_to, settings.rtmfp_overflow_to
    name = "--rtmfp-redirect-to" if all_to is not None else "--rtmfp-overflow-to"
    found: list[Address] = []
    for each in (all_to or too_many_to or "").split(","):
        if each:
            found += _resolved(*addresses.parse(each), name)
    if (all_to is not None or too_many_to is not None) and not found:
        raise LocalError(f"{name} names no server")
    return OtherServers(tuple(dict.fromkeys(found)), all_to is not None)


def _resolved(host: str, port: int, option: str, flags: int = 0) -> list[Address]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM, flags=flags)
    except OSError as error:
        raise LocalError(f"{option} {host}: {error.strerror}") from None
    return [(str(address[0]), port) for *_, address in found]


class Relay:
    """The relay endpoints of a server that listens at `host`.

    Clients reach them at `told`; without it at `host` or, if that is a wildcard, at the address of
    the interface that leads to the client.  All share the server's `budget`.
    """

    def __init__(
        self,
        host: str,
        told: str | None,
        connection_of: Callable[[bytes], RtmfpServerConnection | None],
        budget: SessionBudget,
    ) -> None:
        self._host, self._told, self._budget = host, told, budget
        self._connection_of = connection_of
        self.peer_relays = PeerRelays(connection_of, self._make)
        self._reminding: gevent.Greenlet[[], None] | None = None

    def start(self) -> None:
        """Begin to remind the endpoints that wait for an answer."""
        self._reminding = gevent.spawn(self._remind)

    def stop(self) -> None:
        """Close all ports."""
        if self._reminding is not None:
            self._reminding.kill()
        self.peer_relays.stop(now())

    def forget(self, session: "Session") -> None:
        """Remove the relay endpoint of a client whose session has ended."""
        self.peer_relays.forget(Certificate.parse(session.far_certificate).fingerprint, now())

    def _remind(self) -> None:
        while True:
            gevent.sleep(AGAIN)
            self.peer_relays.remind()

    def _make(self, relay: RelayEndpoint) -> "_Place":
        # RFC 7425 §4.3.3.2: a hello for anything but its fingerprint is for another endpoint
        profile = FlashProfile(os.urandom, accepts_ancillary_data=False)
        port = RtmfpPort(self._host, 0, profile, relay, limits=_LIMITS, budget=self._budget)
        port.start()
        connection = self._connection_of(relay.client)
        client = None if connection is None else connection.peer_address
        host = self._told or _here(port.address[0], client)
        return _Place(port, (host, port.address[1]))


class _Place:
    """A port of a relay endpoint, as `peer_relay.Place` wants it."""

    def __init__(self, port: RtmfpPort, address: Address) -> None:
        self.endpoint, self.address = port.endpoint, address
        self._port = port

    def close(self) -> None:
        self._port.close()


def _here(host: str, client: Address | None) -> str:
    """Our address towards a client; asking the system for it sends nothing."""
    if client is None or not ipaddress.ip_address(host).is_unspecified:
        return host
    family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(client)
        return str(probe.getsockname()[0])


class RtmfpListener(EndpointListener):
    """One listening address; `make_connection` gives the machine for a caller from `(host, port)`.

    `limits` are its port's.  Clients that `connection_limit` does not admit are disconnected;
    listeners may share it.  `peer_connectivity` says how clients reach each other, `other_servers`
    to which servers all clients are sent, or those that come while there is no room.  `opened` is
    the socket of one of several processes at one address, whose session IDs are among `ids`.
    """

    def __init__(
        self,
        host: str,
        port: int,
        make_connection: MakeConnection,
        *,
        limits: StartupLimits = DEFAULT_LIMITS,
        connection_limit: ConnectionLimit | None = None,
        peer_connectivity: PeerConnectivity = INTRODUCED,
        other_servers: OtherServers = NO_OTHER_SERVERS,
        ids: range = ALL_IDS,
        opened: socket.socket | None = None,
    ) -> None:
        self.on_asked_elsewhere: Callable[[Asked], None] = lambda asked: None
        self._make_connection = make_connection
        self._limit = ConnectionLimit() if connection_limit is None else connection_limit
        # RFC 7425 §7 [ephemeral-servers]
        profile = FlashProfile.server(os.urandom)
        self._port = RtmfpPort(
            *(host, port, profile, self),
            others=other_servers.addresses,
            limits=limits,
            ids=ids,
            opened=opened,
        )
        if other_servers.addresses:  # RFC 7016 §3.5.1.7: there may be no room at any time
            self._port.endpoint.hellos.refers = lambda: other_servers.refers or self._limit.is_full
        self._introducer = None
        if peer_connectivity.introduces:
            self._introducer = Introducer(self._sessions_at, self._by_session_of, os.urandom)
        self._relay = (
            Relay(host, peer_connectivity.relay_host, self._by_peer_id, self._port.endpoint.budget)
            if peer_connectivity.relays
            else None
        )
        self._port.on_over = self._on_over
        self._sources: dict[FlowEnd, str] = {}
        self._by_session: dict[Session, RtmfpServerConnection] = {}
        self._is_open = False

    def start(self) -> None:
        """Listen.  Raises OSError if the address cannot be had."""
        self._port.start()
        if self._relay is not None:
            self._relay.start()
        self._is_open = True

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that it listens on, the real port even if 0 was asked for."""
        return self._port.address

    @property
    def connections(self) -> list[RtmfpServerConnection]:
        """All connections, in order of arrival."""
        return list(self._by_session.values())

    @property
    def figures(self) -> dict[str, int]:
        """The status figures, with the names of `FIGURES`."""
        relayed = 0 if self._relay is None else self._relay.peer_relays.clients
        return figures(self._port.endpoint, relayed)

    def stop(self, drain: float = 0.0, reconnect_to: str | None = None) -> None:
        """Tell every client, wait, and close, as `RtmpListener.stop`; a second call: nothing."""
        if not self._is_open:
            return
        self._is_open = False
        clients = self.connections if drain else []
        asked = [each for each in clients if each.request_reconnect(reconnect_to)]
        end = now() + drain
        while now() < end and not all(each.closed for each in asked):
            gevent.sleep(LOOK)
        end = now() + FAREWELL
        for connection in self.connections:
            if now() >= end:
                break  # of thousands, some hear of the end of their session alone
            connection.close(now(), "server stopped", CLOSED)
        while self._by_session and now() < end:
            gevent.sleep(LOOK)
        if self._relay is not None:
            self._relay.stop()
        self._port.close()

    def on_session(
        self, session: "Session", opening: "Opening | None", now: float
    ) -> SessionListener | None:
        """Admit a client, if there is room for it."""
        host = session.address[0]
        if not self._is_open or not self._limit.admits(host):
            return None
        connection = self._make_connection(session.address)
        connection.transport.attach(session)
        if self._relay is not None:
            connection.peer_relays = self._relay.peer_relays
        self._sources[connection] = host
        self._by_session[session] = connection
        self._port.watch(connection)
        return connection.transport.incoming

    def on_introduction(
        self, session: "Session", asker: Address, now: float
    ) -> Iterable[Address] | None:
        """Give the other addresses of a client to a peer that may know them: RFC 7425 §5.4.1."""
        introducer = self._introducer
        return None if introducer is None else introducer.addresses(session, asker, now)

    def on_unknown_peer(self, hello: InitiatorHello, source: Address, now: float) -> None:
        """Pass on a client's question for a peer that may be at another process."""
        if self._introducer is not None and (apps := self._introducer.apps_of(source)):
            asked = Asked(hello.endpoint_discriminator, hello.tag, source, apps)
            self.on_asked_elsewhere(asked)

    def introduce(self, asked: Asked, now: float) -> None:
        """Introduce a client of another process to one here: RFC 7016 §3.5.1.6."""
        introducer = self._introducer
        if introducer is None or not self._is_open:
            return

        def judge(session: "Session") -> Iterable[Address] | None:
            return introducer.addresses_for(session, asked.source, asked.apps, now)

        self._port.introduce(InitiatorHello(asked.epd, asked.tag), asked.source, judge)

    def addresses_of(self, epd: bytes, now: float) -> Iterable[Address]:
        """Give the address of the relay endpoint that a peer asks for."""
        return () if self._relay is None else self._relay.peer_relays.addresses_of(epd)

    def _sessions_at(self, address: Address) -> "Iterable[Session]":
        found = self._port.endpoint.table.at(address)
        return [held.session for held in found if held.is_open and held.is_proven]

    def _by_session_of(self, session: "Session") -> RtmfpServerConnection | None:
        return self._by_session.get(session)

    def _by_peer_id(self, peer_id: bytes) -> RtmfpServerConnection | None:
        held = self._port.endpoint.table.reachable(peer_id)
        return None if held is None else self._by_session.get(held.session)

    def _on_over(self, connection: FlowEnd) -> None:
        """Make room for another one."""
        self._limit.leaves(self._sources.pop(connection))
        for session, each in list(self._by_session.items()):
            if each is connection:
                del self._by_session[session]
                if self._relay is not None:
                    self._relay.forget(session)
        transport = connection.transport
        if transport.aborted and transport.reason != "server stopped":
            log.debug("%s:%d has gone: %s", *transport.peer_address, transport.reason)


def figures(endpoint: Endpoint, relayed: int = 0) -> dict[str, int]:
    """The figures of `FIGURES`, the last three since the start; `relayed`: clients."""
    open_ones = [held for held in endpoint.table if held.is_open]
    sessions = [held.session for held in open_ones]
    return {
        "sessions": len(sessions),
        "unproven": sum(not held.is_proven for held in open_ones),
        "closing": len(endpoint.table) - len(sessions),
        "openings": len(endpoint.openings),
        "keyings": endpoint.keyings_in_work,
        "flows": sum(len(each.send_flows) + len(each.recv_flows) for each in sessions),
        "buffered": endpoint.budget.used,
        "reassemblies": endpoint.packets.reassembling,
        "relayed": relayed,
        "ignored": endpoint.ignored.total(),
        "invalid": endpoint.invalid,
        "evicted": endpoint.budget.evicted,
    }
