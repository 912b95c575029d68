"""The gateway process: both worlds on one event loop.

Own design: sockets are opened first, so that machines know their addresses; then the SIP
stack, the RTMP applications and the wires between them are built, and only then does
anything listen.  Everything runs in the hub; no greenlet belongs to a call.
"""

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from p2psip.core.domains import Domains
from p2psip.core.endpoint import Acceptor, Endpoint
from p2psip.core.keyring import Login
from p2psip.core.proxy import Proxy
from p2psip.core.registrar import Registrar
from p2psip.core.registration import Registration, RegistrationOwner, Registrations
from p2psip.core.stack import Stack
from p2psip.core.ua import UserAgent
from p2psip.core.verifier import Verifier
from p2psip.errors import LocalError, RemoteError
from p2psip.net.clock import monotonic, wallclock
from p2psip.net.descriptors import MEDIA, refuse_last
from p2psip.net.driver import SipDriver, SipPorts
from p2psip.net.locator import Locations
from p2psip.net.media import MediaPort
from p2psip.net.port_pool import PortPool
from p2psip.sip.address import Address
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from rtmplite.rtmp.netconnection import NetConnection
from siprtmp import __version__, call_limits
from siprtmp.admission import Admission, Admitted
from siprtmp.alarm import Alarm
from siprtmp.call import AudioCall
from siprtmp.call_app import CallApplication
from siprtmp.config import ConfigError, Settings, load_credentials, load_users
from siprtmp.control import Control
from siprtmp.facilities import CallFacilities, Timed
from siprtmp.gathering import Gatherer
from siprtmp.leg import Leg
from siprtmp.location import LocationLog, open_location
from siprtmp.logs import Log
from siprtmp.overview import Overview
from siprtmp.rtmp_side import RtmpSide
from siprtmp.sip_app import LINE_PARAM, Identity, SipApplication
from siprtmp.state_folder import StateFolder
from siprtmp.status import ProcessFigures, Seldom, StatusServer
from siprtmp.status_door import StatusDoor
from siprtmp.witness import Witness

FEW = 100  # transactions: phones that register again
USER_AGENT = f"siprtmp/{__version__}"


