"""Media ports whose public addresses are known before a call needs them.

Implements RFC 8489 §6.2.1 for media: the address that a router gives a port can only be told by a
server that hears from this very port, and an offer has to name it.

Own design: an offer must not wait for a server.  So a few pairs of ports wait for calls, and the
server is asked about them again and again.  A call that finds none ready takes ordinary ports.
"""

import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

import gevent
from gevent import get_hub
from gevent.event import Event

from p2psip.net.media.port_pool import MediaPair, MediaRelay, NoPortsError, PortPool, PublicPorts
from p2psip.net.public_address import StunProbe
from p2psip.net.udp import READ
from p2psip.transaction.flow import HostPort

SPARE: Final = 4  # pairs that wait: calls that may begin within one round trip to the server
RETRY: Final = 60.0  # s before a server that had no room is asked again
OTHER_PORTS: Final = 2  # tried at once where one is taken, so three in all: RFC 8656 §7.4
TAKEN_RETRY: Final = 120.0  # s before the next one, where these were taken too: RFC 8656 §7.4
STUN_OCTETS: Final = 1500  # no answer to a question of ours is longer
log: Final = logging.getLogger(__name__)


class PreparedSocket(Protocol):
    """A socket that waits for its call."""

    @property
    def public(self) -> HostPort | None:
        """Where others outside send to, None while that is not known."""

    @property
    def failed(self) -> bool:
        """Whether it will never be known."""

    @property
    def is_taken(self) -> bool:
        """Whether another port would do, and this one alone will not."""

    @property
    def relays(self) -> Sequence[MediaRelay]:
        """Itself, if a server has to be told of its peers."""

    def take(self) -> Any:
        """Hand the socket over to a call; it is nobody else's from now on."""

    def close(self) -> None:
        """Close the socket."""


Prepare = Callable[[socket.socket, Callable[[], object]], PreparedSocket]


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
        return self._probe.mapped

    @property
    def failed(self) -> bool:
        """Never: the server is asked again and again."""
        return False

    @property
    def is_taken(self) -> bool:
        """Never, since it does not fail."""
        return False

    @property
    def relays(self) -> Sequence[MediaRelay]:
        """No relay: a router need not be told of peers."""
        return ()

    def take(self) -> socket.socket:
        """Hand the socket over; its own packets keep the router's port open from now on."""
        self._probe.close()
        self._watcher.stop()
        self._watcher.close()
        return self._socket

    def close(self) -> None:
        self.take().close()

    def _send(self, data: bytes, server: HostPort) -> None:
        with suppress(OSError):
            self._socket.sendto(data, server)

    def _receive(self) -> None:
        with suppress(OSError):
            data, source = self._socket.recvfrom(STUN_OCTETS)
            self._probe.receive(data, source)


class _PreparedPair(NamedTuple):
    rtp: PreparedSocket
    rtcp: PreparedSocket
    port: int  # of the RTP socket, for the pool

    @property
    def public(self) -> PublicPorts | None:
        one, other = self.rtp.public, self.rtcp.public
        return None if one is None or other is None else PublicPorts(*one, other[1])


class PreparedPorts:
    """The ports of a pool, `spare` pairs of which are prepared ahead: see the module.

    Nothing is prepared before `use` says how.  `ready` is set while a pair with a public address
    waits.  `on_failed(spare)` is told of a socket that could not be prepared; another one is tried
    after `RETRY` seconds, at once if that one's port was taken.
    """

    def __init__(self, pool: PortPool, ip: str, spare: int = SPARE) -> None:
        self._pool, self.ip, self._spare = pool, ip, spare
        self.on_failed: Callable[[Any], object] = lambda spare: None
        self._retry: Any = None
        self._taken = 0  # ports in a row that the server had allocations for
        self._prepare: Prepare | None = None
        self._pairs: list[_PreparedPair] = []
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
        public, relays = pair.public, (*pair.rtp.relays, *pair.rtcp.relays)
        return MediaPair(pair.rtp.take(), pair.rtcp.take(), public, relays)

    def release(self, port: int) -> None:
        """Take back the RTP port of a pair whose sockets are closed."""
        self._pool.release(port)
        self._fill()

    def close(self) -> None:
        """Close the pairs that wait, and prepare no more."""
        self._prepare = None
        if self._retry is not None:
            self._retry.kill(block=False)
            self._retry = None
        while self._pairs:
            self._drop(self._pairs[-1])
        self._changed()

    def _fill(self) -> None:
        while self._prepare and not self._retry and len(self._pairs) < self._spare:
            try:
                rtp, rtcp = self._pool.bind(self.ip)
            except (NoPortsError, OSError) as error:
                log.debug("no ports to prepare: %s", error)
                return
            port = rtp.getsockname()[1]
            one, other = (self._prepare(each, self._changed) for each in (rtp, rtcp))
            self._pairs.append(_PreparedPair(one, other, port))

    def _drop(self, pair: _PreparedPair) -> None:
        self._pairs.remove(pair)
        pair.rtp.close()
        pair.rtcp.close()
        self._pool.release(pair.port)

    def _try_again(self) -> None:
        self._retry = None
        self._fill()

    def _changed(self) -> None:
        for pair in [each for each in self._pairs if each.rtp.failed or each.rtcp.failed]:
            if pair not in self._pairs:
                continue  # `on_failed` has closed them all
            failed = pair.rtp if pair.rtp.failed else pair.rtcp  # before both are closed
            self._drop(pair)
            if failed.is_taken and self._taken < OTHER_PORTS:
                self._taken += 1
                # RFC 8656 §7.4 [another-port] [three-ports]
                get_hub().loop.run_callback(self._fill)
                continue
            # RFC 8656 §7.4 [waits-a-minute] [waits-two-minutes]
            wait = TAKEN_RETRY if failed.is_taken else RETRY
            self._taken = 0
            self._retry = self._retry or gevent.spawn_later(wait, self._try_again)
            self.on_failed(failed)
        if any(pair.public is not None for pair in self._pairs):
            self._taken = 0
            self.ready.set()
        else:
            self.ready.clear()
