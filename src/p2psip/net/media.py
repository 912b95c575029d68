"""Two UDP sockets for a stream: RTP on an even port, RTCP on the odd one above.

Implements RFC 3550 §11; what we send leaves from where we listen, as RFC 4961 §3 has it.

Own design: each socket has one watcher of the event loop, and each wake-up receives one
datagram and calls straight into the call's machine.  No greenlet, no queue, and hardly ever a
second try: with packets spread evenly over many calls it finds nothing and costs a system
call.  But now and then it is made, or what a busy loop once was late for would stay late, and
after what others send.  Only the signalled address is heard, or, with `latch`, whoever speaks
RTP first; a NAT leaves no other choice.
"""

import errno
import logging
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from gevent import get_hub
from gevent.monkey import get_original

from p2psip.errors import LocalError
from p2psip.net.clock import monotonic
from p2psip.rtp import fast

Address = tuple[str, int]
Receiver = Callable[[bytes, float], None]

DATAGRAM_OCTETS: Final = 2048  # more than an Ethernet frame carries; what is longer is cut
LOOK: Final = 0.2  # s between looks for more than the one datagram that a wake-up is for
BURST: Final = 32  # datagrams that are then read at once
KERNEL_TRIES: Final = 64  # until the kernel offers a port whose neighbour is free as well
LOOPBACK: Final = ("127.0.0.1", "::1")
_READ: Final = 1  # the event an io watcher waits for, in libev's numbers

_Socket: Final[type[socket.socket]] = get_original("socket", "socket")  # never a cooperative one
log: Final = logging.getLogger(__name__)


class NoPortsError(LocalError):
    """No pair of ports is free; the caller answers 503 (RFC 3261 §21.5.4).  Own design."""


class PortPool:
    """Pairs of ports from `low` to `high`, or of the kernel's choice if both are 0.

    Own design: a pair given back is taken again last, so that packets still on their way
    to a call that has ended do not meet a new one.
    """

    def __init__(self, low: int = 0, high: int = 0) -> None:
        if not 0 <= low <= high <= 0xFFFF or (high and low < 1024):
            raise LocalError(f"{low}-{high} is no range of ports from 1024 to 65535")
        self._kernel = high == 0
        self._free = deque(range(low + low % 2, high, 2))

    @property
    def free(self) -> int | None:
        """How many pairs are left; None if the kernel chooses.  Own design: for status pages."""
        return None if self._kernel else len(self._free)

    def bind(self, ip: str) -> tuple[socket.socket, socket.socket]:
        """Open and bind an RTP and an RTCP socket: RFC 3550 §11.

        A pair that another process occupies is passed over.  Raises NoPortsError, or
        OSError if `ip` is not an address of this machine.
        """
        for _ in range(KERNEL_TRIES if self._kernel else len(self._free)):
            port = 0 if self._kernel else self._free.popleft()
            try:
                pair = _bind_pair(ip, port)
            except OSError:
                self.release(port)
                raise
            if pair is not None:
                return pair
            self.release(port)
        raise NoPortsError("no free pair of RTP ports")

    def release(self, port: int) -> None:
        """Take back the RTP port of a pair whose sockets are closed.  Own design."""
        if not self._kernel:
            self._free.append(port)


