"""The UDP ports and the timers of calls.

Own design: a call has a pair of ports (RFC 3550 §11); this opens their sockets, and wakes the
machines that use them.
"""

import os
from collections.abc import Callable, Collection

from p2psip.errors import LocalError
from p2psip.net.alarm import Alarm
from p2psip.net.clock import monotonic, wallclock
from p2psip.net.descriptors import MEDIA, refuse_last, within
from p2psip.net.local_network import LocalNetwork
from p2psip.net.media.port_pool import PortPool
from p2psip.net.media.prepared_ports import PreparedPorts
from p2psip.net.media.rtp_ports import MediaPool, MediaPort
from p2psip.server.port_shares import PortShare, PortShares
from p2psip.sip.uri import Uri
from siprtmp.calls.call_media import CallMedia
from siprtmp.calls.context import MediaAddress, Timed
from siprtmp.edge.picture_threads import picture_transcoding
from siprtmp.edge.process.wakeup_coalescing import WakeupCoalescer
from siprtmp.media.audio_stream import AudioStream
from siprtmp.media.stream import StreamListener
from siprtmp.media.transcode import decoder
from siprtmp.media.transcode.transcoding import AvTranscoding
from siprtmp.media.tunnel_stream import TunnelStream
from siprtmp.media.video_stream import VideoStream
from siprtmp.operation.logs import Log
from siprtmp.settings.table import MediaSettings

RELAY_LOST = "relay lost"  # the TURN server was restarted, or does not answer


