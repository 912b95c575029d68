"""The RTMPT listener: gevent's HTTP server around `rtmp.tunnel`.

Own design: one greenlet for each HTTP connection, since few clients need a tunnel.
"""

import logging
import os
import ssl
from collections.abc import Callable, Iterable
from typing import Any, Final

import gevent
from gevent import with_timeout
from gevent.event import Event
from gevent.lock import Semaphore

from rtmplite.errors import RemoteError
from rtmplite.net.clock import now
from rtmplite.net.connection_limit import ConnectionLimit
from rtmplite.net.descriptors import STRANGERS
from rtmplite.net.http.wsgi import Handler, Server
from rtmplite.net.tap import Tapping
from rtmplite.rtmp.server import ServerConnection
from rtmplite.rtmp.tunnel import TURN_LIMIT, TunnelAnswer, Tunnels

log = logging.getLogger(__name__)

MAX_BODY: Final = 4 * 1024 * 1024  # bytes of one request
PIECE: Final = 256  # bytes of it that a connection gets at once
SLICE: Final = 0.002  # s of such work in one turn of the loop ...
YIELD: Final = 0.0005  # ... before the next
PAUSE: Final = 0.02  # s between looks whether the connection reads on
MAX_CLIENTS: Final = 1000  # HTTP connections at a time ...
MAX_OF_HOST: Final = 250  # ... and from one host, two or more for each tunnel
REQUEST_LIMIT: Final = 30.0  # s from one request to the end of the next
TICK: Final = 1.0  # s
CONTENT_TYPE: Final = "application/x-fcs"
STATUS: Final = {
    200: "200 OK",
    400: "400 Bad Request",
    404: "404 Not Found",
    405: "405 Method Not Allowed",
    413: "413 Content Too Large",
    503: "503 Service Unavailable",
}


class TunnelServer:
    """One address for RTMPT, or RTMPTS with `tls`, within a `connection_limit` to share."""

    def __init__(
        self,
        host: str,
        port: int,
        make_connection: Callable[[tuple[str, int]], ServerConnection],
        *,
        connection_limit: ConnectionLimit | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        limit = ConnectionLimit() if connection_limit is None else connection_limit

        def connection(address: tuple[str, int]) -> ServerConnection | None:
            return make_connection(address) if limit.admits(address[0]) else None

        def over(machine: ServerConnection) -> None:
            limit.leaves(machine.peer_address[0])

        self._tunnels = Tunnels(connection, os.urandom, cut_off=_cut_off, over=over)
        self._feeding = Semaphore()  # one at a time, since RTP on other sockets waits meanwhile
        self._answered = Event()  # a request has been answered, or a second has passed
        self._server = Server(
            (host, port),
            self.answer,
            _Patient,
            most=MAX_CLIENTS,
            most_of_one=MAX_OF_HOST,
            name="rtmpt",
            part=STRANGERS,
            tls=tls,
        )
        self._address = host, port
        self._ticker = gevent.get_hub().loop.timer(TICK, TICK)

    def start(self) -> None:
        """Listen.  Raises OSError if the address cannot be had."""
        self._server.start()
        self._address = self.address
        self._ticker.start(self._tick)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that it listens on, the real port even if 0 was asked for."""
        host, port = self._server.socket.getsockname()[:2]
        return host, port

    @property
    def connections(self) -> list[ServerConnection]:
        """All tunnels, in order of arrival."""
        return self._tunnels.connections

    def stop(self) -> None:
        """Stop listening, and end every tunnel."""
        self._ticker.stop()
        self._server.stop(timeout=0.2)
        self._tunnels.stop(now())

    def answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request; a WSGI application, for other HTTP servers as well."""
        answer = self._of(environ)
        headers = [("Content-Type", CONTENT_TYPE), ("Cache-Control", "no-cache")]
        start(STATUS[answer.status], [*headers, ("Content-Length", str(len(answer.body)))])
        return [answer.body]

    def _of(self, environ: dict[str, Any]) -> TunnelAnswer:
        if environ["REQUEST_METHOD"] != "POST":
            return TunnelAnswer(405)
        length, path = environ.get("CONTENT_LENGTH") or "0", environ["PATH_INFO"]
        room, account = self._tunnels.room(path)
        if not length.isdecimal() or (size := int(length)) > min(room, MAX_BODY):
            return TunnelAnswer(413)
        if account is None:
            return self._answer_to(environ, path, size)
        try:
            account.take(size)
        except RemoteError:
            return TunnelAnswer(503)
        try:
            return self._answer_to(environ, path, size)
        finally:
            account.give(size)

    def _answer_to(self, environ: dict[str, Any], path: str, size: int) -> TunnelAnswer:
        body = environ["wsgi.input"].read(size)
        address = environ["REMOTE_ADDR"], int(environ["REMOTE_PORT"])
        end = now() + TURN_LIMIT
        try:
            while (answer := self._tunnels.request(path, body, address, now(), self._feed)) is None:
                if now() >= end:
                    self._tunnels.give_up(path, "a request is missing", now())
                    return TunnelAnswer(400)
                self._answered.wait(end - now())
        except Exception:  # of the application: it costs this tunnel only
            log.exception("a tunnel fails")
            self._tunnels.give_up(path, "internal error", now())
            return TunnelAnswer(404)
        self._wake()
        said = STATUS[answer.status], answer.body
        Tapping.current.tunnelled(self._address, address, (path, body), said)
        return answer

    def _feed(self, machine: ServerConnection, body: bytes) -> None:
        """Give a connection the body of a request piece by piece: one `SLICE` a turn for all."""
        transport, end, at = machine.transport, now() + TURN_LIMIT, 0
        while at < len(body):
            while at and (transport.deciding or not transport.reading) and not machine.closed:
                if now() >= end:
                    break
                gevent.sleep(PAUSE)
            with self._feeding:
                begun = now()
                while at < len(body):
                    transport.receive(body[at : at + PIECE], now())
                    at += PIECE
                    if now() - begun >= SLICE or transport.deciding or not transport.reading:
                        break
                if at < len(body):
                    gevent.sleep(YIELD)

    def _tick(self) -> None:
        self._tunnels.tick(now())
        self._wake()

    def _wake(self) -> None:
        self._answered.set()
        self._answered.clear()


class _Patient(Handler):
    """One HTTP connection, whose client may be silent for `REQUEST_LIMIT` seconds."""

    def handle_one_request(self) -> Any:
        """Serve one request, unless it comes too late."""
        return with_timeout(REQUEST_LIMIT, super().handle_one_request, timeout_value=None)


def _cut_off(machine: ServerConnection) -> None:
    log.warning("%s:%d is cut off: %s", *machine.peer_address, machine.reason)
