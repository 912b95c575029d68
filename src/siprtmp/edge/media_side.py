"""The UDP ports and the timers of calls.

Own design: a call has a pair of ports (RFC 3550 §11); this opens their sockets, and wakes the
machines that use them.
"""

import os
import time
from collections.abc import Callable, Collection
from typing import Any, Final, TypeVar

from gevent import get_hub

from p2psip.errors import LocalError
from p2psip.net.alarm import Alarm
from p2psip.net.clock import monotonic, wallclock
from p2psip.net.descriptors import MEDIA, refuse_last, within
from p2psip.net.local_network import LocalNetwork
from p2psip.net.media.port_pool import PortPool
from p2psip.net.media.prepared_ports import PreparedPorts
from p2psip.net.media.rtp_ports import MediaPool, MediaPort
from p2psip.net.media.watched_socket import Watch
from p2psip.server.port_shares import PortShare, PortShares
from rtmplite.net.workers import Workers
from siprtmp.media.browser_transport import BrowserFlows, BrowserLeg
from siprtmp.media.session import MediaSession
from siprtmp.media.stream import StreamSettings
from siprtmp.media.transcode import audio_decoder, video_encoder
from siprtmp.media.transcode.video_transcoder import VideoTranscoders
from siprtmp.media.transport import MediaAddress, MediaTransport, Timed
from siprtmp.operation.arguments import ConfigError
from siprtmp.operation.logs import Log
from siprtmp.pump.packet_pump import PumpFigures, packet_pump
from siprtmp.settings.table import MediaSettings
from siprtmp.settings.types import VideoLimits

BUSY_CALLS: Final = 10  # 1000 packets a second, one each way every 20 ms for each call
GATHER_SECONDS: Final = 0.002
QUIET: Final = 0.008  # s without any packet, which ten phones on clocks of their own hardly leave
BUNCHED: Final = 0.1  # s
_LAST: Final = -2  # a watcher's priority: after whatever sends at the end of a turn

T = TypeVar("T")

PUMP_FIGURES: Final = (
    *("media_compiled", "media_interpreted"),
    *("media_sent_compiled", "media_sent_interpreted"),
)


class WakeupCoalescer:
    """Makes the loop sleep between turns while there are many calls: a turn reads more packets.

    With many calls a packet comes every fraction of a millisecond, and waking up for each one costs
    more than the packet.  From `BUSY_CALLS` on, the loop sleeps `GATHER_SECONDS` between two turns,
    as network cards coalesce interrupts.  Audio is delayed by that at most, a tenth of a packet.

    Packets that all come at the same time are read in groups anyway, and the loop has nothing to do
    until the next ones.  After such a `QUIET` time it does not sleep for `BUNCHED` seconds.
    """

    def __init__(self) -> None:
        self._watcher: Any = get_hub().loop.prepare(ref=False, priority=_LAST)
        self._polled = self._bunched_until = 0.0

    def set_calls(self, calls: int) -> None:
        if calls < BUSY_CALLS:
            self._watcher.stop()
        elif not self._watcher.active:
            self._polled = monotonic()
            self._watcher.start(self.gather)

    def gather(self, clock: Callable[[], float] = monotonic) -> None:
        """Sleep at the end of a turn, if that pays."""
        now = clock()
        if now - self._polled >= QUIET:
            self._bunched_until = now + BUNCHED
        elif now >= self._bunched_until:
            time.sleep(GATHER_SECONDS)
            now = clock()
        self._polled = now


class SessionPorts:
    """The ports of one session: its `Transports`.

    A session with a browser has its `leg` instead, and counts as if it had ports.
    """

    def __init__(
        self,
        side: "MediaSide",
        session: MediaSession,
        lost: Callable[[float], object],
        peers: Collection[str],
        share: PortShare,
        leg: BrowserLeg | None = None,
    ) -> None:
        self._side, self._lost, self._peers, self._share = side, lost, peers, share
        self.session, self._leg, self._opened = session, leg, list[MediaTransport]()
        self._watch: Watch | None = None

    def open(self) -> tuple[MediaTransport, MediaAddress]:
        """Ports, and where peers send to (RFC 3550 §11).  Raises LocalError without free ports."""
        opened = self._ports() if self._leg is None else self._line(self._leg)
        self._opened.append(opened[0])
        if self._watch is not None:
            opened[0].watch(self._watch)
        self._side.count(self, len(self._opened))
        return opened

    def watch(self, watch: Watch | None) -> None:
        """Tell each datagram of its transports, also of those to come; None ends that."""
        self._watch = watch
        for each in self._opened:
            each.watch(watch)

    def _ports(self) -> tuple[MediaPort, MediaAddress]:
        port = self._side.open_port(self._peers, self._share)
        if not self._opened:
            port.when_lost(lambda error: self._lost(monotonic()))
        return port, self._side.address(port, self._peers)

    def _line(self, leg: BrowserLeg) -> tuple[MediaTransport, MediaAddress]:
        opened = leg.open()
        try:
            self._side.take_from(self._share)
        except LocalError:
            leg.release(opened[0])
            raise
        return opened

    def release(self, transport: MediaTransport) -> None:
        self._share.give()
        if self._leg is not None:
            self._leg.release(transport)
        self._opened.remove(transport)
        self._side.count(self, len(self._opened))

    def waker(self, machine: Timed) -> Alarm:
        return Alarm(machine)


