"""The SIP half of the gateway at its sockets: what `GatewayCore` serves, for phones on a network.

Own design: the parts and their wires are in `siprtmp.core`; here are ports, certificates, look-ups,
and the servers that tell our public address or relay media.
"""

import os
import ssl
from collections.abc import Callable, Sequence
from functools import partial

from p2psip.errors import LocalError, RemoteError
from p2psip.net.clock import monotonic
from p2psip.net.driver import PortsElsewhere, SipDriver, SipPorts
from p2psip.net.local_network import LocalNetwork
from p2psip.net.locator import ServerLocator
from p2psip.net.media.prepared_ports import MappedSocket, PreparedPorts
from p2psip.net.media.relayed_ports import PASSWORD, SECRET, Relays
from p2psip.net.public_address import PublicAddress
from p2psip.net.tls import TlsContexts, client_context, names_in, server_context
from p2psip.server.users import UserStore
from p2psip.stack.stack import Stack
from p2psip.transaction.flow import HostPort
from rtmplite.live.streams import Registry
from rtmplite.net.addresses import written
from rtmplite.net.server.settings import TlsSettings
from siprtmp.calls import quality
from siprtmp.calls.access.admission import Admission
from siprtmp.calls.neighbours import Neighbours
from siprtmp.core.gateway_core import GatewayCore, Surroundings
from siprtmp.edge.location import open_location
from siprtmp.edge.media_side import MediaSide
from siprtmp.edge.workers.sip_link import SipBranch, SipHub, neighbours_of
from siprtmp.edge.workers.sip_sockets import sip_ports
from siprtmp.edge.workers.team import Team
from siprtmp.operation.arguments import ConfigError
from siprtmp.operation.logs import Log
from siprtmp.settings.table import SipSettings

FEW = 100  # transactions, as of phones that register again


class SipSide:
    """The core of the gateway, its sockets, and the ports of media.  Raises ConfigError."""

    def __init__(
        self,
        settings: SipSettings,
        users: UserStore | None,
        admission: Admission,
        log: Log,
        registry: Registry,
        team: Team | None = None,
    ) -> None:
        self._settings, self._log = settings, log
        at, first = settings.listeners, settings.listeners.sip[0]
        self._contexts = _contexts(settings)
        given = None if team is None else team.place.sip
        ports = sip_ports(at) if given is None else given
        neighbours = Neighbours() if team is None else neighbours_of(team)
        hosts = (host for _, (host, _) in at.of_sip())
        beside = next((each for each in hosts if (":" in each) != (":" in first[0])), None)
        network = LocalNetwork(ports.address[0], settings.network.external_ip, beside)
        self._locations = locations = _locations(settings.calls.outbound_proxy, ports.transports)
        self._location = open_location(settings.process, log)
        self.media = MediaSide(
            settings.media, settings.calls.media_timeout, ports.address[0], network, log
        )
        surroundings = Surroundings(
            listeners=ports.listeners,
            media=self.media,
            random=os.urandom,
            clock=monotonic,
            inside=network.own_address,
            transport=locations.transport,
            location=self._location,
            neighbours=neighbours,
        )
        self.core = core = GatewayCore(settings, surroundings, admission, registry, log, users)
        self.driver = self._drive(ports, locations, team)
        self.driver.serve(core.server)
        self.driver.drive(core.registrations)
        if neighbours.is_first:
            self.driver.run(core.start, monotonic())
        self._public = self._ask_stun(network)
        self._relays = self._use_turn(network)

    def _drive(
        self, ports: SipPorts | PortsElsewhere, locations: ServerLocator, team: Team | None
    ) -> SipDriver:
        """Run the stack at its sockets, or at those of the first worker."""
        core, locate = self.core, locations.flows
        if team is None or core.neighbours.is_first:
            driver = SipDriver(core.stack, ports, locate=locate, tls=self._contexts)
            if team is not None:
                SipHub(team, core, driver)
            return driver
        branch = SipBranch(team, core.neighbours)
        driver = SipDriver(core.stack, ports, locate=locate, carry=branch.carry)
        branch.serve(driver, core)
        return driver

    def status(self) -> dict[str, object]:
        core, counters = self.core, self.core.stack.counters
        calls, proxy = core.context.calls, core.server.proxy
        return {
            "calls": len(calls),
            "calls_transcoding": sum(bool(call.statistics.transcodes) for call in calls),
            "calls_srtp": sum(bool(call.statistics.srtp) for call in calls),
            **quality.summary(calls),
            "media_unsuitable": core.context.unsuitable,
            **self.media.figures,
            "transactions": core.stack.transactions,
            "dialogs": core.server.agent.dialogs,
            "proxied": len(proxy),
            "proxied_dialogs": len(proxy.dialogs),
            "registrations": core.registrar.count(monotonic()),
            **(core.trunks.status() if core.neighbours.is_first else {}),
            "lines": len(core.lines),
            "names": core.names_counted,
            "room_members": len(core.rooms),
            "media_legs": self.media.sessions,
            "sip_connections": self.driver.connections,
            "sip_malformed": counters.malformed,
            "sip_repeated": counters.repeated,
        }

    @property
    def is_silent(self) -> bool:
        """Whether there is no call, and fewer than `FEW` transactions."""
        return not self.media.sessions and self.core.stack.transactions < FEW

    @property
    def addresses(self) -> dict[str, str]:
        """The listeners by name, for the ready line; those of one name are parted by a comma."""
        named = {"UDP": "sip", "TLS": "sips", "WS": "ws"}
        found: dict[str, list[str]] = {}
        for each in self.driver.ports.listeners:
            if each.transport in named:
                found.setdefault(named[each.transport], []).append(written(each.host, each.port))
        return {name: ",".join(addresses) for name, addresses in found.items()}

    def renew_certificate(self) -> None:
        """Read the certificate again; after a ConfigError the old one stays."""
        if self._contexts is not None:
            self._contexts.server, self._contexts.names = _certificate(self._settings.tls)

    def hang_up_all(self) -> None:
        self.driver.run(self.core.hang_up_all, monotonic())

    def stop(self) -> None:
        """Send the queue, and close the sockets."""
        self.driver.wake()
        if self._public is not None:
            self._public.close()
        if self._relays is not None:
            self._relays.close()
        self.media.prepared.close()
        self.driver.close()
        if self._location is not None:
            self._location.close()

    def _ask_stun(self, network: LocalNetwork) -> PublicAddress | None:
        """Ask the servers of --stun, unless the operator has said what they would."""
        settings = self._settings.network
        if not settings.stun or settings.external_ip is not None:
            return None
        ports = self.media.prepared if settings.turn is None else None
        owner = StunSide(self.core.stack, network, ports, self._moved, self._log)
        return PublicAddress(self.driver.udp, settings.stun, owner)

    def _use_turn(self, network: LocalNetwork) -> Relays | None:
        text = self._settings.network.turn
        password, secret = (os.environ.get(each, "") for each in (PASSWORD, SECRET))
        if text is None:
            return None
        if not (password or secret):
            raise ConfigError(
                f"--turn: its password is missing in the environment, {PASSWORD} or {SECRET}"
            )
        try:
            ports = self.media.prepared
            return Relays(text, password, network, ports, self._without_relay, secret)
        except LocalError as error:
            raise ConfigError(f"--turn {error}") from None

    def _without_relay(self, reason: str) -> None:
        self._log.warning("turn-unusable", reason=reason)

    def _moved(self, host: str, port: int) -> None:
        self.driver.run(self.core.registrations.move, host, port, monotonic())


