"""A browser that publishes to a live stream, or plays one: a media session without a call.

Own design: a browser is a peer of `MediaSession` as a phone is.  What it publishes goes into the
stream as the tags of any publisher; what it plays is published to its session.  It sends and takes
what it has been offered as it is; audio that no browser has is made into Opus, and video into
what this one shows, where that is allowed.
"""

from collections.abc import Callable
from typing import Final, Protocol

from p2psip.errors import RemoteError
from p2psip.sdp.session import SessionDescription
from rtmplite.errors import RemoteError as RtmpError
from rtmplite.live.streams import Framing, LivePlayer, LiveStream, Viewer
from siprtmp.calls.metadata import DATA, on_metadata
from siprtmp.media.browser_transport import BrowserTransport
from siprtmp.media.sdp_map import NO_CODEC
from siprtmp.media.session import MediaSession, Publish
from siprtmp.media.session_log import MediaLog
from siprtmp.media.sink import VIDEO, MediaSink
from siprtmp.media.stream import Signalled, StreamSettings
from siprtmp.media.translate.audio_formats import OPUS
from siprtmp.media.translate.opus_passing import suits
from siprtmp.media.translate.video_tag import DEFAULT, H264, H265, VP8
from siprtmp.web.b_frames import B_FRAMES, START_WITH, VideoWatch
from siprtmp.web.layers import VideoLayer, VideoLayers
from siprtmp.web.made_video import MadeVideo
from siprtmp.web.opus_framing import packed, unpacked

AUDIO_NAMES: Final = ("opus",)  # which every browser has
VIDEO_NAMES: Final = (H264, H265, VP8)
MADE_NAMES: Final = (H264, VP8)  # where video may be made
_SHOWN: Final = {"AVC": H264, "avc1": H264, "hvc1": H265, "vp08": VP8}  # names of a stream's codecs
SILENT_SECONDS: Final = 5.0  # after which a newcomer may have the name of a publisher


class PeerOwner(Protocol):
    """Holds the browsers, and is told when one has ended."""

    def ended(self, peer: "BrowserPeer", reason: str, now: float) -> None:
        """Forget a browser."""

    def join_opus(self, live: LiveStream) -> Framing:
        """The framing that a viewer of this stream shares with others, until `leave_opus`."""

    def leave_opus(self, live: LiveStream) -> None:
        """Have one viewer less; with the last one nothing is made any more."""

    def watch(self, live: LiveStream, now: float) -> VideoWatch:
        """What is known of a stream's video; its viewers `choose` again when that changes."""

    def layers(self, live: LiveStream, now: float) -> VideoLayers:
        """The video tracks of this publication, of which a viewer may choose one."""

    @property
    def makes_video(self) -> bool:
        """Whether video may be made into another codec."""

    def made_video(self, live: LiveStream, codec: str) -> MadeVideo:
        """The video of this publication in a codec, which is made for as long as it has viewers."""


