"""RTWebSocket at `/rtws` of an HTTP listener, and the library for pages that speaks it.

Own design: no greenlet waits for a WebSocket, as none does for a connection of RTMP.  A watcher
reads, within the budget that all connections share; what the machines then want sent leaves at the
end of that turn of the loop.  A socket that does not take it all is asked for no more until it has,
so that what is late or less urgent still waits where it can be given up.
"""

import logging
import socket
from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import Any, Final

import gevent

from rtmplite.limits.rate_limit_key import rate_limit_key
from rtmplite.net.clock import now
from rtmplite.net.connection_limit import ConnectionLimit
from rtmplite.net.deadline_timer import DeadlineTimer
from rtmplite.net.descriptors import STRANGERS, is_scarce
from rtmplite.net.http import websocket
from rtmplite.net.http.websocket import WebSocket, is_upgrade
from rtmplite.net.http.wsgi import Handler, detach
from rtmplite.net.read_budget import SLICE, read_budget
from rtmplite.net.tcp_connections import IOV_MAX, WATCH_READ, WATCH_WRITE, traffic
from rtmplite.rtmfp.netconnection.connection import FlowTransport
from rtmplite.rtmfp.session.limits import SessionBudget
from rtmplite.rtws.server import RtwsServerConnection
from rtmplite.rtws.session import RtwsSession

log = logging.getLogger(__name__)

PATH: Final = "/rtws"
LIBRARY: Final = "/rtws.js"
CLOSED: Final = "NetConnection.Connect.Closed"
MAX_FRAME: Final = 1 << 20  # bytes; peers send 1400 or so
READ_SIZE: Final = 65536  # bytes at once, of a client whose frames are quickly read ...
SMALL_READ: Final = 4096  # ... and of one that sends thousands of small ones
LABOUR: Final = 0.002  # s for a read; a client that takes longer is read in small pieces
LINGER: Final = 2.0  # s for the client to close as well
FAREWELL: Final = 0.5  # s for all clients together to hear that everything stops
LOOK: Final = 0.01  # s between looks whether they have heard it
BUDGET: Final = 256 << 20  # bytes of memory for all sessions

_CORS: Final = [("Access-Control-Allow-Origin", "*")]  # pages of all sites may load it
_SCRIPT: Final = [("Content-Type", "text/javascript; charset=utf-8"), ("Cache-Control", "no-cache")]
_TEXT: Final = [("Content-Type", "text/plain; charset=utf-8"), *_CORS]

Address = tuple[str, int]
Environ = dict[str, Any]


