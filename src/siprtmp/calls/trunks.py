"""Trunks: accounts at providers, by which calls to telephone numbers leave.

Own design: over RFC 3261 §10.2 and §22.  The first trunk in the file whose patterns match a number
is called; the next one, if that answers with 408 or 5xx, or cannot be reached.  A trunk whose
registration has failed is tried after the others.  The password of a trunk is proven to its own
server alone (see `p2psip.ua.requests.digest_client`), and calls by it come from its own address.

A number is called by a tel URI, by a SIP URI of a domain of ours that nobody here has, or by one of
the trunk's own domain.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from types import MappingProxyType
from typing import Final

from p2psip.errors import RemoteError
from p2psip.server.domains import Domains
from p2psip.sip.address import Address
from p2psip.sip.message import Request
from p2psip.sip.phone_number import called_number, number_at
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Stack
from p2psip.transaction.flow import Flow
from p2psip.ua.call import CallHandler, UserAgentCall
from p2psip.ua.registering.registration import Registration, State
from p2psip.ua.registering.registrations import Registrations
from p2psip.ua.requests.digest_client import Login
from p2psip.ua.ua import UserAgent
from siprtmp.calls.failures import NO_TELEPHONES, NO_TRUNK, failed
from siprtmp.media.session_log import MediaLog
from siprtmp.operation.logs import Log
from siprtmp.settings.trunks import TrunkSettings

LINE_PARAM: Final = "line"  # in our Contact, tells the lines of one user apart, and the trunks
OFF: Final = "unregistered"  # the state of a trunk that does not register


@dataclass(frozen=True, slots=True)
class TrunkNews:
    """What a worker that does not register a trunk must know of its registration.

    `addresses` and `realms` are those of its `Login`, `proxies` those of RFC 3608 §6.1.
    """

    is_down: bool
    addresses: frozenset[tuple[str, int]] = frozenset()
    realms: frozenset[str] | None = None
    proxies: tuple[Uri, ...] = ()


class Trunk:
    """One account: the owner of its registration, and what a call by it needs.

    `contact()` leads back here now, and has `token` in it: RFC 3261 §8.1.1.8.  Where another
    process registers it, `told` is what that has told; `on_news` is called where this one does.
    """

    def __init__(
        self, settings: TrunkSettings, contact: Callable[[], Uri], token: str, log: Log
    ) -> None:
        self.settings, self.contact, self.token = settings, contact, token
        self._log = log
        self.registration: Registration | None = None
        self.reason = ""
        self.told: TrunkNews | None = None
        self.on_news: Callable[[TrunkNews], object] = lambda news: None

    @property
    def state(self) -> str:
        return OFF if self.registration is None else str(self.registration.state)

    @property
    def is_down(self) -> bool:
        if self.told is not None:
            return self.told.is_down
        return self.registration is not None and self.registration.state is State.FAILED

    @property
    def server(self) -> Uri:
        """The provider's server, or its domain: RFC 3261 §8.1.2."""
        return self.settings.server or self.settings.address.replace(user=None)

    @property
    def login(self) -> Login | None:
        """What answers the challenges of its server, and of no other: RFC 3261 §22.1."""
        if self.registration is not None:
            return self.registration.login
        settings, told = self.settings, self.told
        user = settings.login or settings.address.user or ""
        if told is not None:
            return Login(user, settings.password, None, told.addresses, told.realms)
        return Login(user, settings.password, self.server) if settings.password else None

    @property
    def route(self) -> Sequence[Uri]:
        """The servers that its calls pass: RFC 3261 §8.1.2, RFC 3608 §6.1."""
        own = () if self.settings.server is None else (self.server.with_params(lr=None),)
        if self.told is not None:
            return (*own, *self.told.proxies)
        return own if self.registration is None else self.registration.route(own)

    def is_registered_at(self, host: str) -> bool:
        is_registering = self.registration is not None or self.told is not None
        login = self.login if is_registering else None
        return login is not None and any(host == place[0] for place in login.addresses)

    def takes(self, number: str) -> bool:
        return any(fnmatchcase(number, pattern) for pattern in self.settings.numbers)

    def target(self, number: str) -> Uri:
        """The URI of a number at the provider: RFC 3261 §19.1.1."""
        return number_at(number, self.settings.address)

    def on_registered(self, registration: Registration, expires: int, now: float) -> None:
        self.reason = ""
        self._tell()
        self._log.event("trunk-registered", trunk=self.settings.name, expires=expires)

    def on_failed(self, registration: Registration, status: int, reason: str, now: float) -> None:
        self.reason = f"{status} {reason}"
        self._tell()
        self._log.warning("trunk-failed", trunk=self.settings.name, reason=self.reason)

    def _tell(self) -> None:
        login, registration = self.login, self.registration
        if login is not None and registration is not None:
            proxies = tuple(registration.route(()))
            self.on_news(TrunkNews(self.is_down, login.addresses, login.realms, proxies))


