"""Live streams for players in browsers: FLV over HTTP and over WebSocket.

`GET /live/NAME.flv` is answered with a file that never ends, and by WebSocket (RFC 6455 §5.6) with
the same bytes, one message for each tag; flv.js and mpegts.js play either, ffmpeg and VLC the
first.  A late viewer gets header, metadata, codec headers and then a key frame, like any player.

Own design: gevent's pywsgi reads the requests.  Its responses cost a greenlet and a wake-up for
every viewer and message.  So the socket of a viewer is taken from it and fed like that of an RTMP
player: see `flv_viewer`.
"""

import re
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

import gevent

from rtmplite.errors import RemoteError
from rtmplite.flv import metadata
from rtmplite.flv.file import start
from rtmplite.flv.tag import TagType
from rtmplite.live.streams import LiveStream, Registry
from rtmplite.net.connection_limit import ConnectionLimit
from rtmplite.net.descriptors import STRANGERS, is_scarce
from rtmplite.net.http import websocket
from rtmplite.net.http.flv_viewer import FlvViewer, PendingViewer
from rtmplite.net.http.websocket import WebSocket, is_upgrade
from rtmplite.net.http.wsgi import Handler, Server, detach
from rtmplite.net.read_budget import read_budget

REQUEST_TIMEOUT: Final = 10.0  # s for requests, and for answers that are not streams
MAX_CLIENTS: Final = 500  # connections that are not viewers yet
MAX_OF_HOST: Final = 64  # of those from one host; a browser opens six
MAX_VIEWERS: Final = 1000
FETCHING: Final = 5.0  # s to wait for a stream that is pulled from another server

_VERDICT: Final = "rtmplite.admitted"  # in the environment of a request
_NO_ROOM: Final = "rtmplite.no_room"
_PATH: Final = re.compile(r"/([^/]+)/(.+)\.flv")

