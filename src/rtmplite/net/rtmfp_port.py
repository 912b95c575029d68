"""One UDP socket for all the RTMFP sessions of an endpoint: a watcher, an alarm, and slow jobs.

No greenlet waits for the socket.  A watcher reads what has come; all that the machines then want
sent leaves at the end of that turn of the loop.  The alarm comes after the watcher: an
acknowledgement that has arrived is read before anything is sent again.  Diffie-Hellman runs in a
few threads of its own, so that many new clients at once do not delay the media of the others.

What comes for a session is dealt with at once.  The rest are hellos and keyings of strangers, which
wait for the turn of their host (`read_budget`); where there are too many, the host with most loses
its oldest.
"""

import logging
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import gevent

from rtmplite.limits.rate_limit_key import rate_limit_key
from rtmplite.net.clock import busy_seconds, now
from rtmplite.net.datagram_runs import DatagramRuns
from rtmplite.net.deadline_timer import DeadlineTimer
from rtmplite.net.read_budget import SLICE, read_budget
from rtmplite.net.tap import Tapping
from rtmplite.net.tcp_connections import LATE, WATCH_READ, Socket
from rtmplite.net.workers import Workers
from rtmplite.rtmfp.crypto.profile import CryptoProfile
from rtmplite.rtmfp.endpoint.endpoint import DEFAULT_LIMITS, Endpoint
from rtmplite.rtmfp.endpoint.endpoint_listener import EndpointListener
from rtmplite.rtmfp.endpoint.hellos import Judge
from rtmplite.rtmfp.endpoint.initiator import Job
from rtmplite.rtmfp.endpoint.limits import StartupLimits
from rtmplite.rtmfp.endpoint.session_table import ALL_IDS
from rtmplite.rtmfp.netconnection.connection import FlowEnd, FlowTransport
from rtmplite.rtmfp.session.limits import SessionBudget
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmfp.wire.startup_chunks import InitiatorHello

log = logging.getLogger(__name__)

READS: Final = 8  # calls per wake-up, so that a flood does not starve other sockets ...
AT_ONCE: Final = 32  # ... and datagrams of a call, so that the time is looked at
MAX_WAITING: Final = 1 << 20  # bytes of datagrams of strangers that wait for their turn ...
OVERHEAD: Final = 256  # ... each with those that it takes beside its content
BUFFER: Final = 1024 * 1024  # bytes of each of the socket's: many sessions burst at once
TICK: Final = 1.0  # s, how coarse the time-outs of connections are

THREADS: Final = 2  # for Diffie-Hellman: with more it would not be done sooner

_LOCAL: Final = threading.local()
_MAPPED: Final = "::ffff:"  # how a socket for both families shows IPv4


