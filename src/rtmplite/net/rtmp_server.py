"""The RTMP listener: sockets and loop watchers around `ServerConnection`.

No greenlet waits for a socket here.  A watcher reads once per wake-up; everything that the machines
then want sent, to whomever, waits on one list and leaves at the end of that turn of the loop, by
one system call per connection (or at the end of `merge_ms`, which makes fewer and larger ones).
A socket that does not take it all keeps the rest and is watched until it does; nobody waits.

Applications are called in the hub: they must not block.
"""

import errno
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Final

import gevent
from gevent import monkey

from rtmplite.net.clock import now
from rtmplite.rtmp.connection import Connection
from rtmplite.rtmp.server import ServerConnection

log = logging.getLogger(__name__)

READ_SIZE: Final = 65536  # bytes per wake-up ...
SMALL_READ: Final = 4096  # ... of those who send little: room for more takes longer than a call
IOV_MAX: Final = 1024  # buffers per sendmsg, Linux's limit
BACKLOG: Final = 1024
ACCEPTS: Final = 64  # per wake-up, so that a storm of callers does not starve the connected
LINGER: Final = 2.0  # s, for a peer to read our last words before the socket is closed
FAREWELL: Final = 0.5  # s, the same for all of them when the server stops
TICK: Final = 1.0  # s, how coarse time-outs are
CLOSED: Final = "NetConnection.Connect.Closed"

LAST: Final = -2  # a watcher's priority, the lowest there is: after gevent's own

_WATCH_READ, _WATCH_WRITE = 1, 2
_OUT_OF_DESCRIPTORS: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

# Even where the program is monkey-patched: its sockets would watch a second time.
_Socket: type[socket.socket] = monkey.get_original("socket", "socket")


