"""Media sockets whose packets go through a TURN server, and the server they go through.

Implements RFC 8656 §12.5 and §12.6 at the edge.

Own design: a relayed socket has the methods that a media port uses of a socket, and names peers
where a socket would name the server.  So calls without a relay pay nothing.
"""

import logging
import os
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import gevent
from gevent import get_hub

from p2psip.errors import LocalError
from p2psip.nat.long_term import LongTermCredentials, login_until
from p2psip.nat.stun_client import INTERVAL
from p2psip.nat.turn import OVERHEAD
from p2psip.nat.turn_client import Allocation, AllocationState
from p2psip.net import addresses
from p2psip.net.alarm import Alarm
from p2psip.net.clock import monotonic
from p2psip.net.local_network import LocalNetwork
from p2psip.net.media.port_pool import MediaRelay
from p2psip.net.media.prepared_ports import PreparedPorts
from p2psip.net.public_address import PORT, locate
from p2psip.net.udp import MAX_DATAGRAM, READ
from p2psip.transaction.flow import HostPort

PASSWORD: Final = "TURN_PASSWORD"  # the environment variable, which other users cannot read
SECRET: Final = "TURN_SECRET"  # another one, with what makes passwords that end
LOGIN_SECONDS: Final = 86400  # of those that are made for a socket, which no call outlasts
BURST: Final = 32  # datagrams read until one is a peer's
FORM: Final = "turn:USER@HOST:PORT"
log: Final = logging.getLogger(__name__)


class TurnServer(NamedTuple):
    """A TURN server and the user that it knows us as; the password is in no text."""

    user: str
    host: str
    port: int


def turn_server(text: str) -> TurnServer:
    """Read turn:USER@HOST[:PORT][?transport=udp].  Raises LocalError, with the right form."""
    scheme, _, rest = text.partition(":")
    rest, _, query = rest.partition("?")
    user, at, place = rest.rpartition("@")
    # RFC 8656 §4.1 [turn-without-tls]
    if scheme.lower() != "turn" or not at or not user or ":" in user:
        raise LocalError(f"{text.partition('@')[0].partition(':')[0]!r}... is not {FORM}")
    if query not in ("", "transport=udp"):
        raise LocalError(f"{query}: only UDP leads to a TURN server")
    has_port = place.rpartition("]")[2].count(":") > 0
    return TurnServer(user, *addresses.parse(place if has_port else f"{place}:{PORT}"))


