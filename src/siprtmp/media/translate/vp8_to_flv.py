"""From a phone's frames of VP8 to FLV video tags.

Implements E-RTMP v2 §"Enhanced Video", from the frames of RFC 7741 §4.5.1.

Pure: frames in, tags out.  What a lost frame has spoilt is never passed on: the video freezes
until the next key frame, which `wants_key_frame` says to ask for.
"""

from p2psip.rtp.payload.vp8 import Vp8Damage, Vp8Unpacked
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType, VideoTrack
from rtmplite.flv.video import FrameType
from siprtmp.media.translate.flv_to_vp8 import size_of
from siprtmp.media.translate.h264_to_flv import DecodeTimes
from siprtmp.media.translate.rtp_to_flv import Tag


class Vp8ToFlv:
    """Turns one phone's frames into tags: E-RTMP v2 §"Enhanced Video".

    `wants_key_frame` is true while frames are held back that only a key frame can follow, and
    `size` the width and height of the last key frame.
    """

    def __init__(self) -> None:
        self.wants_key_frame = False
        self.freezes = 0  # how often a lost frame has stopped the others
        self.size: tuple[int, int] | None = None
        self._frozen = True
        self._times = DecodeTimes()

    def restart(self) -> None:
        """Begin anew with a new SSRC: RFC 3550 §5.1.  RTMP time goes on."""
        self._frozen = True
        self._times.restart()

    def convert(
        self, item: Vp8Unpacked, arrival_ms: int, shown_ms: float | None = None
    ) -> list[Tag]:
        """The tag of a frame, with its RTMP time; the arguments are those of `H264ToFlv`.

        E-RTMP v2 §"Enhanced Video".
        """
        if isinstance(item, Vp8Damage):
            self.freezes += not self._frozen
            self._frozen = self.wants_key_frame = True
            return []
        time, _ = self._times.of(item.timestamp, item.is_key, arrival_ms, 0, shown_ms)
        if item.is_key:
            self._frozen = self.wants_key_frame = False
            self.size = size_of(item.data) or self.size
        elif self._frozen:
            self.wants_key_frame = True
            return []
        kind = FrameType.KEY if item.is_key else FrameType.INTER
        track = VideoTrack(VideoFourCc.VP8, item.data)
        return [(time, bytes(ExVideoTag(kind, VideoPacketType.CODED_FRAMES, (track,))))]