class MediaPort:
    """The sockets of one stream and their watchers, until `close`.

    Own design: `on_rtp(data, now)` and `on_rtcp(data, now)` are called in the hub for each
    datagram of the peer, and must not wait; what they raise is logged.  They are public because
    whoever hears often needs the port first.
    `received`, `strangers` (datagrams of other sources), `unsent` and `failures` (of
    receiving, and of the callbacks) only count.
    """

    def __init__(
        self,
        bind_ip: str,
        pool: PortPool,
        on_rtp: Receiver,
        on_rtcp: Receiver,
        *,
        latch: bool = False,
    ) -> None:
        self._pool, self._latch, self._closed = pool, latch, False
        self._rtp, self._rtcp = pool.bind(bind_ip)
        self.rtp_port: int = self._rtp.getsockname()[1]
        self.rtcp_port = self.rtp_port + 1
        self.received = self.strangers = self.unsent = self.failures = 0
        self.on_rtp, self.on_rtcp = on_rtp, on_rtcp
        self._family = self._rtp.family
        self._remote: Any = None  # as recvfrom gives it, so that one comparison is enough
        self._source: Any = None  # whom to hear: `remote`, or its other name (see `_is_alias`)
        self._remote_rtcp: Any = None
        self._searching = self._searching_rtcp = latch
        self._look_at = 0.0
        loop = get_hub().loop
        self._watchers = (
            loop.io(self._rtp.fileno(), _READ),
            loop.io(self._rtcp.fileno(), _READ),
        )
        self._watchers[0].start(self._receive_rtp)
        self._watchers[1].start(self._receive_rtcp)

    @property
    def remote(self) -> Address | None:
        """Where RTP goes and comes from, a numeric address.

        Setting it also sets `remote_rtcp`, to the port above (RFC 3550 §11), and with
        `latch` begins the search for the true source anew.
        """
        return _two(self._remote)

    @remote.setter
    def remote(self, address: Address | None) -> None:
        self._remote = self._source = self._normal(address)
        self._searching = self._latch
        self.remote_rtcp = address and (address[0], min(address[1] + 1, 0xFFFF))

    @property
    def remote_rtcp(self) -> Address | None:
        """Where RTCP goes and comes from; RFC 3605 §2.1 lets the peer name any port."""
        return _two(self._remote_rtcp)

    @remote_rtcp.setter
    def remote_rtcp(self, address: Address | None) -> None:
        self._remote_rtcp = self._normal(address)
        self._searching_rtcp = self._latch

    def send_rtp(self, data: bytes) -> None:
        """Send to `remote`, or count what cannot be sent.  Own design: media never waits."""
        try:
            self._rtp.sendto(data, self._remote)
        except (OSError, TypeError):  # TypeError: no remote yet
            self.unsent += 1

    def send_rtcp(self, data: bytes) -> None:
        """Send to `remote_rtcp`, or count what cannot be sent.  Own design: as `send_rtp`."""
        try:
            self._rtcp.sendto(data, self._remote_rtcp)
        except (OSError, TypeError):
            self.unsent += 1

    def close(self) -> None:
        """Stop, close and give the ports back; a second time does nothing.  Own design."""
        if self._closed:
            return
        self._closed = True
        for watcher in self._watchers:
            watcher.stop()
            watcher.close()
        self._rtp.close()
        self._rtcp.close()
        self._pool.release(self.rtp_port)

    def _receive_rtp(self) -> None:
        try:
            data, source = self._rtp.recvfrom(DATAGRAM_OCTETS)
            now = monotonic()
            if (source == self._source and not self._searching) or self._latched(data, source):
                self.received += 1
                self.on_rtp(data, now)
            else:
                self.strangers += 1
                self._look_at = now
            if now >= self._look_at:
                self._look_at = now + LOOK
                self._receive_more(now)
        except Exception as error:
            self._failed(error)

    def _receive_more(self, now: float) -> None:
        """Read what waits behind the first datagram, if a busy loop or strangers left some."""
        for _ in range(BURST):
            if self._closed:
                return
            try:
                data, source = self._rtp.recvfrom(DATAGRAM_OCTETS)
            except BlockingIOError:
                return
            if (source == self._source and not self._searching) or self._latched(data, source):
                self.received += 1
                self.on_rtp(data, now)
            else:
                self.strangers += 1
        self._look_at = now  # there may be more

    def _receive_rtcp(self) -> None:
        try:
            data, source = self._rtcp.recvfrom(DATAGRAM_OCTETS)
            if (
                source == self._remote_rtcp
                or self._is_alias(source, self._remote_rtcp)
                or self._latched_rtcp(data, source)
            ):
                self.on_rtcp(data, monotonic())
            else:
                self.strangers += 1
        except Exception as error:
            self._failed(error)

    def _latched(self, data: bytes, source: Any) -> bool:
        """Follow the first source of RTP, if we are to: RFC 4961 §3 lets us answer there."""
        if self._is_alias(source, self._remote):
            self._source = source
            return True
        if not self._searching or fast.looks_like_rtcp(data) or fast.unpack(data) is None:
            return False
        if source != self._remote:
            log.info("RTP comes from %s, not %s as signalled", source[:2], self.remote)
        self._remote, self._source, self._searching = source, source, False
        return True

    def _is_alias(self, source: Any, remote: Any) -> bool:
        """Tell whether `source` is loopback's name for a peer on this very machine.

        baresip signals the address of an outer interface even in a call to 127.0.0.1, and the
        system then sends from 127.0.0.1, though from the port that was signalled.
        """
        if remote is None or source[1] != remote[1] or source[0] not in LOOPBACK:
            return False
        return remote[0] in LOOPBACK or is_own_address(remote[0])

    def _latched_rtcp(self, data: bytes, source: Any) -> bool:
        """Follow the first source of RTCP, but only on the host that RTP comes from."""
        if not self._searching_rtcp or self._searching or not fast.looks_like_rtcp(data):
            return False
        if self._remote is None or source[0] != self._remote[0]:
            return False
        self._remote_rtcp, self._searching_rtcp = source, False
        return True

    def _failed(self, error: Exception) -> None:
        """Keep the watcher alive: an exception that left it would stop it for good."""
        self.failures += 1
        if self.failures & self.failures - 1 == 0:  # at 50 packets a second, not each of them
            log.error("media of port %d: %r", self.rtp_port, error, exc_info=error)

    def _normal(self, address: Address | None) -> Any:
        """Write an address the way recvfrom does; LocalError unless it is numeric."""
        if address is None:
            return None
        try:
            packed = socket.inet_pton(self._family, address[0])
        except OSError as error:
            raise LocalError(f"{address[0]!r} is no address of this family") from error
        ip = socket.inet_ntop(self._family, packed)
        return (ip, address[1]) if self._family == socket.AF_INET else (ip, address[1], 0, 0)


def is_own_address(ip: str) -> bool:
    """Tell whether an interface of this machine has `ip`: only then it binds.  Own design."""
    try:
        with _Socket(socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((ip, 0))
    except OSError:
        return False
    return True


def _two(address: Any) -> Address | None:
    """Leave out what only IPv6 has."""
    return None if address is None else (address[0], address[1])


def _bind_pair(ip: str, port: int) -> tuple[socket.socket, socket.socket] | None:
    """Bind neighbours, `port` or any even one if it is 0; None if one of them is taken."""
    first = _bind(ip, port)
    if first is None:
        return None
    taken = first.getsockname()[1]
    second = _bind(ip, taken ^ 1)
    if second is None:
        first.close()
        return None
    return (second, first) if taken % 2 else (first, second)


def _bind(ip: str, port: int) -> socket.socket | None:
    opened = _Socket(socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        opened.setblocking(False)
        opened.bind((ip, port))
    except OSError as error:
        opened.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    return opened
