"""Both sides of a call as one stream, for players, recordings and other servers.

The application `mixed` plays it to those who may play the call; only the gateway publishes there.

Own design: what the phone sends is taken from the stream that its players have, what is sent to it
from its session, packet by packet; so a side on hold is silent, and a file that is published faster
than it is heard is mixed at its pace.  Both are mixed by one clock as in a room, in wideband if the
call's codec has that, and encoded once.  Their video is in `mixed_video`.
"""

from collections.abc import Callable
from typing import Final

from p2psip.errors import LocalError
from rtmplite.live.streams import LiveStream, Registry
from rtmplite.rtmp.application import OpenApplication
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream
from siprtmp.calls.access.name_rights import HELD, say_refused
from siprtmp.calls.call import Call, MediaEdge
from siprtmp.calls.codec_names import EXTRA
from siprtmp.calls.home import NOT_FOUND, PLAY_FAILED, CallHome, may_play
from siprtmp.calls.metadata import DATA, on_metadata
from siprtmp.calls.mixed.mixed_video import Lead, MixedVideo
from siprtmp.calls.named_call import MIXED
from siprtmp.calls.stream_user import StreamUser
from siprtmp.media.mixer import MixedAudio, Mixer
from siprtmp.media.session import MediaSession, Taps
from siprtmp.media.sink import AUDIO, VIDEO
from siprtmp.media.transcode import audio_decoder
from siprtmp.media.transcode.to_flv import AAC_FORMAT, AacTags
from siprtmp.media.transcode.to_samples import PayloadsToSamples, ToSamples
from siprtmp.media.translate.audio_formats import AudioCodec
from siprtmp.media.translate.conversion import UnsuitableError

APP: Final = MIXED
NARROW: Final = 8_000  # samples a second, of G.711
WIDE: Final = 16_000


