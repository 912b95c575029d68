"""What the log says of SIP beyond the gateway's own calls: who registers, calls, and may not.

Own design: it stands before the registrar and the proxy and passes everything on; RFC 3261 §16.3 is
where they decide.  Names and addresses are told, never a password or a proof of one.
"""

from collections.abc import Callable
from functools import partial

from p2psip.server.element import SipElement
from p2psip.server.response_context import ResponseContext
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.transaction.flow import LOCAL, Flow
from siprtmp.operation.logs import Log


def _nobody(server: ServerHandle, request: Request, response: Response, now: float) -> None:
    """Drop the news of a final response: nobody wants it."""


class AuditLog:
    """The core of a stack (RFC 3261 §5) that tells what another one does.

    Own design: `on_final` is called with all first final responses but to a REGISTER.
    `whence(request)` tells the host of the client for whom this process has made a request.
    """

    def __init__(
        self,
        endpoint: SipElement,
        log: Log,
        on_final: Callable[[ServerHandle, Request, Response, float], None] = _nobody,
        whence: Callable[[Request], str | None] = lambda request: None,
    ) -> None:
        self._endpoint, self._log, self._on_final = endpoint, log, on_final
        self._whence = whence

    def on_request(self, server: ServerHandle, request: Request, now: float) -> None:
        """Pass it on, and see what becomes of it: RFC 3261 §16.3."""
        if request.method == "REGISTER":
            before = self._contacts(request.to.uri, now)
            server.on_final = partial(self._registered, request, before)
        else:
            server.on_final = partial(self._answered, request)
        self._endpoint.on_request(server, request, now)
        is_forwarded = isinstance(server.user, ResponseContext)
        if not is_forwarded or server.flow.transport == LOCAL:  # what is born here has its lines
            return
        if request.method == "INVITE" and request.to.tag is None:
            self._log.event("proxy-start", **_call(request), source=_place(server.flow))
        elif request.method == "BYE":
            self._log.event("proxy-end", call=request.call_id, reason="BYE")

    def on_ack(self, request: Request, flow: Flow, now: float) -> None:
        """Pass it on: RFC 3261 §16.11."""
        self._endpoint.on_ack(request, flow, now)

    def _registered(
        self,
        request: Request,
        before: frozenset[str],
        server: ServerHandle,
        response: Response,
        now: float,
    ) -> None:
        """Tell what has changed: RFC 3261 §10.3; a refresh changes nothing."""
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
        """Tell what came of a call that is none of ours, or a login that failed."""
        self._on_final(server, request, response, now)
        if _is_login(request) and _is_about_logins(response):
            self._refused(request, response, source=self._source(server, request),
                          user=user_and_host(request.from_.uri))  # fmt: skip
        is_call = request.method == "INVITE" and request.to.tag is None
        if not is_call or response.status in (401, 407) or server.flow.transport == LOCAL:
            return
        result = f"{response.status} {server.cause or response.reason}"
        if server.user is None:  # nobody was asked
            call = _call(request)
            self._log.event("call-refused", **call, source=_place(server.flow), reason=result)
        elif isinstance(server.user, ResponseContext) and response.status < 300:
            self._log.event("proxy-answer", call=request.call_id)
        elif isinstance(server.user, ResponseContext):
            self._log.event("proxy-end", call=request.call_id, reason=result)

    def _refused(self, request: Request, response: Response, **values: str) -> None:
        """A login, unless it was only asked for, or asked for again: RFC 7616 §3.3.

        The source stands first, where a tool finds it before anything that its sender wrote.  Who
        has to wait for another guess gets no line, so that there are few from any one source.
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
            self._log.event(what, **values, reason=f"{response.status} {response.reason}")

    def _source(self, server: ServerHandle, request: Request) -> str:
        """Where it came from; what was born here, from the client behind it."""
        is_born_here = server.flow.transport == LOCAL and len(request.vias) == 1
        host = self._whence(request) if is_born_here else None
        return _place(server.flow) if host is None else f"RTMP:{host}"

    def _contacts(self, uri: Uri, now: float) -> frozenset[str]:
        bindings = self._endpoint.registrar.registered(uri, now)
        return frozenset(address_of(binding.contact.uri) for binding in bindings)


def _is_login(request: Request) -> bool:
    """Whether it has credentials, good or bad: RFC 3261 §22."""
    return any(request.headers.get(name) for name in ("Authorization", "Proxy-Authorization"))


def _is_about_logins(response: Response) -> bool:
    """Whether the credentials were at fault; other refusals of ours give other reasons."""
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