class BrowserPeer(MediaSink):
    """One browser, from its offer to the end; `live` is the stream.

    `wanted_layer` is what a viewer has named with its offer, if it has.
    """

    wanted_layer = ""

    def __init__(
        self,
        live: LiveStream,
        transport: BrowserTransport,
        owner: PeerOwner,
        log: MediaLog,
        clock: Callable[[], float],
    ) -> None:
        super().__init__()
        self.live, self.transport = live, transport
        self.owner, self.clock = owner, clock
        self._is_over = self._transcodes = False
        self.session = MediaSession(self, log, self)
        transport.on_gone = self.end

    @property
    def named(self) -> dict[str, object]:
        """What the log says of it beside its stream."""
        return {}

    def answer(
        self, offer: SessionDescription, settings: StreamSettings, now: float
    ) -> SessionDescription:
        """Begin: answer an offer without its envelope.  Raises RemoteError, and has ended then."""
        self._transcodes = settings.transcoding
        try:
            kinds = [each.kind for each in offer.media if each.port]
            if len(kinds) > len(set(kinds)):  # RFC 9725 §4.4.2 [one-track-of-each-kind]
                raise RemoteError("One line of audio and one of video, please", 488)
            if "audio" not in kinds:
                raise RemoteError(f"No audio in the offer: {self._wanted('audio')}", 488)
            self.session.open(self.transport, settings, now)
            self.session.terms.names = self._names(offer)
            by = Signalled((self.transport.at.host,))
            answer = self._answered(offer, now, by)
            self._check(offer, answer)
            self.session.settle(b"", now, by)
            self._begin(now)
        except RemoteError as error:
            self.end(error.reason, now)
            raise
        return answer

    def _answered(self, offer: SessionDescription, now: float, by: Signalled) -> SessionDescription:
        """Answer; where the session refuses in the words of SIP, in those of people."""
        try:
            return SessionDescription.parse(self.session.answer(bytes(offer), now, by))
        except RemoteError as error:
            if error.reason != NO_CODEC:
                raise
            raise RemoteError(f"No audio in common: {self._wanted('audio')}", 488) from None

    def end(self, reason: str, now: float) -> None:
        """End the session, also with the browser: RFC 5764 §5.1.  A second time does nothing."""
        if self._is_over:
            return
        self._is_over = True
        self._leave(now)
        self.session.close(now)
        self.transport.close()
        self.owner.ended(self, reason, now)

    def _names(self, offer: SessionDescription) -> tuple[str, ...]:
        """The codecs to answer with, by their names in the client's API."""
        return (*AUDIO_NAMES, *VIDEO_NAMES)

    def _check(self, offer: SessionDescription, answer: SessionDescription) -> None:
        """Raise RemoteError(488) where a line could not be answered: RFC 9725 §4.4.3."""
        for theirs, ours in zip(offer.media, answer.media, strict=True):
            # RFC 9725 §4.4.3 [all-or-nothing]
            if theirs.port and not ours.port:
                raise RemoteError(f"No {theirs.kind} in common: {self._wanted(theirs.kind)}", 488)

    def _wanted(self, kind: str) -> str:
        """What to offer instead, for people."""
        names = AUDIO_NAMES if kind == "audio" else VIDEO_NAMES
        return f"offer one line of {' or '.join(names)}"

    def _begin(self, now: float) -> None:
        """Take the place in the stream.  Raises RemoteError if there is none."""

    def _leave(self, now: float) -> None:
        """Give up the place in the stream."""

    # -- SessionOwner -------------------------------------------------------------------

    def on_publish_changed(self, publish: Publish) -> None:
        """Nothing: what is published is given to the session each time."""

    def on_key_frame_needed(self, now: float) -> None:
        """Nothing: browsers are asked by RTCP."""

    def on_quiet(self, now: float) -> None:
        """Nothing: ICE tells whether the browser is there."""

    def on_silence(self, now: float) -> None:
        self.end("no media", now)


