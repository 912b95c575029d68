"""A user agent's registration: made, kept alive, taken back.

Implements RFC 3261 §10.2, with outbound over one flow (RFC 5626 §4.2), of which `outbound_set` has
several; the service route of RFC 3608 is in `service_route`.

A sans-I/O machine.  The owner is told of the first answer and of every failure; a refresh in time
is not reported.  A registrar that knows nothing of outbound sees parameters that it ignores.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final, Protocol

from p2psip.sip.address import Address
from p2psip.sip.build import MAX_FORWARDS
from p2psip.sip.grammar import readable
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri, equivalent
from p2psip.sip.views import seconds
from p2psip.stack.stack import Stack
from p2psip.transaction.flow import LOCAL, Flow, HostPort
from p2psip.ua.registering.keep_alive import KeepAlives, is_recoverable, retry_delay
from p2psip.ua.registering.own_gruus import OwnGruus
from p2psip.ua.requests.authenticated_request import AuthenticatedRequest
from p2psip.ua.requests.digest_client import DigestClient, Login, hop_of

DEFAULT_EXPIRES: Final = 3600  # s: §10.2, our wish
REFRESH_AT: Final = 0.8  # of the lifetime granted: §10.2.4 says before it ends
RETRY_MIN: Final = 5.0  # s after a failed refresh, doubled each time; no refresh comes sooner
RETRY_MAX: Final = 300.0
MAX_HOSTS: Final = 16  # addresses of one registrar that are remembered
MAX_EXPIRES: Final = 86_400  # s, the most a 423 or a Retry-After can make us ask for


def new_instance(random: Callable[[int], bytes]) -> str:
    """The URN of a random UUID, for a device that keeps none: RFC 5626 §4.1."""
    octets = bytearray(random(16))
    octets[6], octets[8] = octets[6] & 0x0F | 0x40, octets[8] & 0x3F | 0x80
    text = octets.hex()
    return f"urn:uuid:{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class ServiceRoute:
    """The service route of one registration: RFC 3608 §6.1."""

    def __init__(self) -> None:
        self._proxies: tuple[Uri, ...] = ()

    def learn(self, response: Response) -> None:
        """Take that of a 200, without values that cannot be read: RFC 3608 §6.1."""
        lines = response.headers.values("Service-Route")
        route = [each.uri for line in lines for each in readable(line, Address.parse)]
        # RFC 3608 §6.1 [route-is-replaced] [order-is-kept]
        self._proxies = tuple(uri for uri in route if uri.scheme in ("sip", "sips"))

    def clear(self) -> None:
        """Forget it, since a registration was refused: RFC 3608 §6.1."""
        self._proxies = ()  # RFC 3608 §6.1 [refused-clears-it]

    def after(self, first: Sequence[Uri]) -> list[Uri]:
        """Our own proxies, then those of the registrar, one named by both once: RFC 3608 §6.1."""
        service = self._proxies
        if service and first and equivalent(service[0], first[-1]):
            service = service[1:]
        return [*first, *service]  # RFC 3608 §6.1 [route-is-used]


class State(StrEnum):
    """The state of a registration.  Own design: §10.2 draws no figure."""

    TRYING = "trying"
    REGISTERED = "registered"
    FAILED = "failed"
    CLOSED = "closed"


class RegistrationHandler(Protocol):
    """Receives the results of a registration: §10.2.4, §10.2.7."""

    def on_registered(self, registration: "Registration", expires: int, now: float) -> None:
        """It was accepted for `expires` seconds; told once, and again after a failure: §10.2.4."""

    def on_failed(self, registration: "Registration", status: int, reason: str, now: float) -> None:
        """The registrar refused or was silent; a refresh is repeated: §10.2.7."""


class Registration:
    """Keeps `aor` registered at `registrar` with one Contact: §10.2.

    `expires` in seconds; `random(n)` gives n octets; without a `login` a challenge fails.  `route`
    are the servers to pass on the way (§8.1.2), and the password is then for the first of them.
    With `persistent` the first REGISTER is repeated, too, until it is accepted.  Departs from RFC
    3261 §22.1: a password that was refused is shown again later, since a provider may refuse it by
    mistake, and nobody is there to start a trunk again.
    `instance` is the URN of the device, a new UUID if empty (RFC 5626 §4.1), and `reg_id` the
    number of its flow; `others_stand()` tells of the other flows of a set, None if it is alone.
    `on_deadline(self, at)` is told whenever `deadline` changes.  `ping(flow, data)` sends a
    keep-alive, `lose(flow)` closes a connection that does not answer it; without a `ping` none is
    sent.
    It is refreshed `renew` seconds after the last time at the latest, whatever was granted: a
    registrar that was started anew may have forgotten us.
    A registrar that sends us elsewhere is followed to `max_redirects` others, each time anew; the
    password is for the first alone (§8.1.3.4).

    Departs from RFC 3261 §21.4 [not-the-same-again]: a refused refresh is sent again, ever more
    rarely, since the operator of the registrar may set it right.
    Departs from RFC 3261 §21.4.4 [403-is-final]: for the same reason, since an account may be
    unlocked.
    Departs from RFC 3327 §5.1 [path-in-all]: only a REGISTER says path, since no other request has
    a use for one.
    Not done: RFC 3327 §6.2 [shows-the-path]: nobody watches a registration, or knows the proxies.
    """

    def __init__(
        self,
        stack: Stack,
        aor: Address,
        contact: Uri,
        registrar: Uri,
        handler: RegistrationHandler,
        random: Callable[[int], bytes],
        *,
        login: Login | None = None,
        expires: int = DEFAULT_EXPIRES,
        route: Sequence[Uri] = (),
        instance: str = "",
        persistent: bool = False,
        max_redirects: int = 0,
        reg_id: int = 1,
        others_stand: Callable[[], bool] | None = None,
        renew: float = float("inf"),
    ) -> None:
        self.state, self._persistent = State.TRYING, persistent
        self._max_redirects, self._renew = max_redirects, renew
        self._service_route = ServiceRoute()
        self.ping: Callable[[Flow, bytes], None] | None = None
        self.lose: Callable[[Flow], None] = lambda flow: None
        self.deadline: float | None = None
        self.on_deadline: Callable[[Registration, float | None], None] | None = None
        if aor.uri.scheme == "sips":
            # §10.2.1 [sips-contact]
            # RFC 5630 §5.1.1.1 [contact-tells-our-wish] [aor-as-its-contact]
            contact = stack.contact_by(contact, "TLS", secure=True)
        self._stack, self._aor, self._contact = stack, aor, contact
        # §10.2 [no-user-in-request-uri]
        self._registrar = registrar.replace(user=None, password=None)
        self._handler, self._expires = handler, expires
        self._route = tuple(Address(uri) for uri in route)
        login = replace(login, server=route[0] if route else registrar) if login else None
        self._login, self._digest_client = login, DigestClient(login, random) if login else None
        self._server_addresses: frozenset[HostPort] = frozenset()
        # §10.2 [same-call-id], §10.2.4 [same-call-id]
        self._call_id, self._tag = random(12).hex(), random(6).hex()
        self._cseq = 0
        self._exchange: AuthenticatedRequest | None = None
        self._server: Flow | None = None  # that has granted
        self._was_registered = self._is_withdrawing = False
        self._told = contact  # the Contact of the last REGISTER
        self._bound: Uri | None = None  # the one that the registrar has
        self._retry = RETRY_MIN
        self._asked_at = 0.0
        # RFC 5626 §4.1 [uuid-is-the-instance]
        self._instance, self._reg_id = instance or new_instance(random), reg_id
        self._wants_flow, self._is_outbound, self._failures = True, others_stand is not None, 0
        self._others_stand, self._is_lost = others_stand or (lambda: False), False
        self._random = random
        self._gruus = OwnGruus(self._instance)
        self._act_at: float | None = None
        self._keep_alive = KeepAlives(random)

    @property
    def pending(self) -> bool:
        """Whether a REGISTER waits for its answer: §10.2."""
        return self._exchange is not None and not self._exchange.done

    @property
    def stands(self) -> bool:
        """Whether it is registered by a flow that has not failed since: RFC 5626 §4.5."""
        return self.state is State.REGISTERED and not self._is_lost

    def route(self, first: Sequence[Uri]) -> list[Uri]:
        """The route of later requests: `first`, then the registrar's proxies: RFC 3608 §6.1."""
        return self._service_route.after(first)

    def gruu(self, now: float, *, private: bool = False) -> Uri | None:
        """The registrar's URI of this device; a `private` one hides the user: RFC 5627 §4.4."""
        return self._gruus.usable(now, private=private)

    @property
    def login(self) -> Login | None:
        """The credentials for calls: good in the registrar's realm, at its addresses (§22.1)."""
        if self._login is None or self._digest_client is None:
            return None
        return replace(
            self._login, addresses=self._server_addresses, realms=self._digest_client.realms or None
        )

    def start(self, now: float) -> None:
        """Send the first REGISTER: §10.2."""
        self._register(self._expires, now)

    def move(self, host: str, port: int, now: float) -> None:
        """Register this address of ours in place of the one before: §10.2.2."""
        self._contact = self._contact.replace(host=host, port=port)
        if self._contact != self._told and self._was_registered and not self.pending:
            self._register(self._expires, now)

    def close(self, now: float) -> None:
        """Remove the binding, after the REGISTER under way, and report no more: §10.2.2."""
        if self.state is State.CLOSED:
            return
        self.state = State.CLOSED
        self._gruus.lapse()
        self._keep_alive.stop()
        self._wake_at(None)
        if self._was_registered and not self.pending:
            self._withdraw(now)

    def tick(self, now: float) -> None:
        """Send the refresh, or the repetition, that is due: §10.2.4."""
        kept = self._keep_alive
        if kept.flow is not None and kept.at is not None and kept.at <= now:
            data = kept.tick(now)
            self._wake_at(self._act_at)
            if kept.has_failed:
                self._give_up_flow(kept.flow, now)
            elif data is not None and self.ping is not None:
                self.ping(kept.flow, data)
        if self._act_at is not None and self._act_at <= now:
            self._register(self._expires, now)

    def on_flow_lost(self, flow: Flow, now: float) -> None:
        """Form a flow again whose connection is lost: RFC 5626 §4.5."""
        kept = self._keep_alive.flow
        if kept is not None and kept.peer == flow.peer:
            self._keep_alive.stop()
            self._form_again(now)

    def heard(self, flow: Flow, data: bytes, now: float) -> bool:
        """Take what may answer a keep-alive, b"" for a CRLF; whether it does: RFC 5626 §4.4."""
        kept = self._keep_alive
        if kept.flow is None or kept.flow.peer != flow.peer or not kept.hear(data):
            return False
        self._wake_at(self._act_at)
        if kept.has_failed:
            self._give_up_flow(kept.flow, now)
        return True

    def _give_up_flow(self, flow: Flow, now: float) -> None:
        """Form a flow again: at once if it was good, else after a delay (RFC 5626 §4.5)."""
        was_good = self._keep_alive.is_answered
        self._keep_alive.stop()
        self._failures += not was_good and not self.pending
        self._form_again(now if was_good else now + self._delay())
        self.lose(flow)

    def _form_again(self, at: float) -> None:
        """Register again at a time, unless that is under way, or waits after a refusal."""
        self._is_lost = True
        if self.state is State.REGISTERED and not self.pending:
            self._wake_at(at if self._act_at is None else min(at, self._act_at))
        else:
            self._wake_at(self._act_at)

    def _delay(self) -> float:
        return retry_delay(self._failures, self._random, others_stand=self._others_stand())

    def on_response(self, exchange: AuthenticatedRequest, response: Response, now: float) -> None:
        """Take the registrar's answer: §10.2.4, §10.2.7, §10.2.8."""
        if response.status < 200:
            return
        is_there = exchange.request.uri == self._registrar  # and was not sent elsewhere
        if is_there and exchange.sent_to is not None and len(self._server_addresses) < MAX_HOSTS:
            self._server_addresses |= {hop_of(exchange.sent_to)}
        granted = response.status < 300
        if self.state is State.CLOSED:
            if not self._is_withdrawing and (granted or self._was_registered):
                self._withdraw(now)
        elif granted:
            self._granted(response, now)
        elif response.status == 423 and self._may_ask_longer(response):
            self._register(self._expires, now)
        elif response.status == 439 and self._wants_flow:
            self._wants_flow = False  # RFC 5626 §4.2.1 [439-goes-without]
            self._register(self._expires, now)
        else:
            self._refused(response, now)

    def _granted(self, response: Response, now: float) -> None:
        granted, self._bound, self._is_lost = self._lifetime(response), self._told, False
        self._server = self._exchange.sent_to if self._exchange is not None else None
        self._was_registered, self._retry, self._failures = True, RETRY_MIN, 0
        self._service_route.learn(response)
        self._has_flow(response, now)
        # the registrar counts from the request, which may have come long before its answer
        self._gruus.learn(response, self._asked_at + granted)
        refresh = self._gruus.refresh_after(granted, granted * REFRESH_AT)
        self._wake_at(max(now + RETRY_MIN, self._asked_at + min(refresh, self._renew)))
        if self.state is not State.REGISTERED:
            self.state = State.REGISTERED
            self._handler.on_registered(self, granted, now)
        if self._contact != self._told:  # our address changed meanwhile
            self._register(self._expires, now)

    def _has_flow(self, response: Response, now: float) -> None:
        """Begin keep-alives if the registrar has outbound, and wants them: RFC 5626 §4.2.1."""
        required = (each.lower() for each in response.headers.all("Require", lenient=True))
        flow = self._exchange.sent_to if self._exchange is not None else None
        self._is_outbound = "outbound" in required
        # RFC 5626 §8 [stun-where-it-is-known]
        is_wanted = self._is_outbound and self.ping is not None
        if is_wanted and flow is not None and flow.transport != LOCAL:
            timer = seconds(response.headers.get("Flow-Timer", "0"))
            self._keep_alive.begin(flow, timer, now)
        else:
            self._keep_alive.stop()

    def _refused(self, response: Response, now: float) -> None:
        self._service_route.clear()
        if self._is_outbound:
            # RFC 5626 §4.2.2 [kept-after-a-refusal] [kept-by-pongs]
            if not is_recoverable(response):
                self._keep_alive.stop()
            self._failures += 1
            asked = min(seconds(response.headers.get("Retry-After", "0")), MAX_EXPIRES)
            self._wake_at(now + max(asked, self._delay()))
        elif self._was_registered or self._persistent:
            self._wake_at(now + self._retry)  # §10.2.7 [not-at-once]
            self._retry = min(self._retry * 2, RETRY_MAX)
        if self.state is not State.FAILED:
            self.state = State.FAILED
            self._handler.on_failed(self, response.status, response.reason, now)

    def _lifetime(self, response: Response) -> int:
        """The lifetime granted to our own Contact: §10.2.4."""
        contacts = [each for each in response.contacts if not each.is_star]
        own = [each for each in contacts if equivalent(each.uri, self._contact)]
        own = own or [each for each in contacts if self._is_ours_by_instance(each)]
        # Field §"Contacts that a registrar rewrites"
        is_alone = len(response.headers.all("Contact", lenient=True)) == 1
        granted = _lifetimes(own or (contacts if is_alone else ()))
        if granted:
            return max(granted)
        if response.expires is not None:
            return response.expires
        alike = [each for each in contacts if each.uri.user == self._contact.user]
        return min([self._expires, *filter(None, _lifetimes(() if own else alike))])

    def _is_ours_by_instance(self, contact: Address) -> bool:
        """Whether a Contact has our instance, and our reg-id if any: RFC 5626 §4.1."""
        same = (contact.param("+sip.instance") or "").lower() == f"<{self._instance}>".lower()
        return same and contact.param("reg-id") in (None, str(self._reg_id))

    def _may_ask_longer(self, response: Response) -> bool:
        """Learn the registrar's minimum from a 423: §10.2.8."""
        wanted = seconds(response.headers.get("Min-Expires", "0"))
        if not self._expires < wanted <= MAX_EXPIRES:
            return False
        self._expires = wanted  # §10.2.8 [asks-longer]
        return True

    def _register(self, expires: int, now: float) -> None:
        self._wake_at(None)  # no refresh beside it: §10.2 [one-at-a-time]
        # §10.2.4 [own-binding-alone], RFC 5630 §5.1.1.1 [one-version]
        contacts = [self._contact_field()]
        if self._bound is not None and self._bound != self._contact:
            contacts.append(Address(self._bound).with_param("expires", "0"))
        self._told = self._contact
        # §10.2 [mandatory-fields]
        request = Request(
            "REGISTER",
            self._registrar,
            Headers(
                [
                    *(("Route", each) for each in self._route),  # §10.2 [no-route-set]
                    ("Max-Forwards", MAX_FORWARDS),
                    ("From", self._aor.with_tag(self._tag)),
                    ("To", self._aor),
                    # one for all of a boot: §8.1.1.4 [one-name-for-registering], §10.2
                    # RFC 5627 §4.1 [keeps-call-id] [same-call-id]
                    ("Call-ID", self._call_id),
                    ("CSeq", f"{self._next_cseq()} REGISTER"),
                    *(("Contact", each) for each in contacts),
                    ("Expires", expires),
                    # RFC 5626 §4.2.1 [supports-outbound] [supports-path]
                    # RFC 5627 §4.1 [supports-gruu]
                    ("Supported", f"path, gruu{', outbound' if self._wants_flow else ''}"),
                ]
            ),
        )
        self._asked_at = now
        self._exchange = AuthenticatedRequest(
            self._stack,
            self,
            self._next_cseq,
            self._digest_client,
            max_redirects=self._max_redirects,
        )
        self._exchange.preferred = self._server  # §10.2.4 [same-server]
        self._exchange.send(request, now)

    def _contact_field(self) -> Address:
        """Our Contact with instance and reg-id, the same each time: RFC 5626 §4.2.1."""
        # RFC 5626 §4.2.1 [has-instance] [has-reg-id] [same-reg-ids]
        # RFC 5626 §4.5 [same-reg-id]
        # RFC 5627 §4.1 [names-its-instance] [suggests-no-gruu], RFC 3261 §10.2 [no-action]
        contact = Address(self._contact).with_param("+sip.instance", f"<{self._instance}>")
        # RFC 5626 §10 [reg-id-of-31-bits]
        return contact.with_param("reg-id", str(self._reg_id)) if self._wants_flow else contact

    @property
    def call_id(self) -> str:
        """The Call-ID of all its requests: §10.2."""
        return self._call_id

    def _withdraw(self, now: float) -> None:
        self._is_withdrawing = True
        self._register(0, now)  # §10.2.2 [removes-in-time]

    def _wake_at(self, at: float | None) -> None:
        """Set when to act next; keep-alives have a time of their own."""
        self._act_at = at
        times = [time for time in (at, self._keep_alive.at) if time is not None]
        self.deadline = min(times, default=None)
        if self.on_deadline is not None:
            self.on_deadline(self, self.deadline)

    def _next_cseq(self) -> int:
        self._cseq += 1  # §10.2 [cseq-by-one]
        return self._cseq


def _lifetimes(contacts: Iterable[Address]) -> list[int]:
    """What the Contacts say of how long they last, in seconds: §10.2.4."""
    texts = (each.param("expires") for each in contacts)
    return [seconds(text) for text in texts if text is not None]