@dataclass(frozen=True, slots=True)
class Invitation:
    """A call that is to be placed: RFC 3261 §13.2.1.

    `names` are the codecs to offer, `unnamed` says that the client has named none; `headers` are
    more ones of the INVITE, for a transfer.  `browser` says whether phones in browsers are called,
    and others if it is false; None finds out.
    """

    to: Address
    from_: Address
    contact: Uri
    names: Sequence[str]
    unnamed: bool = False
    login: Login | None = None
    headers: Sequence[tuple[str, object]] = ()
    browser: bool | None = None


@dataclass(slots=True)
class Trunks:
    """All trunks, in the order of the file; `is_here` tells whether a URI leads to a user here."""

    trunks: Sequence[Trunk] = ()
    homes: Domains | None = None
    is_here: Callable[[Uri, float], bool] = lambda uri, now: False

    @classmethod
    def of(
        cls,
        settings: Sequence[TrunkSettings],
        stack: Stack,
        log: Log,
        params: Mapping[str, str] = MappingProxyType({}),
    ) -> "Trunks":
        """Those of the settings, which peers reach at `stack` by Contacts with these `params`."""
        made = []
        for number, each in enumerate(settings):
            token = f"trunk{number}"
            made.append(Trunk(each, partial(_contact, each, token, params, stack), token, log))
        return cls(made)

    def start(
        self, stack: Stack, random: Callable[[int], bytes], drive: Registrations, now: float
    ) -> None:
        """Register those that are to register: RFC 3261 §10.2."""
        for trunk in self.trunks:
            settings = trunk.settings
            if not settings.register:
                continue
            trunk.registration = registration = Registration(
                stack,
                Address(settings.address),
                trunk.contact(),
                settings.address,
                trunk,
                random,
                login=Login(settings.login or settings.address.user or "", settings.password),
                route=trunk.route,
                persistent=True,
                renew=settings.refresh,
            )
            drive.add(registration)
            registration.start(now)

    def stop(self, now: float) -> None:
        for trunk in self.trunks:
            if trunk.registration is not None:
                trunk.registration.close(now)

    def plan(self, wanted: Invitation, now: float) -> "Dialling":
        """How to place a call: by trunks if it is a number for one, else as it stands.

        Raises RemoteError for a tel URI, 404 if no trunk takes it and 416 if there is none, and
        what `called_number` raises.
        """
        to = wanted.to
        if not self.trunks or self.homes is None:
            if to.uri.scheme == "tel":
                raise failed(NO_TELEPHONES)
            return Dialling(to, wanted, to.uri)
        uri, home = to.uri, self.homes.names[0]
        number = called_number(uri, self._is_context) or uri.user or ""
        trunks = [each for each in self.trunks if each.takes(number) and self._may(each, uri, now)]
        if uri.scheme == "tel":
            if not trunks:
                raise failed(NO_TRUNK)
            to = Address(number_at(number, Uri("sip", host=home)), to.display)
        trunks.sort(key=lambda trunk: trunk.is_down)
        checked = Uri("sip", number, host=home) if trunks else uri
        return Dialling(to, wanted, checked, number, trunks)

    def _may(self, trunk: Trunk, uri: Uri, now: float) -> bool:
        """Whether a URI may leave by a trunk: one of that provider, or one that nobody here has."""
        assert self.homes is not None
        at = trunk.settings.address
        if uri.scheme == "tel" or (uri.host, uri.port) == (at.host, at.port):
            return True
        return self.homes.of(uri) is not None and not self.is_here(uri, now)

    def _is_context(self, context: str) -> bool:
        return self.homes is not None and context.lower() in self.homes.names

    def is_at(self, host: str) -> bool:
        """Whether a host is one that a trunk is registered at."""
        return any(trunk.is_registered_at(host) for trunk in self.trunks)

    def contact_for(self, request: Request, flow: Flow) -> Uri | None:
        """Our Contact for a request to a trunk's own domain, from where the trunk is registered.

        Field §"Calls to the address itself".  A request in the name of a user of ours leaves by
        that domain instead.
        """
        uri, homes = request.uri, self.homes
        if request.method == "REGISTER" or homes is None or homes.of(request.from_.uri) is not None:
            return None
        for trunk in self.trunks:
            at = trunk.settings.address
            is_its = uri.host.lower() == at.host.lower() and uri.port in (None, at.port)
            if is_its and trunk.is_registered_at(flow.remote[0]):
                return trunk.contact().replace(user=uri.user)
        return None

    def status(self) -> dict[str, object]:
        states = [trunk.state for trunk in self.trunks]
        return {"trunks": len(states), "trunks_registered": states.count(State.REGISTERED)}

    def called(self, uri: Uri) -> Trunk | None:
        """The trunk whose Contact a Request-URI is: RFC 3261 §16.5."""
        return self.named(uri.param(LINE_PARAM) or "")

    def named(self, token: str) -> Trunk | None:
        """The trunk whose Contact has this token."""
        return next((each for each in self.trunks if each.token == token), None) if token else None


