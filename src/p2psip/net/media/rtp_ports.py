"""Two UDP sockets for a stream: RTP on an even port, RTCP on the odd one above.

Implements RFC 3550 §11; packets leave from the port where we listen: RFC 4961 §3.  Where
both ends agreed on it (RFC 5761 §5.1), RTCP goes through the port of RTP too.

Own design: each socket has one watcher of the event loop, and each wake-up receives one datagram
and calls straight into the call's machine.  A second read mostly finds nothing and costs a system
call.  So it is made every `LOOK` seconds only, after datagrams of strangers, and as long as it
finds some.  Datagrams are read whole: over the loopback and tunnels pictures come in packets of
3,000 octets.
"""

import logging
import socket
import sys
from collections import deque
from collections.abc import Callable, Collection, Sequence
from struct import Struct
from typing import Any, Final, Protocol

from gevent import get_hub
from gevent.monkey import get_original

from p2psip.errors import LocalError
from p2psip.net.clock import monotonic
from p2psip.net.media.latch import Latch, rtp_header
from p2psip.net.media.port_pool import MediaPair
from p2psip.net.media.watched_socket import Watch, WatchedSocket
from p2psip.net.udp import MAX_DATAGRAM
from p2psip.rtp import fast
from p2psip.stack.routing import is_loopback

Address = tuple[str, int]
Receiver = Callable[[bytes, float], object]

LOOK: Final = 0.2  # s between looks for more than the one datagram that a wake-up is for
BURST: Final = 32  # datagrams that are then read at once
WAITING: Final = 64  # datagrams kept until it is known whether they are the peer's ...
WAITING_OCTETS: Final = 1 << 17  # ... and what they have together, as anybody may send them
PATIENCE: Final = 1.0  # s for which such a datagram is worth playing
_READ: Final = 1  # the event an io watcher waits for, in libev's numbers

_UDP_SEGMENT: Final = 103  # Linux's number of the option, which Python has no name for
_segment_size: Final = Struct("=H").pack
MAX_SEGMENTS: Final = 64  # Linux's limit for one buffer, and ...
MAX_RUN: Final = 65_000  # ... octets of it

Source = Any  # an address, as recvfrom gives it
Terms = tuple[object, ...]  # what a packet has to meet, as the user of a port and its pump agree

_Socket: Final[type[socket.socket]] = get_original("socket", "socket")  # never a cooperative one
log: Final = logging.getLogger(__name__)


class MediaPool(Protocol):
    """The source of a stream's sockets: a `PortPool`, or ports that a server knows already."""

    def open(self, ip: str) -> MediaPair:
        """Open the sockets of one stream; raises NoPortsError."""

    def release(self, port: int) -> None:
        """Take back the RTP port of a pair whose sockets are closed."""


class PumpFlow(Protocol):
    """One socket of a pump; `passed` counts the packets that the pump has handled itself."""

    passed: int

    def offload(self, source: Source, *terms: Any) -> bool:
        """Have the pump handle those packets of `source` that meet the terms; False if it won't."""

    def gather(self, source: Source, *terms: Any) -> bool:
        """The same, of packets that are handed to Python together, as those of a frame."""

    def reclaim(self) -> tuple[Any, ...] | None:
        """Give the packets back to Python, with counts; None if the pump had none."""

    def close(self) -> None:
        """Read the socket no longer."""


class PumpOutlet(Protocol):
    """What a pump sends by one socket; `unsent` counts packets that the socket did not take."""

    unsent: int

    def aim(self, address: Source) -> None:
        """Send to this address from now on; to none, it sends nothing itself."""

    def close(self) -> None:
        """Use the socket no longer."""


class Pump(Protocol):
    """Reads many sockets by one watcher, and may handle packets without this house's Python."""

    def outlet(self, fd: int, take: Callable[..., None]) -> Any:
        """Make a `PumpOutlet` of a socket, which gives `take` what it does not send itself."""

    def open(
        self,
        fd: int,
        take: Callable[[bytes, Source, float], None],
        failed: Callable[[Exception], None],
    ) -> PumpFlow:
        """Read a socket: `take(data, source, now)` is given all that the pump does not handle."""


