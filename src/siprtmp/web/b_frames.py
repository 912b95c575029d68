"""Watches the video of live streams for B-frames and for codecs that a browser lacks.

Own design: WebRTC sends no time of decoding, so a browser shows frames of H.264 or H.265 in the
order in which they come, and the video stutters although nothing is lost.  And a publisher may
change its codec under browsers that have answered for another one.
"""

from typing import Final, Protocol

from rtmplite.flv.video import is_key_frame, is_sequence_header
from rtmplite.live.streams import LiveStream
from siprtmp.media.sink import VIDEO
from siprtmp.media.translate.video_tag import codec_of, is_of_default
from siprtmp.media.video.b_frame_finder import BFrameFinder

START_WITH: Final = "start the gateway with --transcode-video"
CURE: Final = f'publish without them: -bf 0 of x264, or tune "zerolatency" in OBS; or {START_WITH}'
B_FRAMES: Final = f"The stream has B-frames, which browsers cannot show; {CURE}"


class VideoWatcher(Protocol):
    """Is told what the video of a stream is."""

    def found_b_frames(self, live: LiveStream, now: float) -> None:
        """B-frames are known, the first time for this publication."""

    def codec_changed(self, live: LiveStream, now: float) -> None:
        """The codec is known, or another one."""

    def unwatch(self, live: LiveStream) -> None:
        """The publication has ended."""


class VideoWatch:
    """Watches one publication of a stream; a tap of a `LiveStream`.

    `codec` is its name in the client's API, "" for one that browsers have not got by RTP from here,
    and None before it is known.
    """

    def __init__(self, live: LiveStream, watcher: VideoWatcher) -> None:
        self._live, self._watcher = live, watcher
        self._finder = BFrameFinder()
        self.codec: str | None = None

    def begin(self, now: float) -> None:
        """Watch from the kept frames on."""
        live = self._live
        live.tap(self)
        for type_id, body in live.opening():
            self.write(type_id, 0, body, now)
        for message in live.kept:
            self.write(*message, now)

    @property
    def found(self) -> bool:
        """Whether the publication has B-frames, as far as is known."""
        return self._finder.found

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take a published message."""
        if type_id != VIDEO or not is_of_default(payload):
            return
        if is_sequence_header(payload) or is_key_frame(payload):
            codec, self.codec = self.codec, codec_of(payload)
            if self.codec != codec:
                self._watcher.codec_changed(self._live, now)
        if not self._finder.found:
            self._finder.put(timestamp, payload)
            if self._finder.found:
                self._watcher.found_b_frames(self._live, now)

    def end(self, now: float) -> None:
        """The publication has ended."""
        self._watcher.unwatch(self._live)
