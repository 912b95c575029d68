"""Serves connected TCP sockets with RTMP machines, those of a server and those of clients.

No greenlet waits for a socket here.  A watcher reads once per wake-up; everything that the machines
then want sent waits on one list.  It leaves at the end of that turn of the loop, by one system call
per connection (or at the end of `merge_ms`, which makes fewer and larger ones; answers to the peer
itself never wait for that).  A socket that does not take it all keeps the rest and is watched until
it does; no other waits.  With TLS, all that one connection has to send in one turn is sealed
together before that.
"""

import errno
import logging
import socket
import ssl
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import gevent
from gevent import monkey

from rtmplite.errors import RemoteError
from rtmplite.limits.rate_limit_key import rate_limit_key
from rtmplite.net.clock import now
from rtmplite.net.read_budget import SLICE, read_budget
from rtmplite.net.tap import Tapping
from rtmplite.net.tls import Tls, explain, mistaken
from rtmplite.rtmp.connection import ChunkEnd, ChunkTransport

if TYPE_CHECKING:
    from rtmplite.net._intake import Intake
    from rtmplite.net.pipe import Pipe, flush
else:
    try:
        from rtmplite.net._pipe import Pipe, flush
    except ImportError:  # it is not compiled, or SIPRTMP_PURE is set
        from rtmplite.net.pipe import Pipe, flush
    try:
        from rtmplite.net._intake import Intake
    except ImportError:  # the same, or there is no epoll
        Intake = None

log = logging.getLogger(__name__)

READ_SIZE: Final = 65536  # bytes per wake-up ...
SMALL_READ: Final = 4096  # ... of peers that send little: room for more takes longer than a call
LABOUR: Final = 0.01  # s for READ_SIZE; a connection that takes longer is read in small pieces
MAX_SEALED: Final = 65536  # bytes of TLS itself that may wait for a peer which does not read
IOV_MAX: Final = 1024  # buffers per sendmsg, Linux's limit
LINGER: Final = 2.0  # s, for a peer to read our last words before the socket is closed
DRAIN: Final = 30.0  # s, for a peer we have ended to take what was queued before that
FAREWELL: Final = 0.5  # s, the same for all peers together when everything stops
TICK: Final = 1.0  # s, how coarse time-outs are

LATE: Final = -1  # a watcher's priority: after those of gevent itself, which are 0
WATCH_READ, WATCH_WRITE = 1, 2

# Even where the program is monkey-patched: its sockets would watch a second time.
Socket: type[socket.socket] = monkey.get_original("socket", "socket")

M = TypeVar("M", bound=ChunkEnd)


# Source: struct tcp_info of Linux 4.1: tcpi_bytes_acked and tcpi_bytes_received.
_COUNTERS: Final = struct.Struct("=QQ")
_AT: Final = 120


def traffic(connected: socket.socket) -> tuple[int, int] | None:
    """Bytes received from the peer and bytes it has acknowledged; None if they are not counted.

    What TLS and HTTP add is counted as well.  Linux counts them: asked when a stream begins and
    when it ends, so that nothing is counted for each message.
    """
    try:
        said = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _AT + _COUNTERS.size)
    except OSError:  # closed, or no TCP
        return None
    if len(said) < _AT + _COUNTERS.size:
        return None
    acknowledged, received = _COUNTERS.unpack_from(said, _AT)
    return received, acknowledged