@dataclass(slots=True)
class Dialling:
    """The trunks that are left for one call; without trunks it goes to `to` itself.

    `checked` is what the limits of calls are held against: the patterns of a trunk allow what they
    match, so a call by a trunk counts as one within our domains.
    """

    to: Address
    wanted: Invitation
    checked: Uri
    number: str = ""
    trunks: list[Trunk] = field(default_factory=list)
    trunk: Trunk | None = None  # the one in use
    _invite: Callable[..., UserAgentCall] | None = None  # for the next trunk

    @property
    def host(self) -> str:
        return self.trunks[0].server.host if self.trunks else self.to.uri.host

    @property
    def ways(self) -> Sequence[Uri]:
        """Where the INVITE may be sent: to each trunk that is left, else to the callee."""
        return [(*each.route, each.server)[0] for each in self.trunks] or [self.to.uri]

    @property
    def trunk_name(self) -> str | None:
        return self.trunk.settings.name if self.trunk is not None else None

    def invite(
        self,
        agent: UserAgent,
        owner: CallHandler,
        sdp: bytes,
        now: float,
        reached_at: Callable[[Uri], Uri],
    ) -> UserAgentCall:
        """Send the first INVITE (RFC 3261 §13.2.1).  Raises RemoteError as `UserAgent` does."""
        wanted, headers = self.wanted, self.wanted.headers
        self._invite = partial(agent.invite, sdp=sdp, handler=owner, headers=headers)
        if self.trunks:
            return self._by_trunk(now, None)
        contact, login = reached_at(wanted.contact), wanted.login
        return agent.invite(
            self.to, wanted.from_, contact, sdp, owner, now, credentials=login, headers=headers
        )

    def again(
        self, call_id: str, status: int, reason: str, now: float, log: MediaLog
    ) -> UserAgentCall | None:
        """Call by the next trunk after a refusal, if that may help; None if it does not.

        The Call-ID stays, so that all attempts have one name in the log.
        """
        while self.trunks and is_worth_another(status):
            before = self.trunk_name
            try:
                anew = self._by_trunk(now, call_id)
            except RemoteError as error:
                status, reason = error.status, error.reason
                continue
            why = f"{status} {reason}"
            log.event("trunk-next", trunk=before, next=self.trunk_name, reason=why)
            return anew
        return None

    def _by_trunk(self, now: float, call_id: str | None) -> UserAgentCall:
        self.trunk = trunk = self.trunks.pop(0)
        assert self._invite is not None
        return self._invite(
            Address(trunk.target(self.number)),
            Address(trunk.settings.address, self.wanted.from_.display),
            trunk.contact(),
            now=now,
            credentials=trunk.login,
            route=trunk.route,
            call_id=call_id,
        )


def is_worth_another(status: int) -> bool:
    """Whether a failure says nothing about the callee: RFC 3261 §21.5 and a 408."""
    return status == 408 or 500 <= status < 600


def _contact(settings: TrunkSettings, token: str, params: Mapping[str, str], stack: Stack) -> Uri:
    """A Contact that leads the provider here; our public address may have changed meanwhile."""
    server = settings.server or settings.address
    transport = server.param("transport")
    contact = stack.contact(settings.address.user, transport and transport.upper(), server.host)
    return contact.with_params(**params, **{LINE_PARAM: token})
