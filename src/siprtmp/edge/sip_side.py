"""The SIP half of the gateway: one stack with registrar, proxy, and the calls of RTMP clients.

Own design: it connects the calls of `siprtmp.calls` to the services of `p2psip`.
"""

import os
import ssl
from collections.abc import Collection, Sequence

from p2psip.errors import LocalError, RemoteError
from p2psip.net import websocket
from p2psip.net.clock import monotonic
from p2psip.net.driver import SipDriver, SipPorts
from p2psip.net.local_network import LocalNetwork
from p2psip.net.locator import ServerLocator
from p2psip.net.media.relayed_ports import PASSWORD, Relays
from p2psip.net.public_address import PublicAddress
from p2psip.net.tls import TlsContexts, client_context, names_in, server_context
from p2psip.server.domain_server import DomainServer, DomainSettings
from p2psip.server.element import Acceptor
from p2psip.server.port_shares import PortShare
from p2psip.server.proxy import Target
from p2psip.server.users import UserStore
from p2psip.sip.address import Address
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.transaction.flow import LOCAL, rate_limit_key
from p2psip.ua.registering.registration import Registration, RegistrationHandler
from p2psip.ua.registering.registrations import Registrations
from p2psip.ua.requests.digest_client import Login
from rtmplite.live.streams import Registry
from rtmplite.net.addresses import written
from rtmplite.net.server.settings import TlsSettings
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServedClient
from siprtmp import __version__
from siprtmp.calls import quality
from siprtmp.calls.access.admission import Admission, Admitted, Holder
from siprtmp.calls.access.client_origin import ClientOrigin
from siprtmp.calls.access.name_rights import NameRights
from siprtmp.calls.call import CallContext
from siprtmp.calls.call_app import CallApplication
from siprtmp.calls.conference.room_app import RoomApplication
from siprtmp.calls.home import EXTENSIONS
from siprtmp.calls.rich.sip_app import Identity, SipApplication
from siprtmp.calls.routes import Routes
from siprtmp.calls.trunks import LINE_PARAM, Trunks
from siprtmp.edge.call_limits import tolls
from siprtmp.edge.location import LocationLog, open_location
from siprtmp.edge.media_side import MediaSide
from siprtmp.edge.stun_side import StunSide
from siprtmp.operation.arguments import ConfigError, needs_extra
from siprtmp.operation.audit_log import AuditLog
from siprtmp.operation.logs import Log
from siprtmp.settings.table import SipSettings, is_loopback

FEW = 100  # transactions, as of phones that register again
USER_AGENT = f"siprtmp/{__version__}"


