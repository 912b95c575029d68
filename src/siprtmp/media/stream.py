"""One medium of one peer: what streams of audio, of video and of a tunnel have in common.

Implements RFC 3550 §6.4 for the reports of a stream.

Own design: a stream is a sans-I/O machine between a transport and what is published.  It sends
nothing to an address that has not agreed (see `Consent`), holds its publisher back when that is
ahead.  It knows neither the other streams of its session nor the call.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from p2psip.rtp.reporter import Event, Reporter
from p2psip.rtp.session import RtpSession
from p2psip.sdp.agreed_media import AgreedMedia
from p2psip.sdp.crypto import AgreedKeys
from p2psip.srtp.srtp import WINDOW
from siprtmp.media.consent import Consent
from siprtmp.media.secure_way import SecureWay
from siprtmp.media.sink import MediaSink
from siprtmp.media.timeline import Timeline
from siprtmp.media.transcode.video_transcoder import VideoTranscoders
from siprtmp.media.translate.flv_to_video import MAX_OCTETS
from siprtmp.media.transport import MediaTransport, MediaWay


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """What a session is made with; times in seconds.

    `cname` is that of its reports (RFC 3550 §6.5.1), `wallclock` plus a time is Unix time;
    `has_pump` says that its transports can offload packets.
    """

    random: Callable[[int], bytes]
    cname: str
    media_timeout: float
    wallclock: float = 0.0
    max_octets: int = MAX_OCTETS  # of a payload of video
    transcoding: bool = False  # whether audio may be decoded and encoded
    video_transcoding: VideoTranscoders | None = None
    has_pump: bool = False

    def rtp_session(self, clock_rate: int, now: float) -> RtpSession:
        """An RTP session of this name with a new SSRC: RFC 3550 §5.2 ties one to a clock rate."""
        # RFC 3550 §6.5.1 [cname-stays]
        return RtpSession(None, clock_rate, self.cname, self.random, now, wallclock=self.wallclock)


@dataclass(frozen=True, slots=True)
class Signalled:
    """Where a description comes from, and what it counts for.

    `hosts` are those of the signalling, `proven` says that they cannot be forged: see `Consent`.
    `early` means that the call is not answered yet (RFC 3960 §3), or the new offer is not
    acknowledged.
    """

    hosts: Collection[str] = ()
    proven: bool = True
    early: bool = False


class PeerWatcher(Protocol):
    """Whoever talks to the peer by signalling, when its streams tell that something is amiss."""

    def on_key_frame_needed(self, now: float) -> None:
        """Ask a peer that takes no RTCP feedback for a key frame, by signalling: RFC 5168 §4."""

    def on_quiet(self, now: float) -> None:
        """The peer is silent and the media time-out is near: ask it."""

    def on_silence(self, now: float) -> None:
        """The peer has sent nothing for the media time-out, and no answer."""


class StreamListener(PeerWatcher, Protocol):
    """The session that streams report to; what its sink should know they tell that."""

    def on_hold_back(self, asker: object, hold: bool) -> None:
        """Hold the publisher back for this asker if `hold`, else let it go on: see `pacing`."""

    def on_digit(self, digit: str, now: float) -> None:
        """The peer has pressed a key: RFC 4733 §2.5.2.2."""

    def on_unsuitable(self, sound_format: int) -> None:
        """The publisher's audio cannot be sent to the peer: FLV 10.1 §E.4.2.1."""

    def on_video_unsuitable(self, reason: str) -> None:
        """The publisher's video cannot be sent to the peer."""

    def on_refused(self, reason: str) -> None:
        """The first packet of SRTP that was not authentic, or came before: RFC 3711 §3.3."""

    def on_transcoding(self, transcodes: str, reason: str = "") -> None:
        """Media are made anew, as "h264 9x9 > vp8 9x9", video for a `reason`."""


class SharedContext(NamedTuple):
    """What a stream shares with the audio beside it: the signs of life of their peer, and its time.

    `alive(now)` takes a sign of life, `hears(host)` tells whether audio comes from a host.
    """

    alive: Callable[[float], None]
    hears: Callable[[str], bool]
    timeline: Timeline


class StreamContext(NamedTuple):
    """What all streams of a session are made with, at the time `started`.

    `wake` is called when the deadline of a stream becomes earlier between events; `shared` is of
    the audio, which has none before.
    """

    listener: StreamListener
    settings: StreamSettings
    started: float
    wake: Callable[[], None]
    shared: SharedContext | None = None


def earliest(times: Iterable[float | None]) -> float | None:
    """The first of some deadlines; a loop, since it is asked for after each packet that waited."""
    first: float | None = None
    for at in times:
        if at is not None and (first is None or at < first):
            first = at
    return first