class TcpConnections(Generic[M]):
    """All sockets that are flushed together; `merge_ms` holds output back for that long."""

    def __init__(self, merge_ms: float = 0.0) -> None:
        self._merge = merge_ms / 1000
        self.merges = self._merge > 0
        self._loop = gevent.get_hub().loop
        self.turns = read_budget()
        self._peers: dict[Peer[M], None] = {}  # in order of arrival
        self.dirty: list[Pipe] = []  # those that have something to send; always this list object
        # One watcher for the input of all, which may read the usual audio itself.
        self.intake = Intake() if Intake is not None else None
        self._reader: Any = self._loop.io(self.intake.fileno(), WATCH_READ) if self.intake else None
        self._ticker = self._loop.timer(TICK, TICK)
        self._merger = self._loop.timer(0.0, self._merge) if self._merge else None
        # The last thing before the loop sleeps.  A callback of its own for every flush would make
        # the loop poll once more each time, a good part of the work for a single call.  Always on:
        # one that a callback starts would first run after the next sleep.
        self._flusher: Any = self._loop.prepare(ref=False, priority=LATE)

    def start(self) -> None:
        """Begin to read and to let time pass."""
        self._ticker.start(self._tick)
        if self._merger is None:
            self._flusher.start(flush, self.dirty)
        if self.intake is not None:
            self._reader.start(self.intake.turn, self.turns, SLICE)

    def adopt(self, connected: socket.socket, machine: M, tls: Tls | None = None) -> None:
        """Serve a connected socket that does not block, for as long as it lasts."""
        if connected.family != socket.AF_UNIX:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        tapped, tls = Tapping.current.connection(connected, tls)
        peer = Peer(self, tapped, machine, tls, is_bare=tls is None and tapped is connected)
        self._peers[peer] = None

    @property
    def connections(self) -> list[M]:
        """All that are connected, in order of arrival."""
        return [peer.machine for peer in self._peers]

    def farewell(self) -> None:
        """Wait a moment for peers that have been closed to read that: see `_say_goodbye`."""
        self._flush()
        end = now() + FAREWELL
        while self._peers and now() < end:
            gevent.sleep(FAREWELL / 50)

    def stop(self) -> None:
        """Close every socket, now."""
        self._ticker.stop()
        self._flusher.stop()
        for peer in list(self._peers):
            peer.shut()
        if self._reader is not None:
            self._reader.stop()
            self._reader.close()

    def schedule(self) -> None:
        """Flush the connections in `dirty` when the merge window ends."""
        if self._merger is not None:  # or there is no window, and every turn flushes
            self._merger.again(self._flush)  # `start` works but once: libev counts `after` down

    def forget(self, peer: "Peer[M]") -> None:
        """Remove a peer whose socket is closed."""
        self._peers.pop(peer, None)

    def cut_off(self, machine: M) -> None:
        """Hook: we end this connection at once, without sending its queue."""

    def _flush(self) -> None:
        """Send everything, at the end of a turn or of the merge window."""
        if not self.dirty:
            return
        if self._merger is not None:
            self._merger.stop()
        flush(self.dirty)

    def _tick(self) -> None:
        moment = now()
        for peer in list(self._peers):
            peer.tick(moment)


