"""The sockets of one agent of ICE: datagrams and connections at addresses of this host.

Implements RFC 6544 §7.1, §7.2 and §10 for the system's TCP, beside UDP.

Own design: one watcher for each socket calls straight into the agent, and a timer at its deadline.
What a peer does not read in time is lost by whole packets, as it would be by UDP.
"""

import errno
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from gevent import get_hub
from gevent.event import Event

from p2psip.errors import RemoteError
from p2psip.nat.demultiplexing import DatagramKind, kind_of
from p2psip.nat.ice import IceAgent, IceState
from p2psip.nat.ice_candidate import (
    CandidateType,
    HostPort,
    IceBase,
    IceCandidate,
    TcpBase,
    TcpType,
)
from p2psip.nat.ice_checklist import IcePair
from p2psip.nat.ice_connections import IceDatagram, IceOctets, IceOpen
from p2psip.nat.ice_credentials import IceCredentials
from p2psip.nat.stun import StunMessage
from p2psip.net.alarm import Alarm
from p2psip.net.clock import monotonic
from p2psip.net.descriptors import STRANGERS, is_out, is_scarce
from p2psip.net.media.port_pool import MediaPair, MediaRelay
from p2psip.net.stream_socket import StreamSocket
from p2psip.net.udp import BURST, MAX_DATAGRAM, READ, plain_socket

BACKLOG: Final = 16  # connections that the system keeps for us
MAX_QUEUED: Final = 1 << 18  # octets that a peer may leave unread: a second of 2 Mbit/s
PAUSE_SECONDS: Final = 1.0  # s until connections are accepted again, once descriptors have run out

_Flow = tuple[TcpBase, HostPort]


