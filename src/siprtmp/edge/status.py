"""The `/status` page: the gateway's figures as JSON; `/metrics` has them for Prometheus.

Own design: figures for monitoring, and for tests that wait until everything has ended.  They hold
no names, addresses or secrets.
"""

import os
import socket
import stat
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol
from weakref import WeakSet

from gevent import Greenlet, getcurrent, sleep

from p2psip.net.clock import monotonic
from p2psip.sip import strict_json
from rtmplite.net.http.flv_http import FlvHttp
from rtmplite.net.server.log_rate_limit import Bucket
from siprtmp.calls.access.admission import Admitted
from siprtmp.edge.metrics import CONTENT_TYPE
from siprtmp.edge.web.status_access import StatusAccess, said_proof
from siprtmp.operation.logs import Log

# One request a connection: a client that sends on without reading answers would fill memory.
CLOSE: Final = ("Connection", "close")
JSON: Final = [("Content-Type", "application/json"), ("Cache-Control", "no-store"), CLOSE]
METRICS: Final = [("Content-Type", CONTENT_TYPE), ("Cache-Control", "no-store"), CLOSE]
FRESH: Final = 20  # answers a second with newly collected figures
TEXT: Final = [("Content-Type", "text/plain; charset=utf-8"), CLOSE]
ASK: Final = ("WWW-Authenticate", 'Basic realm="siprtmp", charset="UTF-8"')
WRONG_SECONDS: Final = 1.0  # until a wrong password is answered; other clients do not wait


class WebApplication(Protocol):
    """A WSGI application that says which requests are its own."""

    def serves(self, environ: dict[str, Any]) -> bool:
        """Whether it answers this one."""

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Answer."""


class ProcessFigures:
    """Sockets and greenlets of this process.

    Greenlets are counted as they are spawned, since a walk over all objects would stall the media.
    """

    def __init__(self) -> None:
        self._spawned: WeakSet[Greenlet[..., Any]] = WeakSet()
        Greenlet.add_spawn_callback(self._spawned.add)

    def figures(self) -> dict[str, object]:
        asking = getcurrent()
        alive = [each for each in self._spawned if not each.dead and each is not asking]
        return {"sockets": _open_sockets(), "greenlets": len(alive)}


class StatusServer:
    """A small HTTP server for two pages (RFC 9112 §3).  Raises OSError as `bind` does.

    `live` owns the listener, which serves streams to browsers too, and limits what slow or many
    clients cost; `web` are asked first, such as what browsers publish and play by WebRTC.
    Departs from RFC 9112 §3 [unknown-methods]: a method that nobody knows is answered 405 as those
    that are not served here, with those that are.
    """

    def __init__(
        self,
        address: tuple[str, int] | socket.socket,
        figures: Callable[[], dict[str, object]],
        live: FlvHttp,
        access: StatusAccess,
        log: Log,
        metrics: Callable[[], str] = lambda: "",
        web: Sequence[WebApplication] = (),
    ) -> None:
        self._figures, self._access, self._log, self._metrics = figures, access, log, metrics
        self._web = web
        self._server = live.serve(address, self._answer)

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._server.socket.getsockname()[:2]
        return host, port

    def stop(self) -> None:
        self._server.stop(timeout=0.2)

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        for each in self._web:
            if each.serves(environ):
                return each(environ, start)
        if path not in ("/status", "/metrics"):
            start("404 Not Found", TEXT)
            return [b"There are /status, /metrics, and /live/NAME.flv for each live stream.\n"]
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            start("405 Method Not Allowed", [*TEXT, ("Allow", "GET, HEAD")])
            return [b"Only GET and HEAD are served.\n"]
        if not self._access.is_ours(environ):
            start("421 Misdirected Request", TEXT)
            return [b"That is no name of this gateway: ask for an address, or a --domain.\n"]
        verdict = self._access.judge(environ, monotonic())
        if verdict is Admitted.LATER:
            start("503 Service Unavailable", TEXT)
            return [b"Too many wrong passwords: try again later.\n"]
        if verdict is Admitted.NO:
            return self._refuse(environ, start)
        is_status = path == "/status"
        start("200 OK", JSON if is_status else METRICS)
        if environ["REQUEST_METHOD"] == "HEAD":
            return []
        if not is_status:
            return [self._metrics().encode()]
        return [strict_json.dumps(self._figures(), indent=1).encode() + b"\n"]

    def _refuse(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if not self._access.admission.has_users:
            start("403 Forbidden", TEXT)
            return [b"From here users only may read this, and the gateway has none.\n"]
        if said_proof(environ):
            source = environ.get("REMOTE_ADDR", "")
            self._log.event("login-refused", source=source, app="status")
            sleep(WRONG_SECONDS)
            start("401 Unauthorized", [*TEXT, ASK])
            return [b"Wrong user or password.\n"]
        start("401 Unauthorized", [*TEXT, ASK])
        return [b"User and password, please.\n"]


class CachedFigures:
    """Figures that are collected `FRESH` times a second at most; other requests get the last ones.

    To collect them costs more than to request them.
    """

    def __init__(
        self, figures: Callable[[], dict[str, object]], clock: Callable[[], float] = monotonic
    ) -> None:
        self._figures, self._clock = figures, clock
        self._room = Bucket(clock(), FRESH, FRESH)
        self._last: dict[str, object] = {}

    def __call__(self) -> dict[str, object]:
        if self._room.take(self._clock()) is not None:
            self._last = self._figures()
        return self._last


def _open_sockets() -> int:
    folder, count = "/proc/self/fd", 0
    try:
        names = os.listdir(folder)
    except OSError:  # not Linux, or no descriptor is left to look with
        return count
    for name in names:
        try:
            count += stat.S_ISSOCK(os.fstat(int(name)).st_mode)
        except OSError:
            continue  # closed while we looked
    return count
