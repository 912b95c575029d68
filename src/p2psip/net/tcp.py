"""The streams of a SIP listener, TCP, TLS and WebSocket: connections cut into messages.

Implements RFC 3261 §18, framing by §18.3 or RFC 7118 §5, keep-alives by RFC 5626 §3.5.1.

Own design: connections are found by their far end.  So a response or a request for a phone behind a
NAT uses the connection the phone opened (RFC 5923 calls it an alias).  One by TLS that we opened is
found by the name of its certificate as well, so that nobody can pass for a server.

A host has a share of the places, and a small one of those that have said nothing yet, of which the
oldest gives way.  Without a place for another one, the host with most loses those that no binding
needs.
"""

import errno
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from gevent import get_hub

from p2psip.errors import RemoteError
from p2psip.net.clock import monotonic
from p2psip.net.descriptors import STRANGERS, RefusalLog, is_out, is_scarce, within
from p2psip.net.host_scheduler import HostScheduler
from p2psip.net.stream_socket import WRITE, read
from p2psip.net.tap import Tapping
from p2psip.net.tls import HANDSHAKE, Tls, TlsContexts, in_words, may_open
from p2psip.net.udp import READ, plain_socket
from p2psip.net.websocket import WebSocketFramer
from p2psip.sip.framing import Item, KeepAlive, Malformed, StreamFramer
from p2psip.transaction.flow import Flow, HostPort, rate_limit_key

CHUNK: Final = 8192  # octets read at once: a message or some, not hundreds
MAX_CONNECTIONS: Final = 2000
SHARE: Final = 8  # the part of them that is for one host, which may be a NAT for many phones ...
SILENT_SHARE: Final = 4  # ... and of that the part that has sent no message yet
SHED: Final = 40  # the part of all that is closed at once to make room ...
SHED_SECONDS: Final = 0.25  # ... and how often that may be: it means to look at all
MAX_QUEUED: Final = 1 << 20  # octets a peer may leave unread before it is given up
CONNECT_SECONDS: Final = 8.0  # four SYNs; UDP, or another server, shall have its turn
GREETING_SECONDS: Final = 5.0  # a client has something to say when it comes; two lost SYNs fit in
ANSWER_SECONDS: Final = 32.0  # 64*T1: whom we have called may take that long
IDLE_SECONDS: Final = 600.0  # of silence, where nothing is known to need the connection
BOUND_SECONDS: Final = 7500.0  # longer than a registration lasts: its phone is reached this way
EXCUSED_SECONDS: Final = 60.0  # until it is asked again whether a silent one is needed
PROBE_SECONDS: Final = 120  # of silence, then the system asks whether the far end still lives
SWEEP_SECONDS: Final = 2.0
# A flow with more keep-alives than that, and no message, is closed.
MAX_KEEP_ALIVES: Final = 600  # in `KEEP_ALIVE_SECONDS`; RFC 5626 §4.4.1 has one or two
KEEP_ALIVE_SECONDS: Final = 60.0

log: Final = logging.getLogger(__name__)