class RtmfpPort:
    """A socket, its endpoint, and the connections that use the endpoint's sessions.

    `others`, `limits`, `budget` and `ids` are those of `Endpoint`; `opened` is a socket that is
    bound there already, for a server of several processes.
    `watch` a connection to have its output sent and its time-outs kept; `on_over` is called when it
    is over.  `on_turn` is called soon after the output of a turn has been sent.
    """

    def __init__(
        self,
        host: str,
        port: int,
        profile: CryptoProfile,
        listener: EndpointListener,
        *,
        others: Sequence[Address] = (),
        limits: StartupLimits = DEFAULT_LIMITS,
        budget: SessionBudget | None = None,
        ids: range = ALL_IDS,
        opened: socket.socket | None = None,
    ) -> None:
        self._host, self._port, self._opened = host, port, opened
        self.on_over: Callable[[FlowEnd], None] = lambda connection: None
        self.on_turn: Callable[[], None] | None = None
        self.endpoint = Endpoint(
            Tapping.current.profile(profile),
            os.urandom,
            now(),
            listener=listener,
            limits=limits,
            others=others,
            budget=budget,
            ids=ids,
            on_work=self._on_work,
            on_bug=self._on_bug,
        )
        self._hub = gevent.get_hub()
        self._socket: socket.socket | None = None
        self._connections: dict[FlowTransport, FlowEnd] = {}  # in order of arrival
        self._dirty: list[FlowTransport] = []
        self._bugs = 0
        self._turns, self._strangers = read_budget(), dict[str, _Stranger]()
        self._waiting = 0  # bytes, of all strangers
        self._alarm = DeadlineTimer(self._on_alarm, LATE)
        self._touched = False  # the endpoint may have something to send, or another deadline

    def start(self) -> None:
        """Listen.  Raises OSError if the address cannot be had."""
        opened = self._opened or datagram_socket(self._host, self._port)
        self._socket = Tapping.current.datagrams(opened)
        self._is_v6 = self._socket.family == socket.AF_INET6
        # Several processes get their datagrams by session ID, of which a run may have two.
        self._runs = DatagramRuns(self._socket, joins=self._opened is None)
        loop = self._hub.loop
        self._reader = loop.io(self._socket.fileno(), WATCH_READ)
        self._reader.start(self._on_readable)
        # Always on: what a thread has finished is told between the callbacks of a turn and its end,
        # when a watcher that is started first runs after the next sleep.
        self._flusher = loop.prepare(ref=False, priority=LATE)
        self._flusher.start(self.flush)
        self._ticker = loop.timer(TICK, TICK)
        self._ticker.start(self._tick)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that it listens on, the real port even if 0 was asked for."""
        assert self._socket is not None, "not started"
        host, port = self._socket.getsockname()[:2]
        return host, port

    @property
    def connections(self) -> list[FlowEnd]:
        """The connections that are watched, in order of arrival."""
        return list(self._connections.values())

    def watch(self, connection: FlowEnd) -> None:
        """Send a connection's output and keep its time-outs, until it and its session are over."""
        transport = connection.transport
        self._connections[transport] = connection
        transport.on_output = self._on_output
        self._on_output(transport)

    def close(self) -> None:
        """Close all sessions, telling the peers, and the socket; a second call does nothing."""
        if self._socket is None:
            return
        self.endpoint.abort(now())
        self.flush()
        self._alarm.cancel()
        for watcher in (self._reader, self._flusher, self._ticker):
            watcher.stop()
            watcher.close()
        self._socket.close()
        self._socket = None
        self._strangers.clear()

    def _on_readable(self) -> None:
        assert self._socket is not None
        moment, begun = now(), busy_seconds()
        for _ in range(READS):
            datagrams = self._runs.receive(AT_ONCE)
            if not datagrams:
                break
            for datagram, source in self.endpoint.receive_known(datagrams, moment):
                self._keep(datagram, source)
            if len(datagrams) < AT_ONCE:
                break
            if now() - moment > SLICE and busy_seconds() - begun > SLICE:
                break
        self._touched = True

    def _keep(self, datagram: bytes, source: Address) -> None:
        """Have a datagram wait for the turn of its host."""
        host = rate_limit_key(source[0])
        if (stranger := self._strangers.get(host)) is None:
            stranger = self._strangers[host] = _Stranger(host, self._hear)
            self._turns.wait(stranger)
        self._waiting += stranger.add(datagram, source)
        while self._waiting > MAX_WAITING:
            fullest = max(self._strangers.values(), key=lambda each: each.size)
            self._waiting -= fullest.take()[2]

    def _hear(self, stranger: "_Stranger") -> None:
        """Process one datagram of a host, and have the others wait again."""
        begun = now()
        if self._strangers.get(stranger.host) is not stranger:  # closed
            return
        if stranger.datagrams:
            datagram, source, size = stranger.take()
            self._waiting -= size
            self._guard(self.endpoint.receive, datagram, source, now())
            self._touched = True
        if stranger.datagrams:
            self._turns.wait(stranger)
        else:
            self._strangers.pop(stranger.host, None)
        self._turns.spent += now() - begun

    def introduce(self, hello: InitiatorHello, source: Address, judge: Judge) -> None:
        """Introduce a host that has asked another process: see `Hellos.introduce`."""
        self._guard(self.endpoint.hellos.introduce, hello, source, judge, now())
        self._touched = True

    def _on_work(self) -> None:
        self._touched = True

    def _on_output(self, transport: FlowTransport) -> None:
        self._dirty.append(transport)
        self._touched = True

    def flush(self) -> None:
        """Send all output and set the alarm, as is done at the end of every turn."""
        if self._socket is None or (not self._touched and not self._dirty):
            return
        moment = now()
        while self._dirty:
            dirty, self._dirty = self._dirty, []
            for transport in dirty:
                self._flush_one(transport, moment)
        self._touched = False
        self._runs.send(self.endpoint.take(moment))
        for job in self.endpoint.take_jobs():
            self._work(job)
        self._alarm.set(self.endpoint.deadline, moment)
        if self.on_turn is not None:
            # This turn's callbacks have run: one more would wait for whatever happens next.
            self._hub.loop.run_callback_threadsafe(self.on_turn)

    def _flush_one(self, transport: FlowTransport, moment: float) -> None:
        try:
            transport.flush(moment)
        except Exception:
            log.exception("a connection fails")
            self._guard(transport.abort, "internal error", moment)
        if transport.is_over and transport in self._connections:
            connection = self._connections.pop(transport)
            transport.on_output = None
            self.on_over(connection)

    def _work(self, job: Job[Any]) -> None:
        """Run a job in a thread, then let the endpoint go on here, also if the job failed."""

        def done(_: None) -> None:
            if self._socket is not None:
                self._guard(self.endpoint.finish, job, now())
                self._touched = True

        _workers().run(partial(self._guard, job.run), done)

    def _on_alarm(self) -> None:
        self._guard(self.endpoint.tick, now())
        self._touched = True

    def _tick(self) -> None:
        moment = now()
        for transport, connection in list(self._connections.items()):
            deadline = connection.deadline
            if deadline is not None and moment >= deadline:
                self._guard(connection.tick, moment)
                self._on_output(transport)

    def _guard(self, call: Callable[..., object], *args: object) -> None:
        """Call a machine; an exception in it is logged and does not end the port."""
        try:
            call(*args)
        except Exception as error:
            self._on_bug(error)

    def _on_bug(self, error: Exception) -> None:
        """Log the 1st, 2nd, 4th, 8th ... exception: a peer may be able to cause one at will."""
        self._bugs += 1
        if self._bugs & self._bugs - 1 == 0:
            log.error("an endpoint fails, for the %d. time: %r", self._bugs, error, exc_info=error)