class StunSide:
    """Takes the public address of the gateway into use, as the servers of --stun see it.

    The Contact of SIP, SDP, and the registrations of clients elsewhere have it whenever an answer
    brings one; until then they have the listener's own.  `on_moved(host, port)` has registrations
    follow.  `ports` are asked about too; None where media goes another way.
    """

    def __init__(
        self,
        stack: Stack,
        network: LocalNetwork,
        ports: PreparedPorts | None,
        on_moved: Callable[[str, int], object],
        log: Log,
    ) -> None:
        self._stack, self._network, self._ports = stack, network, ports
        self._on_moved, self._log = on_moved, log

    def on_address(self, address: HostPort, server: HostPort) -> None:
        self._log.event("public-address", address=written(*address), server=written(*server))
        self._network.external = address[0]
        self._stack.advertise(address)
        if self._ports is not None:
            self._ports.use(partial(MappedSocket, server=server))
        self._on_moved(*address)

    def on_silence(self, server: HostPort) -> None:
        """Say that a server does not answer; calls go on with the address known before."""
        self._log.warning("stun-silent", server=written(*server))

    def on_symmetric(self, addresses: Sequence[HostPort]) -> None:
        """Say that the router gives a socket an address for each server."""
        self._log.warning("nat-symmetric", addresses=",".join(written(*at) for at in addresses))


def _contexts(settings: SipSettings) -> TlsContexts | None:
    """The settings of TLS, None without it.  Raises ConfigError."""
    at = settings.listeners
    if not at.sips and (not at.ws or settings.tls.tls_cert is None):
        return None
    try:
        client = client_context(settings.trust.ca, insecure=settings.trust.insecure)
    except LocalError as error:
        raise ConfigError(f"--ca {error}") from None
    return TlsContexts(client, *_certificate(settings.tls))


def _certificate(settings: TlsSettings) -> tuple[ssl.SSLContext, frozenset[str]]:
    assert settings.tls_cert is not None
    try:
        context = server_context(settings.tls_cert, settings.tls_key)
        return context, names_in(settings.tls_cert)
    except LocalError as error:
        option = "key" if str(error).startswith(f"{settings.tls_key}:") else "cert"
        raise ConfigError(f"--tls-{option} {error}") from None


def _locations(proxy: str | None, transports: Sequence[str]) -> ServerLocator:
    try:
        return ServerLocator(proxy, transports)
    except RemoteError as error:
        raise ConfigError(f"--outbound-proxy {proxy}: {error}") from None