class RtmpServer:
    """One listening address; `make_connection` gives the machine for a caller from `(host, port)`.

    `merge_ms` holds output back for that long; `max_connections` are kept, more are hung up on.
    """

    def __init__(
        self,
        host: str,
        port: int,
        make_connection: Callable[[tuple[str, int]], ServerConnection],
        *,
        merge_ms: float = 0.0,
        max_connections: int = 10_000,
    ) -> None:
        self._host, self._port = host, port
        self._make_connection = make_connection
        self._merge, self._max_connections = merge_ms / 1000, max_connections
        self._loop = gevent.get_hub().loop
        self._listener: socket.socket | None = None
        self._accepting = True
        self._peers: dict[_Peer, None] = {}  # in order of arrival
        self.dirty: list[_Peer] = []  # who has something to send; always this list object
        self._ticker = self._loop.timer(TICK, TICK)
        self._merger = self._loop.timer(0.0, self._merge) if self._merge else None
        # The last thing before the loop sleeps.  A callback of its own for every flush would make
        # the loop poll once more each time, a good part of the work for a single call.
        self._flusher = self._loop.prepare(ref=False, priority=LAST)

    def start(self) -> None:
        """Listen.  Raises OSError if the address cannot be had."""
        family, kind, protocol, _, address = socket.getaddrinfo(
            self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = _Socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
        listener.setblocking(False)
        self._listener = listener
        self._acceptor = self._loop.io(listener.fileno(), _WATCH_READ)
        self._acceptor.start(self._accept)
        self._ticker.start(self._tick)
        if self._merger is None:
            self._flusher.start(self._flush)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that it listens on, the real port even if 0 was asked for."""
        assert self._listener is not None, "not started"
        host, port = self._listener.getsockname()[:2]
        return host, port

    @property
    def connections(self) -> list[ServerConnection]:
        """All that are connected, in order of arrival."""
        return [peer.machine for peer in self._peers]

    def stop(self) -> None:
        """Stop listening, tell every client, and close; a second time does nothing.

        Waits a moment for those who are still sending to read it, as `_say_goodbye` explains.
        """
        if self._listener is None:
            return
        self._acceptor.stop()
        self._acceptor.close()
        self._listener.close()
        self._listener = None
        self._ticker.stop()
        for peer in list(self._peers):
            peer.guard(peer.machine.close, now(), "server stopped", CLOSED)
        self._flush()
        end = now() + FAREWELL
        while self._peers and now() < end:
            gevent.sleep(FAREWELL / 50)
        self._flusher.stop()
        for peer in list(self._peers):
            peer.shut()

    def schedule(self) -> None:
        """Flush what is in `dirty` when the merge window ends; without one every turn does it."""
        if self._merger is not None:
            self._merger.again(self._flush)  # `start` works but once: libev counts `after` down

    def forget(self, peer: "_Peer") -> None:
        """Drop a peer whose socket is closed."""
        self._peers.pop(peer, None)

    def _flush(self) -> None:
        """Send everything; the first branch is one message to a player who keeps up.

        That is nearly all a server with an audience does, so no call is spent there but `send`.
        """
        if not self.dirty:
            return
        if self._merger is not None:
            self._merger.stop()
        dirty = self.dirty.copy()
        self.dirty.clear()
        for peer in dirty:
            output = peer.machine.output
            if len(output) == 1 and not peer.is_special:
                data = output.pop()
                try:
                    sent = peer.send(data)
                except OSError as error:
                    peer.send_failed(error, [data])
                    continue
                if sent != len(data):
                    peer.keep([data], sent)
            else:
                peer.flush()

    def _accept(self) -> None:
        assert self._listener is not None
        for _ in range(ACCEPTS):
            try:
                connected, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                log.warning("cannot accept: %s", error)
                if error.errno in _OUT_OF_DESCRIPTORS:  # a ready listener would wake us for ever
                    self._accepting = False  # until the next tick
                    self._acceptor.stop()
                return
            if len(self._peers) >= self._max_connections:
                log.warning("refusing %s: %d connections", address[0], len(self._peers))
                connected.close()
                continue
            connected.setblocking(False)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            machine = self._make_connection((address[0], address[1]))
            machine.peer_address = (address[0], address[1])
            self._peers[_Peer(self, connected, machine)] = None

    def _tick(self) -> None:
        moment = now()
        for peer in list(self._peers):
            peer.tick(moment)
        if not self._accepting:
            self._accepting = True
            self._acceptor.start(self._accept)


class _Peer:
    """A connected socket and its machine."""

    def __init__(
        self, server: RtmpServer, connected: socket.socket, machine: ServerConnection
    ) -> None:
        self.machine = machine
        self.send = connected.send
        self.is_special = False  # it has unsent bytes, or an end to bring about
        self._server, self._socket = server, connected
        self._dirty = server.dirty
        self._unsent: list[bytes | memoryview] = []
        self._closing_at: float | None = None
        self._open = True
        self._receive, self._room = connected.recv, SMALL_READ
        loop = gevent.get_hub().loop
        self._reader = loop.io(connected.fileno(), _WATCH_READ)
        self._writer = loop.io(connected.fileno(), _WATCH_WRITE)
        self._reader.start(self._on_readable)
        machine.on_output = self._on_output
        machine.on_reading = self._on_reading

    def flush(self) -> None:
        """Send what the machine has, unless the socket is still busy with the last."""
        machine = self.machine
        if not self._open:
            return
        if machine.aborted:
            self.shut()
            return
        if self._unsent:
            return
        self._send(machine.take_output())
        if machine.closed and not self._unsent:
            self._say_goodbye()

    def tick(self, moment: float) -> None:
        """Let the machine see what time it is; close a socket that lingered for long enough."""
        if self._closing_at is not None and moment >= self._closing_at:
            self.shut()
            return
        deadline = self.machine.deadline
        if deadline is not None and moment >= deadline:
            self.guard(self.machine.tick, moment)

    def shut(self) -> None:
        """Close the socket, now."""
        if not self._open:
            return
        self._open = False
        for watcher in (self._reader, self._writer):
            watcher.stop()
            watcher.close()
        self._socket.close()
        self._server.forget(self)
        self.machine.on_output = self.machine.on_reading = None

    def send_failed(self, error: OSError, output: Sequence[bytes | memoryview]) -> None:
        """Wait for room, or give up, whichever `error` asks for."""
        if isinstance(error, BlockingIOError):
            self.keep(output, 0)
        else:
            self._lost(error.strerror or "error")

    def keep(self, output: Sequence[bytes | memoryview], sent: int) -> None:
        """Remember what is left of `output` after `sent` bytes, and watch for room if any is."""
        at = 0
        while at < len(output) and sent >= len(output[at]):
            sent -= len(output[at])
            at += 1
        if at == len(output):
            return
        self._unsent = [memoryview(output[at])[sent:], *output[at + 1 :]]
        self.machine.output_size = sum(map(len, self._unsent))
        self.is_special = True
        self._writer.start(self._on_writable)

    def guard(self, call: Callable[..., None], *args: object) -> None:
        """Call into the machine; a bug there, or in an application, costs this connection only."""
        try:
            call(*args)
        except Exception:
            self._failed()

    def _failed(self) -> None:
        log.exception("connection %s fails", self.machine.id)
        try:
            self.machine.abort("internal error", now())
        except Exception:
            log.exception("connection %s fails to close", self.machine.id)

    def _on_output(self, machine: Connection) -> None:
        if not self._dirty:
            self._server.schedule()
        self._dirty.append(self)
        if machine.closed:
            self.is_special = True

    def _on_reading(self, machine: Connection) -> None:
        if not machine.reading:
            self._reader.stop()
        else:
            self._reader.start(self._on_readable)
            self._server._loop.run_callback(self._feed, b"")

    def _on_readable(self) -> None:
        try:
            data = self._receive(self._room)
        except BlockingIOError:
            return
        except OSError as error:
            self._lost(error.strerror or "error")
            return
        self._room = SMALL_READ if len(data) < SMALL_READ else READ_SIZE
        if not data:
            self._lost("closed by the peer")
        elif not self.machine.closed:  # else it has not read our last words yet
            self._feed(data)

    def _feed(self, data: bytes) -> None:
        try:
            self.machine.receive(data, now())
        except Exception:
            self._failed()

    def _lost(self, reason: str) -> None:
        self.guard(self.machine.connection_lost, now(), reason)
        self.shut()

    def _on_writable(self) -> None:
        output = self._unsent + self.machine.take_output()
        self._unsent, self.machine.output_size = [], 0
        self._send(output)
        if self._open and not self._unsent:
            self._writer.stop()
            self.is_special = self.machine.closed
            if self.machine.closed:
                self._say_goodbye()

    def _send(self, output: Sequence[bytes | memoryview]) -> None:
        if not output:
            return
        try:
            sent = self._socket.sendmsg(output[:IOV_MAX])
        except OSError as error:
            self.send_failed(error, output)
            return
        self.keep(output, sent)

    def _say_goodbye(self) -> None:
        """Let the peer read what was sent before the socket is closed.

        Closing at once, with something of theirs unread, would reset the connection, and they
        might never see why they were refused.
        """
        if self._closing_at is not None:
            return
        self._closing_at = now() + LINGER
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.shut()
            return
        self._reader.start(self._on_readable)
