"""The tree on the HTTP listener: `/tree/...` by plain HTTP, and WebSocket `/tree`.

Implements Resources §9 and §10.
"""

from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import Any, Final

import gevent

from p2psip.errors import RemoteError
from p2psip.net.clock import monotonic
from rtmplite.net.connection_limit import ConnectionLimit
from rtmplite.net.http.websocket import WebSocket, is_upgrade
from rtmplite.net.http.wsgi import Handler, detach
from siprtmp.edge.web.tree_access import TreeAccess
from siprtmp.edge.web.tree_socket import TreeSocket
from siprtmp.edge.web.tree_store import SqliteStore
from siprtmp.operation.logs import Log
from siprtmp.web.resources import http
from siprtmp.web.resources.messages import PROTOCOL
from siprtmp.web.resources.tree import Tree

MAX_CONNECTIONS: Final = 20_000
MAX_FRAMES: Final = 64  # that are kept until the turn of the loop ends
LOOK_SECONDS: Final = 5.0  # between looks for silent clients
WRONG_SECONDS: Final = 1.0  # until a wrong password is answered; other clients do not wait
LIBRARY: Final = "/tree.js"
_REFUSED: Final = "siprtmp.refused"  # in the environment of a request for a WebSocket
_PREFLIGHT: Final = [
    ("Access-Control-Allow-Methods", http.ALLOWED),
    ("Access-Control-Allow-Headers", "Authorization, Content-Type, If-Match, If-None-Match"),
    ("Access-Control-Max-Age", "600"),
]


class TreeSide:
    """A neighbour of the streams of `FlvHttp`; `random` names the connections."""

    def __init__(
        self,
        tree: Tree,
        access: TreeAccess,
        random: Callable[[int], bytes],
        log: Log,
        store: SqliteStore | None = None,
    ) -> None:
        self.tree, self._access, self._random, self._log = tree, access, random, log
        self._store = store
        self._sockets: dict[TreeSocket, None] = {}
        self._dirty: list[TreeSocket] = []
        self._limit = ConnectionLimit()
        self._frames: dict[str, bytes] = {}
        self._timer: Any = gevent.get_hub().loop.timer(LOOK_SECONDS, LOOK_SECONDS)
        self._timer.start(self._look)

    def serves(self, environ: dict[str, Any]) -> bool:
        """Whether a request is for the tree, or for the module that pages load."""
        return http.serves(environ) or environ["PATH_INFO"] == LIBRARY

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a request by plain HTTP, or one for a WebSocket that is refused."""
        if environ["PATH_INFO"] == LIBRARY:
            return _library(environ, start)
        more = [("Connection", "close")]
        try:
            origin = self._access.check_page(environ)
            if origin:
                more += [
                    ("Access-Control-Allow-Origin", origin),
                    ("Access-Control-Expose-Headers", "ETag, Location"),
                    ("Vary", "Origin"),
                ]
            if environ["REQUEST_METHOD"] == "OPTIONS":
                start("204 No Content", [*more, *(_PREFLIGHT if origin else [])])
                return []
            if (refused := environ.get(_REFUSED)) is not None:
                raise refused
            asker = self._access.judge(environ, "", monotonic())
        except RemoteError as error:
            if error.status == 401 and _says_proof(environ):
                source = environ.get("REMOTE_ADDR", "")
                self._log.event("login-refused", source=source, app="tree")
                gevent.sleep(WRONG_SECONDS)
            return http.refuse(error, start, more)
        return http.respond(self.tree, asker, environ, start, more)

    def take(self, handler: Handler) -> bool:
        """Take the socket of a request for a WebSocket; false leaves it to be answered."""
        environ: dict[str, Any] = handler.environ or {}
        if environ["PATH_INFO"] != http.PREFIX or not is_upgrade(environ):
            return False
        host = str(environ.get("REMOTE_ADDR", ""))
        try:
            self._access.check_page(environ)
            asker = self._access.judge(environ, self._random(12).hex(), monotonic())
            web = WebSocket.accept(handler.headers.items(), http.PREFIX, PROTOCOL)
            if web is None:
                raise RemoteError(f"That is no handshake for {PROTOCOL}, or the extra web lacks")
            if len(self._sockets) >= MAX_CONNECTIONS or not self._limit.admits(host):
                raise RemoteError("There is no room for another connection", 503)
        except RemoteError as error:
            environ[_REFUSED] = error
            return False
        connected = TreeSocket(self, self.tree, asker, host, web, detach(handler))
        self._sockets[connected] = None
        return True

    def frame(self, text: str) -> bytes:
        """A message as a frame; each is kept for a while, since many are sent the same."""
        framed = self._frames.get(text)
        if framed is None:
            if len(self._frames) >= MAX_FRAMES:
                self._frames.clear()
            framed = self._frames[text] = WebSocket.text_frame(text)
        return framed

    def schedule(self, connected: TreeSocket) -> None:
        """Have a socket flushed when this turn of the loop ends."""
        if not self._dirty:
            gevent.get_hub().loop.run_callback(self._flush)
        self._dirty.append(connected)

    def forget(self, connected: TreeSocket) -> None:
        """A socket is closed."""
        if connected in self._sockets:
            del self._sockets[connected]
            self._limit.leaves(connected.host)

    def stop(self) -> None:
        """Close all connections."""
        self._timer.stop()
        self._timer.close()
        for each in list(self._sockets):
            each.shut()
        if self._store is not None:
            self._store.close()

    def _flush(self) -> None:
        dirty, self._dirty = self._dirty, []
        for each in dirty:
            each.flush()
        self._frames.clear()

    def _look(self) -> None:
        now = monotonic()
        for each in list(self._sockets):
            each.look(now)


def _library(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    """The client in JavaScript, which pages of all sites may load."""
    headers = [("Connection", "close"), ("Access-Control-Allow-Origin", "*")]
    if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
        start("405 Method Not Allowed", [*headers, ("Allow", "GET, HEAD")])
        return []
    kind = ("Content-Type", "text/javascript; charset=utf-8")
    start("200 OK", [*headers, kind, ("Cache-Control", "no-cache")])
    script = files("siprtmp.web.resources").joinpath("resources.js")
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [script.read_bytes()]


def _says_proof(environ: dict[str, Any]) -> bool:
    said = "HTTP_AUTHORIZATION" in environ, "HTTP_SEC_WEBSOCKET_PROTOCOL" in environ
    return any(said) or "=" in str(environ.get("QUERY_STRING", ""))
