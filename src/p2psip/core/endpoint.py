"""The core of an element that is user agent, registrar and proxy in one.

Implements RFC 3261 §16.3 to §16.5 as far as deciding goes: for each new request, which of
the three it is for.

Own design: no open relay.  What goes to our own domains is let through; what goes elsewhere
needs a user of ours, who proves it by Digest; and who claims to be of ours must prove it.
A dialog that was set up through us is recognised by the proof in our Record-Route.
"""

import ipaddress
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from p2psip.core.domains import Domains
from p2psip.core.proxy import Proxy, Target
from p2psip.core.registrar import Binding, Registrar
from p2psip.core.screening import ALLOW, SDP, RefusalError, refuse_extensions
from p2psip.core.stack import Flow, ServerHandle, Stack
from p2psip.core.verifier import Verifier, without_credentials
from p2psip.errors import RemoteError
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import LOCAL

ALLOWED: Final = f"{ALLOW}, REGISTER"

Acceptor = Callable[[ServerHandle, float], None]


class DialogUser(Protocol):
    """The user agents behind this element: what they need to be asked.  Own design."""

    def matches(self, request: Request) -> bool:
        """Whether the request is within one of their dialogs: RFC 3261 §12.2.2."""

    def on_request(self, server: ServerHandle, request: Request, now: float) -> None:
        """Take a request within a dialog: RFC 3261 §12.2.2."""

    def on_ack(self, request: Request, flow: Flow, now: float) -> None:
        """Take the ACK of a 2xx: RFC 3261 §13.3.1.4."""


class Judge(Protocol):
    """Who says what users may do, when they have proved who they are.  Own design."""

    def judge(self, server: ServerHandle, request: Request, now: float) -> None:
        """Judge what begins something; raises RemoteError to refuse it: RFC 3261 §16.3."""

    def choose(self, bindings: Sequence[Binding]) -> list[Binding]:
        """Those that may be called; raises RemoteError if none may: RFC 3261 §16.5."""


class Lenient:
    """A judge who allows everything.  Own design: the default."""

    def judge(self, server: ServerHandle, request: Request, now: float) -> None:
        """Let it pass: RFC 3261 §16.3."""

    def choose(self, bindings: Sequence[Binding]) -> list[Binding]:
        """All of them: RFC 3261 §16.5."""
        return list(bindings)


