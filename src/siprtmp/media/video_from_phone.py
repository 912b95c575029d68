"""The way of a phone's frames to the players: whole ones, each as one tag at its own time.

Implements RFC 6184 §5, RFC 7798 §6 and RFC 7741 §4.5.1 by way of `video_to_flv`, RFC 3550 §6.4.1
for the time beside the audio, and RFC 5168 §4 for phones that take no RTCP feedback.

Own design: H.264, which every player has, passes.  Another codec passes to players that have said
that they take it; for others it is made into H.264, or left out where nothing may be made.
"""

from collections.abc import Callable
from typing import Final

from p2psip.rtp.payload.h264_access_units import AccessUnit
from p2psip.rtp.video_receiver import VideoPacket, VideoReceiver
from siprtmp.media.offload import Flow, Gathering
from siprtmp.media.sink import VIDEO, MediaSink
from siprtmp.media.stream import StreamContext
from siprtmp.media.timeline import UsualArrival
from siprtmp.media.transcode.video_transcoder import VideoTranscoders
from siprtmp.media.translate.codec_limits import CodecLimits
from siprtmp.media.translate.conversion import Tag
from siprtmp.media.translate.timebase import RTP_WRAP, wrapped_difference
from siprtmp.media.translate.video_tag import H264, H265
from siprtmp.media.translate.video_to_flv import H264ToFlv, H265ToFlv, Vp8ToFlv
from siprtmp.media.video.video_worker import VideoWorker
from siprtmp.media.video_lines import CLOCK_RATE, VideoPlan

ASK_SECONDS: Final = 0.5  # between two requests for a key frame by SIP: the frame gets lost too
MAX_WAIT: Final = 5 * CLOCK_RATE  # ticks that the end of a frame may be late
BY_RTCP: Final = frozenset({"nack pli", "ccm fir"})  # ways to ask for a key frame


