"""The translations of video that decode and encode, as streams and mixes ask for them."""

from siprtmp.media.transcode.side_by_side import SideBySide
from siprtmp.media.transcode.video_transcoder import VideoTranscoder
from siprtmp.media.translate.codec_limits import CodecLimits
from siprtmp.media.translate.conversion import Run


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
