"""Frames as tags of H.264 or VP8, for an end that takes no others.

Implements FLV 10.1 §E.4.3.1 and §E.4.3.2, and E-RTMP v2 §"Enhanced Video" for VP8.

Own design: the encoders are x264 and libvpx as PyAV has them, set for calls: no frame waits for
a later one, and none depends on a later one.  Key frames are made when somebody asks for one, and
else seldom, as each is as long as many other frames.
"""

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from p2psip.sdp.h264_parameters import LEVEL_1B
from rtmplite.flv.avc import PPS, SPS, AvcConfig, join_units, split_units
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType, VideoTrack
from rtmplite.flv.video import AvcPacketType, CodecId, FrameType, VideoTag
from siprtmp.media.transcode.video_decoder import MILLISECOND

if TYPE_CHECKING:
    from av.packet import Packet
    from av.video.codeccontext import VideoCodecContext
    from av.video.frame import VideoFrame

H264, VP8 = "h264", "vp8"
ENCODERS: Final = {H264: "libx264", VP8: "libvpx"}  # by ffmpeg's names
KEY_SECONDS: Final = 10.0  # between key frames that nobody has asked for
SLICES: Final = (1, 5)  # types of NAL units: RFC 6184 §5.2


def missing() -> list[str]:
    """The encoders that this PyAV lacks, since it was built without them."""
    import av

    return [name for name in ENCODERS.values() if name not in av.codecs_available]


class FrameRateLimiter:
    """Own design: a steady source loses every so many frames, and a late one makes up for it.

    `rate` is in frames a second.

    >>> pace = FrameRateLimiter(15)
    >>> [at for at in range(0, 320, 40) if pace.has_room(at)]
    [0, 80, 120, 200, 280]
    """

    def __init__(self, rate: float) -> None:
        self.rate, self._due = rate, 0.0

    def has_room(self, time: int) -> bool:
        """Whether to make a frame of this time (ms); a jump of the time begins anew."""
        step, early = 1000 / self.rate, self._due - time
        if step / 4 < early < 2 * step:
            return False
        self._due = (self._due if abs(early) < step else time) + step
        return True


class VideoEncoder:
    """Makes tags of frames of one size: FLV 10.1 §E.4.3.1.

    `rate` is in frames a second, `bits` a second; `level` is that of H.264, 0 for any, and no
    slice of it has more octets than `slice_octets`, 0 for any number.
    """

    def __init__(
        self,
        codec: str,
        size: tuple[int, int],
        rate: float,
        bits: int,
        level: float = 0.0,
        slice_octets: int = 0,
    ) -> None:
        self.size = size
        self._rate = Fraction(rate).limit_denominator(1000)
        self._bits, self._config = bits, b""
        self._is_vp8 = codec == VP8
        options = _libvpx(bits) if self._is_vp8 else _x264(bits, level, slice_octets)
        self._context = self._open(ENCODERS[codec], options)

    def _open(self, name: str, options: dict[str, str]) -> "VideoCodecContext":
        import av

        context = av.CodecContext.create(name, "w")
        assert isinstance(context, av.VideoCodecContext)
        context.width, context.height = self.size
        context.pix_fmt, context.time_base = "yuv420p", MILLISECOND
        context.framerate, context.bit_rate = self._rate, self._bits
        context.gop_size, context.max_b_frames = int(KEY_SECONDS * self._rate), 0
        context.options, context.thread_count = options, 1
        context.open()
        return context

    def encode(self, frame: "VideoFrame", is_key: bool) -> list[tuple[int, bytes]]:
        """Encode a frame; return times (ms) and tags, a new sequence header before its frame."""
        from av.video.frame import PictureType

        frame.pict_type = PictureType.I if is_key else PictureType.NONE
        frame.time_base = MILLISECOND
        out: list[tuple[int, bytes]] = []
        for packet in self._context.encode(frame):
            written = _vp8(packet) if self._is_vp8 else self._h264(packet)
            out += [(packet.pts or 0, body) for body in written]
        return out

    def _h264(self, packet: "Packet[Any]") -> list[bytes]:
        units = split_units(bytes(packet))
        sets = {kind: [unit for unit in units if unit[0] & 0x1F == kind] for kind in (SPS, PPS)}
        out = []
        if sets[SPS] and (config := bytes(AvcConfig.of(sets[SPS], sets[PPS]))) != self._config:
            self._config = config
            out.append(_avc(True, AvcPacketType.SEQUENCE_HEADER, config))
        slices = [unit for unit in units if unit[0] & 0x1F in SLICES]
        return [*out, _avc(packet.is_keyframe, AvcPacketType.NALU, join_units(slices))]


def _x264(bits: int, level: float, slice_octets: int) -> dict[str, str]:
    kilobits = max(1, bits // 1000)
    more = f"annexb=0:vbv-maxrate={kilobits}:vbv-bufsize={kilobits // 2 + 1}:scenecut=0"
    if slice_octets:
        more += f":slice-max-size={slice_octets}"
    options = {
        "preset": "veryfast",
        "tune": "zerolatency",
        "profile": "baseline",
        "forced-idr": "1",
        "x264-params": more,
    }
    if level:
        options["level"] = "1b" if level == LEVEL_1B else f"{level:g}"
    return options


def _libvpx(bits: int) -> dict[str, str]:
    return {
        "deadline": "realtime",
        "cpu-used": "8",
        "lag-in-frames": "0",
        "auto-alt-ref": "0",
        "minrate": str(bits),
        "maxrate": str(bits),
        "bufsize": str(bits // 2),
    }


def _avc(is_key: bool, packet_type: AvcPacketType, data: bytes) -> bytes:
    kind = FrameType.KEY if is_key else FrameType.INTER
    return bytes(VideoTag(kind, CodecId.AVC, packet_type, 0, data))


def _vp8(packet: "Packet[Any]") -> list[bytes]:
    kind = FrameType.KEY if packet.is_keyframe else FrameType.INTER
    track = VideoTrack(VideoFourCc.VP8, bytes(packet))
    return [bytes(ExVideoTag(kind, VideoPacketType.CODED_FRAMES, (track,)))]
