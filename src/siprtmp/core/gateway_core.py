"""The gateway without sockets: domains, calls and applications, composed from the settings.

Own design: the one place where the gateway's parts are connected.  `SipSide` gives it sockets and
the system's clock; the tests give it a network and a clock in memory, and so try what operators
run.  It is the `SipHome`, the `CallHome` and the `RouteHome` of the applications that it holds.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from zlib import crc32

from p2psip.server.domain_server import DomainServer, DomainSettings
from p2psip.server.domains import Aor
from p2psip.server.element import Acceptor
from p2psip.server.location import SharedLocation
from p2psip.server.port_shares import PortShare
from p2psip.server.proxy import Target
from p2psip.server.registrar import Binding
from p2psip.server.users import UserStore
from p2psip.sip.address import Address
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.request_origin import origin
from p2psip.stack.routing import Listener, is_loopback
from p2psip.stack.stack import ServerHandle
from p2psip.transaction.flow import LOCAL, WEB, Flow, rate_limit_key
from p2psip.ua.registering.registration import Registration, RegistrationHandler
from p2psip.ua.registering.registrations import Registrations
from p2psip.ua.requests.digest_client import Login
from rtmplite.live.streams import Registry
from rtmplite.rtmp.netconnection import Application, NetConnection
from rtmplite.rtmp.netstream import ServedClient
from siprtmp import __version__
from siprtmp.calls import srtp_use
from siprtmp.calls.access.admission import Admission, Admitted, Holder
from siprtmp.calls.access.client_origin import ClientOrigin
from siprtmp.calls.access.name_rights import NameRights
from siprtmp.calls.anchored.anchors import Anchors
from siprtmp.calls.call import Call, CallContext, MediaEdge
from siprtmp.calls.call_app import CallApplication
from siprtmp.calls.conference.room_app import RoomApplication
from siprtmp.calls.home import EXTENSIONS
from siprtmp.calls.mixed.mixed_call import MixedApplication, MixedCalls
from siprtmp.calls.mixed.published_side import PublishedSides
from siprtmp.calls.named_call import is_dialled
from siprtmp.calls.neighbours import KnownHost, Neighbours, Phone
from siprtmp.calls.rich.sip_app import Identity, SipApplication
from siprtmp.calls.routes import Routes
from siprtmp.calls.srtp_use import Privacy
from siprtmp.calls.trunks import LINE_PARAM, TrunkNews, Trunks
from siprtmp.core.call_limits import tolls
from siprtmp.core.steering import HERE
from siprtmp.operation.audit_log import AuditLog, address_of, user_and_host
from siprtmp.operation.logs import Log
from siprtmp.settings.table import SipSettings

USER_AGENT = f"siprtmp/{__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What carries messages and media, and tells the time; see `Stack` for the rest.

    `clock()` is the time in seconds that machines are given as `now`.  `transport` is the one that
    our Contacts name, None for the usual one; `location` keeps bindings.  `neighbours` are the
    other workers.
    """

    listeners: Sequence[Listener]
    media: MediaEdge
    random: Callable[[int], bytes]
    clock: Callable[[], float]
    inside: Callable[[str], str | None] = lambda peer: None
    transport: str | None = None
    location: SharedLocation | None = None
    trusting: bool = False
    neighbours: Neighbours = field(default_factory=Neighbours)


