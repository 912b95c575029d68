"""The `/status` page: what goes on, as JSON.

Own design: figures for watching and for tests that wait until everything is over; no name,
address or secret of anybody.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from gevent.pywsgi import WSGIServer

JSON: Final = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
TEXT: Final = [("Content-Type", "text/plain; charset=utf-8")]


class StatusServer:
    """A small HTTP server for one page (RFC 9112 §3).  Raises OSError as `bind` does."""

    def __init__(self, address: tuple[str, int], figures: Callable[[], dict[str, object]]) -> None:
        self._figures = figures
        self._server: Any = WSGIServer(address, self._answer, log=None)
        self._server.start()

    @property
    def address(self) -> tuple[str, int]:
        """Host and real port.  Own design."""
        host, port = self._server.socket.getsockname()[:2]
        return host, port

    def stop(self) -> None:
        """Stop listening.  Own design."""
        self._server.stop(timeout=0.2)

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/status":
            start("404 Not Found", TEXT)
            return [b"There is only /status here.\n"]
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            start("405 Method Not Allowed", [*TEXT, ("Allow", "GET, HEAD")])
            return [b"Only GET and HEAD are served.\n"]
        start("200 OK", JSON)
        return [json.dumps(self._figures(), indent=1).encode() + b"\n"]