class Peer(Generic[M]):
    """A connected socket and its machine.

    `is_bare` says that bytes leave as they are, unseen by TLS and taps.
    """

    def __init__(
        self,
        peers: TcpConnections[M],
        connected: socket.socket,
        machine: M,
        tls: Tls | None = None,
        *,
        is_bare: bool = False,
    ) -> None:
        self.machine, self.transport = machine, machine.transport
        self.host = rate_limit_key(self.transport.peer_address[0])
        self._peers, self._socket, self._tls = peers, connected, tls
        wake = peers.schedule if peers.merges else None
        self._pipe = Pipe(self, self.transport.output, peers.dirty, wake, connected)
        # not with unsent bytes, nor if it is to be closed
        self._is_bare = self._pipe.is_plain = is_bare
        self._dirty, self._merges, self._turns = peers.dirty, peers.merges, peers.turns
        self._unsent: list[bytes | memoryview] = []
        self._closing_at: float | None = None
        self._drain_ends: float | None = None
        self._open = True
        self._receive: Callable[[int], bytes] = self._receive_first
        self._room = SMALL_READ
        loop = gevent.get_hub().loop
        inlet = peers.intake.open(connected.fileno(), self) if peers.intake is not None else None
        self._reader: Any = inlet or loop.io(connected.fileno(), WATCH_READ)
        self._writer = loop.io(connected.fileno(), WATCH_WRITE)
        self._reader.start(self._on_readable)
        self.transport.lent.inlet = inlet if is_bare else None
        self.transport.traffic = partial(traffic, connected)
        self.transport.on_output, self.transport.short_way = self._on_output, self._pipe.put
        self.transport.choose_way()
        self.transport.on_reading = self._on_reading
        self.transport.on_behind = partial(self._turns.wait, self)
        if tls is not None:
            self._say_tls(tls)
        if self.transport.output:  # a client speaks first
            self._on_output(self.transport)

    def flush(self) -> None:
        """Send the machine's output, unless the socket is still busy with the last."""
        machine = self.machine
        if not self._open:
            return
        if machine.transport.aborted:
            self._peers.cut_off(machine)
            self.shut()
            return
        if self._unsent:
            return
        self._send(self._output())
        if machine.closed and not self._unsent:
            self._say_goodbye()

    def tick(self, moment: float) -> None:
        """Let the machine act on passed deadlines; close a socket that has lingered long enough."""
        if self._closing_at is not None and moment >= self._closing_at:
            self.shut()
            return
        if self.machine.closed and self._closing_at is None:
            self._wait_for_room(moment)
            return
        deadline = self.machine.deadline
        if deadline is not None and moment >= deadline:
            self.guard(self.machine.tick, moment)

    def _wait_for_room(self, moment: float) -> None:
        """Give a peer `DRAIN` seconds to take the rest of the queue."""
        if self._drain_ends is None:
            self._drain_ends = moment + DRAIN
        elif moment >= self._drain_ends:
            self.shut()

    def shut(self) -> None:
        """Close the socket, now."""
        if not self._open:
            return
        self._open = False
        self.transport.sinks_changed()
        for watcher in (self._reader, self._writer):
            watcher.stop()
            watcher.close()
        self._socket.close()
        self._peers.forget(self)
        self._pipe.close()
        self.transport.short_way = None
        self.transport.choose_way()
        self.transport.lent.inlet = None
        self.transport.on_output = self.transport.on_reading = self.transport.on_behind = None

    def send_failed(self, error: OSError, output: Sequence[bytes | memoryview]) -> None:
        """Wait for room if the socket is full, else end the connection."""
        if isinstance(error, BlockingIOError):
            self.keep(output, 0)
        else:
            self._lost(error.strerror or "error")

    def keep(self, output: Sequence[bytes | memoryview], sent: int) -> None:
        """Keep the rest of `output` after `sent` bytes, and watch for room if there is any."""
        at = 0
        while at < len(output) and sent >= len(output[at]):
            sent -= len(output[at])
            at += 1
        if at == len(output):
            return
        self._unsent = [memoryview(output[at])[sent:], *output[at + 1 :]]
        self.transport.unsent(sum(map(len, self._unsent)))
        self._pipe.is_plain = False
        self._writer.start(self._on_writable)

    def guard(self, call: Callable[..., None], *args: object) -> None:
        """Call into the machine; a bug there, or in an application, costs this connection only."""
        try:
            call(*args)
        except Exception:
            self._failed()

    def take(self, data: bytes) -> None:
        """Have the machine use what the intake has read of other than usual audio."""
        begun = now()
        if not self.transport.closed:
            self._feed(data)
        self._turns.spent += now() - begun

    def read_failed(self, error: OSError | None) -> None:
        """End the connection for an error of the intake, or at the end of the stream."""
        self._lost("closed by the peer" if error is None else error.strerror or "error")

    def sink_failed(self, error: Exception) -> None:
        """End the connection for an error that a message of the intake has caused."""
        if isinstance(error, RemoteError):
            self.guard(self.machine.abort, str(error), now())
        else:
            self._failed(error)

    def _failed(self, error: Exception | None = None) -> None:
        log.error("a connection fails", exc_info=error or True)
        try:
            self.machine.abort("internal error", now())
        except Exception:
            log.exception("a connection fails to close")

    def _on_output(self, transport: ChunkTransport) -> None:
        if not self._dirty and self._merges:
            self._peers.schedule()
        self._dirty.append(self._pipe)
        if transport.closed:
            self._pipe.is_plain = False

    def _on_reading(self, transport: ChunkTransport) -> None:
        if not transport.reading:
            self._reader.stop()
        else:
            self._reader.start(self._on_readable)
            self._peers._loop.run_callback(self._feed, b"")

    def _on_readable(self) -> None:
        if self._turns.spent < SLICE or self._turns.lets(self):
            self.read()

    @property
    def is_reading(self) -> bool:
        return self._open and self._reader.active

    def read(self) -> None:
        """Read once, unless some of the last read is left, and have the machine go on."""
        begun, data = now(), b""
        if self.transport.is_behind:
            self._feed(b"")
        elif not (data := self._received()):
            return
        elif self._tls is not None:
            self._open_sealed(self._tls, data)
        elif not self.transport.closed:  # else it has not read our last words yet
            self._feed(data)
        if self._tls is not None and self._tls.ended and not self.transport.is_behind:
            self._lost("closed by the peer")
        spent = now() - begun
        self._turns.spent += spent
        if data:
            is_bulk = len(data) >= SMALL_READ and spent * READ_SIZE < LABOUR * len(data)
            self._room = READ_SIZE if is_bulk else SMALL_READ

    def _received(self) -> bytes:
        """Read from the socket; nothing at its end."""
        try:
            data = self._receive(self._room)
        except BlockingIOError:
            return b""
        except OSError as error:
            self._lost(error.strerror or "error")
            return b""
        if not data:
            self._lost("closed by the peer" if self._tls is None else self._tls.end)
        return data

    def _receive_first(self, room: int) -> bytes:
        """Receive for the first time: TLS where there should be none is told at once."""
        data = self._socket.recv(room)
        self._receive = self._socket.recv
        if self._tls is None and (reason := mistaken(data)):
            log.warning("%s:%d: %s", *self.transport.peer_address, reason)
            raise ConnectionAbortedError(errno.ECONNABORTED, reason)
        return data

    def _open_sealed(self, tls: Tls, data: bytes) -> None:
        try:
            data = tls.receive(data)
        except ssl.SSLError as error:
            self._say_tls(tls)  # why
            self.guard(self.machine.abort, explain(error), now())
            return
        self._say_tls(tls)
        if data and not self.transport.closed:
            self._feed(data)

    def _say_tls(self, tls: Tls) -> None:
        """Send TLS's own output, behind what waits to be sent."""
        if not self._unsent:
            if sealed := tls.take_output():
                self._send([sealed])
        elif tls.pending > MAX_SEALED:
            self.guard(
                self.machine.abort, f"{tls.pending} bytes of TLS that it does not read", now()
            )

    def _output(self) -> list[bytes]:
        output = self.transport.take_output()
        if self._tls is None:
            return output
        if output:
            self._tls.send(b"".join(output))
        sealed = self._tls.take_output()
        return [sealed] if sealed else []

    def _feed(self, data: bytes) -> None:
        waiting = len(self.transport.output)
        try:
            self.transport.receive(data, now())
        except Exception:
            self._failed()
        if self._merges and len(self.transport.output) > waiting and not self._unsent:
            self._dirty.remove(self._pipe)
            self.guard(self.flush)  # an answer, which the peer waits for

    def _lost(self, reason: str) -> None:
        if self._open:
            self.guard(self.transport.connection_lost, now(), reason)
            self.shut()

    def _on_writable(self) -> None:
        output = self._unsent + self._output()
        self._unsent = []
        self.transport.unsent(0)
        self._send(output)
        if self._open and not self._unsent:
            self._writer.stop()
            self._pipe.is_plain = self._is_bare and not self.machine.closed
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
        """Let the peer read why, before closing resets the connection."""
        if self._closing_at is not None:
            return
        if self._tls is not None:
            self._tls.close()
            self._say_tls(self._tls)
        self._closing_at = now() + LINGER
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.shut()
            return
        self._reader.start(self._on_readable)
