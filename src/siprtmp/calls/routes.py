"""Routes: the operator's choice where a call to an address of ours goes.

Own design: the first `[[route]]` whose pattern matches takes the INVITE; without one
`GatewayCore.find_here` offers it to a client, a room or a stream of that name, else the proxy to
the phones.  A call to another SIP address passes the proxy with a new Request-URI (RFC 3261 §16.5):
a 302 would need a caller that follows it, which trunks do not.  A bridge of two calls would have to
repeat what either side does within its own.
"""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Protocol

from p2psip.errors import RemoteError
from p2psip.server.domains import Domains
from p2psip.server.proxy import Target
from p2psip.sip.message import Request
from p2psip.sip.phone_number import called_number
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from rtmplite.live.streams import Registry
from rtmplite.vod.playlist import Library
from siprtmp.calls.call import Call
from siprtmp.calls.call_app import CallApplication
from siprtmp.calls.failures import FORBIDDEN, failed
from siprtmp.calls.home import CallHome
from siprtmp.calls.played_call import PlayedCall
from siprtmp.settings.routes import USER, RouteSettings

Acceptor = Callable[[ServerHandle, float], None]


class RouteHome(CallHome, Protocol):
    """The part of `GatewayCore` that the routes use."""

    names: CallApplication

    def find_here(self, request: Request) -> Acceptor | None:
        """The client or the stream that a request is for: RFC 3261 §16.5."""

    def forward(self, server: ServerHandle, targets: Sequence[Target], now: float) -> None:
        """Send an INVITE on by the proxy: RFC 3261 §16.6."""


class Routes:
    """All routes in order.

    `registry` has the streams, and `library` the files that they play, once the RTMP side has been
    started.
    """

    def __init__(
        self,
        routes: Sequence[RouteSettings],
        home: RouteHome,
        domains: Domains,
        registry: Registry,
    ) -> None:
        self._routes, self._home, self._domains = routes, home, domains
        self._registry = registry
        self.library: Library | None = None

    def find(self, request: Request) -> Acceptor | None:
        matched = self.match(request)
        return None if matched is None else self._acceptor(*matched)

    def match(self, request: Request) -> tuple[RouteSettings, str] | None:
        """The route that takes a request, and the user that was called."""
        called = self._called(request) if self._routes else ()
        for route in self._routes:
            for user, domain in called:
                matches = fnmatchcase(f"{user}@{domain}".lower(), route.pattern)
                if matches and (route.to or request.method == "INVITE"):
                    return route, user
        return None

    def _called(self, request: Request) -> list[tuple[str, str]]:
        """User and domain of the address that was called, by each of its names.

        A number has no separators.  A call that comes by a trunk has our Contact as its
        Request-URI, and the number that was dialled in To at best.
        """
        uris = [request.uri]
        if self._home.context.trunks.called(request.uri) is not None:
            uris.insert(0, request.to.uri)
        return [(_user(uri), name) for uri in uris for name in self._domains.names_of(uri)]

    def _acceptor(self, route: RouteSettings, user: str) -> Acceptor:
        if route.to:
            return partial(self._send_on, route, route.target(user))
        if route.stream and not route.announce:
            return partial(self._to_stream, route)
        return partial(self._play, route)

    def _send_on(self, route: RouteSettings, target: Uri, server: ServerHandle, now: float) -> None:
        """Give an INVITE to a client or a stream here, or to the proxy: RFC 3261 §16.5.

        Own design: where the caller chooses the number at another server, which may have to be
        paid, it must be a user of ours.
        """
        is_theirs = USER in route.to and self._domains.of(target) is None
        if is_theirs and self._domains.of(server.request.from_.uri) is None:
            raise failed(FORBIDDEN)
        moved = server.request.replace(uri=target)
        acceptor = self._home.find_here(moved)
        if acceptor is not None:
            acceptor(server, now)
        else:
            self._home.forward(server, [Target(target)], now)

    def _to_stream(self, route: RouteSettings, server: ServerHandle, now: float) -> None:
        self._home.names.open(route.stream, self._registry).incoming(server, now)

    def _play(self, route: RouteSettings, server: ServerHandle, now: float) -> None:
        """Play a file; after an announcement alone the stream takes the call, or nobody."""
        then = partial(self._adopt, route.stream) if route.stream else None
        played = PlayedCall(self._home, self.library, route.announce, route.file, then)
        played.incoming(server, now)

    def _adopt(self, stream: str, call: Call, now: float) -> None:
        self._home.names.open(stream, self._registry).adopt(call, now)


def _user(uri: Uri) -> str:
    try:
        return called_number(uri) or uri.user or ""
    except RemoteError:
        return uri.user or ""
