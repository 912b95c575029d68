"""A publisher's frames, decoded: H.264, HEVC, AV1, VP9, VP8 and Sorenson's H.263.

Implements FLV 10.1 §E.4.3.1 and E-RTMP v2 §"Enhanced Video" as far as they say what a decoder is
fed with.

Own design: the decoders are those of PyAV, each with one thread, since other calls have theirs.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from rtmplite.errors import RemoteError
from rtmplite.flv.enhanced import four_cc_text
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType
from rtmplite.flv.video import (
    CODEC_NAMES,
    AvcPacketType,
    CodecId,
    FieldCodecId,
    FrameType,
    VideoTag,
)
from siprtmp.media.transcode.audio_decoder import UndecodableError

if TYPE_CHECKING:
    from av.video.codeccontext import VideoCodecContext
    from av.video.frame import VideoFrame

MAX_PIXELS: Final = 4096 * 2304  # of a frame; a few octets may claim any size
MILLISECOND: Final = Fraction(1, 1000)
_NATIVE: Final[dict[int, str]] = {
    CodecId.AVC: "h264",
    CodecId.SORENSON_H263: "flv",
    FieldCodecId.HEVC: "hevc",  # Field §"HEVC and AV1 by number"
    FieldCodecId.AV1: "libdav1d",
}
_BY_FOUR_CC: Final[dict[int, str]] = {
    VideoFourCc.AVC: "h264",
    VideoFourCc.HEVC: "hevc",
    VideoFourCc.AV1: "libdav1d",
    VideoFourCc.VP9: "vp9",
    VideoFourCc.VP8: "vp8",
}
_HEADED: Final = ("h264", "hevc", "libdav1d")  # that begin with the header
_CODED: Final = (VideoPacketType.CODED_FRAMES, VideoPacketType.CODED_FRAMES_X)


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

        The time of each is that of showing.  Raises UndecodableError.
        """
        try:
            read = _unwrap_enhanced(body) if body[:1] >= b"\x80" else _unwrap(body)
        except RemoteError as error:
            raise UndecodableError(error.description) from None
        if read is None:
            return ()
        codec, is_header, is_key, composition, data = read
        if codec != self.codec or (is_header and data != self._header):
            self.codec, self._header, self._context = codec, data if is_header else b"", None
        # no octets would mean the end to a decoder
        if is_header or not data or (self._context is None and not is_key):
            return ()
        used = self._context
        try:
            return self._decode(data, time + composition, time)
        except UndecodableError:
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
            raise UndecodableError(f"broken {self.codec}: {error}") from None

    def _open(self) -> "VideoCodecContext":
        import av

        if self.codec in _HEADED and not self._header:
            raise UndecodableError(f"{self.codec} without its header")
        context = av.CodecContext.create(self.codec, "r")
        assert isinstance(context, av.VideoCodecContext)
        if self._header:
            context.extradata = self._header
        context.options = {"max_pixels": str(MAX_PIXELS)}
        context.thread_count = 1
        context.open(strict=False)
        self._context = context
        return context


# A codec, whether it is its header or a key frame, composition time (ms), and the codec's data.
_Content = tuple[str, bool, bool, int, bytes] | None


def _unwrap(body: bytes) -> _Content:
    """Read a tag with a codec's number: FLV 10.1 §E.4.3.1."""
    tag = VideoTag.parse(body)
    name = _NATIVE.get(tag.codec_id)
    if name is None:
        raise UndecodableError(f"video codec {CODEC_NAMES.get(tag.codec_id, tag.codec_id)}")
    if tag.frame_type == FrameType.INFO_OR_COMMAND:
        return None
    if tag.avc_packet_type == AvcPacketType.END_OF_SEQUENCE:
        return None
    is_header = tag.avc_packet_type == AvcPacketType.SEQUENCE_HEADER
    is_key = tag.frame_type == FrameType.KEY and not is_header
    return name, is_header, is_key, tag.composition_time, tag.data


def _unwrap_enhanced(body: bytes) -> _Content:
    """Read a tag with FourCCs: E-RTMP v2 §"Enhanced Video"; of several tracks the default one."""
    tag = ExVideoTag.parse(body)
    track = next((each for each in tag.tracks if not each.track_id), None)
    if track is None or tag.packet_type == VideoPacketType.METADATA:
        return None
    name = _BY_FOUR_CC.get(track.four_cc)
    if name is None:
        raise UndecodableError(f"video codec {four_cc_text(track.four_cc)}")
    if tag.packet_type == VideoPacketType.SEQUENCE_START:
        # those that need none may have one that says little
        return (name, True, False, 0, track.data) if name in _HEADED else None
    if tag.packet_type not in _CODED:
        return None
    return name, False, tag.frame_type == FrameType.KEY, track.composition_time, track.data