class GatewayCore:
    """Serves the domains, and the calls of RTMP clients by `applications`.

    `server` has the machines and the stack of SIP, `registrations` those of clients and trunks
    elsewhere.  `on_up` and `on_end` are told of each call, as those of `CallContext`; `on_phones`
    and `on_trunk` of registrations here, and of one at a trunk.
    """

    def __init__(
        self,
        settings: SipSettings,
        surroundings: Surroundings,
        admission: Admission,
        registry: Registry,
        log: Log,
        users: UserStore | None = None,
    ) -> None:
        self._settings, self._admission, self._log = settings, admission, log
        self._transport, self._clock = surroundings.transport, surroundings.clock
        self._random, self.media = surroundings.random, surroundings.media
        self.neighbours = surroundings.neighbours
        self.server = server = DomainServer(
            _served(settings, surroundings),
            self._random,
            users=users,
            location=surroundings.location,
            tell=self._tell,
        )
        self.stack, self.domains = server.stack, server.domains
        self.registrar, self.registrations = server.registrar, Registrations()
        self.tolls = tolls(settings, self.domains)
        self.context = CallContext(server.agent, self.media, self._random, log, self.tolls)
        own = settings.trunk, settings.calls.room
        self.rights = NameRights(admission, self.domains, self._is_bound, *own)
        self.lines = SipApplication(self, keep_first=settings.keep_first_line)
        self.names = CallApplication(self, registry)
        self.rooms = RoomApplication(self, settings.calls.room, registry)
        self.anchors = Anchors(self, settings.media.anchor, self._phones, self._clock)
        self.routes = Routes(settings.route, self, self.domains, registry)
        params = self.neighbours.contact_params
        self.trunks = trunks = Trunks.of(settings.trunk, self.stack, log, params)
        trunks.homes, trunks.is_here = self.domains, self._is_here
        self._set_hooks()
        self._follow_calls(registry)

    def _set_hooks(self) -> None:
        """Have the element and the calls ask here."""
        element, verifier = self.server.element, self.server.verifier
        self._origin = ClientOrigin(self._line_host, self.neighbours.origin)
        if verifier is not None:
            verifier.client_host = self._origin
        element.route, element.judge, element.called = (
            self._route,
            self.tolls,
            self.trunks.contact_for,
        )
        element.is_trusted_user = self._is_caller
        element.vouches = lambda each: self.anchors.vouches(each) or self.names.vouches(each)
        element.observer = AuditLog(self.registrar, self._log, self.tolls.answered, self._origin)
        context = self.context
        context.trunks, context.share = self.trunks, self._share
        context.phone_hosts = self._phone_hosts
        neighbours = self.neighbours
        neighbours.on_line = lambda key: self.lines.log_out(key, self._clock())
        allowance = self.tolls.allowance
        allowance.tell, neighbours.open_calls = neighbours.uses, allowance.open_calls
        neighbours.on_use = lambda worker, what, user: allowance.count_elsewhere(
            worker, what, user, self._clock()
        )
        self.registrar.on_change = self._phones_changed
        neighbours.on_trunk = self._trunk_told
        for trunk in self.trunks.trunks:
            trunk.on_news = partial(self._tell_trunk, trunk.settings.name)
            if trunk.settings.register and not neighbours.is_first:
                trunk.told = TrunkNews(is_down=False)
        self.server.proxy.is_elsewhere = lambda uri: neighbours.worker_in(uri) is not None
        context.srtp, context.privacy_to = self._settings.media.srtp, self._privacy_to
        context.has_browsers = self._settings.listeners.webrtc is not None
        context.is_browser = self._is_browser

    def _follow_calls(self, registry: Registry) -> None:
        """Have calls mixed and recorded."""
        self.on_up: Callable[[Call, float], object] = lambda call, now: None
        self.on_end: Callable[[Call, str, float], object] = lambda call, reason, now: None
        self.on_phones: Callable[[], object] = lambda: None
        self.on_trunk: Callable[[str], object] = lambda name: None
        self.context.on_up, self.context.on_end = self._call_up, self._call_ended
        is_mixing = self._settings.calls.mix_calls or self._settings.may_mix
        self.mixes = MixedCalls(self.media, registry) if is_mixing else None
        self._published = PublishedSides(registry) if self._settings.records else None

    @property
    def applications(self) -> dict[str, Application]:
        """Those of RTMP, by name."""
        found: dict[str, Application] = {}
        if self.mixes is not None:
            found["mixed"] = MixedApplication(self)
        found |= {"sip": self.lines, "call": self.names}
        if self._settings.calls.room:
            found["room"] = self.rooms
        return found

    def _call_up(self, call: Call, now: float) -> None:
        self.on_up(call, now)
        if self._published is not None:
            self._published.follow(call, now)
        if self.mixes is not None and self._settings.calls.mix_calls:
            self.mixes.follow(call, now)

    def _call_ended(self, call: Call, reason: str, now: float) -> None:
        if self.mixes is not None:
            self.mixes.stop(call, now)
        if self._published is not None:
            self._published.stop(call, now)
        self.on_end(call, reason, now)

    def start(self, now: float) -> None:
        """Register the trunks: RFC 3261 §10.2."""
        self.trunks.start(self.stack, self._random, self.registrations, now)

    def hang_up_all(self, now: float) -> None:
        """BYE, CANCEL or refuse every call: RFC 3261 §15."""
        for call in list(self.context.calls):
            call.drop(now, "shutdown")
        self.trunks.stop(now)

    def _tell(self, what: str, aor: Aor, contact: Address) -> None:
        """Log that a registered phone cannot be called any more: RFC 5626 §7."""
        user = user_and_host(Uri("sip", aor[0], None, aor[1]))
        self._log.event(what, user=user, contact=address_of(contact.uri))

    # -- SipHome, CallHome and RouteHome ------------------------------------------------

    @property
    def caller(self) -> Address:
        text = self._settings.calls.call_from
        return Address.parse(text) if text else Address(Uri("sip", "call", host=self._domain_host))

    def _is_caller(self, uri: Uri) -> bool:
        """Whether `uri` is the caller of stock tools; rich clients have proved their identities."""
        return self.canonical(uri) == self.canonical(self.caller.uri)

    def contact(self, user: str, line: str) -> Uri:
        contact = self.stack.contact(user or None, self._transport)
        contact, token = contact.with_params(**self.neighbours.contact_params), _token(line)
        return contact.with_params(**{LINE_PARAM: token}) if token else contact

    def register(
        self,
        aor: Address,
        contact: Uri,
        login: Login,
        owner: RegistrationHandler,
        host: str,
    ) -> Registration:
        registration = Registration(
            self.stack, aor, contact, aor.uri, owner, self._random, login=login
        )
        self.registrations.add(registration)
        self._origin.registers(registration.call_id, host)
        self.neighbours.registers(registration.call_id, host)
        return registration

    def unregister(self, registration: Registration, now: float) -> None:
        registration.close(now)
        self.registrations.discard(registration)

    def is_local_domain(self, uri: Uri) -> bool:
        return self.domains.of(uri) is not None

    def may_use(self, connection: NetConnection, query: str) -> bool:
        host = connection.peer_address[0]
        verdict = self._admission.judge(host, connection.tc_url, query, self._clock())
        if verdict is Admitted.NO:
            self._log.event("login-refused", source=host, rtmp=connection.id, app=connection.app)
        return verdict is Admitted.YES

    def canonical(self, uri: Uri) -> Identity:
        """User and domain, the port only where the domain is not ours: RFC 3261 §10.3."""
        aor = self.domains.address_of_record(uri)
        return (uri.user or "", uri.host.lower(), uri.port) if aor is None else (*aor, None)

    def identity(self, text: str) -> Identity:
        """The identity of a user@domain.  Raises RemoteError."""
        return self.canonical(Uri.parse(f"sip:{text}"))

    @property
    def names_counted(self) -> int:
        """The number of names in use, without those that a lower worker has as well."""
        mine, names = self.neighbours.index, self.neighbours.names
        return sum(all(each.worker > mine for each in names(name)) for name in self.names)

    def holder_of(self, name: str) -> Holder | None:
        own = self.names.holder_of(name) or self.lines.holder_of(name)
        return own or self.neighbours.holder_of(name)

    def payer(self, client: ServedClient, identity: Uri | None, query: str) -> str:
        aor = self.domains.address_of_record(identity) if identity is not None else None
        return self._admission.payer(client.host, aor, client.tc_url, query)

    # -- what they ask ------------------------------------------------------------------

    def _is_bound(self, uri: Uri) -> bool:
        return any(not phone.is_own for phone in self._phones(uri, self._clock()))

    def _is_here(self, uri: Uri, now: float) -> bool:
        """Whether a phone or a client is here under this address."""
        return self._line_host(uri) is not None or bool(self._phones(uri, now))

    def _line_host(self, uri: Uri) -> str | None:
        """The host of the client that is logged in as `uri`, at any worker."""
        elsewhere = self.neighbours.line(self.canonical(uri))
        return self.lines.host(uri) or (elsewhere.host if elsewhere is not None else None)

    def _phones(self, uri: Uri, now: float) -> Sequence[Phone]:
        """The phones of a user, and the clients of ours that have registered."""
        if self.neighbours.is_first:
            return self._hosts(self.registrar.bindings(uri, now))
        aor = self.domains.address_of_record(uri)
        return () if aor is None else self.neighbours.phones(aor)

    def _hosts(self, bindings: Sequence[Binding]) -> list[Phone]:
        is_ours, flows = self.stack.is_ours, [each.flow for each in bindings]
        owns = [is_ours(each.contact.uri) for each in bindings]
        return [
            Phone(flow.transport, flow.remote[0], is_own)
            for flow, is_own in zip(flows, owns, strict=True)
        ]

    def _phones_changed(self, user: Aor, bindings: Sequence[Binding]) -> None:
        self.on_phones()
        if self.neighbours.count > 1:
            proven = [each for each in bindings if each.is_proven]
            self.neighbours.has_phones(user, self._hosts(proven))

    def forward(self, server: ServerHandle, targets: Sequence[Target], now: float) -> None:
        self.server.proxy.check(server.request)
        self.server.element.forward(server, targets, now)

    def is_proven(self, server: ServerHandle, now: float) -> bool:
        """Whether the sender of an INVITE cannot have forged its address.

        It came by a connection, from this machine, from a trunk, or from where a phone of ours has
        registered.
        """
        host = server.flow.remote[0]
        if server.flow.transport != "UDP" or is_loopback(host):
            return True
        known = self.known(host, now)
        return known.is_trunk or known.has_phone

    def known(self, host: str, now: float) -> KnownHost:
        """What is known of a host that calls, here or at the first worker."""
        if told := self.neighbours.known(host):
            return told
        return KnownHost(self.registrar.has_host(host, now), self.trunks.is_at(host))

    def _share(self, server: ServerHandle, now: float) -> PortShare | None:
        """The share of ports for a call that comes from elsewhere: see `port_shares`."""
        host = server.flow.remote[0]
        if server.flow.transport == LOCAL or self.known(host, now).is_trunk:
            return None
        is_known = self.is_proven(server, now)
        return self.media.shares.of(rate_limit_key(host), is_known=is_known)

    def _phone_hosts(self, user: Uri, now: float) -> Collection[str]:
        """The hosts that the phones of a local user registered from."""
        return {phone.host for phone in self._phones(user, now)}

    def _is_browser(self, user: Uri, now: float) -> bool:
        """Whether the phones of a local user are all in browsers: RFC 7118 §5."""
        bound = [phone for phone in self._phones(user, now) if not phone.is_own]
        return bool(bound) and all(phone.transport in WEB for phone in bound)

    def _privacy_to(self, uri: Uri, now: float) -> Privacy:
        """The readers of a message on its way to a URI: RFC 3261 §26.2.2.

        A domain that DNS does not resolve is asked for at `--outbound-proxy`, by its transport.
        """
        bound = self._phones(uri, now)
        if bound or self.domains.of(uri) is not None:
            ways = [srtp_use.of_way(phone.transport, phone.host) for phone in bound]
            return min(ways, default=Privacy.HERE)
        proxy = self._settings.calls.outbound_proxy
        proxies = [] if proxy is None else [srtp_use.of_uri(Address.parse(proxy).uri)]
        return min([srtp_use.of_uri(uri), *proxies])

    @property
    def _domain_host(self) -> str:
        """A domain that others reach us by; `localhost` would mean the callee's own machine."""
        domain = self._settings.calls.domain
        return domain[0] if domain else self.media.media_host

    def _route(self, request: Request) -> Acceptor | None:
        """Find who is offered a call first: the operator's route, else as in `find_here`."""
        return self.routes.find(request) or self.find_here(request)

    def find_here(self, request: Request) -> Acceptor | None:
        """Find a rich client, else a room, else a stream of that name; phones come after it.

        Those that cannot do without us are called by us, the others by the proxy.
        """
        found = self.lines.find(request) or self.rooms.find(request) or self.names.find(request)
        return found or self.anchors.find(request)

    # -- other workers ------------------------------------------------------------------

    def worker_lost(self, worker: int, now: float) -> None:
        """Forget the calls of a worker that has ended, and the contacts of its clients."""
        self.tolls.allowance.lost(worker)
        for aor, binding in self.registrar.everything(now):
            uri = binding.contact.uri
            if self.neighbours.worker_in(uri) == worker and self.stack.is_ours(uri):
                self.registrar.remove(aor, binding, now)

    def _tell_trunk(self, name: str, news: TrunkNews) -> None:
        realms = None if news.realms is None else sorted(news.realms)
        facts = {"down": news.is_down, "addresses": sorted(news.addresses), "realms": realms}
        self.neighbours.has_trunk(name, {**facts, "proxies": [*map(str, news.proxies)]})
        self.on_trunk(name)

    def _trunk_told(self, name: str, facts: Mapping[str, Any]) -> None:
        """Take what the first worker has told of a trunk, which registers there."""
        addresses = frozenset((host, port) for host, port in facts["addresses"])
        realms = None if facts["realms"] is None else frozenset(facts["realms"])
        proxies = tuple(map(Uri.parse, facts["proxies"]))
        for trunk in self.trunks.trunks:
            if trunk.settings.name == name:
                trunk.told = TrunkNews(facts["down"], addresses, realms, proxies)

    def passes_proxy(self, request: Request, flow: Flow) -> bool:
        """Whether a request has a way beyond us, or is of a call that our proxy has forwarded.

        One that the proxy has sent on has a Via of ours.
        """
        if flow.transport == LOCAL and len(request.vias) > 1:
            return False
        bare, proxy = self.server.proxy.take_route(request), self.server.proxy
        return bool(bare.routes) or proxy.dialogs.find(bare, origin(request, flow)) is not None

    def worker_for(self, request: Request, flow: Flow) -> int:
        """The worker that takes a call or a message from elsewhere: see `Steering`.

        It finds the same as `find_here` does there.  A call that hears a file may be anywhere.
        """
        if (own := self.trunks.contact_for(request, flow)) is not None:
            request = request.replace(uri=own)
        matched = self.routes.match(request)
        if matched is not None:
            route, user = matched
            if route.stream:
                return self._worker_with(route.stream, None)
            if not route.to:
                return crc32(request.call_id.encode(errors="replace")) % self.neighbours.count
            request = request.replace(uri=route.target(user))
        if not self.is_local_domain(request.uri):
            return HERE
        if self.lines.find(request) or self.rooms.find(request):
            return HERE
        if (line := self.neighbours.line(self.canonical(request.uri))) is not None:
            return line.worker
        if request.method == "MESSAGE":
            return HERE
        return self._worker_with(request.uri.user or "", request.uri)

    def _worker_with(self, name: str, uri: Uri | None) -> int:
        """The worker that has a name; its holder must be one that may have a call to `uri`."""

        def is_for(holder: Holder | None) -> bool:
            return uri is None or self.rights.is_for(uri, holder)

        if is_dialled(name):
            return HERE
        own = self.names.waiting(name)
        is_here = own is not None and is_for(own.holder)
        others = [each for each in self.neighbours.names(name) if is_for(each.holder)]
        if not others or (own is not None and is_here and (own.is_busy or not others[0].is_busy)):
            return HERE
        return others[0].worker


def _served(settings: SipSettings, surroundings: Surroundings) -> DomainSettings:
    return DomainSettings(
        listeners=surroundings.listeners,
        domains=settings.domains,
        distinct=bool(settings.calls.domain),
        nat=settings.media.nat,
        advertised=settings.network.external_ip,
        inside=surroundings.inside,
        t1=settings.calls.sip_t1 / 1000,
        user_agent=USER_AGENT,
        trusting=surroundings.trusting,
        answer_timeout=settings.calls.answer_timeout,
        extensions=EXTENSIONS,
        mark=surroundings.neighbours.mark,
    )


def _token(text: str) -> str:
    """A line's id as a URI parameter: only characters that need no escaping."""
    return "".join(letter for letter in text if letter.isascii() and letter.isalnum())
