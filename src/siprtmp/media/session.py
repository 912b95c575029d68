"""All media of one peer: what both ends agree on, and a stream for each line of it.

Implements RFC 3264 §5 to §8 by way of `sdp_map`, and RFC 3550 §6.5.1: one name for all streams that
are heard and seen together.

Own design: a sans-I/O machine that knows neither SIP nor RTMP connections.  Descriptions come and
go as octets, by whatever signalling its owner has; published messages and those of the peer pass
between its streams and a `MediaSink`.  Video never decides about a call: without a transport for
it, or a peer that takes it, there is audio alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp.session import Statistics
from p2psip.sdp.session import SessionDescription
from siprtmp.media import sdp_map
from siprtmp.media.audio_stream import AudioStream, OnSent
from siprtmp.media.negotiation import Negotiation
from siprtmp.media.sdp_map import Endpoint, MediaPlan
from siprtmp.media.session_log import MediaLog, SessionLog, sound_format_name
from siprtmp.media.sink import VIDEO, MediaSink
from siprtmp.media.stream import (
    MediaStream,
    PeerWatcher,
    Signalled,
    StreamContext,
    StreamSettings,
    earliest,
)
from siprtmp.media.transcode.to_flv import TranscodedToFlv
from siprtmp.media.translate.flv_to_video import MAX_OCTETS
from siprtmp.media.translate.video_tag import H264, VP8
from siprtmp.media.transport import Transports
from siprtmp.media.tunnel_stream import TunnelStream
from siprtmp.media.video_lines import are_offered
from siprtmp.media.video_stream import VideoFigures, VideoStream
from siprtmp.media.video_to_phone import OnShown

Publish = Callable[[int, int, bytes, float], None]

_MUTED: Final = "muted"  # who has the stream leave the publisher's audio out, beside a hold


class Taps(NamedTuple):
    """Functions that hear and see what is sent to the peer: see the streams' `tap`."""

    audio: OnSent
    video: OnShown


@dataclass(frozen=True, slots=True)
class PeerFormat:
    """What players get of the peer; SoundFormat and samples a second, and "" without video."""

    audio_format: tuple[int, int]
    video: str = ""
    size: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class MediaStatistics:
    """The figures of a session so far; those of RTP are of its audio: RFC 3550 §6.4."""

    codec: str | None = None
    packet_seconds: float = 0.0
    transcodes: list[str] = field(default_factory=list)  # what is decoded and encoded now
    transcoded: list[str] = field(default_factory=list)  # and so far
    sent: int = 0
    received: int = 0
    left_out: int = 0
    has_video: bool = False
    video: tuple[str, ...] = ()  # the codecs agreed on
    video_sent: int = 0
    video_received: int = 0
    freezes: int = 0
    srtp: str = ""  # the suite of the audio, "" for plain RTP
    refused: int = 0  # packets of SRTP that were not authentic, or came before
    rtp: Statistics | None = None