class MediaSide:
    """The `MediaEdge` of all calls.

    `timeout` is that of a silent phone.  `host_for` has the address for given peers.  `prepared`
    are the ports for calls to peers outside, `video_transcoding` decodes and encodes video, None
    without that.  `browsers` is the port of browsers, to be set if there is one.
    """

    def __init__(
        self,
        settings: MediaSettings,
        timeout: float,
        bind_ip: str,
        network: LocalNetwork,
        log: Log,
    ) -> None:
        self._network, self.host_for = network, network.host_for
        self._bind_ip, self._log = bind_ip, log
        self._latch, self._timeout = settings.nat, timeout
        self._video_packet_size = settings.video_packet_size
        self._ports = PortPool(*settings.rtp_ports)
        self.prepared = PreparedPorts(self._ports, bind_ip)
        self._open: dict[SessionPorts, int] = {}
        # each pair has two descriptors
        self.shares = PortShares(within(2 * self._ports.pairs) // 2)
        self._gatherer = WakeupCoalescer()
        self.pump = packet_pump()
        self._transcode = audio_decoder.is_available()
        self.video_transcoding = video_transcoding(settings.transcode_video)
        self.browsers: BrowserFlows | None = None

    @property
    def media_host(self) -> str:
        """Where peers outside send media to, unless a router gives a port another address."""
        return self._network.outside

    @property
    def sessions(self) -> int:
        """The number of calls that have ports."""
        return len(self._open)

    @property
    def figures(self) -> dict[str, int]:
        """The packets that the pump handled, and those of Python, from phones and to them."""
        figures = self.pump.figures if self.pump is not None else PumpFigures()
        return dict(zip(PUMP_FIGURES, figures, strict=True))

    def open(
        self,
        session: MediaSession,
        lost: Callable[..., object],
        peers: Collection[str],
        now: float,
        share: PortShare | None = None,
    ) -> None:
        leg = self._leg_for(session, lost, now)
        settings = StreamSettings(
            os.urandom,
            # RFC 3550 §6.5.1 [cname-is-unique]
            cname=f"{os.urandom(6).hex()}@{self.media_host}",
            media_timeout=self._timeout,
            wallclock=wallclock(),
            max_octets=self._video_packet_size,
            transcoding=self._transcode,
            video_transcoding=self.video_transcoding,
            has_pump=self.pump is not None and leg is None,
        )
        ports = SessionPorts(self, session, lost, peers, share or self.shares.unlimited(), leg)
        session.envelope = leg
        session.open(ports, settings, now)

    def _leg_for(
        self, session: MediaSession, lost: Callable[..., object], now: float
    ) -> BrowserLeg | None:
        """The way to a browser, None for a phone.  Raises LocalError without --webrtc."""
        if not session.terms.is_browser:
            return None
        if self.browsers is None:
            raise LocalError("no port of browsers")
        return BrowserLeg(self.browsers, lost, now)

    def watch(self, session: MediaSession, watch: Watch | None) -> None:
        """Tell each datagram of a session, as source, target and octets; None ends that."""
        for ports in [each for each in self._open if each.session is session]:
            _ = session.statistics  # this takes back the packets that a pump was lent
            ports.watch(watch)

    def open_port(self, peers: Collection[str], share: PortShare) -> MediaPort:
        self.take_from(share)
        try:
            return self._any_port_for(peers)
        except LocalError:
            share.give()
            raise

    def take_from(self, share: PortShare) -> None:
        """Take a place of a share.  Raises LocalError, and logs it, if none is left."""
        try:
            share.take()
        except LocalError as error:
            self._log.warning("no-media-port", reason=str(error))
            raise

    def count(self, ports: "SessionPorts", opened: int) -> None:
        """Note that a session has so many ports now."""
        if opened:
            self._open[ports] = opened
        else:
            self._open.pop(ports, None)
        self._gatherer.set_calls(sum(self._open.values()))

    def waker(self, machine: Timed) -> Alarm:
        return Alarm(machine)

    def _any_port_for(self, peers: Collection[str]) -> MediaPort:
        beside = self._network.beside(peers)
        is_plain = beside is not None or self._network.is_inside(peers)
        return self._open_port(self._ports if is_plain else self.prepared, beside)

    def address(self, port: MediaPort, peers: Collection[str]) -> MediaAddress:
        if port.public is not None:
            return MediaAddress(*port.public)
        return MediaAddress(self.host_for(peers), port.rtp_port, port.rtcp_port)

    def _open_port(self, pool: MediaPool, host: str | None = None) -> MediaPort:
        """A pair of ports, whose datagrams are dropped until somebody takes them."""
        try:
            refuse_last(MEDIA)
            at = host or self._bind_ip
            return MediaPort(at, pool, _unheard, _unheard, latch=self._latch, pump=self.pump)
        except OSError as error:  # no descriptor is left, or the address has gone
            self._log.warning("no-media-port", reason=error.strerror)
            raise LocalError("no media port") from error


def _unheard(data: bytes, now: float) -> None:
    """Drop a datagram, on ports that no stream has taken yet."""


def video_transcoding(wanted: VideoLimits | None) -> VideoTranscoders | None:
    """The transcoding of --transcode-video, None without that.

    Own design: the loop must not wait for it.  All calls share as many threads as the machine has
    processors, but for one that is left to the loop.  Each way of a call has one of them at a time;
    ffmpeg works without the interpreter's lock.  Raises ConfigError if PyAV has no encoders.
    """
    if wanted is None:
        return None
    if missing := video_encoder.missing():
        raise ConfigError(f"--transcode-video: this PyAV has no {' and no '.join(missing)}")
    workers = Workers(max(1, (os.cpu_count() or 1) - 1))

    def run(job: Callable[[], T], then: Callable[[T, float], None]) -> None:
        workers.run(job, lambda made: then(made, monotonic()))

    return VideoTranscoders(run, **wanted._asdict())