class MixedApplication(OpenApplication):
    """Plays the mixes of calls, now or when they come."""

    def __init__(self, home: CallHome) -> None:
        self._home = home

    def on_play(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Hear both sides of a call; playing never dials.  RTMP 1.0 §7.2.2.1."""
        if not stream.path:
            stream.reject_play(NOT_FOUND, "A call needs a name.", now)
        elif may_play(self._home, connection, stream, now):
            if reason := self._refusal(stream, now):
                say_refused(self._home.context.log, stream.client, "play", stream.path, reason)
                stream.reject_play(PLAY_FAILED, f"{stream.path}: {reason}.", now)
            else:
                stream.accept_play(connection.registry.open(APP, stream.path), now)

    def _refusal(self, stream: ServerStream, now: float) -> str:
        """Why a client may not hear a call, which belongs to the holder of its name."""
        rights, name = self._home.rights, stream.path
        holder = rights.holder(stream.client, stream.query, now)
        held = self._home.holder_of(name)
        if held is not None and held.isdisjoint(holder):
            return HELD
        return rights.of_stream(name, holder)


class MixedCalls:
    """The mixes of all calls that are mixed, each under the name of its call's stream.

    `on_change(call, stream, is_over)` is called when a mix has begun or ended.
    """

    def __init__(self, media: MediaEdge, registry: Registry) -> None:
        self._media, self._registry = media, registry
        self._mixes: dict[Call, MixedCall] = {}
        self.on_change: Callable[[Call, str, bool], object] = lambda call, stream, is_over: None
        registry.on_begin.append(self._begun)

    def __len__(self) -> int:
        return len(self._mixes)

    @property
    def running(self) -> list[Call]:
        """The calls that are mixed."""
        return [*self._mixes]

    def follow(self, call: Call, now: float) -> None:
        """Mix a call from its answer on, if a client of `call` or `sip` has it."""
        if isinstance(call.user, StreamUser):
            try:
                self.start(call, now)
            except LocalError as error:
                call.log.event("mix-refused", reason=str(error))

    def start(self, call: Call, now: float) -> str:
        """Begin to mix a call that is up, unless it is mixed already; the name of the stream.

        A tunnel to another gateway is not mixed, since its audio is never decoded.  Raises
        LocalError with the reason.
        """
        if call in self._mixes:
            return self._mixes[call].name
        user, missing = call.user, not audio_decoder.is_available()
        if call.up_at is None or missing:
            raise LocalError(f"it needs the extra {EXTRA}" if missing else "it is not answered")
        plan = call.plan
        if not isinstance(user, StreamUser) or plan is None or plan.x_flv is not None:
            raise LocalError("it has no audio stream")
        live = self._registry.open(APP, user.remote.name)
        if live.publishing:
            raise LocalError(f"{APP}/{live.name} is published already")
        rate = WIDE if plan.audio.codec.sample_rate > NARROW else NARROW
        mix = MixedCall(call.media, rate, user.remote, live, self._media, now)
        self._mixes[call] = mix
        call.log.event("mix-start", name=live.name)
        mix.begin(now)
        self.on_change(call, mix.name, False)
        return mix.name

    def stop(self, call: Call, now: float) -> str | None:
        """End the mix of a call; the name of its stream, None if there is none."""
        mix = self._mixes.pop(call, None)
        if mix is None:
            return None
        mix.close(now)
        self.on_change(call, mix.name, True)
        return mix.name

    def _begun(self, live: LiveStream, now: float) -> None:
        """Take the phone's audio from its beginning."""
        for mix in self._mixes.values():
            if mix.remote is live:
                live.tap(mix)


class MixedCall:
    """The mix of one call, from `begin` to `close`; a sink of the phone's stream."""

    def __init__(
        self,
        session: MediaSession,
        rate: int,
        remote: LiveStream,
        live: LiveStream,
        media: MediaEdge,
        now: float,
    ) -> None:
        self._session, self.remote, self._live = session, remote, live
        self.name = f"{APP}/{live.name}"
        self._rate, self._mixer, self._aac = rate, Mixer(rate), AacTags()
        self._from_phone, self._to_phone = ToSamples(rate), PayloadsToSamples(rate)
        self._phone, self._publisher = self._mixer.sit(None, now), self._mixer.sit(None, now)
        self._mixer.sit(self._on_mixed, now)
        self._waker = media.waker(self._mixer)
        self._lead, lead = Lead(self._mixer, self._phone), Lead(self._mixer, self._publisher)
        self._video = MixedVideo(session, live, media, lead, self._lead, self._describe)
        self._described, self._closed = b"", False

    def begin(self, now: float) -> None:
        live = self._live
        live.on_players_changed = self._video.watched
        live.begin(now)
        self._describe(now)
        self._waker.set()
        self._session.tap(Taps(self._on_sent, self._video.publish), now)
        if self.remote.publishing:
            self.remote.tap(self)
            for type_id, payload in self.remote.opening():
                self.write(type_id, self.remote.timestamp, payload, now)
            self._session.request_key_frame(now)

    def close(self, now: float) -> None:
        """End the stream, and let the codecs go: RTMP 1.0 §7.2.2.3."""
        self._closed = True
        self._waker.cancel()
        self._video.close()
        self._aac, self._from_phone = AacTags(), ToSamples(self._rate)
        self._to_phone = PayloadsToSamples(self._rate)
        for seat in list(self._mixer.seats):
            seat.leave()
        self._live.on_players_changed = None
        self._live.end(now)

    # -- the phone's side: a `Sink` -----------------------------------------------------

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        if self._closed:
            return
        if type_id == AUDIO:
            self._on_heard(timestamp, payload, now)
        elif type_id == VIDEO and payload:
            self._video.show(timestamp, payload, now)
        elif type_id == DATA:
            self._describe(now)

    def end(self, now: float) -> None:
        """Go on in silence, since the phone's stream may begin again."""

    def _on_heard(self, timestamp: int, payload: bytes, now: float) -> None:
        try:
            samples = self._from_phone.decode(payload)
        except UnsuitableError:
            return
        if samples:
            self._lead.note(timestamp, now)
            self._phone.put(samples)

    def _describe(self, now: float) -> None:
        """Write the metadata, unless nothing is new: FLV 10.1 §E.5."""
        metadata = on_metadata(AAC_FORMAT, *self._video.facts)
        if metadata != self._described:
            self._described = metadata
            self._live.write(DATA, 0, metadata, now)

    # -- the other side, and both -------------------------------------------------------

    def _on_sent(self, codec: AudioCodec, payload: bytes) -> None:
        """Take what is sent to the phone: RFC 3551 §4.5."""
        if self._closed:
            return
        try:
            self._publisher.put(self._to_phone.decode(codec, payload))
        except UnsuitableError:
            return

    def _on_mixed(self, audio: MixedAudio, at: int, now: float) -> None:
        for time, tag in self._aac.encode(audio.samples, self._rate, at):
            self._live.write(AUDIO, time, tag, now)