class MediaStream(ABC):
    """A stream, from the description that agrees on its line to the end.

    `on_tag` is called with each message of the peer (type, RTMP time in ms, body, now): it is that
    of `sink`, to save a call for each packet.  `on_late` is called when something is left out that
    has come too late.
    """

    def __init__(self, transport: MediaTransport, context: StreamContext) -> None:
        assert context.shared is not None
        self.transport, self._listener, self._wake = transport, context.listener, context.wake
        self.way: MediaWay = transport
        self._secure: SecureWay | None = None  # once there are keys
        self._settings, self._started = context.settings, context.started
        self._alive, self._hears, self._timeline = context.shared
        self.on_late: Callable[[float], None] = lambda now: None
        self._consent = Consent()
        self._reporter: Reporter | None = None  # once there is something to report on
        self._holding = self._closed = False
        self._told_late = 0
        self.give_to(MediaSink())

    def give_to(self, sink: MediaSink) -> None:
        """Give a sink what the peer sends from now on, and have its publisher heard."""
        self.reclaim()
        self.sink, self.on_tag = sink, sink.on_tag

    def reclaim(self) -> None:
        """Take back what a pump has counted, before anybody looks: see `offload`."""
        return

    def follow(self) -> None:
        """Have the counts as they are now, for a report, while a pump may go on."""
        self.reclaim()

    @abstractmethod
    def publish(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take a published message (RTMP 1.0 §7.1.4), and send it when it is due."""

    @abstractmethod
    def on_rtp(self, data: bytes, now: float) -> None:
        """Take one RTP datagram: RFC 3550 §A.1."""

    def on_rtcp(self, data: bytes, now: float) -> None:
        """Take one RTCP datagram: RFC 3550 §6.4, RFC 4585 §6.2.1."""
        reporter = self._reporter
        if self._closed or reporter is None:
            return
        self.follow()
        invalid = reporter.invalid
        events = reporter.received(data, now)  # RFC 8866 §6.7.3 [reports-while-sending]
        if reporter.invalid == invalid:
            self._alive(now)
            self._welcome(now)
        self._heed(events, now)

    @property
    @abstractmethod
    def deadline(self) -> float | None:
        """When to call `tick`, None for never.  RFC 3550 §6.2 for reports."""

    @abstractmethod
    def tick(self, now: float) -> None:
        """Do the work that is due."""

    def close(self, now: float) -> None:
        """Send an RTCP BYE (RFC 3550 §6.6) and close the transport."""
        if self._closed:
            return
        self.reclaim()
        self._closed = True
        transport, reporter = self.transport, self._reporter
        if reporter is not None and self._consent.is_open and transport.remote_rtcp:
            farewell = reporter.bye(now)
            if farewell:  # b"" where nothing was sent before: RFC 3550 §6.3.7
                self.way.send_rtcp(farewell)
        transport.close()
        self._let_go()

    def secure(self, keys: AgreedKeys) -> None:
        """Send and take SRTP from now on, by these keys: RFC 4568 §5.1.3."""
        if self._secure is None:
            self.reclaim()
            refused = self._listener.on_refused
            self._secure = way = SecureWay(self.transport, refused, self._replay_window)
            self._go_by(way)
        self._secure.use(keys)

    @property
    def refused(self) -> int:
        """How many packets of SRTP were not authentic, or came before: RFC 3711 §3.3."""
        return self._secure.refused if self._secure is not None else 0

    # -- for the heirs ------------------------------------------------------------------

    _replay_window = WINDOW  # packets that may be late: RFC 3711 §3.3.2

    def _go_by(self, way: MediaWay) -> None:
        """Send by this way from now on, and by nothing beside it, such as a pump."""
        self.way = way

    @abstractmethod
    def _let_go(self) -> None:
        """Forget what waits, and the codecs, at the end."""

    def _heed(self, events: Sequence[Event], now: float) -> None:
        """Act on what reports ask for, which only video can give: RFC 4585 §6.2.1."""
        return

    def _trust(self, media: AgreedMedia, by: Signalled, now: float) -> None:
        """Take the address of a description: see `Consent`."""
        hosts = by.hosts if by.proven else ()
        # RFC 8866 §7 [care-with-addresses]
        self._consent.point(media.remote, hosts, now, answered=not by.early)

    def _aim(self, media: AgreedMedia, hosts: Collection[str]) -> None:
        """Send where a description says from now on: RFC 3264 §8.3.1."""
        transport = self.transport
        transport.hosts, transport.rtcp_mux = hosts, media.rtcp_mux
        # RFC 3264 §8.3.1 [follows-at-once]
        transport.remote = media.remote  # setting it delivers the packets that waited
        if media.remote_rtcp is not None:
            transport.remote_rtcp = media.remote_rtcp
        if self._secure is not None and self._reporter is not None:
            # RFC 3711 §3.4 [first-size-with-srtcp] [sizes-with-srtcp]
            self._reporter.count_below(self._secure.report_octets)

    def _welcome(self, now: float) -> None:
        """Send media from now on, since the peer has sent some: see `Consent`."""
        self._consent.hear(now)

    def _reaches(self, media: AgreedMedia, now: float) -> bool:
        """Whether the peer takes this medium at an address that is proven, if only by the audio."""
        if not media.sends or media.remote is None or not self.transport.is_ready:
            return False
        if not self._consent.is_open and self._hears(media.remote[0]):
            self._consent.hear(now)
        return self._consent.is_open

    def _hold_back(self, hold: bool) -> None:
        if hold != self._holding:
            self._holding = hold
            self._listener.on_hold_back(self, hold)

    def _tell_late(self, left_out: int, now: float) -> None:
        """Tell the listener of late packets, if more were left out since the last time."""
        if left_out != self._told_late:
            self._told_late = left_out
            self.on_late(now)

    def _report(self, now: float) -> None:
        """Send the reports that are due: RFC 3550 §6.3."""
        reporter = self._reporter
        if reporter is None or reporter.deadline > now:
            return
        self.follow()
        # RFC 3550 §6 [reports-everywhere], §6.2 [never-off]
        # RFC 8866 §6.7.1 [reports-while-receiving] and §6.7.4 [reports-while-inactive]
        for report in reporter.tick(now):
            if self._consent.is_open:
                self.way.send_rtcp(report)
