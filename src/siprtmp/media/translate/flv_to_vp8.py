"""From FLV video tags to RTP payloads of VP8.

Implements RFC 7741 §4, from tags as E-RTMP v2 §"Enhanced Video" lays them out.

Pure: tags in, packets out.  A frame of VP8 has all that a decoder needs, so there are no headers.
"""

from typing import Final

from p2psip.rtp.payload.vp8 import pack_vp8
from rtmplite.errors import RemoteError
from rtmplite.flv.enhanced import four_cc_text
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType
from rtmplite.flv.video import CodecId, FrameType, VideoTag
from siprtmp.media.translate.flv_to_h264 import TICKS_PER_MS
from siprtmp.media.translate.flv_to_rtp import Packet, UnsuitableError
from siprtmp.media.translate.timebase import RTMP_WRAP, wrapped_difference

_CODED: Final = (VideoPacketType.CODED_FRAMES, VideoPacketType.CODED_FRAMES_X)
_PICTURE_IDS: Final = 1 << 15  # Source: RFC 7741 §4.2


class FlvToVp8:
    """Packs the pictures of one publisher for one phone: RFC 7741 §4.4.

    No payload is longer than `max_octets`.
    """

    def __init__(self, max_octets: int) -> None:
        self._max_octets = max_octets
        self._waiting = True  # for a key frame
        self._number = 0
        self._time: int | None = None  # ms, unbounded

    def convert(self, body: bytes, timestamp_ms: int) -> list[Packet]:
        """The packets of a tag body of RTMP time `timestamp_ms`: E-RTMP v2 §"Enhanced Video".

        UnsuitableError for another codec, and for what is broken.
        """
        if self._time is None:
            self._time = timestamp_ms
        self._time += wrapped_difference(timestamp_ms, self._time, RTMP_WRAP)
        try:
            read = _frame(body)
        except RemoteError as error:
            self._waiting = True
            raise UnsuitableError(error.description) from None
        if read is None or (self._waiting and not read[0]):
            return []
        self._waiting = False
        self._number = (self._number + 1) % _PICTURE_IDS
        ticks = TICKS_PER_MS * self._time
        payloads = pack_vp8(read[1], self._max_octets, self._number)
        return [Packet(ticks, payload, marker) for payload, marker in payloads]


def _frame(body: bytes) -> tuple[bool, bytes] | None:
    """Whether a tag has a key frame, and its octets; None for a tag without a picture."""
    if body[:1] < b"\x80":
        number = VideoTag.parse(body).codec_id
        names = {each.value: each.name for each in CodecId}
        raise UnsuitableError(f"video codec {names.get(number, number)}")
    tag = ExVideoTag.parse(body)
    track = next((each for each in tag.tracks if not each.track_id), None)
    if track is None or tag.packet_type == VideoPacketType.METADATA:
        return None
    if track.four_cc != VideoFourCc.VP8:
        raise UnsuitableError(f"video codec {four_cc_text(track.four_cc)}")
    if tag.packet_type not in _CODED or not track.data:
        return None
    return tag.frame_type == FrameType.KEY, track.data