class MediaPort:
    """The sockets of one stream and their watchers, until `close`.

    `on_rtp(data, now)` and `on_rtcp(data, now)` are called in the hub with each datagram of the
    peer, and must not wait; their exceptions are logged.  They may be set later, since their owner
    often needs the port first.  A receiver that returns False has found a packet not to be the
    peer's, so that our packets do not follow it: RFC 7362 §5.  `received`, `strangers` (datagrams
    of other sources), `unsent` and `failures` (of receiving, and of the callbacks) are counts.
    With `latch` the peer may be behind a NAT.  `public` is where others outside send to, if the
    pool knows.  The second socket stays open while RTCP uses the first, since the next answer may
    part them again.  `on_ready` is called when a relay lets packets through to the peer, if that is
    later than `remote` is set.
    A `pump` reads RTP in place of a watcher, unless the socket is a relay.
    """

    def __init__(
        self,
        bind_ip: str,
        pool: MediaPool,
        on_rtp: Receiver,
        on_rtcp: Receiver,
        *,
        latch: bool = False,
        pump: Pump | None = None,
    ) -> None:
        self._pool, self._nat, self._closed = pool, latch, False
        self._rtp, self._rtcp, self.public, self._relays = pool.open(bind_ip)
        self._opened, self._is_watched = (self._rtp, self._rtcp), False
        self.rtp_port: int = self._rtp.getsockname()[1]
        self.rtcp_port = self.rtp_port + 1
        self.strangers = self.failures = self._received = self._unsent = 0
        self._deliver = self._on_rtp = on_rtp  # the same, or `_part` while RTCP comes there too
        self.on_rtcp = on_rtcp
        self._rtcp_mux = False
        self._family = self._rtp.family
        self._remote: Any = None  # as recvfrom gives it, so that one comparison is enough
        self._source: Any = None  # accepted: `remote`, or as `_latch` or `_is_alias` decide
        self._remote_rtcp: Any = None
        self._signalled_rtcp: Any = None
        self._searching_rtcp = latch
        self._latch = Latch(nat=latch)
        self._waiting: deque[tuple[bytes, Any, float]] = deque(maxlen=WAITING)
        self._look_at = 0.0
        self.on_ready: Callable[[], object] = lambda: None
        for relay in self._relays:
            relay.on_answer = self._relay_answered
        self._was_ready = False
        loop, fd = get_hub().loop, self._rtp.fileno()
        self._watchers = [loop.io(self._rtcp.fileno(), _READ)]
        self._watchers[0].start(self._receive_rtcp)
        self._flow: PumpFlow | None = None
        self._outlet: PumpOutlet | None = None
        is_plain = type(self._rtp) is _Socket
        self._pump = pump if is_plain else None
        self._segments = is_plain and sys.platform == "linux"  # until it fails
        if self._pump is not None:
            try:
                self._flow = self._pump.open(fd, self._take, self._failed)
            except BaseException:
                self.close()
                raise
        else:
            self._watchers.append(loop.io(fd, _READ))
            self._watchers[1].start(self._receive_rtp)

    @property
    def received(self) -> int:
        """How many RTP datagrams of the peer have come, those that the pump handled included."""
        return self._received + (self._flow.passed if self._flow is not None else 0)

    @property
    def unsent(self) -> int:
        """How many packets could not be sent, those of the pump included."""
        return self._unsent + (self._outlet.unsent if self._outlet is not None else 0)

    def outlet(self, take: Callable[..., None]) -> Any:
        """A pump's `PumpOutlet` to `remote`, which gives `take` what it won't send; None without.

        There is one: ask once.
        """
        if self._pump is not None:
            self._outlet = self._pump.outlet(self._rtp.fileno(), take)
            self._send_to(self._remote)
        return self._outlet

    def watch(self, watch: Watch | None) -> None:
        """Tell each datagram from now on, as source, target and octets; None ends that.

        Own design: a pump tells of no datagram, so it hands over its receiving for good, and sends
        nothing until the end.  The owner of lent packets takes them back first.
        """
        if (flow := self._flow) is not None:
            self._received, self._flow = self._received + flow.passed, None
            flow.close()
            self._watchers.append(get_hub().loop.io(self._opened[0].fileno(), _READ))
            self._watchers[-1].start(self._receive_rtp)
        self._is_watched, self._segments = watch is not None, False
        sockets: list[Any] = [*self._opened]
        if watch is not None:
            sockets = [WatchedSocket(each, watch) for each in self._opened]
        self._rtp, self._rtcp = sockets
        self._send_to(self._remote)

    def _send_to(self, remote: Any) -> None:
        self._remote = remote
        if self._outlet is not None:
            self._outlet.aim(None if self._is_watched else remote)

    def offload(self, *terms: Any) -> Any:
        """The pump's flow, if it handles packets of the accepted source that meet these terms.

        `on_rtp` is given all others, and should reclaim the flow first.  None without a pump.
        """
        flow = self._flow
        return flow if flow is not None and flow.offload(self._source, *terms) else None

    def gather(self, *terms: Any) -> Any:
        """The pump's flow, if it gathers such packets: see `offload`."""
        flow = self._flow
        return flow if flow is not None and flow.gather(self._source, *terms) else None

    @property
    def on_rtp(self) -> Receiver:
        return self._on_rtp

    @on_rtp.setter
    def on_rtp(self, receiver: Receiver) -> None:
        self._on_rtp = receiver
        self._deliver = self._part if self._rtcp_mux else receiver

    @property
    def rtcp_mux(self) -> bool:
        """Whether RTCP goes through the port of RTP at both ends: RFC 5761 §5.1."""
        return self._rtcp_mux

    @rtcp_mux.setter
    def rtcp_mux(self, is_muxed: bool) -> None:
        self._rtcp_mux = is_muxed
        self.on_rtp = self._on_rtp

    @property
    def remote(self) -> Address | None:
        """The numeric address that RTP is sent to.

        Set it to the address of an offer or answer.  If that has changed, the search for the true
        source begins again, `remote_rtcp` becomes the port above (RFC 3550 §11).  RTP that came
        from there within the last second is accepted (RFC 3264 §5.1).
        """
        return _two(self._remote)

    @remote.setter
    def remote(self, address: Address | None) -> None:
        normal = self._normal(address)
        for relay in self._relays if normal else ():
            relay.permit((normal[0],))
        if not self._latch.signal(normal, self.received):
            return
        self._source = normal
        self._send_to(normal)  # RFC 3550 §11 [source-is-no-destination]
        self._was_ready = self.is_ready
        self.remote_rtcp = address and (address[0], min(address[1] + 1, 0xFFFF))
        self._hear_earlier(monotonic(), self._is_heard)

    @property
    def remote_rtcp(self) -> Address | None:
        """The address that RTCP is sent to; RFC 3605 §2.1 lets the peer name any port."""
        return _two(self._remote_rtcp)

    @remote_rtcp.setter
    def remote_rtcp(self, address: Address | None) -> None:
        normal = self._normal(address)
        if normal != self._signalled_rtcp:
            self._remote_rtcp = self._signalled_rtcp = normal
            self._searching_rtcp = self._nat

    @property
    def hosts(self) -> Collection[str]:
        """The hosts of the signalling; with `latch` RTP may come from them too: RFC 7362 §5."""
        return self._latch.hosts

    @hosts.setter
    def hosts(self, hosts: Collection[str]) -> None:
        self._latch.hosts = frozenset(hosts)
        for relay in self._relays if self._nat else ():
            relay.permit(self._latch.hosts)

    @property
    def is_ready(self) -> bool:
        """Whether audio sent now gets through: a relay must have consented to the peer first.

        RFC 8656 §11.1.  Without a relay a port is ready as soon as it has a remote address.
        """
        remote, relays = self._remote, [each for each in self._relays if each is self._opened[0]]
        return remote is not None and all(relay.permits(remote[0]) for relay in relays)

    def _relay_answered(self) -> None:
        before, self._was_ready = self._was_ready, self.is_ready
        if self._was_ready and not before:
            self.on_ready()

    def when_lost(self, on_lost: Callable[[str], object]) -> None:
        """Have `on_lost(error)` called if a relay gives our address up: RFC 8656 §5."""
        for relay in self._relays:
            relay.on_lost = on_lost

    def send_rtp(self, data: bytes) -> None:
        """Send to `remote`, or count a packet that cannot be sent: media never waits."""
        try:
            # RFC 4961 §4 [always-symmetric] [behind-nats-and-relays]
            self._rtp.sendto(data, self._remote)
        except (OSError, TypeError):  # TypeError: no remote yet
            self._unsent += 1

    def send_run(self, run: Sequence[bytes]) -> None:
        """Send datagrams in a row: those of one length, and a shorter one behind, by one call.

        Own design: the packets of a frame take the way through the system once.  Where it cannot
        cut them, or a link of the way is too narrow to be cut for, each is sent by itself.
        """
        at, end = 0, len(run)
        while at < end:
            size, after = len(run[at]), at + 1
            if self._segments and self._remote is not None:
                most = min(end, at + MAX_SEGMENTS, at + MAX_RUN // max(size, 1))
                while after < most and len(run[after]) == size:
                    after += 1
                if after < most and 0 < len(run[after]) < size:
                    after += 1
            if after == at + 1 or not self._send_segments(run[at:after], size):
                for data in run[at:after]:
                    self.send_rtp(data)
            at = after

    def _send_segments(self, run: Sequence[bytes], size: int) -> bool:
        """Send one buffer for the system to cut; False if nothing was sent."""
        cut = [(socket.IPPROTO_UDP, _UDP_SEGMENT, _segment_size(size))]
        try:
            self._rtp.sendmsg(run, cut, 0, self._remote)
        except BlockingIOError:
            return False
        except OSError:
            self._segments = False
            return False
        return True

    def send_rtcp(self, data: bytes) -> None:
        """Send to `remote_rtcp`, or `remote` if it shares that; count what cannot be sent."""
        if self._rtcp_mux:
            self.send_rtp(data)
            return
        try:
            # RFC 4961 §4 [always-symmetric] [behind-nats-and-relays]
            self._rtcp.sendto(data, self._remote_rtcp)  # RFC 3550 §11 [reports-to-the-told-port]
        except (OSError, TypeError):
            self._unsent += 1

    def close(self) -> None:
        """Stop, close the sockets and give the ports back.  Idempotent."""
        if self._closed:
            return
        self._closed = True
        for watcher in self._watchers:
            watcher.stop()
            watcher.close()
        if self._flow is not None:
            self._flow.close()
        if self._outlet is not None:
            self._outlet.close()
        self._rtp.close()
        self._rtcp.close()
        self._pool.release(self.rtp_port)

    def _receive_rtp(self) -> None:
        try:
            data, source = self._rtp.recvfrom(MAX_DATAGRAM)
            now = monotonic()
            if source == self._source:
                self._received += 1
                self._deliver(data, now)
            elif not self._is_heard(data, source, now):
                self.strangers += 1
                self._look_at = now
            if now >= self._look_at:
                self._look_at = now + LOOK
                self._receive_more(now)
        except BlockingIOError:
            return  # a relay's own message, or a datagram whose checksum is wrong
        except Exception as error:
            self._failed(error)

    def _take(self, data: bytes, source: Source, now: float) -> None:
        """Take a datagram that the pump has read, or that stood behind another."""
        try:
            if source == self._source:
                self._received += 1
                self._deliver(data, now)
            elif not self._is_heard(data, source, now):
                self.strangers += 1
        except Exception as error:
            self._failed(error)

    def _receive_more(self, now: float) -> None:
        """Read the datagrams behind the first one, which a busy loop or strangers left."""
        for _ in range(BURST):
            if self._closed:
                return
            try:
                data, source = self._rtp.recvfrom(MAX_DATAGRAM)
            except BlockingIOError:
                return
            self._look_at = now  # there may be more, and at the next wake-up as well
            self._take(data, source, now)

    def _part(self, data: bytes, now: float) -> object:
        """Tell RTCP from RTP at one port: RFC 5761 §4."""
        # RFC 5761 §4 [told-by-the-second-octet], §7 [told-below-srtp]
        receiver = self.on_rtcp if fast.looks_like_rtcp(data) else self._on_rtp
        return receiver(data, now)

    def _receive_rtcp(self) -> None:
        try:
            data, source = self._rtcp.recvfrom(MAX_DATAGRAM)
            if source == self._remote_rtcp:
                self.on_rtcp(data, monotonic())
            elif not self._is_heard_rtcp(data, source):
                self.strangers += 1
        except BlockingIOError:
            return
        except Exception as error:
            self._failed(error)

    def _is_heard(self, data: bytes, source: Any, now: float) -> bool:
        """Hear a datagram of another source, or return False; one in doubt is kept for later."""
        latch = self._latch
        if self._is_alias(source, latch.signalled):
            self._source = source
            self._hear(data, now)
            return True
        before = latch.source, latch.moved
        # §8.2 [moved-peers-are-heard] [no-flip-flop]
        if latch.takes(data, source, self.received, now):
            accepted, self._source = self._source, source
            moves = latch.moved and source != self._remote
            if moves:
                self._hear_earlier(now, lambda kept, of, at: of == source and self._hear(kept, at))
            if not (self._closed or self._hear(data, now)):
                self._source, (latch.source, latch.moved) = accepted, before
                return False
            if moves and not self._closed:
                log.info("RTP comes from %s, not %s as signalled", source[:2], self.remote)
                self._searching_rtcp = True
                self._send_to(source)
            return True
        may_be = latch.signalled is None or latch.may_be(source[0])
        if may_be and rtp_header(data) is not None:
            # RFC 3264 §5.1 [hears-before-the-answer] [ready-both-ways]
            self._waiting.append((data, source, now))
            while sum(len(kept) for kept, _, _ in self._waiting) > WAITING_OCTETS:
                self._waiting.popleft()
        return False

    def _hear_earlier(self, now: float, take: Callable[[bytes, Any, float], object]) -> None:
        """Take the kept datagrams of a source that was accepted later: RFC 7362 §4."""
        waiting = list(self._waiting)
        self._waiting.clear()
        for data, source, at in waiting:
            if now - at <= PATIENCE and not self._closed:
                take(data, source, at)

    def _hear(self, data: bytes, at: float) -> bool:
        """Deliver a datagram; False if it is not the peer's after all."""
        is_theirs = True
        try:
            is_theirs = self._deliver(data, at) is not False
        except Exception as error:
            self._failed(error)
        self._received += is_theirs
        return is_theirs

    def _is_heard_rtcp(self, data: bytes, source: Any) -> bool:
        """Hear RTCP of the host of RTP, or return False; behind a NAT ours follows: RFC 4961 §3."""
        is_alias = self._is_alias(source, self._remote_rtcp)
        if not is_alias and (
            self._remote is None or source[0] != self._remote[0] or not fast.looks_like_rtcp(data)
        ):
            return False
        is_theirs = self.on_rtcp(data, monotonic()) is not False
        if is_theirs and self._searching_rtcp and not is_alias:
            self._remote_rtcp, self._searching_rtcp = source, False
        return True

    def _is_alias(self, source: Any, remote: Any) -> bool:
        """Whether `source` is the loopback address of a peer on this machine.

        Some phones signal the address of an outer interface even in a call to 127.0.0.1, and the
        system then sends from there, though from the port that was signalled: Field §"Media from
        another address".
        """
        if remote is None or source[1] != remote[1] or not is_loopback(source[0]):
            return False
        return is_loopback(remote[0]) or is_own_address(remote[0])

    def _failed(self, error: Exception) -> None:
        """Count and log an exception, which would stop the watcher if it left it."""
        self.failures += 1
        if self.failures & self.failures - 1 == 0:  # at 50 packets a second, not each of them
            log.error("media of port %d: %r", self.rtp_port, error, exc_info=error)

    def _normal(self, address: Address | None) -> Any:
        """An address in the form of recvfrom; raises LocalError unless it is numeric."""
        if address is None:
            return None
        try:
            packed = socket.inet_pton(self._family, address[0])
        except OSError as error:
            raise LocalError(f"{address[0]!r} is not an address of this family") from error
        ip = socket.inet_ntop(self._family, packed)
        return (ip, address[1]) if self._family == socket.AF_INET else (ip, address[1], 0, 0)


def is_own_address(ip: str) -> bool:
    """Whether an interface of this machine has `ip`, so that a socket can be bound to it."""
    try:
        with _Socket(socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((ip, 0))
    except OSError:
        return False
    return True


def _two(address: Any) -> Address | None:
    """The host and port of an address, without the two further fields of IPv6."""
    return None if address is None else (address[0], address[1])
