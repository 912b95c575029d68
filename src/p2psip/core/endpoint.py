"""The core of an element that is user agent, registrar and proxy in one.

Implements RFC 3261 §16.3 to §16.5 as far as deciding goes: for each new request, which of
the three it is for.

Own design: no open relay.  What goes to our own domains is let through; what goes elsewhere
needs a user of ours, who proves it by Digest; and who claims to be of ours must prove it.
A dialog that was set up through us is recognised by the proof in our Record-Route.
"""

import ipaddress
from collections.abc import Callable
from typing import Final, Protocol

from p2psip.core.domains import Domains
from p2psip.core.proxy import Proxy, Target, is_local
from p2psip.core.registrar import Registrar, route_to
from p2psip.core.stack import Flow, ServerHandle, Stack
from p2psip.core.verifier import Verifier
from p2psip.errors import RemoteError
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri

ALLOWED: Final = ("INVITE", "ACK", "CANCEL", "BYE", "OPTIONS", "REGISTER", "INFO", "UPDATE")

Acceptor = Callable[[ServerHandle, float], None]


class DialogUser(Protocol):
    """The user agents behind this element: what they need to be asked.  Own design."""

    def matches(self, request: Request) -> bool:
        """Whether the request is within one of their dialogs: RFC 3261 §12.2.2."""

    def on_request(self, server: ServerHandle, request: Request, now: float) -> None:
        """Take a request within a dialog: RFC 3261 §12.2.2."""

    def on_ack(self, request: Request, flow: Flow, now: float) -> None:
        """Take the ACK of a 2xx: RFC 3261 §13.3.1.4."""


class Endpoint:
    """Decides who gets a request: RFC 3261 §16.3.

    `route(request)` may take a request for a user of ours by returning who accepts it.
    Without an `verifier` there are no users to check: then only this machine may send
    to other domains.  `nat` sends to where a phone registered from.
    """

    def __init__(
        self,
        stack: Stack,
        agents: DialogUser,
        registrar: Registrar,
        proxy: Proxy,
        domains: Domains,
        *,
        route: Callable[[Request], Acceptor | None] = lambda request: None,
        verifier: Verifier | None = None,
        nat: bool = False,
    ) -> None:
        self._stack, self._agents, self._domains = stack, agents, domains
        self.registrar, self.proxy = registrar, proxy
        self._route, self._verifier, self._nat = route, verifier, nat
        stack.core = self

    def on_request(self, server: ServerHandle, request: Request, now: float) -> None:
        """Give a new request to a user agent, the registrar, or the proxy: RFC 3261 §16.3."""
        if self._agents.matches(request):
            self._agents.on_request(server, request, now)
            return
        request, is_ours = self.proxy.take_route(request)
        server.request = request
        try:
            self._decide(server, request, is_ours, now)
        except RemoteError as error:
            server.reply(error.status, now, error.reason)

    def on_ack(self, request: Request, flow: Flow, now: float) -> None:
        """Give the ACK of a 2xx to its dialog, or send it on: RFC 3261 §16.11."""
        if self._agents.matches(request):
            self._agents.on_ack(request, flow, now)
            return
        request, is_ours = self.proxy.take_route(request)
        if is_ours and not self._stack.is_ours(request.uri):
            self.proxy.forward_ack(request, now)

    def _decide(self, server: ServerHandle, request: Request, proven: bool, now: float) -> None:
        within_dialog = request.to.tag is not None
        if within_dialog and proven and not self._stack.is_ours(request.uri):
            self.proxy.forward(server, [Target(request.uri)], now, record_route=True)
            return
        domain = self._domains.of(request.uri)
        if domain is None:
            self._relay(server, request, now)
        elif within_dialog:
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        elif request.method == "REGISTER":
            self.registrar.on_register(server, request, now)
        elif request.method == "OPTIONS" and not request.uri.user:
            server.reply(200, now, headers=[("Allow", ", ".join(ALLOWED))])
        elif self._is_admitted(server, request, now):
            self._deliver(server, request, domain, now)

    def _deliver(self, server: ServerHandle, request: Request, domain: str, now: float) -> None:
        """To a user of ours: the hook first, then the bindings.  RFC 3261 §16.5."""
        acceptor = self._route(request) if request.method == "INVITE" else None
        if acceptor is not None:
            acceptor(server, now)
            return
        targets = [
            Target(binding.contact.uri, route_to(binding, nat=self._nat))
            for binding in self.registrar.bindings(request.uri, now)
            if not self._stack.is_ours(binding.contact.uri)  # a line that is gone
        ]
        if targets:
            self.proxy.forward(server, targets, now, record_route=not is_local(server.flow))
        elif self._is_unknown(request.uri, domain):
            raise RemoteError("Not Found", 404)
        else:
            raise RemoteError("Temporarily Unavailable", 480)

    def _relay(self, server: ServerHandle, request: Request, now: float) -> None:
        """To a domain that is not ours, for users of ours alone: RFC 3261 §16.5."""
        if request.method == "REGISTER":
            raise RemoteError("Forbidden", 403)
        if not is_local(server.flow):
            if self._domains.of(request.from_.uri) is None:
                raise RemoteError("Forbidden", 403)
            if self._verifier is None and not _is_loopback(server.flow):
                raise RemoteError("Forbidden", 403)
            if not self._is_admitted(server, request, now):
                return
        self.proxy.forward(
            server, [Target(request.uri)], now, record_route=not is_local(server.flow)
        )

    def _is_admitted(self, server: ServerHandle, request: Request, now: float) -> bool:
        """Whether the sender may speak as who it says; challenges it if not: RFC 3261 §22.3."""
        aor = self._domains.address_of_record(request.from_.uri)
        if self._verifier is None or aor is None or self._vouches(request, server.flow):
            return True
        realm = self._verifier.users.realm_for(aor[1])
        answer = self._verifier.check(request, aor[0], realm, now, proxy=True)
        if not isinstance(answer, str):
            server.reply(407, now, headers=answer)
            return False
        if answer != aor[0]:
            raise RemoteError("Forbidden", 403)
        return True

    def _vouches(self, request: Request, flow: Flow) -> bool:
        """A caller inside this process that is none of the users: a stock tool's stream."""
        if not is_local(flow) or self._verifier is None:
            return False
        aor = self._domains.address_of_record(request.from_.uri)
        if aor is None:
            return True
        users = self._verifier.users
        return not users.has(aor[0], users.realm_for(aor[1]))

    def _is_unknown(self, uri: Uri, domain: str) -> bool:
        if self._verifier is None:
            return False
        users = self._verifier.users
        return not users.has(uri.user or "", users.realm_for(domain))


def _is_loopback(flow: Flow) -> bool:
    try:
        return ipaddress.ip_address(flow.remote[0]).is_loopback
    except ValueError:
        return False
