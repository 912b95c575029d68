"""The core of an element that is user agent, registrar and proxy in one.

Implements RFC 3261 §16.3 to §16.5, the decision: which of the three each new request is for.

Own design: no open relay.  A request to our own domains is let through; a request to any other
domain needs a user of ours, proved by Digest; a From in our domains must be proved as well.
A request within a dialog that was set up through us goes to the dialog's other side alone.  It is
accepted from the dialog's peer alone, known by its place (`request_origin`) or its password.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple, Protocol

from p2psip.errors import RemoteError
from p2psip.server.digest_server import DigestServer, without_credentials
from p2psip.server.domains import Aor, Domains
from p2psip.server.judge import Lenient
from p2psip.server.proxied_dialogs import DialogDirection, ends
from p2psip.server.proxy import Proxy, Target, to_device
from p2psip.server.registrar import Binding, Registrar
from p2psip.server.target_finder import TargetFinder
from p2psip.sip.build import REASONS
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.causes import CONTACT_GONE, NO_SUCH_USER, NOT_CONFIRMED, NOT_REGISTERED
from p2psip.stack.request_origin import Peer, origin
from p2psip.stack.routing import is_loopback, needs_tls
from p2psip.stack.stack import Flow, Recipient, ServerHandle, Stack
from p2psip.transaction.flow import LOCAL, WEB
from p2psip.ua.requests.request_validation import ALLOW, RefusalError, refuse_method
from p2psip.ua.ua import UserAgent

ALLOWED: Final = f"{ALLOW}, REGISTER"
FOR_THE_HOOK: Final = ("INVITE", "MESSAGE")  # what `route` may take

Acceptor = Callable[[ServerHandle, float], None]


class RequestObserver(Protocol):
    """Told of each new request to an element, for a log: RFC 3261 §16.3."""

    def on_request(self, server: ServerHandle, request: Request, now: float) -> None:
        """Note that a request has come; nobody has answered it."""

    def on_dispatched(self, server: ServerHandle, request: Request) -> None:
        """Note that a request was answered, forwarded, or given to a user agent."""


class _Found(NamedTuple):
    """What a request belongs to (§16.3), `bare` without our Routes, `place` where it came from."""

    bare: Request
    place: str
    direction: DialogDirection | None
    ours: Recipient | None

    @property
    def peer(self) -> Peer | None:
        """The peer of a call of our user agents, which our own proxy may know."""
        direction = self.direction
        is_ours = direction is not None and direction.dialog.holder == LOCAL
        if direction is not None and is_ours and direction.receiver is direction.dialog.caller:
            return direction.sender.peer
        return self.ours.peer if self.ours is not None else None


class SipElement:
    """Decides where a request goes: RFC 3261 §16.3.

    Without a `verifier` there are no passwords to check: then only this machine may send to other
    domains.  With `nat` a phone is reached at the address it registered from.

    The other attributes are for the owner to set.  `route(request)` may take a request for a user
    of ours by returning a callable that accepts it.  `is_trusted_user(uri)` tells whether this
    process may call as that user without a password, and `vouches(request)` whether it has made
    this request in the name of a user that has proved its own.  `judge` has the last word.
    `called(request, flow)` gives our own URI for one of another domain under which we are called.
    `observer`, if set, is told of each request.
    """

    def __init__(
        self,
        stack: Stack,
        ua: UserAgent,
        registrar: Registrar,
        proxy: Proxy,
        domains: Domains,
        *,
        verifier: DigestServer | None = None,
        nat: bool = False,
    ) -> None:
        self.observer: RequestObserver | None = None
        self.route: Callable[[Request], Acceptor | None] = lambda request: None
        self.is_trusted_user: Callable[[Uri], bool] = lambda uri: False
        self.vouches: Callable[[Request], bool] = lambda request: False
        self.judge = Lenient()
        self.called: Callable[[Request, Flow], Uri | None] = lambda request, flow: None
        self._stack, self._ua, self._domains = stack, ua, domains
        self.registrar, self.proxy, self._verifier = registrar, proxy, verifier
        self.target_finder = TargetFinder(stack, registrar, domains, nat=nat)
        stack.core = self
        ua.route_by(self.target_finder.bound, lambda request: self.judge.may_follow(request))

    def recipient(self, request: Request, flow: Flow, now: float) -> Recipient:
        """Decide who gets a request: a user agent, the registrar, or the proxy: RFC 3261 §16.3."""
        found = self._find(request, flow)
        if request.method == "REGISTER":
            bound = self.registrar.bindings(request.to.uri, now)
            is_known = any(binding.flow.remote[0] == flow.remote[0] for binding in bound)
        else:
            is_in_dialog = found.direction is not None or found.ours is not None
            is_known = request.to.tag is not None and is_in_dialog
        return Recipient(partial(self._take, found), is_known)

    def _find(self, request: Request, flow: Flow) -> _Found:
        bare, place = self.proxy.take_route(request), origin(request, flow)
        direction = self.proxy.dialogs.find(bare, place)
        return _Found(bare, place, direction, self._ua.recipient(request))

    def _take(self, found: _Found, server: ServerHandle, request: Request, now: float) -> None:
        """Give a new request to its recipient: RFC 3261 §16.3."""
        if self.observer is not None:
            self.observer.on_request(server, request, now)
        try:
            if not server.flow.secure:
                _refuse_secure(request)
            self._dispatch(found, server, now)
        except RefusalError as refusal:
            server.cause = refusal.cause
            server.reply(refusal.status, now, refusal.reason, refusal.headers)  # §16.3 [is-refused]
        except RemoteError as error:
            server.reply(error.status, now, error.reason)  # §16.3 [is-refused] [well-formed]
        if self.observer is not None:
            self.observer.on_dispatched(server, request)

    def on_ack(self, request: Request, flow: Flow, now: float) -> None:
        """Give the ACK of a 2xx to its dialog, or send it on: RFC 3261 §16.11.

        An ACK cannot be challenged (§22.1), so one from a foreign place is dropped, unless it has
        no body: then it may confirm a call of this process.
        """
        bare, place, direction, ours = found = self._find(request, flow)
        if ours is not None:
            if self._is_at_its_place(bare, place, found.peer) or not request.body:
                self._ua.on_ack(request, flow, now)
        elif direction and self._is_at_its_place(bare, place, direction.sender.peer):
            with suppress(RemoteError):  # a device that is not there
                way = self.target_finder.side(direction.receiver, now)  # §22.1 [ack-is-believed]
                follows = partial(self._follows, direction.sender.uri, flow)
                self.proxy.forward_ack(self._without_secrets(bare), direction, way, now, follows)
        elif direction is None and not bare.routes and self.target_finder.is_gruu(bare.uri):
            self._ack_device(bare, now)

    def _dispatch(self, found: _Found, server: ServerHandle, now: float) -> None:
        bare, place, direction, ours = found
        if ours is not None:
            if self._is_from_peer(server, bare, place, found.peer, now, proxy=False):
                if direction is not None:
                    self._note(direction, bare, server.flow, now)
                ours.take(server, server.request, now)
            return
        server.request = bare  # §16.4 [goes-on-as-mended]
        if direction is None:
            self._decide(server, bare, now)
        elif self._is_from_peer(server, bare, place, direction.sender.peer, now, proxy=True):
            server.request = self._without_secrets(server.request)
            way = self.target_finder.side(direction.receiver, now)
            follows = partial(self._follows, direction.sender.uri, server.flow)
            self.proxy.forward_in_dialog(server, direction, way, now, follows)

    def _ack_device(self, ack: Request, now: float) -> None:
        """Send the ACK of a dialog that did not begin here to a device: RFC 5627 §6.1."""
        for binding in self.target_finder.device(ack.uri, now)[:1]:
            device = self.target_finder.target(binding)
            ack = to_device(self._without_secrets(ack), device)
            self.proxy.send_ack(ack, None if ack.routes else device.flows, now)

    def _note(self, direction: DialogDirection, request: Request, flow: Flow, now: float) -> None:
        """Tell the proxy's dialog of a request that ends at our user agents: RFC 3261 §12.2.2."""
        self.proxy.dialogs.heard(direction, request, flow, now)
        self.proxy.dialogs.refresh(direction, request, None)
        if ends(request, direction.dialog.method):
            self.proxy.dialogs.fade(direction.dialog, now)

    def _is_at_its_place(self, request: Request, place: str, peer: Peer | None) -> bool:
        """Whether a request comes from its peer's place, by its peer's name, or has no peer."""
        if peer is None:
            return True
        aor = self._domains.address_of_record(request.from_.uri)
        is_same = aor is None or aor == self._domains.address_of_record(peer.uri)
        return is_same and place in peer.hosts

    def _is_from_peer(
        self,
        server: ServerHandle,
        request: Request,
        place: str,
        peer: Peer | None,
        now: float,
        *,
        proxy: bool,
    ) -> bool:
        """Whether a request within a dialog may be obeyed; challenges a user of ours.

        RFC 3261 §26.1.4 warns of a BYE with overheard tags.  From a foreign place a user of ours,
        whose phone may have moved, has to prove its password; any other sender is refused with 403,
        which leaves the dialog as it was.
        """
        if self._is_at_its_place(request, place, peer):
            return True
        aor = self.target_finder.user_of(request.from_.uri, now)
        owner = self.target_finder.user_of(peer.uri, now) if peer is not None else None
        if self._verifier is None or aor is None or aor != owner:
            raise RemoteError("Forbidden", 403)
        return self._is_proven(server, request, aor, now, proxy=proxy)

    def _decide(self, server: ServerHandle, request: Request, now: float) -> None:
        domain = self._domains.of(request.uri)
        if request.to.tag is not None and not self.target_finder.is_gruu(request.uri):
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        own = self.called(request, server.flow) if domain is None else None
        if own is not None and not request.routes:
            server.request = request = request.replace(uri=own)
            domain = self._domains.of(own)
        if domain is None or request.routes:
            self._relay(server, request, now)
        elif request.method == "REGISTER":
            self.registrar.on_register(server, request, now)  # §10.3 [in-order]
        elif request.method == "OPTIONS" and not request.uri.user:
            abilities = self._ua.extensions.abilities(request, ALLOWED)  # §11 [takes-options]
            server.reply(200, now, headers=abilities)
        elif self._is_admitted(server, request, now):
            if self.target_finder.is_gruu(request.uri):
                self._deliver_to_device(server, server.request, now)
            else:
                self._deliver(server, server.request, now)  # §16.2 [same-steps-for-any-method]

    def _deliver_to_device(self, server: ServerHandle, request: Request, now: float) -> None:
        """Deliver to one device of a user, judged as a request for its user: RFC 5627 §6.1."""
        aor, gruu = self.target_finder.user_of(request.uri, now), request.uri
        if aor is None:
            raise RemoteError("Not Found", 404)  # RFC 5627 §6.1 [404-for-no-gruu]
        user = gruu.replace(user=aor[0], params=(), headers=())
        server.request = request = request.replace(uri=user)
        self.judge.judge(server, request, now)  # RFC 5627 §6.1 [screened-as-the-user]
        self.proxy.check(request)
        bound = self.target_finder.device(gruu, now)
        chosen = self._callable(server, gruu, bound, now)
        if not chosen:
            # RFC 5627 §6.1 [480-without-contact], §5.3 [480-meanwhile]
            raise self._unavailable(request, now)
        self.forward(server, self.target_finder.targets(chosen, is_device=True), now)

    def _deliver(self, server: ServerHandle, request: Request, now: float) -> None:
        """Deliver a request to a user of ours: the hook first, then the bindings.

        RFC 3261 §16.3, §16.5.  The hook takes calls and messages (RFC 3428 §7).  Another request
        goes to the user's phones, and is answered here if there are none.
        Departs from RFC 3261 §16.5 [404-for-nobody]: any new connection may bring a user.
        """
        self.judge.judge(server, request, now)
        acceptor = self.route(request)
        if acceptor is not None and request.method in FOR_THE_HOOK:
            acceptor(server, now)
            return
        if acceptor is None:
            self.proxy.check(request)  # before the search for targets: §16.3 [checks-come-first]
        bound = self.registrar.bindings(request.uri, now)  # §10.1 [one-location-service]
        chosen = self._callable(server, request.uri, bound, now)
        if targets := self.target_finder.targets(chosen):
            self.forward(server, targets, now)
        elif acceptor is None:
            # §16.5 [no-empty-set] [480-when-empty]; RFC 5630 §5.3 [480-without-sips]
            raise self._unavailable(request, now)
        elif request.method == "OPTIONS":
            abilities = self._ua.extensions.abilities(request)  # §11 [takes-options]
            server.reply(200, now, headers=abilities)
        elif request.method in ALLOW.split(", "):
            raise RemoteError("Call/Transaction Does Not Exist", 481)  # §15.1.2: it needs a dialog
        else:
            refuse_method(request)

    def _callable(
        self, server: ServerHandle, uri: Uri, bound: Sequence[Binding], now: float
    ) -> list[Binding]:
        """The bindings that a request for `uri` may go to."""
        proven = [binding for binding in bound if binding.is_proven]
        return [  # RFC 5630 §5.3 [sips-stays-sips] [no-sip-contact]
            binding
            for binding in self.judge.choose(server, proven, now)
            if not self._stack.is_ours(binding.contact.uri)  # a line that is gone
            and (uri.scheme != "sips" or binding.contact.uri.scheme == "sips")
        ]

    def _unavailable(self, request: Request, now: float) -> RefusalError:
        """Refuse with 480 and its cause: RFC 3261 §21.4.18.

        Where users have passwords, only users are told the cause, and the log always is: strangers
        could otherwise find out the names of users.
        """
        aor = self._domains.address_of_record(request.uri)
        if self._verifier is not None and aor is not None and not self._verifier.knows(aor):
            cause = NO_SUCH_USER
        elif self.registrar.bindings(request.uri, now):
            cause = CONTACT_GONE
        else:
            is_bound = bool(self.registrar.registered(request.uri, now))
            cause = NOT_CONFIRMED if is_bound else NOT_REGISTERED
        caller = self._domains.address_of_record(request.from_.uri)
        is_told = self._verifier is None or (caller is not None and self._verifier.knows(caller))
        return RefusalError(480, cause if is_told else REASONS[480], cause=cause)

    def _relay(self, server: ServerHandle, request: Request, now: float) -> None:
        """Send a request to another domain, for users of ours alone: RFC 3261 §16.5."""
        if request.uri.scheme == "tel":
            raise RemoteError("Unsupported URI Scheme", 416)  # tel: §16.3 [416-for-schemes]
        is_ours = _is_born_here(server) or self._may_send_on(request.from_.uri, server.flow)
        if request.method == "REGISTER" or not is_ours:
            raise RemoteError("Forbidden", 403)
        if self._is_admitted(server, request, now):
            self.judge.judge(server, request, now)
            self.forward(server, [Target(request.uri)], now)  # §16.5 [foreign-alone] [adds-none]

    def _may_send_on(self, user: Uri, flow: Flow) -> bool:
        """Whether a user, proved by a password if there are any, may send on: RFC 3261 §16.5."""
        is_of_us = self._domains.of(user) is not None
        return is_of_us and (self._verifier is not None or _is_of_this_machine(flow))

    def _follows(self, user: Uri, flow: Flow, request: Request) -> bool:
        """Whether `user` may send a request of its dialog where its peer wants it: §12.2."""
        is_allowed = flow.transport == LOCAL or self._may_send_on(user, flow)
        return is_allowed and self.judge.may_follow(request)

    def forward(self, server: ServerHandle, targets: Sequence[Target], now: float) -> None:
        """Send a request on by the proxy, without credentials for us: RFC 3261 §16.6."""
        server.request = self._without_secrets(server.request)
        aor = self._domains.address_of_record(server.request.from_.uri)
        user = "@".join(aor) if aor is not None and self._verifier is not None else None
        self.proxy.forward(server, targets, now, user=user)

    def _without_secrets(self, request: Request) -> Request:
        """The request without the credentials for our realms: RFC 3261 §22.3."""
        if self._verifier is None:
            return request
        return without_credentials(request, *self._verifier.users.realms)

    def _is_admitted(self, server: ServerHandle, request: Request, now: float) -> bool:
        """Whether the sender may use its From; challenges it if not: RFC 3261 §22.3.

        A caller in this process needs no password if its name is not that of a user: it is the
        stream of a stock tool.  Nor does it under the name that the operator lets such streams use.
        """
        aor = self._domains.address_of_record(request.from_.uri)
        if self._verifier is None or aor is None:
            return True
        if _is_born_here(server) and (
            request.to.tag is not None  # in a call of a user agent of this process
            or not self._verifier.knows(aor)
            or self.is_trusted_user(request.from_.uri)
            or self.vouches(request)
        ):
            return True
        if not self._is_proven(server, request, aor, now, proxy=True):  # §16.3 [checks-passwords]
            return False
        for contact in request.contacts:
            if self.target_finder.is_gruu(contact.uri) and self.target_finder.user_of(
                contact.uri, now
            ) not in (
                None,
                aor,
            ):
                raise RemoteError("GRUU Of Another User", 403)  # RFC 5627 §6.2 [403-for-anothers]
        return True

    def _is_proven(
        self, server: ServerHandle, request: Request, aor: Aor, now: float, *, proxy: bool
    ) -> bool:
        """Whether `aor` is proved; challenges if not: RFC 3261 §22.2, or §22.3 for `proxy`."""
        assert self._verifier is not None
        challenges = self._verifier.demand(
            request, aor, self._domains, now, proxy=proxy, source=server.flow
        )
        if challenges:  # §22.1 [proxy-asks-by-407], RFC 3428 §11.1 [proxy-asks]
            server.reply(407 if proxy else 401, now, headers=challenges)
        return not challenges


def _refuse_secure(request: Request) -> None:
    """Refuse SIPS in the clear: RFC 3261 §26.2.2, §16.3 item 2; RFC 5630 §5.2, §5.3."""
    if needs_tls(request):  # RFC 7118 §9.2 [sips-by-wss]
        raise RemoteError("Unsupported URI Scheme", 416)
    if any(not each.is_star and each.uri.scheme == "sips" for each in request.contacts):
        # RFC 5630 §5.3 [400-for-a-mix], §5.1.2 [400-for-a-mix]
        raise RemoteError("SIPS Contact Without TLS", 400)


def _is_born_here(server: ServerHandle) -> bool:
    """Whether this process made the request: it has no Via but that of this process."""
    return server.flow.transport == LOCAL and len(server.request.vias) == 1


def _is_of_this_machine(flow: Flow) -> bool:
    """Whether another process of this machine made the request, and no page in a browser."""
    is_proof = flow.transport != LOCAL and flow.transport not in WEB
    return is_proof and is_loopback(flow.remote[0])
