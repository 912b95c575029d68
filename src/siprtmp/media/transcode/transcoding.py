"""The translations that decode and encode, as a leg asks for them.

Own design: one object for all calls of a gateway that has the extra `transcode`, and another one
where video may be transcoded too.
"""

from collections.abc import Callable

from siprtmp.media.transcode.audio_encoder import can_encode
from siprtmp.media.transcode.side_by_side import SideBySide
from siprtmp.media.transcode.to_flv import TranscodedToFlv
from siprtmp.media.transcode.to_rtp import TranscodedToRtp
from siprtmp.media.transcode.to_speex import SpeexToFlv
from siprtmp.media.transcode.video_transcoder import VideoTranscoder
from siprtmp.media.translate.audio_formats import AudioCodec
from siprtmp.media.translate.codec_limits import CodecLimits
from siprtmp.media.translate.conversion import AudioHeader, Transcoded


class AvAudioTranscoders:
    """Makes audio transcoders; it has no state."""

    def can_send(self, codec: AudioCodec) -> bool:
        """Whether any audio can be made into this codec."""
        return can_encode(codec)

    def to_phone(
        self, codec: AudioCodec, ptime: int, fmtp: str, header: AudioHeader, g711_rate: int
    ) -> TranscodedToRtp:
        """A translation into a codec, in packets of up to `ptime` ms: RFC 8866 §6.5."""
        return TranscodedToRtp(codec, ptime, fmtp, header, g711_rate)

    def to_rtmp(self, codec: AudioCodec, speex: bool) -> TranscodedToFlv | SpeexToFlv:
        """A translation of a phone's codec into AAC, or into Speex: FLV 10.1 §E.4.2.1."""
        return SpeexToFlv(codec) if speex else TranscodedToFlv(codec)


class AvVideoTranscoders:
    """Makes translations of video, within the `limits` of the operator.

    `run` calls a job in a thread, and then a function in the loop with the result and the time.
    Of the limits 0 is none; `rate` is in frames a second.
    """

    def __init__(
        self,
        run: Callable[[Callable[[], Transcoded], Callable[[Transcoded, float], None]], None],
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
        """A translation into "h264" or "vp8": FLV 10.1 §E.4.3.1."""
        return VideoTranscoder(codec, limits, slice_octets)

    def side_by_side(self, after: int) -> SideBySide:
        """Two sources as one frame, no more a second than the operator wants."""
        return SideBySide(self.limits.rate, after)