CORS: Final = [("Access-Control-Allow-Origin", "*")]  # pages of all sites may play it
HEADERS: Final = [("Content-Type", "video/x-flv"), ("Cache-Control", "no-store"), *CORS]
TEXT: Final = [("Content-Type", "text/plain; charset=utf-8"), *CORS]

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Neighbour(Protocol):
    """Another service of the same listener, which may take connections for its own."""

    def take(self, handler: Handler) -> bool:
        """Take the connection of a request; false leaves it to be answered."""

    def serves(self, environ: dict[str, Any]) -> bool:
        """Whether a request that it has not taken is for it."""

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Answer such a request."""


Admits = Callable[[str, str, str, str], Callable[[], None] | None]
OnViewer = Callable[[FlvViewer, LiveStream], None]


def all_may(app: str, name: str, query: str, host: str) -> Callable[[], None]:
    """Admit every viewer, and do nothing when it has left."""
    return lambda: None


class FlvHttp:
    """Serves the streams of `apps` to viewers, as a part of an HTTP server.

    `admits` decides by application, stream, query and address whether a client may watch: it gives
    the function to call when the viewer has left, or None.  A client that `connection_limit` does
    not admit is told that there is no room; listeners may share it.  `on_viewer` is called with
    each new viewer and its stream.  A request for a stream that can be pulled waits until it is
    here.  `neighbours` are asked before it.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        apps: Iterable[str] = ("live",),
        admits: Admits = all_may,
        max_viewers: int = MAX_VIEWERS,
        connection_limit: ConnectionLimit | None = None,
        on_viewer: OnViewer = lambda viewer, live: None,
        neighbours: Sequence[Neighbour] = (),
    ) -> None:
        self._limit = ConnectionLimit() if connection_limit is None else connection_limit
        self._on_viewer, self._neighbours = on_viewer, neighbours
        self._registry, self._apps, self._admits = registry, frozenset(apps), admits
        self._max_viewers = max_viewers
        self._viewers: dict[FlvViewer, None] = {}
        self._dirty: list[FlvViewer] = []
        self.turns = read_budget()

    @property
    def viewers(self) -> int:
        return len(self._viewers)

    def serve(self, address: tuple[str, int] | socket.socket, application: Application) -> Server:
        """Serve `application` and, before it, the streams; OSError as `bind`.

        A socket instead of an address listens already.
        """
        handler = type("Handler", (_Handler,), {"flv": self})

        def answer(environ: dict[str, Any], begin: Callable[..., Any]) -> Iterable[bytes]:
            return self._answer(environ, begin, application)

        server = Server(address, answer, handler, most=MAX_CLIENTS, most_of_one=MAX_OF_HOST)
        server.start()
        return server

    def stop(self) -> None:
        """Close all viewers."""
        for viewer in list(self._viewers):
            viewer.shut()

    def forget(self, viewer: "FlvViewer") -> None:
        """Remove a viewer whose socket is closed, and make room for another one."""
        if viewer in self._viewers:
            del self._viewers[viewer]
            self._limit.leaves(viewer.address[0])

    def schedule(self, viewer: "FlvViewer") -> None:
        """Let `viewer` send its output when this turn of the loop ends."""
        if not self._dirty:
            gevent.get_hub().loop.run_callback(self._flush)
        self._dirty.append(viewer)

    def take(self, handler: "_Handler") -> bool:
        """Make a viewer of a connection that asks for a stream; false leaves it to `_answer`."""
        if any(each.take(handler) for each in self._neighbours):
            return True
        environ: dict[str, Any] = handler.environ or {}
        live = self._find(environ)
        if live is None or environ["REQUEST_METHOD"] != "GET" or self._is_full:
            return False
        head, web = _head([("Connection", "close"), *HEADERS]), None
        if is_upgrade(environ):
            web = WebSocket.accept(handler.headers.items(), environ["PATH_INFO"])
            if web is None:
                return False
            head = web.head
        host, is_last = environ.get("REMOTE_ADDR", ""), is_scarce(handler.fileno(), STRANGERS)
        if is_last or not self._limit.admits(host):
            environ[_NO_ROOM] = True
            return False
        seat = connected = None
        try:
            if (seat := self._seat(live, web)) is not None:
                connected = detach(handler)
        finally:
            if connected is None:
                self._limit.leaves(host)
                if seat is not None:
                    seat.leave()
        if connected is None or seat is None:
            return False
        viewer = FlvViewer(self, connected, web, (host, int(environ.get("REMOTE_PORT", 0))))
        viewer.on_shut = environ[_VERDICT]
        self._viewers[viewer] = None
        self._on_viewer(viewer, live)
        opening = start(*_kinds(live))
        viewer.put(head)
        viewer.put(web.frame(opening) if web else opening)
        seat.hand_over(viewer)
        return True

    @property
    def _is_full(self) -> bool:
        return len(self._viewers) >= self._max_viewers

    def _find(self, environ: dict[str, Any]) -> LiveStream | None:
        """The stream asked for, if it is here or can be pulled, and this client may watch it."""
        match = _PATH.fullmatch(_text(environ["PATH_INFO"]))
        if match is None or match[1] not in self._apps:
            return None
        live = self._registry.open(match[1], match[2])
        if not self._is_there(live):
            return None
        if _VERDICT not in environ:  # the guards are asked once for each request
            host, query = environ.get("REMOTE_ADDR", ""), environ.get("QUERY_STRING", "")
            environ[_VERDICT] = self._admits(match[1], match[2], query, host)
            live = self._registry.open(match[1], match[2])  # that took a while
        return live if environ[_VERDICT] and self._is_there(live) else None

    def _is_there(self, live: LiveStream) -> bool:
        return live.publishing or self._registry.can_fetch(live)

    def _seat(self, live: LiveStream, web: WebSocket | None) -> PendingViewer | None:
        """Join the audience, which starts a pull if nothing is published, and wait for that."""
        seat, is_ready = PendingViewer(live, web), False
        try:
            is_ready = live.publishing or seat.arrived.wait(FETCHING)
        finally:
            if not is_ready:
                seat.leave()
        return seat if is_ready else None

    def _comes(self, live: LiveStream, method: str) -> bool:
        """Whether the stream is here; for GET, `take` has waited for it before."""
        if live.publishing or method == "GET":
            return live.publishing
        if (seat := self._seat(live, None)) is not None:
            seat.leave()
        return seat is not None

    def _answer(
        self, environ: dict[str, Any], begin: Callable[..., Any], application: Application
    ) -> Iterable[bytes]:
        """Answer all requests that `take` has left."""
        for each in self._neighbours:
            if each.serves(environ):
                return each(environ, begin)
        match = _PATH.fullmatch(_text(environ["PATH_INFO"]))
        if match is None or match[1] not in self._apps:
            return application(environ, begin)
        method = environ["REQUEST_METHOD"]
        if method == "OPTIONS":  # a browser's preflight for a page of another site
            allowed = [("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")]
            begin("204 No Content", [*CORS, *allowed, ("Access-Control-Allow-Headers", "*")])
            return []
        if method not in ("GET", "HEAD"):
            begin("405 Method Not Allowed", [*TEXT, ("Allow", "GET, HEAD, OPTIONS")])
            return [b"Only GET and HEAD are served.\n"]
        live = self._find(environ)
        if live is not None and method == "GET" and (self._is_full or _NO_ROOM in environ):
            begin("503 Service Unavailable", [*TEXT, ("Retry-After", "10")])
            return [b"Too many watch already.\n"]
        if live is None or not self._comes(live, method):
            begin("404 Not Found", TEXT)  # RFC 6455 §4.2.2 [no-such-service]
            return [b"Nobody publishes that.\n"]
        if method == "HEAD":
            begin("200 OK", HEADERS)
            return []
        # RFC 6455 §4.2.2 [other-versions] [refused-by-http]
        begin("400 Bad Request", [*TEXT, ("Sec-WebSocket-Version", "13")])
        if not websocket.AVAILABLE:
            return [b"WebSocket needs the extra web here: pip install 'siprtmp[web]'\n"]
        return [b"That is no proper WebSocket handshake: RFC 6455, version 13.\n"]

    def _flush(self) -> None:
        dirty, self._dirty = self._dirty, []
        for viewer in dirty:
            viewer.flush()