class VideoFromPhone:
    """Makes tags of the packets of one phone; `ask_at` is when to ask for a key frame by SIP."""

    def __init__(
        self, plan: VideoPlan, receiver: VideoReceiver, context: StreamContext, sink: MediaSink
    ) -> None:
        assert context.shared is not None
        self.plan, self._receiver, self.sink = plan, receiver, sink
        self._timeline, self._listener = context.shared.timeline, context.listener
        self._transcoding = context.settings.video_transcoding
        self._to_flv = depacketizer_for(plan, plan.name)
        self._arrivals = UsualArrival(CLOCK_RATE)
        self._work: VideoWorker | None = None  # from the first frame that cannot pass
        self._told: tuple[tuple[int, int] | None, str] = None, plan.name  # size and codec
        self.ask_at: float | None = None
        self.received = 0

    @property
    def freezes(self) -> int:
        """How often a lost frame of the phone has stopped the others.  RFC 6184 §6.3."""
        return self._to_flv.freezes

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height of the phone's frames, once they are known: RFC 6184 §8.1."""
        return self._to_flv.size

    @property
    def codec(self) -> str:
        """The codec of the tags: FLV 10.1 §E.5."""
        name = self._to_flv.name
        is_made = self._transcoding is not None and not self.sink.takes(name)
        return H264 if is_made else name

    @property
    def transcodes(self) -> str:
        """What is decoded and encoded, as "vp8 9x9 > h264 9x9"; "" for frames that pass."""
        return self._work.transcodes if self._work is not None else ""

    def restart(self) -> None:
        """Begin anew with a new SSRC: RFC 3550 §5.1."""
        self._to_flv.restart()
        self._arrivals = UsualArrival(CLOCK_RATE)

    def close(self) -> None:
        """Give nothing more, also nothing that is being made."""
        if self._work is not None:
            self._work.close()

    def take(self, packet: VideoPacket, now: float) -> None:
        """Take the packet whose turn it is: RFC 6184 §5.1."""
        name = self.plan.arriving.get(packet.payload_type)
        # RFC 3264 §6.1; RFC 3550 §5.1: what was never agreed is ignored
        if name is None:
            return
        self.received += 1
        if self._to_flv.name != name:
            self._to_flv = depacketizer_for(self.plan, name)
        sequence, _, newest, marker, payload = packet
        for is_key, tags in self._to_flv.take(
            sequence, newest, marker, payload, lambda at: self._moments(at, newest, now)
        ):
            self._pass(tags, is_key, now)

    def take_whole(self, timestamp: int, units: tuple[bytes, ...], now: float) -> None:
        """Take an access unit that a pump has put together, and `count` its packets later."""
        frame = AccessUnit(units, timestamp, damaged=False)
        assert isinstance(self._to_flv, H264ToFlv)
        tags = self._to_flv.convert(frame, *self._moments(timestamp, timestamp, now))
        self._pass(tags, frame.is_key, now)

    def lend(self, gathering: Gathering, gather: Callable[..., Flow | None], number: int) -> None:
        """Have a pump gather the packets of payload type `number`, if it can."""
        if self.plan.arriving.get(number) == H264 and self._to_flv.name == H264:
            gathering.begin(gather, self._receiver, self._to_flv, number)

    def _moments(self, timestamp: int, newest: int, now: float) -> tuple[int, float | None]:
        """RTMP times (ms) of a frame: by its arrival, and when it is shown.

        That is as reports say, else as its like usually come, None where no frame tells.

        It came before the packet of time `newest`, which has completed it at `now`.
        """
        behind = wrapped_difference(newest, timestamp, RTP_WRAP)
        came = now - min(max(0, behind), MAX_WAIT) / CLOCK_RATE
        # RFC 3550 §6.4.1 [sound-and-picture-together]
        moment = self._receiver.time_of(timestamp)
        shown = self._timeline.at(moment, came) if moment is not None else None
        arrival = int(self._timeline.arrival(came))
        usual = self._arrivals.of(timestamp, arrival)
        return arrival, usual if shown is None else shown

    def _pass(self, tags: list[Tag], is_key: bool, now: float) -> None:
        """Give the tags of a frame to the players, or ask for a key frame if it is damaged."""
        to_flv, name = self._to_flv, self._to_flv.name
        passes = name == H264 or self.sink.takes(name)
        if tags and (to_flv.size, name) != self._told:
            self._told = to_flv.size, name
            self.sink.on_format(now)
        for time, tag in tags:
            if passes:
                self.sink.on_tag(VIDEO, time, tag, now)
            elif self._transcoding is not None:
                self._make(self._transcoding, time, tag, now)
        if to_flv.wants_key_frame:
            self._damaged(now)
        elif is_key:
            self.ask_at = None
            self._receiver.refreshed()

    def _make(self, transcoding: VideoTranscoders, time: int, tag: bytes, now: float) -> None:
        """Make a tag of another codec into H.264."""
        if self._work is None:
            self._work = VideoWorker(
                transcoding.transcoder(H264, CodecLimits(), 0),
                transcoding.run,
                self._damaged,
                give=lambda time, body, at, now: self.sink.on_tag(VIDEO, time, body, now),
                changed=self._on_changed,
            )
        self._work.put(time, tag, now)

    def _on_changed(self) -> None:
        if self.transcodes:
            self._listener.on_transcoding(self.transcodes, "players take H.264")

    def ask_key_frame(self, now: float) -> bool:
        """Ask the phone for a key frame, for a player; False if nobody is: RFC 5104 §3.5.1."""
        if not self.received:
            return False
        if self._work is not None:
            self._work.want_key_frame()
            return False
        if self._asks_by_rtcp:
            self._receiver.join(now)
        elif self.ask_at is None:
            self.ask_at = now
        return True

    def _damaged(self, now: float) -> None:
        """Ask for a key frame until one has come, by the way that the phone takes."""
        if self._asks_by_rtcp:
            self._receiver.damaged(now)
        elif self.ask_at is None:
            self.ask_at = now

    @property
    def _asks_by_rtcp(self) -> bool:
        # RFC 5168 §3 [feedback-first]
        return not BY_RTCP.isdisjoint(self.plan.media.feedback)

    def tick(self, now: float) -> None:
        """Deliver what has waited enough, and ask by SIP when that is due: RFC 5168 §4."""
        for packet in self._receiver.tick(now):
            self.take(packet, now)
        if self.ask_at is not None and self.ask_at <= now:
            self.ask_at = now + ASK_SECONDS
            self._listener.on_key_frame_needed(now)  # RFC 5168 §4


def depacketizer_for(plan: VideoPlan, name: str) -> H264ToFlv | Vp8ToFlv:
    """What makes tags of a phone's packets of a codec: RFC 3264 §6.1."""
    if name == H264:
        return H264ToFlv(plan.parameter_sets)
    if name == H265:
        agreed = plan.other(H265)
        return H265ToFlv(agreed.parameter_sets if agreed else ())
    return Vp8ToFlv()