class BrowserPublisher(BrowserPeer):
    """A browser that publishes; the publisher of its stream for all others."""

    is_copy = False
    takes_opus = True
    _is_described, _heard = False, 0.0

    def takes(self, codec: str) -> bool:
        return True

    def _begin(self, now: float) -> None:
        self._heard = now
        self.live.begin(now, "live", self)
        self.live.on_players_changed = self._players_changed
        self.live.ask_key_frame = self.session.request_key_frame

    def _leave(self, now: float) -> None:
        if self.live.publisher is self:
            self.live.on_players_changed = self.live.ask_key_frame = None
            self.live.end(now)

    def on_tag(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        if self.live.publisher is not self:
            return
        self._heard = now
        try:
            if not self._is_described:
                self._describe(now)
            self.live.write(type_id, timestamp, payload, now)
        except RtmpError as error:
            self.end(str(error), now)

    def on_format(self, now: float) -> None:
        if self._is_described:
            self._describe(now)

    def _describe(self, now: float) -> None:
        """Write the metadata, and again when more is known: FLV 10.1 §E.5."""
        self._is_described = True
        known = self.session.format
        if known is not None:
            body = on_metadata(known.audio_format, known.video, known.size)
            self.live.write(DATA, 0, body, now)

    def _players_changed(self, live: LiveStream, now: float) -> None:
        """Have a key frame made for a player that got none: RFC 5104 §3.5.1."""
        if live.players and live.starts_at is None:
            self.session.request_key_frame(now)

    # -- ReplaceablePublisher -----------------------------------------------------------

    def is_silent(self, now: float) -> bool:
        return now - self._heard > SILENT_SECONDS

    def replaced(self, now: float) -> None:
        # the next one has the stream already
        self.live.on_players_changed = self.live.ask_key_frame = None
        self.end("somebody else publishes that now", now)


class BrowserViewer(BrowserPeer):
    """A browser that plays its stream, or one of its layers in place of the default track.

    It is in one of three ways: it has the stream's video, what is made of that, or a layer.  Beside
    that it may wait for another layer.
    """

    _seat: "BrowserSeat | None" = None
    _shares = False  # the Opus that is made for all
    _made: MadeVideo | None = None  # in place of the stream's video
    _layer: VideoLayer | None = None  # likewise
    _next: VideoLayer | None = None  # to be entered at its next key frame, or when it joins

    def _names(self, offer: SessionDescription) -> tuple[str, ...]:
        """The codecs that the stream has, since nothing else would ever be shown, or be made."""
        shown = [_SHOWN[name] for name in self.live.codecs if name in _SHOWN]
        if self.owner.makes_video:
            shown += MADE_NAMES
        return (*AUDIO_NAMES, *(dict.fromkeys(shown) or VIDEO_NAMES))

    def _wanted(self, kind: str) -> str:
        cure = "" if self.owner.makes_video or kind == "audio" else f"; or {START_WITH}"
        return f"the stream has {' and '.join(self.live.codecs)}{cure}"

    def _begin(self, now: float) -> None:
        self._codec_to_make(now)
        if self._video_names():
            self.owner.layers(self.live, now)  # which keep frames for late viewers
        if self.wanted_layer:
            self.choose_layer(self.wanted_layer, now)
        self.transport.on_connected = self._join

    def _codec_to_make(self, now: float) -> str:
        """The codec to make of the stream's video, "" if that can be shown as it is.

        Raises RemoteError(488) for B-frames if nothing may be made.
        """
        plan = self.session.terms.plan
        if plan is None or plan.video is None:
            return ""
        watch = self.owner.watch(self.live, now)
        if not watch.found and (watch.codec is None or watch.codec in plan.video.names):
            return ""
        if self.owner.makes_video and plan.video.encodable:
            return plan.video.encodable
        if watch.found:
            raise RemoteError(B_FRAMES, 488)
        return ""

    def choose(self, now: float) -> None:
        """Play the stream's video, or what is made of it, or end: another codec, or B-frames."""
        if self._layer is not None:
            return
        try:
            codec = self._codec_to_make(now)
        except RemoteError as error:
            self.end(error.reason, now)
            return
        seat = self._seat
        if seat is None or codec == (self._made.codec if self._made is not None else ""):
            return
        self._leave_made()
        self.published.gop.clear()
        seat.player.select(video=not codec)
        self._make(codec, now, is_new=False)

    def _join(self, now: float) -> None:
        """Take a seat, now that the browser is there: one that never comes costs nothing."""
        if not self.live.publishing:
            self.end("the stream has ended", now)
            return
        try:
            codec = self._codec_to_make(now)
        except RemoteError as error:
            self.end(error.reason, now)  # another publication than that of the offer
            return
        layer, self._next = self._next, None
        if layer is not None and not layer.fault(self._video_names()):
            codec, self._layer = "", layer
            layer.join(self, is_new=True)
        self._make(codec, now, is_new=True)
        self._seat = BrowserSeat(self, now, video=not codec and self._layer is None)
        self._sit()

    def _sit(self) -> None:
        """Take what is published, now that the browser is there."""
        if self._seat is not None:
            self._seat.begin()
            self._shares = self._transcodes and self._takes_any_opus()
            if self._shares:
                self._seat.player.limit_by(self.owner.join_opus(self.live))

    def _make(self, codec: str, now: float, *, is_new: bool) -> None:
        if codec:
            self._made = self.owner.made_video(self.live, codec)
            self._made.join(self, now, is_new=is_new)

    def _leave_made(self) -> None:
        if self._made is not None:
            self._made.leave(self)
            self._made = None

    def _takes_any_opus(self) -> bool:
        """Whether its parameters leave all open; else its session makes Opus for it alone."""
        plan = self.session.terms.plan
        ways = plan.audio.sending if plan is not None else ()
        return any(
            codec is OPUS and plan is not None and suits(plan.audio.parameters(number))
            for codec, number in ways
        )

    def _leave(self, now: float) -> None:
        self._leave_made()
        self._leave_layers()
        if self._seat is not None:
            self._seat.player.leave(now)
        if self._shares:
            self.owner.leave_opus(self.live)

    def on_key_frame_wanted(self) -> None:
        """Have one made, or ask the source of the stream: a browser, a phone or a room."""
        if self._made is not None:
            self._made.want_key_frame()
        elif self.live.publishing and self.live.ask_key_frame is not None:
            self.live.ask_key_frame(self.clock())

    # -- layers -------------------------------------------------------------------------

    @property
    def has_layers(self) -> bool:
        """Whether it may choose one, which needs a line of video."""
        return bool(self._video_names())

    @property
    def layer(self) -> str:
        """The name of the layer that it has chosen."""
        chosen = self._next or self._layer
        return str(DEFAULT) if chosen is None else chosen.name

    def layers(self, now: float) -> list[VideoLayer]:
        """The layers that this browser can be shown, the default one if there is no other."""
        names = self._video_names()
        if not names or not self.live.publishing:
            return []
        found = self.owner.layers(self.live, now).all()
        return [each for each in found if not each.fault(names) or each.track == DEFAULT]

    def choose_layer(self, name: str, now: float) -> None:
        """Show a layer from its next key frame on, of the first one from the kept frames on.

        Without a name it is the default one.  Raises RemoteError(488) for one that there is not, or
        that this browser cannot be shown.
        """
        name = name or str(DEFAULT)
        layers = self.owner.layers(self.live, now) if self.live.publishing else None
        layer = None if layers is None else layers.find(name)
        if layer is None:
            known = " and ".join(each.name for each in self.layers(now))
            raise RemoteError(f"No such layer: the stream has {known or 'none'}", 488)
        if layer.track == DEFAULT and (self._layer is None or self._codec_to_make(now)):
            self._choose_default(now)
            return
        if fault := layer.fault(self._video_names()):
            raise RemoteError(fault, 488)
        self._leave_next()
        if layer is not self._layer:
            self._next = layer
            if self._seat is not None:
                layer.join(self, is_new=False)

    def _choose_default(self, now: float) -> None:
        """Have the stream's video, or what is made of it, which a viewer that has it keeps."""
        self._leave_next()
        if self._layer is not None:
            self._leave_layer()
            self.choose(now)

    def _leave_layer(self) -> None:
        """Go over from a layer to the stream's video."""
        self._leave_layers()
        self.published.gop.clear()
        if self._seat is not None:
            self._seat.player.select(video=True)

    def _leave_next(self) -> None:
        if self._next is not None:
            self._next.leave(self)
            self._next = None

    def _leave_layers(self) -> None:
        self._leave_next()
        if self._layer is not None:
            self._layer.leave(self)
            self._layer = None

    def _video_names(self) -> list[str]:
        """The codecs of video agreed on."""
        plan = self.session.terms.plan
        return plan.video.names if plan is not None and plan.video is not None else []

    # -- LayerViewer --------------------------------------------------------------------

    def enter_layer(self, layer: VideoLayer) -> None:
        if layer is not self._next or self._seat is None:
            return
        self._leave_made()
        if self._layer is not None:
            self._layer.leave(self)
        self._seat.player.select(video=False)
        self._layer, self._next = layer, None

    def layer_changed(self, layer: VideoLayer, now: float) -> None:
        if not layer.fault(self._video_names()):
            return
        if layer is self._next:
            self._leave_next()
        elif layer is self._layer:
            self._leave_layer()
            if not layer.has_ended:  # else it is asked again when the next publication begins
                self.choose(now)

    # -- VideoViewer --------------------------------------------------------------------

    def keep_video(self, timestamp: int, payload: bytes) -> None:
        self.published.put(VIDEO, timestamp, payload)

    def show_video(self, timestamp: int, payload: bytes, at: float) -> None:
        self.session.publish(VIDEO, timestamp, payload, at)


class BrowserSeat:
    """The place of a viewer in the audience: an outlet of the stream, and its end.

    A late viewer begins with the frames since the last key frame, if the stream keeps them;
    without `video` it gets none from here.
    """

    output_size = 0  # UDP takes all, or loses it

    def __init__(
        self, peer: BrowserViewer, now: float, viewer: Viewer | None = None, *, video: bool = True
    ) -> None:
        self._peer, self._give = peer, self._keep if video else self._keep_audio
        self.player: LivePlayer = peer.live.join(self, packed, viewer or self, now)
        self.player.select(video=video)

    def begin(self) -> None:
        """Show the browser what comes from now on, after what is kept."""
        self._give = self._send

    def put(self, data: bytes) -> None:
        """Take messages as `packed` writes them."""
        for message in unpacked(data):
            self._give(*message)

    def _keep(self, type_id: int, timestamp: int, payload: bytes) -> None:
        """Take what was published before: of that nothing is heard, and all is seen at once."""
        self._peer.published.put(type_id, timestamp, payload)

    def _keep_audio(self, type_id: int, timestamp: int, payload: bytes) -> None:
        if type_id != VIDEO:
            self._keep(type_id, timestamp, payload)

    def _send(self, type_id: int, timestamp: int, payload: bytes) -> None:
        self._peer.session.publish(type_id, timestamp, payload, self._peer.clock())

    def abort(self, reason: str, now: float) -> None:
        """End, as the stream has no room for a viewer that is behind."""
        self._peer.end(reason, now)

    def published(self, now: float) -> None:
        """Have the publication watched that has replaced another."""
        self._peer.choose(now)

    def unpublished(self, now: float) -> None:
        """End with the publication."""
        self._peer.end("the stream has ended", now)
