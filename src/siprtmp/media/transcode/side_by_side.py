"""The frames of two sources as one of H.264, side by side.

Own design: the size is fixed, so that it never changes under a player.  Each frame keeps its
shape, as large as its half takes it, with black around it; a source without video is black,
and one that stops keeps its last frame.  The source with more frames sets the pace: each of
its frames is shown beside the last one of the other.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from siprtmp.media.transcode.video_decoder import VideoDecoder
from siprtmp.media.transcode.video_encoder import H264, FrameRateLimiter, VideoEncoder
from siprtmp.media.translate.codec_limits import MOST, CodecLimits
from siprtmp.media.translate.conversion import SIDE_BY_SIDE, QueuedTag, Transcoded, UnsuitableError

if TYPE_CHECKING:
    from av.video.frame import VideoFrame

WIDTH, HEIGHT = SIDE_BY_SIDE
HALF: Final = WIDTH // 2
BLACK: Final = (16, 128, 128)  # of each plane
PLANES: Final = ((0, 1), (1, 2), (2, 2))  # and by what its sides are divided
OVERTAKES: Final = 2  # frames without one of the other source, after which it sets the pace


class SideBySide:
    """Makes tags of the frames of two sources; it is used by one thread at a time.

    The times of both are those of one clock, and nothing is made for those up to `after` (ms).
    `rate` is the most frames a second, 0 for any.
    """

    def __init__(self, rate: float = 0.0, after: int = -1) -> None:
        from av.video.frame import VideoFrame

        self._pace, self._leader, self._others = FrameRateLimiter(rate or MOST), 0, 0
        self._encoder: VideoEncoder | None = None
        self._canvas = VideoFrame(WIDTH, HEIGHT, "yuv420p")
        self._sides = [_Side(self._canvas, at) for at in (0, HALF)]
        self._last = after

    def convert(self, sources: Sequence[QueuedTag], late: int, wants_key: bool) -> Transcoded:
        """The tags made of these: see `VideoConverter`."""
        out: list[tuple[int, bytes]] = []
        error = ""
        for at, source in enumerate(sources):
            try:
                for frame in self._sides[source.source].decode(source):
                    if self._leads(source.source) and at >= late and self._is_due(frame.pts):
                        out += self._encode(frame.pts or 0, wants_key)
                        wants_key = False
            except UnsuitableError as broken:
                error = str(broken)
        left, right = (side.transcodes for side in self._sides)
        transcodes = f"{left} + {right} > {H264} {WIDTH}x{HEIGHT}" if left and right else ""
        return Transcoded(out, transcodes, error)

    def _leads(self, source: int) -> bool:
        """Whether a frame of this source is made, or only shown beside one that is."""
        self._others = 0 if source == self._leader else self._others + 1
        if self._others >= OVERTAKES:
            self._leader, self._others = source, 0
        return source == self._leader

    def _is_due(self, time: int | None) -> bool:
        return time is not None and time > self._last and self._pace.has_room(time)

    def _encode(self, time: int, is_key: bool) -> list[tuple[int, bytes]]:
        import av

        try:
            if self._encoder is None:
                bits = CodecLimits().bits_for(WIDTH, HEIGHT, self._pace.rate)
                self._encoder = VideoEncoder(H264, SIDE_BY_SIDE, self._pace.rate, bits)
            for side in self._sides:
                side.draw()
            self._canvas.pts = self._last = time
            return self._encoder.encode(self._canvas, is_key)
        except (av.FFmpegError, ValueError) as error:
            raise UnsuitableError(f"cannot make {H264}: {error}") from None


class _Side:
    """One half of the frame, which begins `at` pixels from the left."""

    def __init__(self, canvas: "VideoFrame", at: int) -> None:
        from av.video.reformatter import VideoReformatter

        self._canvas, self._at = canvas, at
        self._decoder, self._reformatter = VideoDecoder(), VideoReformatter()
        self._frame: VideoFrame | None = None  # until it is drawn
        self._size = 0, 0
        self._clear()

    @property
    def transcodes(self) -> str:
        width, height = self._size
        return f"{self._decoder.codec} {width}x{height}" if width else ""

    def decode(self, source: QueuedTag) -> Sequence["VideoFrame"]:
        """The frames that are complete with a tag, of which the last one is to be drawn."""
        frames = self._decoder.decode(source.body, source.time)
        if frames:
            self._frame = frames[-1]
        return frames

    def draw(self) -> None:
        """Put the last frame into its half, unless it is there."""
        frame, self._frame = self._frame, None
        if frame is None:
            return
        if (frame.width, frame.height) != self._size:
            self._size = frame.width, frame.height
            self._clear()
        scale = min(HALF / frame.width, HEIGHT / frame.height)
        width, height = (max(2, int(side * scale) // 2 * 2) for side in self._size)
        scaled = self._reformatter.reformat(frame, width, height, "yuv420p", threads=1)
        left, top = self._at + (HALF - width) // 4 * 2, (HEIGHT - height) // 4 * 2
        for plane, by in PLANES:
            rows = memoryview(scaled.planes[plane])
            step = scaled.planes[plane].line_size
            self._fill(plane, left // by, top // by, width // by, [
                rows[at * step : at * step + width // by] for at in range(height // by)
            ])  # fmt: skip

    def _clear(self) -> None:
        for plane, by in PLANES:
            row = memoryview(bytes((BLACK[plane],)) * (HALF // by))
            self._fill(plane, self._at // by, 0, HALF // by, [row] * (HEIGHT // by))

    def _fill(self, plane: int, left: int, top: int, width: int, rows: list[memoryview]) -> None:
        to = self._canvas.planes[plane]
        view, step = memoryview(to), to.line_size
        for at, row in enumerate(rows, top):
            view[at * step + left : at * step + left + width] = row