class TcpListener:
    """A listening socket and all its connections.

    RFC 3261 §18.2.1.  `on_message(data, flow)`, `on_malformed(data, flow, error)` and
    `on_failure(flow)` are called in the hub and must not wait.  `transport` is TCP, TLS or WS.
    `scheduler` are shared with other listeners, or its own.  With `opens_web` a listener for WS
    opens connections and accepts none, like a client; else it opens none (RFC 7118 §3).
    Departs from RFC 3261 §18.1.1: by TLS nothing is accepted without a certificate.
    """

    def __init__(
        self,
        bound: socket.socket,
        on_message: Callable[[bytes, Flow], None],
        on_malformed: Callable[[bytes, Flow, RemoteError], None],
        on_failure: Callable[[Flow], None],
        *,
        max_connections: int = MAX_CONNECTIONS,
        transport: str = "TCP",
        tls: TlsContexts | None = None,
        scheduler: HostScheduler | None = None,
        opens_web: bool = False,
    ) -> None:
        self.tls, self.transport, self.scheduler = tls, transport, scheduler or HostScheduler()
        self._socket, self.on_message, self.on_failure = bound, on_message, on_failure
        self.on_malformed = on_malformed
        self.keeps: Callable[[Flow], bool] = lambda flow: False  # whether a binding needs it
        self.is_dead: Callable[[Flow, float], bool] = lambda flow, silence: False
        self.on_pong: Callable[[Flow], bool] = lambda flow: False  # whether it was waited for
        self._max_connections = most = within(max_connections)
        self._max_of_host = max(1, most // SHARE)
        self._max_silent = max(1, self._max_of_host // SILENT_SHARE)
        self.address: HostPort = bound.getsockname()[:2]
        # By the far end, and the name that it has proved.
        self.connections: dict[tuple[HostPort, str], TcpConnection] = {}
        self.of_host = Counter[str]()
        # That came and have sent no message: of each host, the oldest first.
        self.silent: dict[str, dict[TcpConnection, None]] = {}
        self._shed_at, self._refusal_log = 0.0, RefusalLog("sip")
        loop = get_hub().loop
        self._watcher = loop.io(bound.fileno(), READ)
        self._accepts = transport != "TLS" or (tls is not None and tls.server is not None)
        self._accepts = self._accepts and not (transport == "WS" and opens_web)
        if self._accepts:
            bound.listen(256)  # RFC 3261 §18.1.1 [accepts-at-sent-by]
            self._watcher.start(self._accept)
        self._sweeper = loop.timer(SWEEP_SECONDS, SWEEP_SECONDS, ref=False)
        self._sweeper.start(self._sweep)

    def send(self, data: bytes, flow: Flow) -> bool:
        """Send on the connection to `flow.remote`: RFC 3261 §18.1.1.

        It is opened if need be, unless `flow` is where something came from: the port a phone
        called from takes no calls.  False when there is no way; a failure of the connection, now
        or later on, is told by `on_failure`.
        """
        # RFC 3261 §18.1.1 [connection-used-again], RFC 5626 §4.3 [is-used-again] [same-name-by-tls]
        connection = self.connections.get((flow.remote, flow.domain))
        if connection is None and flow.transport == "WS" and not self._accepts:
            connection = self._secured(flow.remote)
        if connection is None and flow.local is None:
            connection = self._open(flow)  # RFC 5626 §4.3 [else-a-new-one]
        if connection is not None:
            connection.send(data)
        return connection is not None

    def _secured(self, remote: HostPort) -> "TcpConnection | None":
        """The connection by TLS to a server that calls it ws all the same: RFC 7118 §5.2."""
        found = (each for (place, _), each in self.connections.items() if place == remote)
        return next(found, None)

    def drop(self, flow: Flow) -> None:
        """Give the connection of a flow up, if it is there: RFC 5626 §4.4.1."""
        if (connection := self.connections.get((flow.remote, flow.domain))) is not None:
            connection.fail()

    def close(self) -> None:
        for watcher in (self._watcher, self._sweeper):
            watcher.stop()
            watcher.close()
        self._socket.close()
        for connection in list(self.connections.values()):
            connection.close()

    def _accept(self) -> None:
        try:
            opened, source = self._socket.accept()
        except OSError as error:
            if not isinstance(error, BlockingIOError):
                self._refusal_log.log_once(error.strerror or str(error))
            if is_out(error):
                self._watcher.stop()  # the loop would spin on what it can't take: see _sweep
            return
        if not self._has_place(source[0], opened.fileno()):
            opened.close()
            return
        flow = Flow(self.transport, source[:2], self.address)
        # Its request is mostly here already: RFC 3261 §18.2.1.
        TcpConnection(self, opened, flow, connected=True).hear()

    def _open(self, flow: Flow) -> "TcpConnection | None":
        remote = flow.remote
        if self.transport == "WS" and self._accepts:
            return None
        if not self._has_place(remote[0]) or not may_open(flow, self.tls):
            return None
        try:
            found = _connect(remote, None if self._accepts else self.address)
        except OSError as error:
            self._refusal_log.log_once(error.strerror or str(error))
            return None
        return None if found is None else TcpConnection(self, found[0], flow, connected=found[1])

    def _has_place(self, address: str, fd: int = -1) -> bool:
        """Whether there is room for one more connection, in or out, in all and for this host."""
        host = rate_limit_key(address)
        silent = self.silent.get(host, ())
        if fd >= 0 and len(silent) >= self._max_silent:
            next(iter(silent)).fail()
        if self.of_host[host] >= self._max_of_host:
            return False
        if is_scarce(fd, STRANGERS):
            self._refusal_log.log_once("descriptors are scarce")
            return False
        return len(self.connections) < self._max_connections or self._shed()

    def _shed(self) -> bool:
        """Close some that nothing needs, of the host with most; whether there were any."""
        now = monotonic()
        if now < self._shed_at:
            return False
        self._shed_at = now + SHED_SECONDS
        free = [each for each in self.connections.values() if not self.keeps(each.flow)]
        free.sort(key=lambda each: (-self.of_host[each.host], each.heard))
        for each in free[: max(1, self._max_connections // SHED)]:
            each.fail()
        return bool(free)

    def _sweep(self) -> None:
        if self._accepts:
            self._watcher.start(self._accept)
        now = monotonic()
        for connection in list(self.connections.values()):
            silence = now - connection.heard
            if self.is_dead(connection.flow, silence):
                connection.fail()
            elif silence <= connection.idle_limit or now < connection.excused:
                continue
            elif silence > BOUND_SECONDS or not self.keeps(connection.flow):
                connection.fail()
            else:
                connection.excused = now + EXCUSED_SECONDS


class TcpConnection:
    """One connection (RFC 3261 §18.3); `heard` is when it brought something of use, or began."""

    def __init__(
        self, owner: TcpListener, opened: socket.socket, flow: Flow, *, connected: bool
    ) -> None:
        self._owner, self._connected, self.flow = owner, connected, flow
        self.host = rate_limit_key(flow.remote[0])
        self.heard, self._has_greeted, self.excused = monotonic(), False, 0.0
        self._framer = StreamFramer() if owner.transport != "WS" else _web_framer(flow)
        is_secure = flow.transport in ("TLS", "WSS")
        tls = owner.tls.begin(flow.domain) if owner.tls and is_secure else None
        self._socket, self._tls = Tapping.current.connection(opened, tls)
        self._is_first, self._closed, self._is_in_use = True, False, False
        self._is_waiting = False  # for its turn
        self._keep_alives, self._counted_from = 0, self.heard
        self._queued = bytearray()
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, PROBE_SECONDS)
        self._place = (flow.remote, flow.domain)  # RFC 5923 §9.2 [no-alias-unproven]
        before = owner.connections.get(self._place)
        owner.connections[self._place] = self
        owner.of_host[self.host] += 1
        if flow.local is not None:
            owner.silent.setdefault(self.host, {})[self] = None
        loop = get_hub().loop
        self._reader = loop.io(opened.fileno(), READ)
        self._writer = loop.io(opened.fileno(), WRITE)
        if connected:
            self._reader.start(self.hear)
        else:
            self._writer.start(self._flush)
        if before is not None:
            before.fail()  # the far end has forgotten it; what is still to be said goes this way

    @property
    def idle_limit(self) -> float:
        """How many seconds may pass without a word.  Own design."""
        if not self._connected or (self.flow.domain and not self._is_ready):
            return CONNECT_SECONDS
        if self._has_greeted:
            return IDLE_SECONDS  # RFC 3261 §18 [kept-open] [outlives-transactions]
        return ANSWER_SECONDS if self.flow.local is None else GREETING_SECONDS

    def send(self, data: bytes) -> None:
        """Send, or queue what the socket refuses; `fail` beyond `MAX_QUEUED`.  Own design."""
        if self._closed:
            return
        waiting = 0 if self._tls is None else self._tls.waiting
        if len(self._queued) + waiting + len(data) > MAX_QUEUED:
            self.fail()
            return
        self._is_in_use = True
        if isinstance(self._framer, WebSocketFramer):
            data = self._framer.wrap(data)
        self._write(data)

    def _write(self, data: bytes) -> None:
        if self._tls is None:
            self._queued += data
        else:
            self._tls.send(data)
        if self._connected and not self._closed:
            self._flush()

    def fail(self) -> None:
        """Tell the stack of a lost connection, if it has carried a message: RFC 3261 §18.4."""
        if not self._closed:
            self.close()
            if self._is_in_use:
                self._owner.on_failure(self.flow)  # RFC 3261 §18.4 [failed-connection-told]

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for watcher in (self._reader, self._writer):
            watcher.stop()
            watcher.close()
        self._socket.close()
        self._is_no_longer_silent()
        owner, host = self._owner, self.host
        if owner.connections.get(self._place) is self:
            del owner.connections[self._place]
        owner.of_host[host] -= 1
        if not owner.of_host[host]:
            del owner.of_host[host]

    def _is_no_longer_silent(self) -> None:
        silent = self._owner.silent.get(self.host, {})
        if self in silent:
            del silent[self]
            if not silent:
                del self._owner.silent[self.host]

    def _flush(self) -> None:
        if not self._connected:
            if self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self.fail()
                return
            self._connected, self.heard = True, monotonic()
            self._reader.start(self.hear)  # RFC 3261 §18.1.1 [hears-on-its-connection]
        if self._tls is not None:
            self._queued += self._tls.take_output()
        try:
            while self._queued:
                sent = self._socket.send(self._queued)
                del self._queued[:sent]
        except BlockingIOError:
            self._writer.start(self._flush)
            if len(self._queued) > MAX_QUEUED:  # of TLS itself, say, which nothing else counts
                self.fail()
            return
        except OSError:
            self.fail()
            return
        self._writer.stop()
        self._answer()

    def _answer(self) -> None:
        """Send what the WebSocket itself has to say, unless the peer has not read the last."""
        if self._queued or not isinstance(self._framer, WebSocketFramer):
            return
        if output := self._framer.take_output():
            self._write(output)

    def hear(self) -> None:
        """Have `receive` called when it is the turn of this host.  Own design."""
        if not self._is_waiting:
            self._is_waiting = True
            self._owner.scheduler.add(self.host, self.receive)

    def receive(self) -> bool:
        """Take one item, or read if none is left; whether to come again: RFC 3261 §18.3."""
        items = None if self._closed else self._framer.take()
        if items is None and not self._closed:
            self._read()
            items = None if self._closed else self._framer.take()
        for item in items or ():
            if not self._closed:
                self._take(item)
        if not self._closed:
            self._answer()
            is_ended = items is None and self._tls is not None and self._tls.ended
            # RFC 6455 §4.2.2 [through-the-tunnel], §5.5.1 [tcp-is-closed] [server-closes-first]
            if self._framer.broken or is_ended:
                self.fail()
        self._is_waiting = items is not None and not self._closed
        return self._is_waiting

    def _read(self) -> None:
        data = read(self._socket, CHUNK)
        if data is None:
            return
        if self._is_first:
            self._is_first = False
            self._may_be_secure(data)
        if not data:
            self.fail()
        elif self._tls is not None:
            data = self._decrypt(self._tls, data)
            self._note_name(self._tls)
        self._framer.put(data)

    def _take(self, item: Item) -> None:
        if isinstance(item, KeepAlive):
            if self._is_too_lively():
                self.fail()
            # a second answer in a row looks like one half of a question
            elif not self._owner.on_pong(self.flow) and item is KeepAlive.PING:
                self.send(b"\r\n")  # RFC 5626 §5.4 [one-crlf-for-two]
        elif isinstance(item, Malformed):
            self._owner.on_malformed(item.data, self.flow, item.error)
        else:
            self._keep_alives = 0
            if not self._has_greeted:
                self._has_greeted = self._is_in_use = True
                self._is_no_longer_silent()
            self._owner.on_message(bytes(item), self.flow)
        if self._has_greeted:
            self.heard = monotonic()

    def _is_too_lively(self) -> bool:
        """Count a keep-alive; whether there are far more than any phone sends."""
        now = monotonic()
        if now - self._counted_from > KEEP_ALIVE_SECONDS:
            self._keep_alives, self._counted_from = 0, now
        self._keep_alives += 1
        return self._keep_alives > MAX_KEEP_ALIVES

    @property
    def _is_ready(self) -> bool:
        return self._tls is None or self._tls.is_ready

    def _may_be_secure(self, data: bytes) -> None:
        """Take a WebSocket that begins with TLS for one by TLS: RFC 7118 §5.1."""
        contexts = self._owner.tls
        if self._owner.transport == "WS" and data[:1] == HANDSHAKE and contexts and contexts.server:
            self._tls = contexts.begin()
            self.flow = replace(self.flow, transport="WSS")

    def _note_name(self, tls: Tls) -> None:
        """Have the flow tell by which name of ours its opener has called us.  Own design."""
        contexts, name = self._owner.tls, tls.called
        if name and not self.flow.called and contexts is not None and name in contexts.names:
            self.flow = replace(self.flow, called=name)

    def _decrypt(self, tls: Tls, data: bytes) -> bytes:
        """What the peer has said; an error of TLS is told to the peer, and ends the connection."""
        try:
            return tls.receive(data)
        except ssl.SSLError as error:
            if self.flow.domain:  # what strangers do is not worth a line each
                log.warning("TLS with %s fails: %s", self.flow.domain, in_words(error))
            tls.ended = True
            return b""
        finally:
            self._flush()


def _web_framer(flow: Flow) -> WebSocketFramer:
    """The end of a WebSocket that we have opened, or that has been opened to us."""
    host, port = flow.domain or flow.remote[0], flow.remote[1]
    named = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return WebSocketFramer(host=named if flow.local is None else "")


def _connect(remote: HostPort, near: HostPort | None) -> tuple[socket.socket, bool] | None:
    """A socket on its way to `remote`, and whether it is there already; None if there is no way.

    RFC 3261 §18.1.1.  `near` is the address that our Contact names, of a phone that accepts no
    connections: a proxy then finds the connection by it, as most of them do.  Another port is taken
    if that one cannot be used again so soon.  Raises OSError if there is no socket to be had.
    """
    found = _begin(remote, near) if near is not None else None
    return found or _begin(remote, None)


def _begin(remote: HostPort, near: HostPort | None) -> tuple[socket.socket, bool] | None:
    family = socket.AF_INET6 if ":" in remote[0] else socket.AF_INET
    opened = plain_socket(family, socket.SOCK_STREAM)
    opened.setblocking(False)
    try:
        if near is not None:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind(near)
        failed = opened.connect_ex(remote)
    except (OSError, OverflowError):  # no such port, or not for this family
        failed = errno.EHOSTUNREACH
    if failed in (0, errno.EINPROGRESS):
        return opened, failed == 0
    opened.close()
    return None