class RtwsPort:
    """Serves `/rtws` and `/rtws.js`, as a neighbour of the streams of `FlvHttp`.

    `make_connection` gives the machine for a client.  `host_of` says which host a request counts
    as, for rights; clients that `connection_limit` does not admit get 503.  All sessions share
    `budget`, in bytes.
    """

    def __init__(
        self,
        make_connection: Callable[[], RtwsServerConnection],
        *,
        connection_limit: ConnectionLimit | None = None,
        budget: int = BUDGET,
        host_of: Callable[[Environ], str] = lambda environ: str(environ.get("REMOTE_ADDR", "")),
    ) -> None:
        self._make_connection, self._host_of = make_connection, host_of
        self._limit = ConnectionLimit() if connection_limit is None else connection_limit
        self.budget = SessionBudget(budget)
        self.turns = read_budget()
        self._clients: dict[FlowTransport, RtwsClient] = {}  # in order of arrival
        self._dirty: list[RtwsClient] = []
        self._is_open = True

    @property
    def connections(self) -> list[RtwsServerConnection]:
        """All connections, in order of arrival."""
        return [each.connection for each in self._clients.values()]

    def take(self, handler: Handler) -> bool:
        """Begin a session on the connection of a request; false leaves it to be answered."""
        environ: Environ = handler.environ or {}
        if environ.get("PATH_INFO") != PATH or not is_upgrade(environ) or not self._is_open:
            return False
        if (web := WebSocket.accept(handler.headers.items(), PATH)) is None:
            return False
        host = environ.get("REMOTE_ADDR", "")
        if is_scarce(handler.socket.fileno(), STRANGERS) or not self._limit.admits(host):
            environ[PATH] = True  # there is no room
            return False
        source = self._host_of(environ), int(environ.get("REMOTE_PORT") or 0)
        client = RtwsClient(self, detach(handler), web, self._make_connection(), source, host)
        self._clients[client.connection.transport] = client
        client.begin()
        return True

    def serves(self, environ: Environ) -> bool:
        """Whether a request is for the session or the library."""
        return environ["PATH_INFO"] in (PATH, LIBRARY)

    def __call__(self, environ: Environ, start: Callable[..., Any]) -> Iterable[bytes]:
        """Give the library, or say why there is no session."""
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            start("405 Method Not Allowed", [*_TEXT, ("Allow", "GET, HEAD")])
            return [b"Only GET and HEAD are served.\n"]
        if environ["PATH_INFO"] == LIBRARY:
            start("200 OK", [*_SCRIPT, *_CORS])
            library = files(__package__).joinpath("rtws.js").read_bytes()
            return [] if environ["REQUEST_METHOD"] == "HEAD" else [library]
        if PATH in environ:
            start("503 Service Unavailable", [*_TEXT, ("Retry-After", "10")])
            return [b"Too many are connected already.\n"]
        start("400 Bad Request", [*_TEXT, ("Sec-WebSocket-Version", "13")])
        if not websocket.AVAILABLE:
            return [b"WebSocket needs the extra web here: pip install 'siprtmp[web]'\n"]
        return [b"That is no proper WebSocket handshake: RFC 6455, version 13.\n"]

    def stop(self, drain: float = 0.0, reconnect_to: str | None = None) -> None:
        """Tell every client, wait, and close; a second call does nothing."""
        if not self._is_open:
            return
        self._is_open = False
        asked = [
            each for each in self.connections if drain and each.request_reconnect(reconnect_to)
        ]
        end = now() + drain
        while now() < end and not all(each.closed for each in asked):
            gevent.sleep(LOOK)
        for connection in self.connections:
            connection.close(now(), "server stopped", CLOSED)
        end = now() + FAREWELL
        while self._clients and now() < end:
            gevent.sleep(LOOK)
        for client in list(self._clients.values()):
            client.shut()

    def on_output(self, transport: FlowTransport) -> None:
        """Have the client of a transport send its output when this turn of the loop ends."""
        if (client := self._clients.get(transport)) is not None:
            self.schedule(client)

    def schedule(self, client: "RtwsClient") -> None:
        """Have a client send its output when this turn of the loop ends."""
        if not self._dirty:
            gevent.get_hub().loop.run_callback(self._flush)
        if client not in self._dirty:
            self._dirty.append(client)

    def count(self, session: RtwsSession, moment: float) -> None:
        """Update what a session takes of the budget, and close those that take too much."""
        self.budget.count(session)
        for each in self.budget.excess(moment):
            each.abort(moment, "too much memory")

    def forget(self, client: "RtwsClient") -> None:
        """Remove a client whose socket is closed, and make room for another one."""
        self._clients.pop(client.connection.transport, None)
        self.budget.discard(client.session)
        self._limit.leaves(client.limited)

    def _flush(self) -> None:
        dirty, self._dirty = self._dirty, []
        for client in dirty:
            client.flush()


