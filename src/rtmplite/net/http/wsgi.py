"""Limits gevent's HTTP server, so that silent or broken clients do not keep others out.

Own design: when all places are taken, the oldest connection that has not yet sent the head of a
request is closed for a new one; if a host has its share, the oldest one of that host.  Requests
that come together are served as media leave time: for a `SLICE` in one turn of the loop.
"""

import http.client
import os
import re
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import gevent
import gevent.socket
from gevent import monkey
from gevent.lock import Semaphore
from gevent.pool import Pool
from gevent.pywsgi import WSGIHandler, WSGIServer

from rtmplite.limits.rate_limit_key import rate_limit_key
from rtmplite.net.clock import now
from rtmplite.net.descriptors import ASKING, Door, is_scarce

HEAD_LIMIT: Final = 5.0  # s for the head of the first request
SLICE: Final = 0.002  # s of serving requests in one turn of the loop ...
YIELD: Final = 0.0005  # ... before the next
TICK: Final = 0.5  # s between looks for connections that are late
PAUSE: Final = 0.05  # s, when the system has no descriptor ...
MANY: Final = 16  # ... and at most so many connections that ask nothing are closed
_Socket: type[socket.socket] = monkey.get_original("socket", "socket")
_HOST: Final = re.compile(r"[^\s/?#@,\\]*")  # RFC 9112 §3.2
_ABSOLUTE: Final = re.compile(r"https?://([^\s/?#@,\\]+)(.*)", re.IGNORECASE)  # RFC 9112 §3.2.2
# A name that its colon follows, and a value of one line.  Source: RFC 9112 §5
_FIELD: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*\r?\n")


class _Head:
    """The lines of a head as gevent reads them: a ValueError for a line without a field.

    A proxy before us may take such a line for the end of the head, or for two fields.
    """

    def __init__(self, file: Any) -> None:
        self._file = file

    def readline(self, most: int) -> bytes:
        """Read a line, of `most` octets if it is too long."""
        line: bytes = self._file.readline(most)
        is_end = line in (b"\r\n", b"\n", b"")  # RFC 9112 §2.2 [lf-ends-a-line]
        # RFC 9112 §2.2 [octets-are-read] [no-bare-cr] [fields-begin-the-line]
        if not is_end and len(line) < most and not _FIELD.fullmatch(line):
            # RFC 9112 §5.1 [no-space-before-the-colon], §5.2 [folded-is-refused]
            # RFC 9112 §2.2 [400-for-no-grammar]
            raise ValueError("a line that is no field")
        return line


class Handler(WSGIHandler):
    """One HTTP connection."""

    server: "Server"

    def MessageClass(self, file: Any, *args: Any) -> Any:  # noqa: N802
        """Parse the fields of a request, as gevent calls it."""
        head: Any = _Head(file)
        return super().MessageClass(head, *args)

    def read_requestline(self) -> str:
        """Read the first line of a request, which an empty one may precede."""
        line = super().read_requestline()
        # RFC 9112 §2.2 [empty-line-before]
        return super().read_requestline() if line.strip("\r\n") == "" != line else line

    def read_request(self, raw_requestline: str) -> Any:
        """Read the head of a request; too many headers are an error without a trace in the log."""
        self.server.pace()
        try:
            # RFC 9112 §3.2 [bad-line-is-400] [not-corrected]
            is_read = super().read_request(raw_requestline)
        except http.client.HTTPException as error:
            raise ValueError(str(error)) from None
        finally:
            self.server.asked()
        if is_read:
            self._check()
            said = ",".join(self.headers.get_all("Connection", [])).lower()
            # gevent looks for `close` alone, where it may stand beside Upgrade
            # RFC 9112 §9.6 [close-ends-it] [said-and-done]
            # RFC 9112 §9.6 [nothing-behind-close] [nothing-behind-our-close]
            self.close_connection |= "close" in map(str.strip, said.split(","))
            # RFC 9112 §6.1 [closed-behind-both] [closed-behind-an-old-one]: whatever else it says
            self.close_connection |= "Transfer-Encoding" in self.headers
        return is_read

    def finalize_headers(self) -> None:
        """Add what an answer says of its end: RFC 9112 §9.6."""
        super().finalize_headers()
        headers: Any = self.response_headers  # of octets, which its stubs take for text
        if self.close_connection and b"connection" not in {name.lower() for name, _ in headers}:
            headers.append((b"Connection", b"close"))  # RFC 9112 §9.6 [answer-says-close]

    def _check(self) -> None:
        """Refuse what proxies may read in another way than we do, by a ValueError.

        Departs from RFC 9112 §6.1 [501-for-codings]: a coding that hides where the request ends is
        refused as one that is malformed, with 400.
        """
        hosts = self.headers.get_all("Host", [])
        is_old = self.request_version != "HTTP/1.1" and not hosts
        if not is_old and (len(hosts) != 1 or not _HOST.fullmatch(hosts[0].strip())):
            # RFC 9112 §3.2 [host-is-required]
            raise ValueError("not one Host")
        if absolute := _ABSOLUTE.fullmatch(str(self.path)):
            # RFC 9112 §3.2.2 [absolute-form-is-taken] [its-host-counts]
            del self.headers["Host"]
            self.headers["Host"], rest = absolute.groups()
            self.path = rest if rest.startswith("/") else f"/{rest}"
        codings = self.headers.get_all("Transfer-Encoding", [])
        # RFC 9112 §6.1 [chunked-is-read]
        if codings and [each.strip().lower() for each in codings] != ["chunked"]:
            # RFC 9112 §6.3 [other-codings-are-refused], §7.1 [no-parameters-of-chunked]
            raise ValueError("a coding other than chunked")
        lengths = {each.strip() for each in self.headers.get_all("Content-Length", [])}
        if len(lengths) > 1 or not all(each.isascii() and each.isdigit() for each in lengths):
            # RFC 9112 §6.3 [bad-length-is-an-error] [bad-length-is-400]
            raise ValueError("a bad Content-Length")