class Endpoint:
    """Decides who gets a request: RFC 3261 §16.3.

    `route(request)` may take a request for a user of ours by returning who accepts it.
    Without a `verifier` there are no users to check: then only this machine may send
    to other domains.  `vouches(uri)` tells whether this process may call as that user without a
    password.  `nat` sends to where a phone registered from.  `judge` has the last word.
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
        vouches: Callable[[Uri], bool] = lambda uri: False,
        nat: bool = False,
        judge: Judge | None = None,
    ) -> None:
        self._judge = Lenient() if judge is None else judge
        self._stack, self._agents, self._domains = stack, agents, domains
        self.registrar, self.proxy = registrar, proxy
        self._route, self._verifier, self._nat = route, verifier, nat
        self._vouches = vouches
        stack.core = self
        stack.know(self._known_flows)

    def on_request(self, server: ServerHandle, request: Request, now: float) -> None:
        """Give a new request to a user agent, the registrar, or the proxy: RFC 3261 §16.3."""
        if self._agents.matches(request):
            self._agents.on_request(server, request, now)
            return
        request, is_proven = self.proxy.take_route(request)
        server.request = request
        try:
            if is_proven and request.to.tag is not None and not self._stack.is_ours(request.uri):
                self._forward(server, [Target(request.uri)], now)
            else:
                self._decide(server, request, now)
        except RefusalError as refusal:
            server.reply(refusal.status, now, refusal.reason, refusal.headers)
        except RemoteError as error:
            server.reply(error.status, now, error.reason)

    def on_ack(self, request: Request, flow: Flow, now: float) -> None:
        """Give the ACK of a 2xx to its dialog, or send it on: RFC 3261 §16.11."""
        if self._agents.matches(request):
            self._agents.on_ack(request, flow, now)
            return
        request, is_proven = self.proxy.take_route(request)
        if is_proven and not self._stack.is_ours(request.uri):
            self.proxy.forward_ack(request, now)

    def _decide(self, server: ServerHandle, request: Request, now: float) -> None:
        domain = self._domains.of(request.uri)
        if domain is None or request.routes:
            self._relay(server, request, now)
        elif request.to.tag is not None:
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        elif request.method == "REGISTER":
            self.registrar.on_register(server, request, now)
        elif request.method == "OPTIONS" and not request.uri.user:
            refuse_extensions(request)
            server.reply(200, now, headers=[("Allow", ALLOWED), ("Accept", SDP)])
        elif self._is_admitted(server, request, now):
            self._deliver(server, server.request, now)

    def _deliver(self, server: ServerHandle, request: Request, now: float) -> None:
        """To a user of ours: the hook first, then the bindings.  RFC 3261 §16.5.

        What is no call is for the phones of a user, if there are any, and else ours to answer.
        Never a 404: who cannot be called now may come with any connection.
        """
        self._judge.judge(server, request, now)
        acceptor = self._route(request)
        if acceptor is not None and request.method == "INVITE":
            acceptor(server, now)
            return
        targets = [
            self._target(binding)
            for binding in self._judge.choose(self.registrar.bindings(request.uri, now))
            if not self._stack.is_ours(binding.contact.uri)  # a line that is gone
        ]
        if targets:
            self._forward(server, targets, now)
        elif acceptor is None:
            raise RemoteError("Temporarily Unavailable", 480)
        elif request.method == "OPTIONS":
            refuse_extensions(request)
            server.reply(200, now, headers=[("Allow", ALLOW), ("Accept", SDP)])  # §11.2
        elif request.method in ALLOW.split(", "):
            raise RemoteError("Call/Transaction Does Not Exist", 481)  # §15.1.2: it needs a dialog
        else:
            raise RefusalError(405, "Method Not Allowed", [("Allow", ALLOW)])  # §8.2.1

    def _relay(self, server: ServerHandle, request: Request, now: float) -> None:
        """To somebody who is not ours, for users of ours alone: RFC 3261 §16.5."""
        if request.uri.scheme == "tel":
            raise RemoteError("Unsupported URI Scheme", 416)  # nobody here knows the way
        is_refused = request.method == "REGISTER" or (
            not _is_born_here(server)
            and (
                self._domains.of(request.from_.uri) is None
                or (self._verifier is None and not _is_loopback(server.flow))
            )
        )
        if is_refused:
            raise RemoteError("Forbidden", 403)
        if self._is_admitted(server, request, now):
            self._judge.judge(server, request, now)
            self._forward(server, [Target(request.uri)], now)

    def _forward(self, server: ServerHandle, targets: Sequence[Target], now: float) -> None:
        """Stay on the way of the dialog, unless its caller lives here: RFC 3261 §16.6 step 4."""
        self.proxy.forward(server, targets, now, record_route=not _is_born_here(server))

    def _target(self, binding: Binding) -> Target:
        """A phone: by its own connection first, then as its Contact says.

        If its Contact is another user's too, by its own connection alone.
        """
        uri = binding.contact.uri
        if self.registrar.at(uri) is binding:
            return Target(uri, self._stack.flows_to(uri))
        return Target(uri, binding.way(nat=self._nat) or None)

    def _known_flows(self, uri: Uri) -> Sequence[Flow]:
        binding = self.registrar.at(uri)
        return binding.way(nat=self._nat) if binding else ()

    def _is_admitted(self, server: ServerHandle, request: Request, now: float) -> bool:
        """Whether the sender may speak as who it says; challenges it if not: RFC 3261 §22.3.

        Own design: a caller in this process that is none of the users needs no password, it
        is a stock tool's stream; nor does the user whom the operator lets such streams call as.
        """
        aor = self._domains.address_of_record(request.from_.uri)
        if self._verifier is None or aor is None:
            return True
        if _is_born_here(server) and (
            not self._verifier.knows(aor) or self._vouches(request.from_.uri)
        ):
            return True
        challenges = self._verifier.demand(request, aor, self._domains, now, proxy=True)
        if challenges:
            server.reply(407, now, headers=challenges)
            return False
        realm = self._verifier.users.realm_for(aor[1])
        server.request = without_credentials(request, realm)
        return True


def _is_born_here(server: ServerHandle) -> bool:
    """Whether a user of this very process made the request: none but its own Via is on it."""
    return server.flow.transport == LOCAL and len(server.request.vias) == 1


def _is_loopback(flow: Flow) -> bool:
    return ipaddress.ip_address(flow.remote[0]).is_loopback