class _Stranger:
    """The datagrams of one host that belong to no session, and the bytes that they take."""

    is_reading = True

    def __init__(self, host: str, hear: "Callable[[_Stranger], None]") -> None:
        self.host, self._hear = host, hear
        self.datagrams: deque[tuple[bytes, Address, int]] = deque()
        self.size = 0

    def add(self, datagram: bytes, source: Address) -> int:
        """Add a datagram, and give the octets of memory that it takes."""
        size = len(datagram) + OVERHEAD
        self.datagrams.append((datagram, source, size))
        self.size += size
        return size

    def take(self) -> tuple[bytes, Address, int]:
        """Remove the oldest, and give it."""
        taken = self.datagrams.popleft()
        self.size -= taken[2]
        return taken

    def read(self) -> None:
        self._hear(self)


def _workers() -> Workers:
    """The threads of all ports that this thread's hub serves."""
    if not hasattr(_LOCAL, "workers"):
        _LOCAL.workers = Workers(THREADS)
    workers: Workers = _LOCAL.workers
    return workers


def datagram_socket(host: str, port: int, *options: int) -> socket.socket:
    """A UDP socket that does not block, with `options` set; one for `::` hears IPv4 as well."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE
    )[0]
    opened = Socket(family, kind, protocol)
    try:
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != "::")
        for option in options:
            opened.setsockopt(socket.SOL_SOCKET, option, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        opened.bind(address)
    except OSError:
        opened.close()
        raise
    opened.setblocking(False)
    return opened