class Server(WSGIServer):
    """A listener for `most` connections, `most_of_one` from one host.

    The last one in `part` of the descriptors is not used for it; a log calls it by `name`.
    """

    max_accept = 1  # in one turn of the loop: media waits meanwhile

    def __init__(
        self,
        address: tuple[str, int] | socket.socket,
        application: Callable[..., Any],
        handler: type[Handler],
        *,
        most: int,
        most_of_one: int,
        name: str = "http",
        part: int = ASKING,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._of_host = Counter[str]()
        self._reading: dict[Any, tuple[str, float]] = {}  # no head yet, the oldest first
        self._door, self._part = Door(name, part), part
        self._pacing, self._turn, self._begun = Semaphore(), -1.0, 0.0
        self._places = Pool()  # without an end: `_has_place` sees to that
        self._sweeper: Any = gevent.get_hub().loop.timer(TICK, TICK)
        options: dict[str, Any] = {} if tls is None else {"ssl_context": tls}
        at: Any = address  # its stubs don't know gevent's own sockets
        if isinstance(address, socket.socket):
            at = gevent.socket.socket(fileno=address.detach())
        # RFC 9112 §3 [too-long-a-target] [lines-of-8000]
        super().__init__(
            at,
            application,
            log=None,
            error_log=None,  # of requests that are none
            handler_class=handler,
            spawn=self._places,
            **options,
        )

    @property
    def clients(self) -> int:
        """The number of connections."""
        return self._of_host.total()

    def start(self) -> None:
        """Listen.  Raises OSError as `bind` does."""
        super().start()
        self._sweeper.start(self._sweep)

    def close(self) -> None:
        """Stop listening."""
        self._sweeper.stop()
        super().close()

    def asked(self) -> None:
        """The connection of the current greenlet has sent a head, and so keeps its place."""
        self._reading.pop(gevent.getcurrent(), None)

    def pace(self) -> None:
        """Wait until there is time to serve a request; who waits is served in order."""
        with self._pacing:
            if self.loop.now() == self._turn and now() - self._begun >= SLICE:
                gevent.sleep(YIELD)
            if self.loop.now() != self._turn:
                self._turn, self._begun = self.loop.now(), now()

    def do_read(self) -> Any:
        """Accept one connection; a failure is logged, and the next try waits for `PAUSE`."""
        try:
            return super().do_read()
        except OSError as error:
            self._door.tell(error.strerror or str(error))
            for _ in range(min(MANY, (len(self._reading) + 1) // 2)):
                self._give_way(None)  # the older half: the newest may be about to ask
            self.stop_accepting()
            base: Any = self  # what its stubs leave out
            base._timer = self.loop.timer(PAUSE)
            base._timer.start(base._start_accepting_if_started)
            return None

    def do_handle(self, *args: Any) -> None:
        """Serve a connection, if there is a place for it."""
        client, address = args
        serve = getattr(self, "_handle")  # noqa: B009
        host = rate_limit_key(address[0])
        if not self._has_place(host, client.fileno()):
            client.close()
            return
        greenlet = self._places.spawn(serve, client, address)
        self._of_host[host] += 1
        self._reading[greenlet] = host, now() + HEAD_LIMIT

        def left(greenlet: Any) -> None:
            self._reading.pop(greenlet, None)
            self._of_host[host] -= 1
            if not self._of_host[host]:
                del self._of_host[host]
            client.close()
            base: Any = self  # what its stubs leave out
            base._start_accepting_if_started()

        greenlet.rawlink(left)

    def _has_place(self, host: str, fd: int) -> bool:
        if self._of_host[host] >= self._most_of_one:
            return self._give_way(host)
        if self.clients >= self._most:
            return self._give_way(None)
        if self._door.is_shut(fd):
            # Another listener may take the descriptor that this frees, and so this one climb.
            gave = self._give_way(None)
            return (gave and self._part >= ASKING) or not is_scarce(fd, 2 * self._part)
        return True

    def _give_way(self, host: str | None) -> bool:
        """Close the oldest connection that has asked nothing, of `host` if given; whether any."""
        for greenlet, (whose, _) in self._reading.items():
            if host in (None, whose):
                del self._reading[greenlet]
                greenlet.kill(block=False)
                self.stop_accepting()  # until it has gone, a turn of the loop later
                return True
        return False

    def _sweep(self) -> None:
        moment = now()
        late = [greenlet for greenlet, (_, end) in self._reading.items() if end <= moment]
        for greenlet in late:
            del self._reading[greenlet]
            greenlet.kill(block=False)


def detach(handler: Handler) -> socket.socket:
    """Take the socket from its handler, which ends as after the last request."""
    connected = _Socket(fileno=os.dup(handler.socket.fileno()))
    connected.setblocking(False)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    handler.close_connection = True
    handler.socket = None  # type: ignore[assignment]
    return connected