class RelayedSocket:
    """A socket at one relayed address, from the first request on: RFC 8656 §7.1.

    `public` is that address; `on_lost(error)` is told when the server has given it up, and
    `on_answer` is called with each message of the server itself.

    Not done: RFC 8656 §3.7 [pmtu-1280]: packets are wrapped whatever their size.  Pictures leave
    room for a channel's octets; long packets of L16 do not.
    """

    def __init__(
        self,
        opened: socket.socket,
        on_change: Callable[[], object],
        server: HostPort,
        login: tuple[str, str],
    ) -> None:
        self._socket, self._server, self._on_change = opened, server, on_change
        self.family = opened.family
        self.on_lost: Callable[[str], object] = lambda error: None
        self.on_answer: Callable[[], object] = lambda: None
        ipv6 = opened.family == socket.AF_INET6
        self._allocation = Allocation(
            LongTermCredentials(*login), os.urandom, monotonic(), ipv6=ipv6
        )
        self._told, self._trouble = self._allocation.state, ""
        self._watcher: Any = get_hub().loop.io(opened.fileno(), READ)
        self._watcher.start(self._receive)
        self._alarm = Alarm(self)
        self._flush()

    # -- a spare -------------------------------------------------------------------------

    @property
    def public(self) -> HostPort | None:
        """The relayed address; None before the server has given one, and after it is lost."""
        return self._allocation.relayed

    @property
    def failed(self) -> bool:
        return self._allocation.state is AllocationState.FAILED

    @property
    def error(self) -> str:
        return self._allocation.error

    @property
    def is_hopeless(self) -> bool:
        """Whether asking again will not help."""
        return self._allocation.is_hopeless

    @property
    def is_taken(self) -> bool:
        """Whether the server has an allocation for our port already: RFC 8656 §7.4."""
        return self._allocation.is_taken

    @property
    def relays(self) -> Sequence[MediaRelay]:
        return (self,)

    def take(self) -> "RelayedSocket":
        """Hand the socket over to a call, which has its own watcher."""
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher.close()
            self._watcher = None
        return self

    def permit(self, hosts: Iterable[str]) -> None:
        """Let peers at these hosts send to us: RFC 8656 §10.1."""
        # RFC 8656 §10.1 [peers-of-our-family]
        is_ours = [host for host in hosts if (":" in host) == (self.family == socket.AF_INET6)]
        self._allocation.permit(is_ours, monotonic())
        self._flush()

    def permits(self, host: str) -> bool:
        """Whether packets for a peer at this host are relayed: RFC 8656 §11.1."""
        return self._allocation.permits(host)

    # -- as a socket -------------------------------------------------------------------------

    def fileno(self) -> int:
        return self._socket.fileno()

    def getsockname(self) -> Any:
        return self._socket.getsockname()

    def recvfrom(self, size: int) -> tuple[bytes, Any]:
        """Read one packet of a peer, and its address.  Raises BlockingIOError if none is there."""
        for _ in range(BURST):
            datagram, source = self._socket.recvfrom(size)
            if source[:2] != self._server:
                continue  # RFC 8656 §12.6: only the server relays
            found = self._allocation.receive(datagram, monotonic())
            if found is not None:
                data, peer = found
                is_ipv4 = self.family == socket.AF_INET
                return data, (tuple(peer) if is_ipv4 else (peer.host, peer.port, 0, 0))
            self._flush()
            self.on_answer()
            if self._allocation.state is AllocationState.CLOSED:
                break  # the call has ended by what it was told
        raise BlockingIOError

    def sendto(self, data: bytes, address: Any) -> int:
        """Send a packet to a peer; without a permission it is lost, as UDP may."""
        wrapped = self._allocation.send(data, address[:2], monotonic())
        if wrapped is None:
            return 0
        if len(wrapped) != len(data) + OVERHEAD:  # no channel yet: one may have been asked for
            self._flush()
        return self._socket.sendto(wrapped, self._server)

    def close(self) -> None:
        """Give the address back, and close the socket."""
        self.take()
        self._alarm.cancel()
        self._allocation.close(monotonic())
        self._send_all()
        self._socket.close()

    # -- time -----------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        return self._allocation.deadline

    def tick(self, now: float) -> None:
        self._allocation.tick(now)
        self._flush()

    def _receive(self) -> None:
        """Read the server's answers while no call has the socket."""
        try:
            while True:
                self.recvfrom(MAX_DATAGRAM)
        except OSError:
            return

    def _flush(self) -> None:
        self._send_all()
        self._alarm.set()
        if self._allocation.trouble != self._trouble:
            self._trouble = self._allocation.trouble
            log.warning("the TURN server does not reach a peer: %s", self._trouble)
        if self._allocation.state is not self._told:
            self._told = self._allocation.state
            if self.failed:
                self.on_lost(self.error)
            self._on_change()

    def _send_all(self) -> None:
        for data in self._allocation.take():
            try:
                self._socket.sendto(data, self._server)
            except OSError as error:
                log.debug("to the TURN server: %s", error)


class Relays:
    """Has the media of calls to peers outside go through one server.

    `on_trouble(reason)` is told when calls have to do without, once for each reason.
    """

    def __init__(
        self,
        text: str,
        password: str,
        network: LocalNetwork,
        ports: PreparedPorts,
        on_trouble: Callable[[str], object],
        secret: str = "",
    ) -> None:
        """Log in by the password; without one, by a login that the server's secret signs."""
        self._server = turn_server(text)
        self._password, self._secret = password, secret
        self._network, self._ports, self._on_trouble = network, ports, on_trouble
        self._told = ""
        ports.on_failed = self._failed
        self._finding = gevent.spawn(self._find)

    def close(self) -> None:
        self._finding.kill(block=False)

    def _find(self) -> None:
        place = self._server.host, self._server.port
        while (found := locate(place, self._ports.ip)) is None:
            self._tell(f"the TURN server {self._server.host} cannot be found")
            gevent.sleep(INTERVAL)
        self._network.relay = found[0]

        def relayed(opened: socket.socket, on_change: Callable[[], object]) -> RelayedSocket:
            return RelayedSocket(opened, on_change, found, self._login())

        self._ports.use(relayed)

    def _login(self) -> tuple[str, str]:
        if self._password:
            return self._server.user, self._password
        end = int(time.time()) + LOGIN_SECONDS
        return login_until(end, self._server.user, self._secret)

    def _failed(self, spare: RelayedSocket) -> None:
        self._tell(spare.error)
        if spare.is_hopeless:
            self._ports.close()

    def _tell(self, reason: str) -> None:
        if reason != self._told:
            self._told = reason
            self._on_trouble(reason)
