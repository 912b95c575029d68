"""The video of a mixed call: that of the phone, or of both sides beside each other.

Own design: the phone's video passes as it is while it is alone, or where the gateway may
not decode any.  From the moment that both sides have video they are shown together to the end,
the publisher's on the left.  Each keeps the time of its audio, by the clock of the mix.
"""

from collections.abc import Callable
from typing import Final

from rtmplite.flv.video import is_key_frame, is_sequence_header
from rtmplite.live.streams import LiveStream
from siprtmp.calls.call import MediaEdge
from siprtmp.media.mixer import Mixer, Seat
from siprtmp.media.session import MediaSession
from siprtmp.media.sink import VIDEO
from siprtmp.media.translate.conversion import SIDE_BY_SIDE
from siprtmp.media.translate.video_tag import H264
from siprtmp.media.video.gop_cache import GopCache
from siprtmp.media.video.video_worker import VideoWorker

JUMP: Final = 200.0  # ms by which a side's time may be off before it is taken for another one
STEADY: Final = 16  # messages over which that is smoothed
PUBLISHER, PHONE = 0, 1


class Lead:
    """Converts times of one side to times of the mix, when its audio is heard.

    Own design: measured by the arrival of its messages, and smoothed, since networks are uneven.
    """

    def __init__(self, mixer: Mixer, seat: Seat) -> None:
        self._mixer, self._seat = mixer, seat
        self._ahead: float | None = None  # ms

    def note(self, timestamp: int, now: float) -> None:
        """Measure again, by a message with this time (ms) that has arrived."""
        ahead = self._at(now) - timestamp
        if self._ahead is None or abs(ahead - self._ahead) > JUMP:
            self._ahead = ahead
        self._ahead += (ahead - self._ahead) / STEADY

    def time(self, timestamp: int, now: float) -> int:
        """Convert the time of a message to that of the mix, both in ms."""
        at = self._at(now) if self._ahead is None else timestamp + self._ahead
        return max(0, round(at))

    def _at(self, now: float) -> float:
        return self._mixer.clock(now) + 1000 * self._seat.delay


class MixedVideo:
    """Publishes the video of one call to `live`: FLV 10.1 §E.4.3.1.

    `publisher` and `phone` are the leads of both sides.  `described` (now) is called
    when the metadata are others.
    """

    def __init__(
        self,
        session: MediaSession,
        live: LiveStream,
        media: MediaEdge,
        publisher: Lead,
        phone: Lead,
        described: Callable[[float], None],
    ) -> None:
        self._session, self._live, self._transcoding = session, live, media.video_transcoding
        self._publisher, self._phone, self._described = publisher, phone, described
        self._groups = GopCache(), GopCache()  # of the publisher and the phone
        self._work: VideoWorker | None = None  # once both have video
        self._waits, self._passed = True, -1  # for a key frame; the time of the last frame, ms
        self._header = b""  # of the phone's video, until the next of them

    @property
    def facts(self) -> tuple[str, tuple[int, int] | None]:
        """The codec of the video, if there is any, and its size if known: FLV 10.1 §E.5."""
        return self._session.video_format if self._work is None else (H264, SIDE_BY_SIDE)

    def close(self) -> None:
        self._transcoding = None
        for group in self._groups:
            group.clear()
        if self._work is not None:
            self._work.close()

    def watched(self, live: LiveStream, now: float) -> None:
        if live.players and live.starts_at is None:
            if self._work is None:
                self._session.request_key_frame(now)
            else:
                self._work.want_key_frame()

    def show(self, timestamp: int, payload: bytes, now: float) -> None:
        """Take what the phone shows, and pass it on while it is alone: FLV 10.1 §E.4.3.1."""
        at = self._phone.time(timestamp, now)
        if self._is_shown_beside(PHONE, at, payload, now):
            return
        if is_sequence_header(payload):  # with the frame that needs it, and never without
            self._header = payload
            return
        self._waits = self._waits and not is_key_frame(payload)
        if self._waits:
            return
        self._passed = at
        header, self._header = self._header, b""
        if header:
            self._live.write(VIDEO, at, header, now)
        self._live.write(VIDEO, at, payload, now)

    def publish(self, timestamp: int, payload: bytes, now: float) -> None:
        """Take what the publisher shows, if both can be shown: FLV 10.1 §E.4.3.1."""
        if self._transcoding is None:
            return
        self._publisher.note(timestamp, now)
        self._is_shown_beside(PUBLISHER, self._publisher.time(timestamp, now), payload, now)

    def _is_shown_beside(self, side: int, at: int, payload: bytes, now: float) -> bool:
        transcoding = self._transcoding
        if transcoding is None:
            return False
        if self._work is not None:
            self._work.put(at, payload, now, side)
            return True
        self._groups[side].put(at, payload)
        if not all(group.has_frames for group in self._groups):
            return False
        self._work = VideoWorker(
            transcoding.side_by_side(self._passed),
            transcoding.run,
            lambda now: self._session.sink.on_key_frame_wanted(),
            self._ask_phone,
            give=lambda time, body, at, now: self._live.write(VIDEO, time, body, now),
            changed=self._on_changed,
        )
        for each, group in enumerate(self._groups):
            for time, body in group:
                self._work.put(time, body, now, each)
            group.clear()
        self._described(now)
        return True

    def _ask_phone(self, now: float) -> None:
        self._session.request_key_frame(now)

    def _on_changed(self) -> None:
        if self._work is not None and self._work.transcodes:
            self._session.on_transcoding(self._work.transcodes, "both sides in one picture")