class MediaSide:
    """The `MediaEdge` of all calls.

    `timeout` is that of a silent phone.  `host_for` has the address for given peers; `phone_hosts`
    tells where a user's phones have registered from.  `prepared` are the ports for calls to peers
    outside, `pictures` is the transcoding of pictures, None without.
    """

    def __init__(
        self,
        settings: MediaSettings,
        timeout: float,
        bind_ip: str,
        network: LocalNetwork,
        phone_hosts: Callable[[Uri, float], Collection[str]],
        log: Log,
    ) -> None:
        self._network, self.host_for = network, network.host_for
        self._phone_hosts = phone_hosts
        self._bind_ip, self._log = bind_ip, log
        self._latch, self._timeout = settings.nat, timeout
        self._video_packet_size = settings.video_packet_size
        self._ports = PortPool(*settings.rtp_ports)
        self.prepared = PreparedPorts(self._ports, bind_ip)
        self._alarms: dict[AudioStream | VideoStream | TunnelStream, Alarm] = {}
        # each pair has two descriptors
        self.shares = PortShares(within(2 * self._ports.pairs) // 2)
        self._held: dict[AudioStream | VideoStream | TunnelStream, PortShare] = {}
        self._gatherer = WakeupCoalescer()
        self._transcode = AvTranscoding() if decoder.is_available() else None
        self.pictures = picture_transcoding(settings.transcode_video)

    @property
    def media_host(self) -> str:
        """Where peers outside send media to, unless a router gives a port another address."""
        return self._network.outside

    @property
    def legs(self) -> int:
        """The number of calls that have ports."""
        return sum(isinstance(leg, AudioStream) for leg in self._alarms)

    def open_leg(
        self,
        listener: CallMedia,
        peers: Collection[str],
        now: float,
        share: PortShare | None = None,
    ) -> tuple[AudioStream, MediaAddress]:
        """Ports and a leg for a call: RFC 3550 §11.  Raises LocalError without free ports."""
        share = share or self.shares.unlimited()
        port = self._port_for(peers, share)
        alarm: Alarm
        leg = AudioStream(
            port,
            listener,
            os.urandom,
            now,
            # RFC 3550 §6.5.1 [cname-is-unique]
            cname=f"{os.urandom(6).hex()}@{self.media_host}",
            media_timeout=self._timeout,
            transcode=self._transcode,
            wallclock=wallclock(),
            wake=lambda: alarm.set(),
        )
        port.on_rtp, port.on_rtcp = leg.on_rtp, leg.on_rtcp
        alarm = self._alarms[leg] = Alarm(leg)
        self._held[leg] = share
        self._gatherer.set_calls(len(self._alarms))
        port.when_lost(lambda error: listener.drop(monotonic(), RELAY_LOST))
        return leg, self._address(port, peers)

    def open_video(
        self, listener: StreamListener, peers: Collection[str], now: float, sound: AudioStream
    ) -> tuple[VideoStream, MediaAddress]:
        """Ports and a leg for the pictures of a call, as `open_leg` has them for its `sound`."""
        share = self._held[sound]
        port = self._port_for(peers, share)
        alarm: Alarm
        leg = VideoStream(
            port,
            listener,
            os.urandom,
            now,
            cname=sound.cname,
            alive=sound.alive,
            hears=sound.hears,
            timeline=sound.timeline,
            wallclock=wallclock(),
            wake=lambda: alarm.set(),
            max_octets=self._video_packet_size,
            transcoding=self.pictures,
        )
        port.on_rtp, port.on_rtcp = leg.on_rtp, leg.on_rtcp
        alarm = self._alarms[leg] = Alarm(leg)
        self._held[leg] = share
        return leg, self._address(port, peers)

    def phone_hosts(self, user: Uri, now: float) -> Collection[str]:
        """Where the phones of a user of ours registered from: RFC 3261 §10.2."""
        return self._phone_hosts(user, now)

    def open_x_flv(
        self, listener: StreamListener, peers: Collection[str], now: float, sound: AudioStream
    ) -> tuple[TunnelStream, MediaAddress]:
        """Ports and a leg for a tunnel, as `open_leg` has them for the `sound` of its call."""
        share = self._held[sound]
        port = self._port_for(peers, share)
        alarm: Alarm
        leg = TunnelStream(
            port,
            listener,
            os.urandom,
            now,
            cname=sound.cname,
            alive=sound.alive,
            hears=sound.hears,
            wallclock=wallclock(),
            wake=lambda: alarm.set(),
        )
        port.on_rtp, port.on_rtcp = leg.on_rtp, leg.on_rtcp
        alarm = self._alarms[leg] = Alarm(leg)
        self._held[leg] = share
        return leg, self._address(port, peers)

    def close_leg(self, leg: AudioStream | VideoStream | TunnelStream) -> None:
        """Stop the timer of a leg that is closed."""
        share = self._held.pop(leg, None)
        if share is not None:
            share.give()
        alarm = self._alarms.pop(leg, None)
        if alarm is not None:
            alarm.cancel()
        self._gatherer.set_calls(len(self._alarms))

    def waker(self, machine: Timed) -> Alarm:
        """A timer for a machine."""
        return Alarm(machine)

    def _port_for(self, peers: Collection[str], share: PortShare) -> MediaPort:
        try:
            share.take()
        except LocalError as error:
            self._log.warning("no-media-port", reason=str(error))
            raise
        try:
            return self._any_port_for(peers)
        except LocalError:
            share.give()
            raise

    def _any_port_for(self, peers: Collection[str]) -> MediaPort:
        beside = self._network.beside(peers)
        is_plain = beside is not None or self._network.is_inside(peers)
        return self._open_port(self._ports if is_plain else self.prepared, beside)

    def _address(self, port: MediaPort, peers: Collection[str]) -> MediaAddress:
        if port.public is not None:
            return MediaAddress(*port.public)
        return MediaAddress(self.host_for(peers), port.rtp_port, port.rtcp_port)

    def _open_port(self, pool: MediaPool, host: str | None = None) -> MediaPort:
        """A pair of ports, whose datagrams are dropped until somebody takes them."""
        try:
            refuse_last(MEDIA)
            return MediaPort(host or self._bind_ip, pool, _unheard, _unheard, latch=self._latch)
        except OSError as error:  # no descriptor is left, or the address has gone
            self._log.warning("no-media-port", reason=error.strerror)
            raise LocalError("no media port") from error


def _unheard(data: bytes, now: float) -> None:
    """Drop a datagram, on ports that have no leg yet."""