class Gateway:
    """Everything one process serves.  Own design.

    `start` opens the listeners; `stop` ends calls and connections properly.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings, self.log = settings, Log("siprtmp")
        self.state = StateFolder(settings.state) if settings.state is not None else None
        users, credentials = load_users(settings), load_credentials(settings)
        self._verifier = Verifier(users, os.urandom) if users is not None else None
        self.admission = Admission(settings.allow_anonymous, users, credentials)
        self.rtmp = RtmpSide(settings, self.log, self.admission)
        self._http: StatusServer | None = None
        self._control: Control | None = None
        self._status_door = StatusDoor.of(
            settings.http, settings.domain, settings.allow_anonymous, credentials
        )
        self.sip: SipSide | None = None
        self._process = ProcessFigures()

    def start(self) -> None:
        """Open what the settings ask for.  Raises ConfigError for an address that can't be had.

        Own design.
        """
        settings = self.settings
        if settings.sip is not None:
            with _naming("--sip", settings.sip):
                self.sip = SipSide(settings, self._verifier, self.admission, self.log)
            self.rtmp.add("sip", self.sip.lines)
            self.rtmp.add("call", self.sip.names)
        self.rtmp.start()
        if settings.http is not None:
            with _naming("--http", settings.http):
                figures = Seldom(self.status)
                self._http = StatusServer(
                    settings.http, figures, self.rtmp.live, self._status_door, self.log
                )
        if self.state is not None:
            overview = Overview(self.rtmp.registry, self.rtmp.connections, self.log)
            if self.sip is not None:
                overview.calls, overview.tolls = self.sip.facilities.calls, self.sip.tolls
                overview.registrar, overview.wake = self.sip.registrar, self.sip.driver.wake
                overview.hear = self.sip.stack.receive
            self._control = Control(self.state.path, overview)

    def addresses(self) -> dict[str, tuple[str, int]]:
        """What is listened on, by name, for the ready line.  Own design."""
        out = dict(self.rtmp.addresses)
        if self.sip is not None:
            out["sip"] = self.sip.driver.address
        if self._http is not None:
            out["http"] = self._http.address
        return out

    def status(self) -> dict[str, object]:
        """Figures that return to where they were when nothing goes on.  Own design."""
        figures: dict[str, object] = {"version": __version__, **self.rtmp.status()}
        figures |= self.sip.status() if self.sip else {}
        figures |= self._process.figures()
        return figures

    def is_quiet(self) -> bool:
        """Whether nobody would notice a pause: nothing is said, shown or asked.  Own design."""
        is_silent = self.sip is None or self.sip.is_silent
        return is_silent and not self.rtmp.registry.streams

    def reload(self) -> None:
        """Read again who is served and who we are: the users and the certificate.

        Own design: each is taken as a whole or not at all, and who is here stays.
        """
        files: dict[str, Callable[[], None]] = {}
        if self._verifier is not None:
            files["users"] = self._reload_users
        if self.settings.rtmps is not None:
            files["tls-cert"] = self.rtmp.renew_certificate
        for what, renew in files.items():
            try:
                renew()
            except ConfigError as error:
                self.log.warning("not-reloaded", option=what, reason=str(error))
            else:
                self.log.event("reloaded", option=what)

    def _reload_users(self) -> None:
        users, credentials = load_users(self.settings), load_credentials(self.settings)
        self.rtmp.renew_users()
        self.admission.renew(users, credentials)
        self._status_door.credentials = credentials
        if self._verifier is not None and users is not None:
            self._verifier.users = users

    def stop_calls(self) -> None:
        """Hang up every call: RFC 3261 §15."""
        if self.sip is not None:
            self.sip.hang_up_all()

    def stop(self) -> None:
        """Say NetConnection.Connect.Closed, unregister, close everything.  Own design."""
        self.rtmp.stop()
        if self._control is not None:
            self._control.stop()
        if self.sip is not None:
            self.sip.stop()
        if self._http is not None:
            self._http.stop()
        if self.state is not None:
            self.state.close()


class SipSide:
    """The SIP half: stack, domain services, lines, and the ports of media.  Own design.

    It is the `SipHome`, the `CallHome` and the `MediaEdge` of what it holds.
    """

    def __init__(
        self, settings: Settings, verifier: Verifier | None, admission: Admission, log: Log
    ) -> None:
        assert settings.sip is not None
        self._settings, self._admission, self._log = settings, admission, log
        ports = SipPorts(*settings.sip)
        self.media_host = settings.external_ip or ports.address[0]
        self._bind_ip = ports.address[0]
        self._ports = PortPool(*settings.rtp_ports)
        stack = Stack(
            random=os.urandom,
            t1=settings.sip_t1 / 1000,
            listeners=ports.listeners,
            advertised=settings.external_ip,
            hosts=settings.domains,
            user_agent=USER_AGENT,
        )
        self.stack = stack
        self.agent = UserAgent(
            stack,
            random=os.urandom,
            answer_timeout=settings.answer_timeout,
            nat=settings.nat,
        )
        self._domains = Domains(
            settings.domains, stack.is_own_address, distinct=bool(settings.domain)
        )
        location = LocationLog(log)
        self._location = open_location(settings, location)
        self.registrar = Registrar(
            self._domains,
            verifier,
            stack,
            os.urandom,
            store=self._location,
            nat=settings.nat,
            tell=location.contact,
        )
        self.proxy = Proxy(stack)
        self._registrations = Registrations()
        self.tolls = call_limits.tolls(settings, self._domains)
        self.facilities = CallFacilities(self.agent, self, os.urandom, log, self.tolls)
        self.lines = SipApplication(self, keep_first=settings.keep_first_line)
        self.names = CallApplication(self)
        self.endpoint = Endpoint(
            stack,
            self.agent,
            self.registrar,
            self.proxy,
            self._domains,
            route=self._route,
            verifier=verifier,
            vouches=self._is_caller,
            nat=settings.nat,
            judge=self.tolls,
        )
        stack.core = Witness(self.endpoint, log, self.tolls.answered)
        self._alarms: dict[Leg, Alarm] = {}
        self._gatherer = Gatherer()
        locations = _locations(settings)
        self.driver = SipDriver(stack, ports, locate=locations.flows)
        self.driver.machines += [self.agent, self.proxy, self._registrations]
        self.driver.run(self.registrar.restore, monotonic())
        dialogs = self.proxy.dialogs
        self.driver.keep(lambda flow: self.registrar.keeps(flow) or dialogs.keeps(flow))

    # -- SipHome and CallHome -----------------------------------------------------------

    @property
    def caller(self) -> Address:
        """From of calls placed for stock tools: RFC 3261 §8.1.1.3."""
        text = self._settings.call_from
        return Address.parse(text) if text else Address(Uri("sip", "call", host=self._domain_host))

    def _is_caller(self, uri: Uri) -> bool:
        """Whether it is who stock tools call as; a rich client had to prove that it is."""
        return self.canonical(uri) == self.canonical(self.caller.uri)

    def contact(self, user: str, line: str) -> Uri:
        """A Contact that leads back here, marked with whose it is: RFC 3261 §8.1.1.8."""
        contact, token = self.stack.contact(user or None), _token(line)
        return contact.with_params(**{LINE_PARAM: token}) if token else contact

    def register(
        self, aor: Address, contact: Uri, credentials: Login, owner: RegistrationOwner, now: float
    ) -> Registration:
        """Register at the domain of `aor`: RFC 3261 §10.2."""
        registrar = aor.uri.replace(user=None)
        registration = Registration(
            self.stack, aor, contact, registrar, owner, os.urandom, login=credentials
        )
        self._registrations.add(registration)
        registration.start(now)
        return registration

    def unregister(self, registration: Registration, now: float) -> None:
        """Take a registration back, and drive it no longer: RFC 3261 §10.2.2."""
        registration.close(now)
        self._registrations.discard(registration)

    def is_local_domain(self, uri: Uri) -> bool:
        """Whether we answer for the host of `uri`: RFC 3261 §16.5."""
        return self._domains.of(uri) is not None

    def may_use(self, connection: NetConnection, query: str) -> bool:
        """Whether a client may place calls.  Own design: see `admission`."""
        return self._admits(connection, query)

    def canonical(self, uri: Uri) -> Identity:
        """User and domain, the port only where the domain is not ours: RFC 3261 §10.3."""
        aor = self._domains.address_of_record(uri)
        return (uri.user or "", uri.host.lower(), uri.port) if aor is None else (*aor, None)

    def may_claim(self, connection: NetConnection, identity: Uri, query: str) -> bool:
        """Whether a client without a password may be `identity`.  Own design."""
        aor = self._domains.address_of_record(identity)
        if aor is not None and self._admission.has_user(*aor):
            source, reason = connection.peer_address[0], "a password is needed"
            self._log.event("login-refused", source=source, rtmp=connection.id, reason=reason)
            return False
        return self._admits(connection, query)

    def payer(self, connection: NetConnection, identity: Uri | None, query: str) -> str:
        """Whose limits a client's calls count against.  Own design: see `admission`."""
        aor = self._domains.address_of_record(identity) if identity is not None else None
        return self._admission.payer(connection.peer_address[0], aor, connection.tc_url, query)

    def _admits(self, connection: NetConnection, query: str) -> bool:
        host = connection.peer_address[0]
        verdict = self._admission.judge(host, connection.tc_url, query, monotonic())
        if verdict is Admitted.NO:
            self._log.event("login-refused", source=host, rtmp=connection.id, app=connection.app)
        return verdict is Admitted.YES

    # -- MediaEdge ----------------------------------------------------------------------

    def open_leg(self, listener: AudioCall, now: float) -> tuple[Leg, int]:
        """Ports and a leg for a call: RFC 3550 §11.  Raises LocalError without free ports."""
        port = self._open_port()
        alarm: Alarm
        leg = Leg(
            port,
            listener,
            os.urandom,
            now,
            cname=f"{os.urandom(6).hex()}@{self.media_host}",
            media_timeout=self._settings.media_timeout,
            wallclock=wallclock(),
            wake=lambda: alarm.set(),
        )
        port.on_rtp, port.on_rtcp = leg.on_rtp, leg.on_rtcp
        alarm = self._alarms[leg] = Alarm(leg)
        self._gatherer.set_calls(len(self._alarms))
        return leg, port.rtp_port

    def phone_hosts(self, user: Uri, now: float) -> Collection[str]:
        """Where the phones of a user of ours registered from: RFC 3261 §10.2."""
        return {binding.flow.remote[0] for binding in self.registrar.bindings(user, now)}

    def close_leg(self, leg: Leg) -> None:
        """Stop waking a leg that is closed.  Own design."""
        alarm = self._alarms.pop(leg, None)
        if alarm is not None:
            alarm.cancel()
        self._gatherer.set_calls(len(self._alarms))

    def reserve(self) -> MediaPort:
        """Ports whose traffic is dropped: RFC 3550 §11.  Raises LocalError without free ports."""
        return self._open_port()

    def waker(self, machine: Timed) -> Alarm:
        """Something to wake a machine.  Own design."""
        return Alarm(machine)

    def _open_port(self) -> MediaPort:
        """Ports that nobody hears yet."""
        latch = self._settings.nat
        try:
            refuse_last(MEDIA)
            return MediaPort(self._bind_ip, self._ports, _unheard, _unheard, latch=latch)
        except OSError as error:  # no descriptor is left, or the address has gone
            self._log.warning("no-media-port", reason=error.strerror)
            raise LocalError("no media port") from error

    # -- the rest -----------------------------------------------------------------------

    def status(self) -> dict[str, object]:
        """Figures of the SIP side.  Own design."""
        counters = self.stack.counters
        return {
            "calls": len(self.facilities.calls),
            "transactions": self.stack.transactions,
            "dialogs": self.agent.dialogs,
            "proxied": len(self.proxy),
            "proxied_dialogs": len(self.proxy.dialogs),
            "registrations": self.registrar.count(monotonic()),
            "lines": len(self.lines),
            "names": len(self.names),
            "media_legs": len(self._alarms),
            "sip_connections": self.driver.connections,
            "sip_malformed": counters.malformed,
            "sip_repeated": counters.repeated,
        }

    @property
    def is_silent(self) -> bool:
        """Whether there is no call, and hardly a request under way.  Own design."""
        return not self._alarms and self.stack.transactions < FEW

    def hang_up_all(self) -> None:
        """BYE, CANCEL or refuse every call: RFC 3261 §15."""
        now = monotonic()
        for call in list(self.facilities.calls):
            call.drop(now, "shutdown")
        self.driver.wake()

    def stop(self) -> None:
        """Send what is left to send, and close.  Own design."""
        self.driver.wake()
        self.driver.close()
        if self._location is not None:
            self._location.close()

    @property
    def _domain_host(self) -> str:
        """The domain that is ours for others too: localhost would be the callee's own machine."""
        return self._settings.domain[0] if self._settings.domain else self.media_host

    def _route(self, request: Request) -> Acceptor | None:
        """First a client's line, then a stock tool's name: the inbound order of the house."""
        return self.lines.find(request) or self.names.find(request)


def _unheard(data: bytes, now: float) -> None:
    """What becomes of datagrams on ports that nobody uses yet."""


def _locations(settings: Settings) -> Locations:
    try:
        return Locations(settings.outbound_proxy)
    except RemoteError as error:
        raise ConfigError(f"--outbound-proxy {settings.outbound_proxy}: {error}") from None


@contextmanager
def _naming(option: str, address: tuple[str, int]) -> Iterator[None]:
    """Say which listener it was that could not be opened."""
    try:
        yield
    except (OSError, RemoteError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise ConfigError(f"{option} {address[0]}:{address[1]}: {reason}") from None


def _token(text: str) -> str:
    """A line's id as a URI parameter: only what needs no escaping."""
    return "".join(letter for letter in text if letter.isascii() and letter.isalnum())
