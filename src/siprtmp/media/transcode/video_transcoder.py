"""From any video tags to those that one end takes: another codec, a smaller size, fewer frames.

Implements FLV 10.1 §E.4.3.1 between a decoder and an encoder.

Own design: each frame keeps the time at which it is shown, so that it stays with its audio.  All
frames are decoded, since later ones depend on them; of those that are too many, or late, none is
encoded.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from siprtmp.media.transcode.side_by_side import SideBySide
from siprtmp.media.transcode.video_decoder import VideoDecoder
from siprtmp.media.transcode.video_encoder import FrameRateLimiter, VideoEncoder
from siprtmp.media.translate.codec_limits import MOST, CodecLimits
from siprtmp.media.translate.conversion import QueuedTag, Run, Transcoded, UnsuitableError
from siprtmp.media.translate.timebase import RTMP_WRAP, wrapped_difference

if TYPE_CHECKING:
    from av.video.frame import VideoFrame


class VideoTranscoder:
    """Makes the frames of one end into those of another, of `codec`, "h264" or "vp8"."""

    def __init__(self, codec: str, limits: CodecLimits, slice_octets: int = 0) -> None:
        from av.video.reformatter import VideoReformatter

        self._codec, self._limits, self._slice_octets = codec, limits, slice_octets
        self._decoder = VideoDecoder()
        self._encoder: VideoEncoder | None = None
        self._reformatter = VideoReformatter()
        self._source = ""  # codec and size
        self._pace = FrameRateLimiter(limits.rate or MOST)
        self._time: int | None = None  # ms, unbounded

    def convert(self, sources: Sequence[QueuedTag], late: int, wants_key: bool) -> Transcoded:
        """The tags made of these: see `VideoConverter`."""
        out: list[tuple[int, bytes]] = []
        error = ""
        for at, source in enumerate(sources):
            try:
                for frame in self._decoder.decode(source.body, self._unwrapped(source.time)):
                    if at < late or frame.pts is None or not self._pace.has_room(frame.pts):
                        continue
                    made = self._encode(frame, wants_key)
                    wants_key = wants_key and not made
                    out += [(time % RTMP_WRAP, body) for time, body in made]
            except UnsuitableError as broken:
                error = str(broken)
                self._source = ""  # the next frame is a key frame
        return Transcoded(out, self._transcodes, error)

    @property
    def _transcodes(self) -> str:
        if self._encoder is None:
            return ""
        width, height = self._encoder.size
        return f"{self._source or self._decoder.codec} > {self._codec} {width}x{height}"

    def _unwrapped(self, time: int) -> int:
        if self._time is None:
            self._time = time
        self._time += wrapped_difference(time, self._time, RTMP_WRAP)
        return self._time

    def _encode(self, frame: "VideoFrame", wants_key: bool) -> list[tuple[int, bytes]]:
        import av

        source = f"{self._decoder.codec} {frame.width}x{frame.height}"
        try:
            if self._encoder is None or source != self._source:
                self._begin(frame.width, frame.height)
                self._source, wants_key = source, True
            assert self._encoder is not None
            width, height = self._encoder.size
            pts = frame.pts
            scaled = self._reformatter.reformat(frame, width, height, "yuv420p", threads=1)
            scaled.pts = pts
            return self._encoder.encode(scaled, wants_key)
        except (av.FFmpegError, ValueError) as error:
            raise UnsuitableError(f"cannot make {self._codec}: {error}") from None

    def _begin(self, width: int, height: int) -> None:
        limits = self._limits
        width, height, rate = limits.fitted(width, height)
        bits = limits.bits_for(width, height, rate)
        self._pace.rate = rate
        self._encoder = VideoEncoder(
            self._codec, (width, height), rate, bits, limits.level, self._slice_octets
        )


class VideoTranscoders:
    """Makes translations, within the `limits` of the operator, for work in threads by `run`.

    Of the limits 0 is none; `rate` is in frames a second.
    """

    def __init__(
        self,
        run: Run,
        *,
        width: int = 0,
        height: int = 0,
        rate: int = 0,
        kilobits: int = 0,
        baseline: bool = False,
    ) -> None:
        self.run = run
        self.limits = CodecLimits(width, height, rate, 1000 * kilobits, baseline)

    def transcoder(self, codec: str, limits: CodecLimits, slice_octets: int = 0) -> VideoTranscoder:
        """A translation into "h264" or "vp8", whose slices have at most so many octets."""
        return VideoTranscoder(codec, limits, slice_octets)

    def side_by_side(self, after: int) -> SideBySide:
        """One frame of two sources for times beyond `after` (ms), as many as the operator wants."""
        return SideBySide(self.limits.rate, after)