class SipSide:
    """The SIP half: stack, domain services, lines, and the ports of media.

    It is the `SipHome` and the `CallHome` of what it holds.
    """

    def __init__(
        self,
        settings: SipSettings,
        users: UserStore | None,
        admission: Admission,
        log: Log,
        registry: Registry,
    ) -> None:
        self._settings, self._admission, self._log = settings, admission, log
        at = settings.listeners
        if at.ws and not websocket.AVAILABLE:
            raise ConfigError(needs_extra("--ws", "web"))
        self._contexts = _contexts(settings)
        first, *also = at.sip
        ports = SipPorts(*first, also=also, sips=at.sips, ws=at.ws)
        hosts = (host for _, (host, _) in at.of_sip())
        beside = next((each for each in hosts if (":" in each) != (":" in first[0])), None)
        network = LocalNetwork(ports.address[0], settings.network.external_ip, beside)
        location = LocationLog(log)
        self._location = open_location(settings.process, location)
        self.server = server = DomainServer(
            _served(settings, ports, network),
            os.urandom,
            users=users,
            location=self._location,
            tell=location.contact,
        )
        self.stack = stack = server.stack
        self.agent = server.agent
        self.registrar, self.proxy, self._domains = server.registrar, server.proxy, server.domains
        self.tolls = tolls(settings, self._domains)
        self.media = self._make_media(ports.address[0], network)
        self.context = CallContext(self.agent, self.media, os.urandom, log, self.tolls)
        self.rights = self._make_rights()
        self.lines = SipApplication(self, keep_first=settings.keep_first_line)
        self.names = CallApplication(self)
        self.rooms = RoomApplication(self, settings.calls.room, registry)
        self._origin = ClientOrigin(self.lines.host)
        if server.verifier is not None:
            server.verifier.client_host = self._origin
        self.endpoint = element = server.element
        element.route, element.judge = self._route, self.tolls
        element.is_trusted_user = self._is_caller
        element.observer = AuditLog(self.registrar, log, self.tolls.answered, self._origin)
        self._locations = locations = _locations(settings.calls.outbound_proxy, ports.transports)
        self._registrations = Registrations()
        self.trunks = trunks = Trunks.of(settings.trunk, stack, log)
        trunks.homes, trunks.is_here = self._domains, self._is_here
        element.called = trunks.contact_for
        self.context.trunks, self.context.share = trunks, self._share
        self.routes = Routes(settings.route, self, self._domains, LINE_PARAM)
        self.driver = SipDriver(stack, ports, locate=locations.flows, tls=self._contexts)
        self.driver.serve(server)
        self.driver.drive(self._registrations)
        self.driver.run(trunks.start, stack, os.urandom, self._registrations, monotonic())
        self._public = self._ask_stun(network)
        self._relays = self._use_turn(network)

    def _make_media(self, host: str, network: LocalNetwork) -> MediaSide:
        media, timeout = self._settings.media, self._settings.calls.media_timeout
        return MediaSide(media, timeout, host, network, self._phone_hosts, self._log)

    def _make_rights(self) -> NameRights:
        own = self._settings.trunk, self._settings.calls.room
        return NameRights(self._admission, self._domains, self._is_bound, *own)

    # -- SipHome and CallHome -----------------------------------------------------------

    @property
    def caller(self) -> Address:
        """From of calls placed for stock tools: RFC 3261 §8.1.1.3."""
        text = self._settings.calls.call_from
        return Address.parse(text) if text else Address(Uri("sip", "call", host=self._domain_host))

    def _is_caller(self, uri: Uri) -> bool:
        """Whether `uri` is the caller of stock tools; rich clients have proved their identities."""
        return self.canonical(uri) == self.canonical(self.caller.uri)

    def contact(self, user: str, line: str) -> Uri:
        """A Contact that leads back here, and names the line it belongs to: RFC 3261 §8.1.1.8."""
        contact = self.stack.contact(user or None, self._locations.transport)
        token = _token(line)
        return contact.with_params(**{LINE_PARAM: token}) if token else contact

    def register(
        self,
        aor: Address,
        contact: Uri,
        login: Login,
        owner: RegistrationHandler,
        host: str,
    ) -> Registration:
        """A registration at the domain of `aor`, for a client at this host: RFC 3261 §10.2."""
        registration = Registration(
            self.stack, aor, contact, aor.uri, owner, os.urandom, login=login
        )
        self._registrations.add(registration)
        self._origin.registers(registration.call_id, host)
        return registration

    def unregister(self, registration: Registration, now: float) -> None:
        """Take a registration back, and drive it no longer: RFC 3261 §10.2.2."""
        registration.close(now)
        self._registrations.discard(registration)

    def is_local_domain(self, uri: Uri) -> bool:
        """Whether we answer for the host of `uri`: RFC 3261 §16.5."""
        return self._domains.of(uri) is not None

    def may_use(self, connection: NetConnection, query: str) -> bool:
        """Whether a client may place and take calls."""
        host = connection.peer_address[0]
        verdict = self._admission.judge(host, connection.tc_url, query, monotonic())
        if verdict is Admitted.NO:
            self._log.event("login-refused", source=host, rtmp=connection.id, app=connection.app)
        return verdict is Admitted.YES

    def canonical(self, uri: Uri) -> Identity:
        """User and domain, the port only where the domain is not ours: RFC 3261 §10.3."""
        aor = self._domains.address_of_record(uri)
        return (uri.user or "", uri.host.lower(), uri.port) if aor is None else (*aor, None)

    def holder_of(self, name: str) -> Holder | None:
        """The holder of the stream or the line with this name, None if nobody has it."""
        return self.names.holder_of(name) or self.lines.holder_of(name)

    def payer(self, client: ServedClient, identity: Uri | None, query: str) -> str:
        """The key that a client's calls are counted under, see `admission`."""
        aor = self._domains.address_of_record(identity) if identity is not None else None
        return self._admission.payer(client.host, aor, client.tc_url, query)

    # -- the rest -----------------------------------------------------------------------

    def status(self) -> dict[str, object]:
        """Figures of the SIP side."""
        counters = self.stack.counters
        return {
            "calls": len(self.context.calls),
            "calls_transcoding": sum(
                bool(call.statistics.transcodes) for call in self.context.calls
            ),
            **quality.summary(self.context.calls),
            "media_unsuitable": self.context.unsuitable,
            **self.media.figures,
            "transactions": self.stack.transactions,
            "dialogs": self.agent.dialogs,
            "proxied": len(self.proxy),
            "proxied_dialogs": len(self.proxy.dialogs),
            "registrations": self.registrar.count(monotonic()),
            **self.trunks.status(),
            "lines": len(self.lines),
            "names": len(self.names),
            "room_members": len(self.rooms),
            "media_legs": self.media.sessions,
            "sip_connections": self.driver.connections,
            "sip_malformed": counters.malformed,
            "sip_repeated": counters.repeated,
        }

    @property
    def is_silent(self) -> bool:
        """Whether there is no call, and fewer than `FEW` transactions."""
        return not self.media.sessions and self.stack.transactions < FEW

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
        """BYE, CANCEL or refuse every call: RFC 3261 §15."""
        now = monotonic()
        for call in list(self.context.calls):
            call.drop(now, "shutdown")
        self.trunks.stop(now)
        self.driver.wake()

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
        owner = StunSide(self.stack, network, ports, self._moved, self._log)
        return PublicAddress(self.driver.udp, settings.stun, owner)

    def _use_turn(self, network: LocalNetwork) -> Relays | None:
        text, password = self._settings.network.turn, os.environ.get(PASSWORD, "")
        if text is None:
            return None
        if not password:
            raise ConfigError(f"--turn: its password is missing in the environment, {PASSWORD}")
        try:
            return Relays(text, password, network, self.media.prepared, self._without_relay)
        except LocalError as error:
            raise ConfigError(f"--turn {error}") from None

    def _without_relay(self, reason: str) -> None:
        self._log.warning("turn-unusable", reason=reason)

    def _moved(self, host: str, port: int) -> None:
        self.driver.run(self._registrations.move, host, port, monotonic())

    def _is_bound(self, uri: Uri) -> bool:
        """Whether a phone has registered under this address."""
        bound = self.registrar.bindings(uri, monotonic())
        return any(not self.stack.is_ours(binding.contact.uri) for binding in bound)

    def _is_here(self, uri: Uri, now: float) -> bool:
        """Whether a phone or a client is here under this address."""
        return self.lines.host(uri) is not None or bool(self.registrar.bindings(uri, now))

    def forward(self, server: ServerHandle, targets: Sequence[Target], now: float) -> None:
        """Send an INVITE on by the proxy: RFC 3261 §16.6."""
        self.proxy.check(server.request)
        self.endpoint.forward(server, targets, now)

    def is_proven(self, server: ServerHandle, now: float) -> bool:
        """Whether the sender of an INVITE cannot have forged its address.

        It came by a connection, from this machine, from a trunk, or from where a phone of ours has
        registered.
        """
        flow = server.flow
        host = flow.remote[0]
        if flow.transport != "UDP" or is_loopback(host) or self.trunks.is_at(host):
            return True
        return self.registrar.has_host(host, now)

    def _share(self, server: ServerHandle, now: float) -> PortShare | None:
        """The share of ports for a call that comes from elsewhere: see `port_shares`."""
        host = server.flow.remote[0]
        if server.flow.transport == LOCAL or self.trunks.is_at(host):
            return None
        is_known = self.is_proven(server, now)
        return self.media.shares.of(rate_limit_key(host), is_known=is_known)

    def _phone_hosts(self, user: Uri, now: float) -> Collection[str]:
        """The hosts that the phones of a local user registered from."""
        return {binding.flow.remote[0] for binding in self.registrar.bindings(user, now)}

    @property
    def _domain_host(self) -> str:
        """A domain that others reach us by; `localhost` would mean the callee's own machine."""
        domain = self._settings.calls.domain
        return domain[0] if domain else self.media.media_host

    def _route(self, request: Request) -> Acceptor | None:
        """The route of the operator for a request, or else who is known here by its name."""
        return self.routes.find(request) or self.find_here(request)

    def find_here(self, request: Request) -> Acceptor | None:
        """The line of a rich client, the room, or the name of a stock tool a request is for."""
        return self.lines.find(request) or self.rooms.find(request) or self.names.find(request)


def _served(settings: SipSettings, ports: SipPorts, network: LocalNetwork) -> DomainSettings:
    return DomainSettings(
        listeners=ports.listeners,
        domains=settings.domains,
        distinct=bool(settings.calls.domain),
        nat=settings.media.nat,
        advertised=settings.network.external_ip,
        inside=network.own_address,
        t1=settings.calls.sip_t1 / 1000,
        user_agent=USER_AGENT,
        answer_timeout=settings.calls.answer_timeout,
        extensions=EXTENSIONS,
    )


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


def _token(text: str) -> str:
    """A line's id as a URI parameter: only characters that need no escaping."""
    return "".join(letter for letter in text if letter.isascii() and letter.isalnum())