class Recorder(Protocol):
    """Keeps what is published; a stream is one."""

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take a published message: RTMP 1.0 §7.1.4."""

    def end(self, now: float) -> None:
        """The publisher has ended: RTMP 1.0 §7.2.2.3."""


class Envelope(Protocol):
    """The part of descriptions that is about a transport for all lines: RFC 8839 §5, RFC 5763 §5.

    The rest is said as if each line had a port of its own.
    """

    def take(self, theirs: bytes) -> None:
        """Note what the peer says of its transport.  Raises RemoteError."""

    def answer(self, ours: bytes) -> bytes:
        """Put our transport on an answer to the description that was taken last."""

    def offer(self, ours: bytes) -> bytes:
        """Put our transport on an offer."""

    def begin(self, now: float) -> None:
        """Both descriptions are known: wait for the peer from now on."""


class SessionOwner(PeerWatcher, Protocol):
    """Does the signalling of a session, and leads published messages to it: a call, for one."""

    def on_publish_changed(self, publish: Publish) -> None:
        """Published messages go to this function from now on."""

    def on_digit(self, digit: str, now: float) -> None:
        """The peer has pressed a key: RFC 4733 §2.5.2.2."""


class MediaSession:
    """The media of one peer, from `open` to `close`.

    `terms` are what both ends have said.  `publish` takes what is published (type, RTMP time in ms,
    body, now), also before and after; its owner is told when it is another function.
    `transcoded` has all that was decoded and encoded so far, as "aac > opus".  `envelope` is set
    before `open`, for a peer whose lines share a transport.
    """

    def __init__(self, owner: SessionOwner, log: MediaLog, sink: MediaSink) -> None:
        self.on_quiet, self.on_silence = owner.on_quiet, owner.on_silence  # of the audio stream
        self.on_key_frame_needed, self.sink = owner.on_key_frame_needed, sink
        self.on_digit = owner.on_digit
        self._on_publish_changed = owner.on_publish_changed
        self.terms, self.is_muted = Negotiation(), False
        self.envelope: Envelope | None = None
        self._log = SessionLog(log)
        self.transcoded = self._log.transcoded
        self._holders: set[object] = set()
        self._taps: Taps | None = None
        self._recorder: Recorder | None = None
        self._refused = 0  # by streams that are gone
        self._streams: tuple[MediaStream, ...] = ()
        self._audio: AudioStream | None = None
        self._video: VideoStream | None = None
        self._tunnel: TunnelStream | None = None  # also before it is agreed on
        self._settings: StreamSettings | None = None  # while it is open
        self.publish: Publish = self._keep
        self._sort()

    def open(self, transports: Transports, settings: StreamSettings, now: float) -> None:
        """Have a transport for audio.  Raises LocalError without one."""
        transport, at = transports.open()
        self._transports, self._settings = transports, settings
        self._log.can_make_video = settings.video_transcoding is not None
        self._waker = transports.waker(self)
        self._context = StreamContext(self, settings, now, self._waker.set)
        self._audio = AudioStream(transport, self._context)
        self._context = self._context._replace(shared=self._audio.shared)
        self._add(self._audio, "sound")
        # RFC 3264 §5 [numbers-of-64-bits] [version-below-2-62]
        session_id = int.from_bytes(settings.random(4), "big")
        self.terms.endpoint = Endpoint(at.host, at.port, session_id, rtcp_port=at.rtcp_port)
        self._sort()

    @property
    def is_open(self) -> bool:
        return self._settings is not None

    def close(self, now: float) -> None:
        """End all streams: RFC 3550 §6.6."""
        if self._settings is None:
            return
        self._settings = None
        for stream in self._streams:
            self._drop(stream, now)
        self._waker.cancel()
        self._audio = self._video = self._tunnel = None
        self._sort()

    # -- descriptions -------------------------------------------------------------------

    def offer(self, now: float, names: Sequence[str] = (), *, unnamed: bool = False) -> bytes:
        """Make the first offer, of `names` or all that are named: RFC 3264 §5.

        `unnamed` is for `sdp_map.offer`.  Raises RemoteError(488) if nothing is left to offer.
        """
        if self.envelope is None:
            self._add_line(now, is_video=False)
        self._add_line(now, is_video=True)
        return self._offered(self.terms.offer(names or self.terms.names, unnamed))

    def answer(self, sdp: bytes, now: float, by: Signalled, *, again: bool = False) -> bytes:
        """Answer an offer, the first or (`again`) a later one: RFC 3264 §6, §8.

        It counts as early until it is confirmed.  Raises RemoteError, 488 without a codec in
        common, which leaves the session as it was.
        """
        theirs, names = self._read(sdp, by), self.terms.names
        if sdp_map.offers_x_flv(theirs):
            self._add_line(now, is_video=False)
        makes = H264 in names and self._log.can_make_video
        if are_offered(theirs, (*names, *([VP8] if makes else ()))):
            self._add_line(now, is_video=True)
        ours = self.terms.answer(theirs, again)
        if self.envelope is not None:
            ours = self.envelope.answer(ours)
        self._start(now, by, early=True)
        return ours

    def offer_again(self, theirs: bytes | None, by: Signalled) -> bytes:
        """Make a later offer; `theirs` is the description in force: RFC 3264 §8."""
        return self._offered(self.terms.offer_again(self._read(theirs, by) if theirs else None))

    def conclude(
        self, sdp: bytes, now: float, by: Signalled, *, early: bool = False, ours: bytes = b""
    ) -> None:
        """Take the answer to our first offer, or to `ours`: RFC 3264 §7.

        `early` says that another may follow (RFC 3960 §3).  Raises RemoteError, 488 without usable
        audio.
        """
        self.terms.conclude(self._read(sdp, by), ours)
        self._start(now, by, early=early)

    def settle(self, sdp: bytes, now: float, by: Signalled) -> MediaPlan:
        """Begin for good, by the last answer; `sdp` is the peer's if the offer was ours.

        The media time-out begins here, even if nothing changes.  Raises as `conclude`.
        """
        terms = self.terms
        if terms.first is not None and (sdp or terms.plan is None):
            self.conclude(sdp, now, by)
        else:
            self._start(now, by)
        if terms.plan is None:
            raise RemoteError("Not Acceptable Here", 488)
        return terms.plan

    def confirm(self, now: float, by: Signalled) -> None:
        """Follow the last answer for good, as it is acknowledged: RFC 3261 §14.2."""
        self._start(now, by)

    def hold(self, on: bool) -> None:
        """Have the peer on hold from the next offer on, and what is published not heard at once."""
        self.terms.holds = on  # RFC 6337 §5.3 [hold-is-our-own-wish]
        if self._audio is not None:
            self._audio.mute(self, on)
        self._sort()

    def mute(self, on: bool) -> None:
        """Have the peer not hear what is published, or hear it again; it is told nothing."""
        self.is_muted = on
        if self._audio is not None:
            self._audio.mute(_MUTED, on)

    def _read(self, sdp: bytes, by: Signalled) -> SessionDescription:
        if self.envelope is not None:
            self.envelope.take(sdp)
        return self.terms.read(sdp, by.hosts)

    def _offered(self, ours: bytes) -> bytes:
        return ours if self.envelope is None else self.envelope.offer(ours)

    def _start(self, now: float, by: Signalled, *, early: bool = False) -> None:
        """Send and receive as the plan says, and drop the streams that it does not have."""
        plan, by = self.terms.plan, replace(by, early=early)
        if self.envelope is not None:
            by = replace(by, hosts=(self.terms.endpoint.host,), proven=True)
            self.envelope.begin(now)
        audio, video, tunnel = self._audio, self._video, self._tunnel
        if plan is None or audio is None:
            return
        for name, stream in zip(sdp_map.LINES, (audio, video, tunnel), strict=True):
            keys = sdp_map.keys_of(plan).get(name)
            if stream is not None and keys is not None:
                stream.secure(keys)
        audio.codec_selection.wants_speex = sdp_map.wants_speex(self.terms.names)
        audio.start(plan.audio, now, by)
        if plan.video is not None and video is not None:
            video.start(plan.video, now, by)
        elif not early and video is not None:
            self._drop(video, now)
            self._video = None
            self.terms.have_video(None)
        if plan.x_flv is not None and tunnel is not None:
            tunnel.start(plan.x_flv, now, by)
            if not early:  # the first time, with what was published before
                tunnel.begin(now)
        elif not early and tunnel is not None:
            self._drop(tunnel, now)
            self._tunnel = None
            self.terms.have_tunnel(None)
        self._sort()

    # -- streams ------------------------------------------------------------------------

    def _add(self, stream: MediaStream, kind: str) -> None:
        stream.transport.on_rtp, stream.transport.on_rtcp = stream.on_rtp, stream.on_rtcp
        stream.give_to(self.sink)
        stream.on_late = lambda now: self._log.late(kind)
        self._streams += (stream,)

    def _add_line(self, now: float, *, is_video: bool) -> None:
        """Have a stream for video, or else x-flv, if it is named and a transport is left."""
        terms = self.terms
        is_wanted = terms.wants_video if is_video else terms.wants_tunnel
        if not self.is_open or not is_wanted:
            return
        try:
            transport, at = self._transports.open()
        except LocalError:
            self._log.no_port(is_video=is_video)
            return
        context = self._context._replace(started=now)
        if is_video:
            self._video = video = VideoStream(transport, context)
            terms.have_video(at, vp8=self._log.can_make_video, repairs=video.repair_sources)
            self._add(video, "pictures")
            if self._taps is not None:
                video.tap(self._taps.video, now)
        else:
            self._tunnel = TunnelStream(transport, context)
            terms.have_tunnel(at)
            self._add(self._tunnel, "tunnel")

    @property
    def _is_tunnelled(self) -> bool:
        return self._tunnel is not None and self._tunnel.plan is not None

    def _drop(self, stream: MediaStream, now: float) -> None:
        """Close a stream whose line is gone: RFC 3264 §8.2."""
        stream.close(now)
        self._refused += stream.refused
        self._transports.release(stream.transport)
        self._streams = tuple(each for each in self._streams if each is not stream)

    # -- what is published --------------------------------------------------------------

    def _sort(self) -> None:
        """Have `publish` lead to where published messages belong now."""
        if self._audio is None or self.terms.holds:
            self.publish = self._keep
        elif self._is_tunnelled or self._video is not None or self._recorder is not None:
            self.publish = self._publish_sorted
        else:
            self.publish = self._audio.take  # the usual case has no call more than it needs
        self._on_publish_changed(self.publish)

    def _keep(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        self.sink.published.put(type_id, timestamp, payload)

    def _publish_sorted(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        if self._recorder is not None:
            self._recorder.write(type_id, timestamp, payload, now)
        if self._tunnel is not None and self._is_tunnelled:
            self.sink.published.put(type_id, timestamp, payload)
            self._tunnel.publish(type_id, timestamp, payload, now)
        elif type_id == VIDEO and self._video is not None:
            self._video.publish(type_id, timestamp, payload, now)
        elif self._audio is not None:
            self._audio.take(type_id, timestamp, payload, now)

    def publish_ended(self, now: float) -> None:
        """The publisher has ended; the sink's `on_drained` follows.  Own design: see `pacing`."""
        if self._recorder is not None:
            self._recorder.end(now)
        if self._audio is not None and self._audio.plan is not None:
            self._audio.publish_ended(now)
        else:
            self.sink.on_drained(now)

    def record(self, recorder: Recorder | None) -> None:
        """Record each message that is published to the peer from now on; None ends that."""
        self._recorder = recorder
        self._sort()

    def tap(self, taps: Taps, now: float) -> None:
        """Give `taps` what is sent to the peer from now on, also by streams that come later."""
        self._taps = taps
        if self._audio is not None:
            self._audio.tap(taps.audio)
        if self._video is not None:
            self._video.tap(taps.video, now)

    def press(self, digits: str, now: float) -> bool:
        """Press keys one after another; False if the peer takes no such events: RFC 4733 §2.5.1."""
        return self._audio is not None and self._audio.press(digits, now)

    def want_key_frame(self, now: float) -> None:
        """Take the peer's wish for a key frame, which came by signalling: RFC 5168 §4."""
        if self._video is not None:
            self._video.want_key_frame(now)  # RFC 5168 §4 [fast-update-asks-the-encoder]

    # -- what the peer sends ------------------------------------------------------------

    def give_to(self, sink: MediaSink) -> None:
        """Give another sink what the peer sends, and have its publisher heard: for a transfer."""
        self.sink = sink
        for stream in self._streams:
            stream.give_to(sink)

    def alive(self, now: float) -> None:
        """Take a sign of life by signalling, also of a peer without audio."""
        if self._audio is not None:
            self._audio.shared.alive(now)

    def request_key_frame(self, now: float) -> None:
        """Ask the peer for a key frame, for a player that has just come: RFC 5104 §3.5.1."""
        if self._video is not None:
            self._video.ask_key_frame(now)

    # -- figures ------------------------------------------------------------------------

    @property
    def is_held(self) -> bool:
        """Whether the peer holds us: RFC 3264 §8.4."""
        return self.terms.plan is not None and self.terms.plan.audio.media.held

    @property
    def format(self) -> PeerFormat | None:
        """What players get; None before an answer, and for a tunnel, which has its own metadata."""
        audio, plan = self._audio, self.terms.plan
        if plan is None or audio is None or self._is_tunnelled:
            return None
        audio_format, codec = audio.audio_format, plan.audio.codec
        if audio_format is None and codec.passes:
            audio_format = codec.sound_format, codec.sample_rate
        return PeerFormat(audio_format or TranscodedToFlv.audio_format, *self.video_format)

    @property
    def video_format(self) -> tuple[str, tuple[int, int] | None]:
        """The codec of the video that players get, "" if none, and its size: FLV 10.1 §E.5."""
        video = self._video
        if video is None:
            return "", None
        codec, size = video.figures.codec, video.figures.size
        is_taken = video.plan is not None and video.plan.media.receives
        return codec if is_taken and (codec == H264 or self.sink.takes(codec)) else "", size

    @property
    def transcodes(self) -> list[str]:
        """What is decoded and encoded now, to the peer and from it, as "aac > opus"."""
        transcoded = self._audio.codec_selection.transcodes if self._audio is not None else []
        return [*transcoded, *(self._video.figures.transcodes if self._video is not None else ())]

    @property
    def statistics(self) -> MediaStatistics:
        """The figures so far; empty when it is not open."""
        audio, video = self._audio, self._video
        if audio is None:
            return MediaStatistics()
        plan, shown = audio.plan, video.plan if video is not None else None
        seen = video.figures if video is not None else VideoFigures()
        keys = plan.media.keys if plan is not None else None
        return MediaStatistics(
            codec=plan.codec.name if plan is not None else None,
            packet_seconds=plan.media.ptime / 1000 if plan is not None else 0.0,
            transcodes=self.transcodes,
            transcoded=self.transcoded,
            rtp=audio.statistics,  # before the counts, which that brings up to date
            sent=audio.sent,
            received=audio.received,
            left_out=audio.left_out + seen.left_out,
            has_video=video is not None,
            video=tuple(shown.names) if shown is not None else (),
            video_sent=seen.sent,
            video_received=seen.received,
            freezes=seen.freezes,
            srtp=keys.ours.suite if keys is not None else "",
            refused=self._refused + sum(each.refused for each in self._streams),
        )

    def log_no_video(self, plan: MediaPlan, sdp: bytes | None) -> None:
        """Log why there is no video though one side has offered some, in `sdp` or before."""
        if plan.video is None and plan.x_flv is None:
            self._log.no_video(self.terms.names, self.terms.first, sdp)

    # -- StreamListener -----------------------------------------------------------------

    def on_hold_back(self, asker: object, hold: bool) -> None:
        """Hold the publisher back while any stream asks for it."""
        before = bool(self._holders)
        (self._holders.add if hold else self._holders.discard)(asker)
        if bool(self._holders) != before:
            self.sink.on_hold_back(hold)

    def on_unsuitable(self, sound_format: int) -> None:
        """Tell that the peer does not hear the publisher: FLV 10.1 §E.4.2.1."""
        name = sound_format_name(sound_format)
        if self._audio is not None and self._audio.codec_selection.g711_rate:
            name = f"{name} of another rate than 8 kHz"
        self.sink.on_unsuitable(self._log.unsuitable_audio(name, self.terms.plan))

    def on_transcoding(self, transcodes: str, reason: str = "") -> None:
        """Log that media is decoded and encoded again: RFC 6184 §8.2.2 for video."""
        self._log.makes(transcodes, reason)

    def on_refused(self, reason: str) -> None:
        """Log that SRTP of the peer is dropped, once for each stream: RFC 3711 §3.3."""
        self._log.refused(reason)

    def on_video_unsuitable(self, reason: str) -> None:
        """Tell that the peer does not see the publisher: FLV 10.1 §E.4.3.1."""
        limit = self._settings.max_octets if self._settings is not None else MAX_OCTETS
        self.sink.on_unsuitable(self._log.unsuitable_video(reason, self.terms.plan, limit))

    # -- time ---------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        """When to call `tick`: the earliest time of any stream.  RFC 3550 §6.2 for reports."""
        return earliest([stream.deadline for stream in self._streams])

    def tick(self, now: float) -> None:
        """Do the work of all streams that is due: RFC 3550 §6.3."""
        for stream in self._streams:
            stream.tick(now)