class RtwsClient:
    """A WebSocket, its session and its connection.

    `source` is where the client counts as being, `limited` the host whose connections are counted.
    """

    def __init__(
        self,
        port: RtwsPort,
        connected: socket.socket,
        web: WebSocket,
        connection: RtwsServerConnection,
        source: Address,
        limited: str,
    ) -> None:
        self.connection, self.limited, self.host = connection, limited, rate_limit_key(limited)
        incoming = connection.transport.incoming
        self.session = RtwsSession(source, now(), incoming, budget=port.budget)
        self._port, self._socket, self._web = port, connected, web
        self._unsent: list[bytes | memoryview] = [web.head]
        self._is_open, self._is_ending = True, False
        self._room = SMALL_READ
        loop = gevent.get_hub().loop
        self._reader: Any = loop.io(connected.fileno(), WATCH_READ)
        self._writer: Any = loop.io(connected.fileno(), WATCH_WRITE)
        self._linger: Any = loop.timer(LINGER)
        self._alarm = DeadlineTimer(self._on_alarm)

    def begin(self) -> None:
        """Begin to read and to write."""
        transport = self.connection.transport
        transport.traffic = lambda: traffic(self._socket)
        transport.on_output = self._port.on_output
        self._port.budget.add(self.session)
        transport.attach(self.session)
        self._reader.start(self._on_readable)
        self._port.schedule(self)

    @property
    def is_reading(self) -> bool:
        """Whether it may still be read."""
        return self._is_open

    def read(self) -> None:
        """Read once, and give the session what has come."""
        begun = now()
        try:
            data = self._socket.recv(self._room)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose("closed by the peer")
        elif not self._is_ending:
            self._take(data, begun)
        took = now() - begun
        self._room = SMALL_READ if took > LABOUR else READ_SIZE
        self._port.turns.spent += took

    def flush(self) -> None:
        """Send what the socket takes; more is made only when it has taken everything."""
        if not self._is_open:
            return
        moment, transport = now(), self.connection.transport
        self._guard(transport.flush, moment)
        if not self._unsent:
            self._unsent = [WebSocket.frame(frame) for frame in self.session.take(moment)]
        if not self.session.is_open and not self._is_ending:
            self._is_ending = True
            self._unsent.append(self._web.close())
            self._linger.start(self.shut)
        self._send()
        if self._is_open:
            self._port.count(self.session, moment)
            self._alarm.set(self._deadline, moment)

    def shut(self) -> None:
        """Close the socket, now."""
        if not self._is_open:
            return
        self._is_open = False
        self._alarm.cancel()
        for watcher in (self._reader, self._writer, self._linger):
            watcher.stop()
            watcher.close()
        self._guard(self.session.close, now(), "closed here")
        self._socket.close()
        self._port.forget(self)

    @property
    def _deadline(self) -> float | None:
        due = [self.connection.deadline, self.session.deadline]
        return min((each for each in due if each is not None), default=None)

    def _on_readable(self) -> None:
        turns = self._port.turns
        if turns.spent < SLICE or turns.lets(self):
            self.read()

    def _take(self, data: bytes, moment: float) -> None:
        messages, answer, has_ended = self._web.messages(data, MAX_FRAME)
        for message in messages:
            self._guard(self.session.receive, message, moment)
        if answer and (has_ended or not self._unsent):  # one that reads nothing gets no pongs
            self._unsent.append(answer)
        if has_ended:
            self._is_ending = True
            self._guard(self.session.close, moment, "closed by the peer")
            self._linger.start(self.shut)
        self._port.schedule(self)

    def _lose(self, reason: str) -> None:
        self._guard(self.session.close, now(), reason)
        self.shut()

    def _send(self) -> None:
        while self._unsent:
            try:
                sent = self._socket.sendmsg(self._unsent[:IOV_MAX])
            except BlockingIOError:
                self._writer.start(self._on_writable)
                return
            except OSError:
                self._lose("closed by the peer")
                return
            while self._unsent and sent >= len(self._unsent[0]):
                sent -= len(self._unsent.pop(0))
            if sent:
                self._unsent[0] = memoryview(self._unsent[0])[sent:]

    def _on_writable(self) -> None:
        self._writer.stop()
        self._send()
        if self._is_open and not self._unsent:
            self._port.schedule(self)

    def _on_alarm(self) -> None:
        moment, deadline = now(), self.connection.deadline
        if deadline is not None and moment >= deadline:
            self._guard(self.connection.tick, moment)
        self._guard(self.session.tick, moment)
        self._port.schedule(self)

    def _guard(self, call: Callable[..., object], *args: object) -> None:
        """Call a machine; an exception in it ends this connection alone."""
        try:
            call(*args)
        except Exception:
            log.exception("a connection fails")
            self.connection.transport.abort("internal error", now())
            self.session.is_open = False
