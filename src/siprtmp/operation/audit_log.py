"""Log lines for SIP beyond the gateway's own calls: registrations, proxied calls, refusals.

Own design: it is told of every request, and what the registrar and the proxy decide (RFC 3261
§16.3).  Lines have names and addresses, never a password or a digest of one.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from p2psip.server.registrar import Registrar
from p2psip.server.response_context import ResponseContext
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.transaction.flow import LOCAL, Flow
from siprtmp.operation.logs import Log

REFUSED: Final = {"INVITE": "call-refused", "MESSAGE": "message-refused"}


def _nobody(server: ServerHandle, request: Request, response: Response, now: float) -> None:
    """Ignore a final response."""


class AuditLog:
    """Logs the decisions of a `SipElement`, of which it is the observer.

    `on_final` is called with the first final response to each request but a REGISTER.
    `client_host(request)` is the host of the client for which this process has made a request.
    """

    def __init__(
        self,
        registrar: Registrar,
        log: Log,
        on_final: Callable[[ServerHandle, Request, Response, float], None] = _nobody,
        client_host: Callable[[Request], str | None] = lambda request: None,
    ) -> None:
        self._registrar, self._log, self._on_final = registrar, log, on_final
        self._client_host = client_host

    def on_request(self, server: ServerHandle, request: Request, now: float) -> None:
        """Have the result of a request logged: RFC 3261 §16.3."""
        if request.method == "REGISTER":
            before = self._contacts(request.to.uri, now)
            server.on_final = partial(self._registered, request, before)
        else:
            server.on_final = partial(self._answered, request)

    def on_dispatched(self, server: ServerHandle, request: Request) -> None:
        """Log the beginning or the end of a call that was sent on: RFC 3261 §16.3."""
        is_forwarded = isinstance(server.user, ResponseContext)
        if not is_forwarded or server.flow.transport == LOCAL:  # our own calls have other lines
            return
        if request.method == "INVITE" and request.to.tag is None:
            self._log.event("proxy-start", **_call(request), source=_place(server.flow))
        elif request.method == "BYE":
            self._log.event("proxy-end", call=request.call_id, reason="BYE")

    def _registered(
        self,
        request: Request,
        before: frozenset[str],
        server: ServerHandle,
        response: Response,
        now: float,
    ) -> None:
        """Log the contacts that have come or gone: RFC 3261 §10.3; a refresh changes none."""
        values = {"source": self._source(server, request), "user": user_and_host(request.to.uri)}
        if response.status >= 300:
            self._refused(request, response, **values)
            return
        after = self._contacts(request.to.uri, now)
        for contact in sorted(after - before):
            self._log.event("registered", **values, contact=contact)
        for contact in sorted(before - after):
            self._log.event("unregistered", **values, contact=contact)

    def _answered(
        self, request: Request, server: ServerHandle, response: Response, now: float
    ) -> None:
        """Log the result of a proxied call, and a login that failed."""
        self._on_final(server, request, response, now)
        if _is_login(request) and _is_about_logins(response):
            self._refused(request, response, source=self._source(server, request),
                          user=user_and_host(request.from_.uri))  # fmt: skip
        is_call = request.method in REFUSED and request.to.tag is None
        if not is_call or response.status in (401, 407) or server.flow.transport == LOCAL:
            return
        result = f"{response.status} {server.cause or response.reason}"
        if server.user is None:  # refused before any phone was asked
            what, call = REFUSED[request.method], _call(request)
            if response.status >= 300:  # or a client here has taken a message
                self._log.event(what, **call, source=_place(server.flow), reason=result)
        elif request.method != "INVITE":
            return
        elif isinstance(server.user, ResponseContext) and response.status < 300:
            self._log.event("proxy-answer", call=request.call_id)
        elif isinstance(server.user, ResponseContext):
            self._log.event("proxy-end", call=request.call_id, reason=result)

    def _refused(self, request: Request, response: Response, **values: str) -> None:
        """Log a refusal, unless it only asks for a login, the first time or again: RFC 7616 §3.3.

        The source stands first, where a tool finds it before any text that the sender wrote.  A
        guess that has to wait gets no line, so that one source causes few.
        """
        if response.status == 503:
            return
        challenges = [
            text
            for name in ("WWW-Authenticate", "Proxy-Authenticate")
            for text in response.headers.values(name)
        ]
        is_asked = response.status in (401, 407) and not _is_login(request)
        if not is_asked and not any("stale=true" in text.lower() for text in challenges):
            is_login = _is_login(request) and _is_about_logins(response)
            what = "login-refused" if is_login else "registration-refused"
            # RFC 7616 §3.4 [failures-are-logged] [no-password-in-log]
            self._log.event(what, **values, reason=f"{response.status} {response.reason}")

    def _source(self, server: ServerHandle, request: Request) -> str:
        """The place a request came from; for one of this process the place of its RTMP client."""
        is_born_here = server.flow.transport == LOCAL and len(request.vias) == 1
        host = self._client_host(request) if is_born_here else None
        return _place(server.flow) if host is None else f"RTMP:{host}"

    def _contacts(self, uri: Uri, now: float) -> frozenset[str]:
        bindings = self._registrar.registered(uri, now)
        return frozenset(address_of(binding.contact.uri) for binding in bindings)


def _is_login(request: Request) -> bool:
    """Whether a request has credentials, good or bad: RFC 3261 §22."""
    return any(request.headers.get(name) for name in ("Authorization", "Proxy-Authorization"))


def _is_about_logins(response: Response) -> bool:
    """Whether a refusal is about the credentials; other refusals have other reasons."""
    return response.status in (401, 407) or (response.status, response.reason) == (403, "Forbidden")


def _call(request: Request) -> dict[str, str]:
    caller, callee = user_and_host(request.from_.uri), user_and_host(request.uri)
    return {"call": request.call_id, "caller": caller, "callee": callee}


def user_and_host(uri: Uri) -> str:
    """The URI without its password, port and parameters: RFC 3261 §19.1.1."""
    return str(Uri(uri.scheme, uri.user, None, uri.host))


def address_of(uri: Uri) -> str:
    """The URI with its port, without its password and parameters: RFC 3261 §19.1.1."""
    return str(Uri(uri.scheme, uri.user, None, uri.host, uri.port))


def _place(flow: Flow) -> str:
    return flow.transport if flow.transport == LOCAL else f"{flow.transport}:{flow.remote[0]}"