class _Handler(Handler):
    """One HTTP connection, until it becomes a viewer's."""

    flv: FlvHttp

    def handle(self) -> None:
        """Serve the connection, for `REQUEST_TIMEOUT` seconds at most."""
        gevent.with_timeout(REQUEST_TIMEOUT, super().handle, timeout_value=None)

    def fileno(self) -> int:
        """The number of its descriptor."""
        return self.socket.fileno()

    def run_application(self) -> None:
        """Hand over the socket of a viewer, or answer the request."""
        try:
            if not self.flv.take(self):
                super().run_application()
        except gevent.Timeout:  # gevent would wait without end for the rest of the request
            self._hang_up()

    def handle_error(self, kind: Any, error: Any, trace: Any) -> None:
        """Log an error; that a client is slow is none."""
        if isinstance(error, gevent.Timeout):
            self._hang_up()
        else:
            super().handle_error(kind, error, trace)

    def _hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


def _head(headers: list[tuple[str, str]]) -> bytes:
    """The head of a response that ends with the connection (RFC 9112 §6.3), without chunks.

    Departs from RFC 9112 §6.3 [delimited-if-possible]: a stream has no length, and old players do
    not understand chunks; what is missing at the end of a file that never ends is no loss.
    """
    # RFC 9112 §4 [status-line-has-its-space]
    lines = ["HTTP/1.1 200 OK", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _kinds(live: LiveStream) -> tuple[bool, bool]:
    """Whether a stream has audio, and video: some players wait for all that the header says."""
    kinds = set(live.kinds)
    for type_id, payload in live.opening():
        if type_id == TagType.SCRIPT:
            try:
                members = metadata.read(payload) or {}
            except RemoteError:
                continue
            kinds |= {TagType.AUDIO} if "audiocodecid" in members else set()
            kinds |= {TagType.VIDEO} if "videocodecid" in members else set()
    known = kinds & {TagType.AUDIO, TagType.VIDEO}
    return (TagType.AUDIO in kinds, TagType.VIDEO in kinds) if known else (True, True)


def _text(path: str) -> str:
    """Decode a path as UTF-8: WSGI gives its bytes as if they were Latin-1."""
    return path.encode("latin-1", "replace").decode("utf-8", "replace")
