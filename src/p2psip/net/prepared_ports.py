"""Media ports whose public addresses are known before a call needs them.

Implements RFC 8489 §6.2.1 for media: the address that a router gives a port can only be told by a
server that hears from this very port, and an offer has to name it.

Own design: an offer must not wait for a server, so that a few pairs of ports wait for calls, and
the server is asked about them again and again.  A call that finds none ready takes ordinary ports.
"""

import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

from gevent import get_hub
from gevent.event import Event

from p2psip.net.port_pool import MediaPair, NoPortsError, PortPool, PublicPorts
from p2psip.net.public_address import StunProbe
from p2psip.net.udp import READ
from p2psip.transaction.flow import HostPort

SPARE: Final = 4  # pairs that wait: calls that may begin within one round trip to the server
STUN_OCTETS: Final = 1500  # no answer to a question of ours is longer
log: Final = logging.getLogger(__name__)


class Spare(Protocol):
    """A socket that waits for its call."""

    @property
    def public(self) -> HostPort | None:
        """Where others outside send to, None while that is not known."""

    def take(self) -> Any:
        """Hand the socket over to a call; it is nobody else's from now on."""

    def close(self) -> None:
        """Close the socket."""


Prepare = Callable[[socket.socket, Callable[[], object]], Spare]


class MappedSocket:
    """A spare socket whose address `server` is asked for by STUN: RFC 8489 §2."""

    def __init__(
        self, opened: socket.socket, on_change: Callable[[], object], server: HostPort
    ) -> None:
        self._socket = opened
        self._probe = StunProbe(self._send, server, lambda probe: on_change())
        self._watcher = get_hub().loop.io(opened.fileno(), READ)
        self._watcher.start(self._receive)

    @property
    def public(self) -> HostPort | None:
        """The address that the server sees."""
        return self._probe.mapped

    def take(self) -> socket.socket:
        """Hand the socket over; its own packets keep the router's port open from now on."""
        self._probe.close()
        self._watcher.stop()
        self._watcher.close()
        return self._socket

    def close(self) -> None:
        """Close the socket."""
        self.take().close()

    def _send(self, data: bytes, server: HostPort) -> None:
        with suppress(OSError):
            self._socket.sendto(data, server)

    def _receive(self) -> None:
        with suppress(OSError):
            data, source = self._socket.recvfrom(STUN_OCTETS)
            self._probe.receive(data, source)


class _SparePair(NamedTuple):
    rtp: Spare
    rtcp: Spare
    port: int  # of the RTP socket, for the pool

    @property
    def public(self) -> PublicPorts | None:
        one, other = self.rtp.public, self.rtcp.public
        return None if one is None or other is None else PublicPorts(*one, other[1])


class PreparedPorts:
    """The ports of a pool, `spare` pairs of which are prepared ahead: see the module.

    Nothing is prepared before `use` says how.  `ready` is set while a pair with a public address
    waits.
    """

    def __init__(self, pool: PortPool, ip: str, spare: int = SPARE) -> None:
        self._pool, self._ip, self._spare = pool, ip, spare
        self._prepare: Prepare | None = None
        self._pairs: list[_SparePair] = []
        self.ready = Event()

    def use(self, prepare: Prepare) -> None:
        """Prepare pairs by `prepare(socket, on_change)` from now on, and those that wait anew."""
        self.close()
        self._prepare = prepare
        self._fill()

    def open(self, ip: str) -> MediaPair:
        """Open the sockets of one stream; raises NoPortsError."""
        pair = next((each for each in self._pairs if each.public is not None), None)
        if pair is None:
            try:
                return self._pool.open(ip)
            except NoPortsError:
                if not self._pairs:
                    raise
                pair = self._pairs[0]  # which holds one of the few ports there are
        self._pairs.remove(pair)
        self._changed()
        get_hub().loop.run_callback(self._fill)
        public = pair.public
        return MediaPair(pair.rtp.take(), pair.rtcp.take(), public)

    def release(self, port: int) -> None:
        """Take back the RTP port of a pair whose sockets are closed."""
        self._pool.release(port)
        self._fill()

    def close(self) -> None:
        """Close the pairs that wait, and prepare no more."""
        self._prepare = None
        while self._pairs:
            pair = self._pairs.pop()
            pair.rtp.close()
            pair.rtcp.close()
            self._pool.release(pair.port)
        self._changed()

    def _fill(self) -> None:
        while self._prepare is not None and len(self._pairs) < self._spare:
            try:
                rtp, rtcp = self._pool.bind(self._ip)
            except (NoPortsError, OSError) as error:
                log.debug("no ports to prepare: %s", error)
                return
            port = rtp.getsockname()[1]
            one, other = (self._prepare(each, self._changed) for each in (rtp, rtcp))
            self._pairs.append(_SparePair(one, other, port))

    def _changed(self) -> None:
        if any(pair.public is not None for pair in self._pairs):
            self.ready.set()
        else:
            self.ready.clear()