class IceSockets:
    """The sockets of a session at these hosts, with their `candidates`, until `close`.

    `on_media(data)` is called in the hub with each packet of the peer other than STUN, once a pair
    works, and must not wait.  `settled` is set when ICE has ended, with a pair or without.
    `on_change` is called, in the hub too, when its state or the pair in use has changed.
    Without `tcp` there are datagrams alone, without `udp` connections alone: RFC 6544 §4.1.
    `given` are pairs of sockets whose first one is used as well, and stays open at the end.
    """

    def __init__(
        self,
        agent: IceAgent,
        hosts: Iterable[str],
        on_media: Callable[[bytes], object],
        *,
        udp: bool = True,
        tcp: bool = True,
        given: Iterable[MediaPair] = (),
    ) -> None:
        self.agent, self.settled = agent, Event()
        self.on_change: Callable[[], object] = lambda: None
        self._told: tuple[IceState, IcePair | None] = agent.state, agent.selected
        self.candidates: list[IceCandidate] = []
        self.connections: dict[_Flow, StreamSocket] = {}
        self._on_media, self._is_closed = on_media, False
        self._datagrams: dict[HostPort, Any] = {}  # sockets, and objects that behave like one
        self._bound: list[socket.socket] = []  # those that are closed at the end
        self._relays: list[MediaRelay] = []
        self._accepting: list[tuple[Any, Callable[[], None]]] = []
        self._again: Any = get_hub().loop.timer(PAUSE_SECONDS, ref=False)
        self._watchers: list[Any] = [self._again]
        self._alarm = Alarm(self)
        try:
            for pair in given:
                self._adopt(pair)
            for host in hosts:
                if udp:
                    self._bind_udp(host)
                if tcp:  # RFC 6544 §4.1 [tcp-by-choice]
                    self._bind_tcp(host)
        except BaseException:
            self.close()
            raise
        agent.gathered()

    def begin(
        self,
        theirs: IceCredentials,
        candidates: Iterable[IceCandidate],
        *,
        are_all: bool = True,
    ) -> None:
        """Take what the signalling says of the peer; its checks may tell of more candidates."""
        if theirs != self.agent.theirs:
            self.agent.begin(theirs, monotonic())
        for candidate in candidates:
            self.agent.add_remote(candidate)
            for relay in self._relays:
                relay.permit([candidate.host] if candidate.version is not None else [])
        if are_all:
            self.agent.end_of_candidates()
        self._follow([])

    def send(self, data: bytes) -> None:
        """Send a packet by the pair in use, or one that works; else it is lost: RFC 6544 §10.1."""
        pair = self.agent.way
        if pair is None or self._is_closed:
            return
        if isinstance(pair.base, TcpBase):
            self.agent.connections.send_media(data, pair.base, pair.remote.address)
            self._follow([])
        else:
            self._post(IceDatagram(data, pair.base, pair.remote.address))

    def close(self) -> None:
        """Close all sockets; a second time does nothing."""
        self._is_closed = True
        self._alarm.cancel()
        for watcher in self._watchers:
            watcher.stop()
            watcher.close()
        self._watchers.clear()
        # RFC 6544 §11.1 [ends-with-its-session]
        for connection in self.connections.values():
            connection.close()
        for each in self._bound:
            each.close()
        self._datagrams.clear()
        self._bound.clear()
        self.connections.clear()

    # -- time ---------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        """When to call `tick`: RFC 8445 §6.1.4."""
        return self.agent.deadline

    def tick(self, now: float) -> None:
        """Send what is due: RFC 8445 §6.1.4."""
        self._follow(self.agent.tick(now))

    def _follow(self, datagrams: list[IceDatagram]) -> None:
        """Carry out what the agent asks for, until it asks for no more."""
        for datagram in datagrams:
            self._post(datagram)
        while orders := self.agent.connections.orders():
            for order in orders:
                flow = order.base, order.to
                if isinstance(order, IceOpen):
                    self._connect(*flow)
                elif isinstance(order, IceOctets):
                    if (connection := self.connections.get(flow)) is not None:
                        connection.send(order.data)
                elif (connection := self.connections.pop(flow, None)) is not None:
                    connection.close()
        if self.agent.state is IceState.RUNNING:
            self.settled.clear()
        else:
            self.settled.set()
        self._alarm.set()
        is_now = self.agent.state, self.agent.selected
        if is_now != self._told:
            self._told = is_now
            self.on_change()

    # -- datagrams ----------------------------------------------------------------------

    def _bind_udp(self, host: str) -> None:
        bound = _bound(host, socket.SOCK_DGRAM)
        self._bound.append(bound)
        self._use(bound, bound.getsockname()[:2], CandidateType.HOST)

    def _adopt(self, pair: MediaPair) -> None:
        """Use a socket that leads through a server, or whose address it tells: RFC 8445 §5."""
        relay = next((each for each in pair.relays if each is pair.rtp), None)
        public = None if pair.public is None else (pair.public.host, pair.public.port)
        if relay is not None and public is not None:
            self._relays.append(relay)
            self._use(pair.rtp, public, CandidateType.RELAYED)
            return
        base = pair.rtp.getsockname()[:2]
        self._use(pair.rtp, base, CandidateType.HOST)
        if public is not None and public != base:  # else it is the same
            reflexive = CandidateType.SERVER_REFLEXIVE
            self.candidates.append(self.agent.add_local(public, reflexive, base))

    def _use(self, opened: Any, base: HostPort, kind: CandidateType) -> None:
        self._datagrams[base] = opened
        self.candidates.append(self.agent.add_local(base, kind))
        self._watch(opened, partial(self._receive, opened, base))

    def _receive(self, bound: Any, base: HostPort) -> None:
        for _ in range(BURST):
            try:
                data, source = bound.recvfrom(MAX_DATAGRAM)
            except BlockingIOError:
                return
            except OSError:
                continue  # what ICMP says of an earlier datagram
            self._take(data, base, source[:2])
            if self._is_closed:
                return

    def _take(self, data: bytes, base: HostPort, source: HostPort) -> None:
        pair = self.agent.selected
        if kind_of(data) is DatagramKind.STUN:
            with suppress(RemoteError):
                message = StunMessage.parse(data)
                self._follow(self.agent.received(message, base, source, monotonic()))
        elif self._is_of(pair, base, source) or self.agent.hears(base, source):
            self._on_media(data)

    @staticmethod
    def _is_of(pair: IcePair | None, base: IceBase, source: HostPort) -> bool:
        return pair is not None and (base, source) == (pair.base, pair.remote.address)

    def _post(self, datagram: IceDatagram) -> None:
        with suppress(OSError):  # nobody is there, or no room: ICE asks again
            self._datagrams[datagram.base].sendto(datagram.data, datagram.to)

    # -- connections --------------------------------------------------------------------

    def _bind_tcp(self, host: str) -> None:
        bound = _bound(host, socket.SOCK_STREAM)
        self._bound.append(bound)
        bound.listen(BACKLOG)  # RFC 6544 §7.2 [connections-are-awaited]
        host, port = bound.getsockname()[:2]
        # RFC 6544 §4.1 [host-candidates], §5.1 [passive-host-candidates]
        self.candidates.append(self.agent.add_tcp(TcpType.ACTIVE, (host, port)))
        self.candidates.append(self.agent.add_tcp(TcpType.PASSIVE, (host, port)))
        base = TcpBase(host, port, TcpType.PASSIVE)
        accept = partial(self._accept, bound, base)
        self._accepting.append((self._watch(bound, accept), accept))

    def _watch(self, bound: Any, act: Callable[[], None]) -> Any:
        watcher = get_hub().loop.io(bound.fileno(), READ)
        watcher.start(act)
        self._watchers.append(watcher)
        return watcher

    def _accept(self, bound: socket.socket, base: TcpBase) -> None:
        try:
            opened, source = bound.accept()
        except OSError as error:
            if is_out(error):  # the loop would spin on what it cannot take
                for watcher, _ in self._accepting:
                    watcher.stop()
                self._again.start(self._accept_again)
            return
        if is_scarce(opened.fileno(), STRANGERS):
            opened.close()
            return
        self._keep(opened, (base, source[:2]))
        # RFC 6544 §7.2 [connections-are-accepted]
        self.agent.accepted(base, source[:2], monotonic())
        self._follow([])

    def _accept_again(self) -> None:
        for watcher, act in self._accepting:
            watcher.start(act)

    def _connect(self, base: TcpBase, to: HostPort) -> None:
        try:
            # RFC 6544 §7.1 [from-its-interface] [from-a-free-port]
            made = _bound(base.host, socket.SOCK_STREAM)
        except OSError:
            self.agent.disconnected(base, to, monotonic())
            return
        code = made.connect_ex(to)
        if code not in (0, errno.EINPROGRESS):
            made.close()
            self.agent.disconnected(base, to, monotonic())
            return
        self._keep(made, (base, to), on_open=partial(self._connected, (base, to)))

    def _keep(
        self, opened: socket.socket, flow: _Flow, on_open: Callable[[], None] | None = None
    ) -> None:
        heard, lost = partial(self._heard, flow), partial(self._lost, flow)
        self.connections[flow] = StreamSocket(opened, MAX_QUEUED, heard, lost, on_open)

    def _connected(self, flow: _Flow) -> None:
        """Note that a connection of ours is open: RFC 6544 §7.1."""
        self.agent.connected(*flow)
        self._follow([])

    def _heard(self, flow: _Flow, data: bytes) -> None:
        """Take octets that have come by a connection: RFC 6544 §7.2."""
        for packet in self.agent.octets(data, *flow, monotonic()):
            # RFC 6544 §10.2: media comes by the pair in use
            if self._is_of(self.agent.selected, *flow):
                self._on_media(packet)
        if not self._is_closed:
            self._follow([])

    def _lost(self, flow: _Flow) -> None:
        """Note that a connection has ended, or was never open: RFC 6544 §11.1."""
        if (connection := self.connections.pop(flow, None)) is not None:
            connection.close()
            self.agent.disconnected(*flow, monotonic())
            self._follow([])


def _bound(host: str, kind: socket.SocketKind) -> socket.socket:
    """A socket at a free port of a host; raises OSError where that is none of ours."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = plain_socket(family, kind)
    try:
        made.setblocking(False)
        made.bind((host, 0))
    except BaseException:
        made.close()
        raise
    return made
