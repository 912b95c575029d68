"""The driver of a SIP stack: its sockets, its timer, and the order of its work.

Implements RFC 3261 §18 at the edge: UDP and TCP on the same port, for each address family, and
beside them TLS and WebSocket.

Own design: everything happens in the hub, by watchers; after each event the machines' orders are
carried out and one alarm is set to the earliest of their deadlines.
"""

import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import gevent
from gevent import get_hub

from p2psip.errors import RemoteError
from p2psip.net.alarm import Alarm, TimedMachine
from p2psip.net.clock import monotonic
from p2psip.net.host_queues import HostQueues
from p2psip.net.host_scheduler import HostScheduler
from p2psip.net.tcp import MAX_CONNECTIONS, TcpListener
from p2psip.net.tls import TlsContexts
from p2psip.net.udp import UdpListener, plain_socket
from p2psip.server.domain_server import DomainServer
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Flow, Listener, Locate, Send, Stack
from p2psip.transaction.flow import WEB, HostPort
from p2psip.transaction.table import earlier
from p2psip.ua.registering.registrations import Registrations

BIND_TRIES: Final = 32
GRAIN: Final = 0.005  # s that timers may be late: one wake-up serves those of many transactions
log: Final = logging.getLogger(__name__)

T = TypeVar("T")


class SipPorts:
    """A UDP and a TCP socket bound to one port: RFC 3261 §18.2.1.

    `port` 0 takes a free one.  `also` are further addresses with both, such as one of IPv6;
    `sips` are addresses for TLS, `ws` for WebSocket, also by TLS; with `opens_web` connections of
    WebSocket are opened there, and none accepted.  Raises OSError as `bind` does.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        also: Sequence[HostPort] = (),
        sips: Sequence[HostPort] = (),
        ws: Sequence[HostPort] = (),
        opens_web: bool = False,
    ) -> None:
        self.opens_web = opens_web
        self.bound: list[tuple[str, socket.socket]] = []
        try:
            for address in ((host, port), *also):
                udp, tcp = _bind_both(*address, alone=bool(also))
                # RFC 3261 §18 [udp-and-tcp], §18.2.1 [tcp-beside-udp]
                self.bound += [("UDP", udp), ("TCP", tcp)]
            for transport, addresses in (("TLS", sips), ("WS", ws)):
                for address in addresses:
                    bound = _named(transport, *address, alone=len(addresses) > 1)
                    self.bound.append((transport, bound))
        except OSError:
            self.close()
            raise
        self.udp, self.tcp = self.bound[0][1], self.bound[1][1]
        self.address: HostPort = self.udp.getsockname()[:2]

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The sockets' addresses, for the stack: UDP first, as phones expect.

        One for WebSocket has two names, as it may turn out to be secure: RFC 7118 §5.1.
        """
        named = [
            (name, each.getsockname()[:2])
            for transport, each in self.bound
            for name in ((transport,) if transport != "WS" else ("WS", "WSS"))
        ]
        opens = self.opens_web
        return tuple(
            Listener(name, host, port, opens and name in WEB) for name, (host, port) in named
        )

    @property
    def transports(self) -> tuple[str, ...]:
        """The transports by which a server can be reached, the preferred first: RFC 3263 §4.1."""
        names = dict.fromkeys(name for name, _ in self.bound)
        return (*names, "WSS") if self.opens_web else tuple(names)

    def close(self) -> None:
        """Close the sockets, before a driver has taken them."""
        for _, each in self.bound:
            each.close()


class PortsElsewhere:
    """The ports that another process has, which carries our messages.  Own design: see `Stack`."""

    def __init__(self, ports: SipPorts) -> None:
        self.listeners, self.transports = ports.listeners, ports.transports
        self.opens_web = ports.opens_web
        self.bound: list[tuple[str, socket.socket]] = []
        self.address: HostPort = ports.address

    def close(self) -> None:
        """Nothing is open here."""


