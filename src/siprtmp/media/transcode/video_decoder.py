"""A publisher's frames, decoded: H.264, HEVC, AV1, VP9, VP8 and Sorenson's H.263.

Implements FLV 10.1 §E.4.3.1 and E-RTMP v2 §"Enhanced Video" as far as they say what a decoder is
fed with.

Own design: the decoders are those of PyAV, each with one thread, since other calls have theirs.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from rtmplite.errors import RemoteError
from rtmplite.flv.enhanced_video import VideoFourCc
from rtmplite.flv.video import CodecId, FieldCodecId
from siprtmp.media.translate.conversion import UnsuitableError
from siprtmp.media.translate.video_tag import read_video

if TYPE_CHECKING:
    from av.video.codeccontext import VideoCodecContext
    from av.video.frame import VideoFrame

MAX_PIXELS: Final = 4096 * 2304  # of a frame; a few octets may claim any size
MILLISECOND: Final = Fraction(1, 1000)
_CODECS: Final[dict[int, str]] = {
    CodecId.AVC: "h264",
    CodecId.SORENSON_H263: "flv",
    FieldCodecId.HEVC: "hevc",  # Field §"HEVC and AV1 by number"
    FieldCodecId.AV1: "libdav1d",
    VideoFourCc.AVC: "h264",
    VideoFourCc.HEVC: "hevc",
    VideoFourCc.AV1: "libdav1d",
    VideoFourCc.VP9: "vp9",
    VideoFourCc.VP8: "vp8",
}
_HEADED: Final = ("h264", "hevc", "libdav1d")  # that begin with the header


class VideoDecoder:
    """Turns the tags of one publisher into frames: FLV 10.1 §E.4.3.1.

    A tag of another codec, or a new header, begins anew, and so does a tag behind a broken one, at
    the next key frame.
    """

    def __init__(self) -> None:
        self.codec = ""  # as ffmpeg names it
        self._header = b""
        self._context: VideoCodecContext | None = None

    def decode(self, body: bytes, time: int) -> Sequence["VideoFrame"]:
        """The frames that are complete with this tag of RTMP time `time` (ms).

        The time of each is that of showing.  Raises UnsuitableError.
        """
        try:
            read = read_video(body, _CODECS)
        except RemoteError as error:
            raise UnsuitableError(error.description) from None
        if read is None:
            return ()
        number, is_header, is_key, composition, data = read
        codec = _CODECS[number]
        if is_header and codec not in _HEADED:
            return ()  # those that need none may have one that says little
        if codec != self.codec or (is_header and data != self._header):
            self.codec, self._header, self._context = codec, data if is_header else b"", None
        # no octets would mean the end to a decoder
        if is_header or not data or (self._context is None and not is_key):
            return ()
        used = self._context
        try:
            return self._decode(data, time + composition, time)
        except UnsuitableError:
            self._context = None
            if used is None or not is_key:
                raise
        return self.decode(body, time)  # anew, for what came before may have spoilt the decoder

    def _decode(self, data: bytes, shown: int, decoded: int) -> Sequence["VideoFrame"]:
        import av

        try:
            context = self._context or self._open()
            packet = av.Packet(data)
            packet.pts, packet.dts, packet.time_base = shown, decoded, MILLISECOND
            return context.decode(packet)
        except (av.FFmpegError, ValueError) as error:
            raise UnsuitableError(f"broken {self.codec}: {error}") from None

    def _open(self) -> "VideoCodecContext":
        import av

        if self.codec in _HEADED and not self._header:
            raise UnsuitableError(f"{self.codec} without its header")
        context = av.CodecContext.create(self.codec, "r")
        assert isinstance(context, av.VideoCodecContext)
        if self._header:
            context.extradata = self._header
        context.options = {"max_pixels": str(MAX_PIXELS)}
        context.thread_count = 1
        context.open(strict=False)
        self._context = context
        return context