class SipDriver:
    """Runs one stack on the sockets of its ports.

    `machines` are the stack and others with deadlines; callers may add and remove machines.
    `locate(uri)` gives the servers for a URI, best first, and may wait (RFC 3263 §4).  `tls` is
    needed where a port is for TLS.  `on_pong(flow, data, now)` is given what may answer a
    keep-alive, STUN or b"" for a CRLF, and tells whether it does.

    Without sockets `carry(data, flow)` sends, and tells whether that was possible.  `on_failure` is
    told of each flow that has failed.
    """

    on_pong: Callable[[Flow, bytes, float], bool] = staticmethod(lambda flow, data, now: False)
    on_failure: Callable[[Flow], object] = staticmethod(lambda flow: None)

    def __init__(
        self,
        stack: Stack,
        ports: SipPorts | PortsElsewhere,
        *,
        locate: Callable[[Uri], Sequence[Flow]] = lambda uri: (),
        max_connections: int = MAX_CONNECTIONS,
        tls: TlsContexts | None = None,
        carry: Callable[[bytes, Flow], bool] = lambda data, flow: False,
    ) -> None:
        self.stack, self._locate = stack, locate
        self.machines: list[TimedMachine] = [stack]
        self.address, self.ports, self._carry = ports.address, ports, carry
        self._tls, self._max_connections, self._scheduler = tls, max_connections, HostScheduler()
        self._queues = HostQueues[Flow](self._scheduler, self.receive)
        self._listening: list[UdpListener | TcpListener] = []
        # By transport and own address, and by transport and family: the first of these.
        self._of_flow: dict[tuple[str, HostPort | bool | None], UdpListener | TcpListener] = {}
        for transport, bound in ports.bound:
            self._listen(transport, bound)
        self._alarm = Alarm(self, GRAIN)
        self._busy = self._closed = self._is_running = False
        self._reported: set[str] = set()
        stack.on_error = self._report
        stack.notify(self._schedule)

    def serve(self, server: DomainServer) -> None:
        """Drive all of an element that serves domains, whose stack this is: RFC 3261 §10.3, §16."""
        self.machines += server.machines
        self.run(server.start, monotonic())
        for each in self._streams:
            each.keeps = lambda flow: server.keeps(flow, monotonic())
            each.is_dead = lambda flow, silence: server.is_dead(flow, silence, monotonic())

    def drive(self, registrations: Registrations) -> None:
        """Drive registrations, with their keep-alives and what comes back: RFC 5626 §4.4."""
        self.machines.append(registrations)
        registrations.follow(self.stack)
        registrations.ping, registrations.lose = self.ping, self.lose
        self.on_pong = registrations.heard

    def ping(self, flow: Flow, data: bytes) -> None:
        """Send a keep-alive: RFC 5626 §4.4.  `on_pong` is given what comes back."""
        self._carry_out(Send(data, flow))

    def lose(self, flow: Flow) -> None:
        """Close the connection of a flow that does not answer: RFC 5626 §4.4.1."""
        listener = self._listener_of(flow)
        if isinstance(listener, TcpListener):
            listener.drop(flow)

    @property
    def udp(self) -> UdpListener:
        first = self._listening[0]
        assert isinstance(first, UdpListener)
        return first

    def receive(self, data: bytes, flow: Flow) -> None:
        """Take a message, which another process may have received or sent (§18.2.1)."""
        self._guarded(self.stack.receive, data, flow)

    def receive_in_turn(self, data: bytes, flow: Flow) -> None:
        """The same, when the host that has sent it has its turn."""
        self._queues.keep(data, flow, flow.remote[0])

    def send(self, data: bytes, flow: Flow) -> None:
        """Send a message of another process.  Own design: see `Stack`."""
        self._carry_out(Send(data, flow))

    def fail(self, flow: Flow) -> None:
        """Note that a flow has failed (§18.4)."""
        self._guarded(self._failed, flow)

    @property
    def connections(self) -> int:
        """The number of open connections, for the status page."""
        return sum(len(each.connections) for each in self._streams)

    @property
    def _streams(self) -> Iterator[TcpListener]:
        return (each for each in self._listening if isinstance(each, TcpListener))

    def run(self, act: Callable[..., T], *args: Any) -> T:
        """Call a machine, then carry out its orders; returns the result of the call."""
        outer, self._is_running = self._is_running, True
        try:
            return act(*args)
        finally:
            self._is_running = outer
            self.wake()

    def wake(self) -> None:
        """Carry out orders and set the alarm; cheap if there is nothing to do."""
        if self._busy or self._closed:
            return  # the call under way carries out these orders too
        self._busy = True
        try:
            while orders := self.stack.take_orders():
                for order in orders:
                    self._carry_out(order)
        finally:
            self._busy = False
            self._alarm.set()

    @property
    def deadline(self) -> float | None:
        first: float | None = None
        for machine in self.machines:
            first = earlier(first, machine.deadline)
        return first

    def tick(self, now: float) -> None:
        """Tick the machines that are due, after what has come, and carry out their orders."""
        self._scheduler.serve()
        for machine in list(self.machines):
            deadline = machine.deadline
            if deadline is not None and deadline <= now:
                try:
                    machine.tick(now)
                except Exception as error:
                    self._report(error)
        self.wake()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._alarm.cancel()
            self._queues.close()
            self._scheduler.close()
            for each in self._listening:
                each.close()

    def _schedule(self) -> None:
        """Have orders carried out at the end of this turn of the loop, or earlier."""
        if not self._busy and not self._is_running:
            get_hub().loop.run_callback(self.wake)

    def _carry_out(self, order: Send | Locate) -> None:
        if isinstance(order, Locate):
            gevent.spawn(self._look_up, order)
            return
        data, flow = order.data, order.flow
        listener = self._listener_of(flow)
        send = self._carry if listener is None else listener.send
        if not send(data, flow):
            self._failed(flow, monotonic())

    def _failed(self, flow: Flow, now: float) -> None:
        self.stack.flow_failed(flow, now)
        self.on_failure(flow)

    def _listener_of(self, flow: Flow) -> UdpListener | TcpListener | None:
        found = self._of_flow.get((flow.transport, flow.local))
        if found is None:
            family = ":" in flow.remote[0]
            found = self._of_flow.get((flow.transport, family))
            found = found or self._of_flow.get((flow.transport, not family))
        return found

    def _listen(self, transport: str, bound: socket.socket) -> None:
        listener: UdpListener | TcpListener
        if transport == "UDP":
            listener = UdpListener(bound, self.receive, self._scheduler)
            listener.on_stun.append(lambda data, source: self._on_pong(Flow("UDP", source), data))
        else:
            listener = TcpListener(
                bound,
                self.receive,
                self._on_malformed,
                self.fail,
                max_connections=self._max_connections,
                transport=transport,
                tls=self._tls,
                scheduler=self._scheduler,
                opens_web=self.ports.opens_web,
            )
            listener.on_pong = self._on_pong
        self._listening.append(listener)
        for name in (transport,) if transport != "WS" else ("WS", "WSS"):
            self._of_flow[name, listener.address] = listener
            self._of_flow.setdefault((name, ":" in listener.address[0]), listener)

    def _look_up(self, order: Locate) -> None:
        try:
            flows = list(self._locate(order.uri))
        except Exception:
            log.exception("locating %s", order.uri.host)
            flows = []
        self._guarded(self.stack.located, order.token, flows)

    def _on_malformed(self, data: bytes, flow: Flow, error: RemoteError) -> None:
        self._guarded(self.stack.refuse, data, flow, error)

    def _on_pong(self, flow: Flow, data: bytes = b"") -> bool:
        return self.run(self.on_pong, flow, data, monotonic())

    def _guarded(self, act: Callable[..., None], *args: Any) -> None:
        """Handle one event; an error of ours is logged, and the other events go on."""
        try:
            self.run(act, *args, monotonic())
        except Exception as error:
            self._report(error)

    def _report(self, error: Exception) -> None:
        """Log an error of ours: with its trace the first time, in one line later."""
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = f"{trace.tb_frame.f_code.co_qualname}:{trace.tb_lineno}" if trace else ""
        kind = f"{type(error).__name__} at {place}"
        is_new = kind not in self._reported
        self._reported.add(kind)
        log.error("a fault of ours: %s", kind, exc_info=error if is_new else None)


def _bind_both(host: str, port: int, *, alone: bool = False) -> tuple[socket.socket, socket.socket]:
    tries = 1 if port else BIND_TRIES
    while True:
        tries -= 1
        udp = _bound(socket.SOCK_DGRAM, host, port, alone=alone)
        try:
            return udp, _bound(socket.SOCK_STREAM, host, udp.getsockname()[1], alone=alone)
        except OSError:
            udp.close()
            if not tries:
                raise


def _named(transport: str, host: str, port: int, *, alone: bool) -> socket.socket:
    """A socket for TLS or WebSocket; an error says which, since the other ports were free."""
    try:
        return _bound(socket.SOCK_STREAM, host, port, alone=alone)
    except OSError as error:
        raise OSError(error.errno, f"{transport} at {host}:{port}: {error.strerror}") from None


def _bound(kind: socket.SocketKind, host: str, port: int, *, alone: bool = False) -> socket.socket:
    """A socket bound to an address; `alone` leaves IPv4 to a socket of its own."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = plain_socket(family, kind)
    try:
        opened.setblocking(False)
        if kind is socket.SOCK_STREAM:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if alone and family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.bind((host, port))
    except OSError:
        opened.close()
        raise
    return opened
