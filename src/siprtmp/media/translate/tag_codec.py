"""The codec of a video tag, by its name in the client's API.

Implements FLV 10.1 §E.4.3.1, and E-RTMP v2 §"Enhanced Video" for FourCCs; HEVC may have a number,
Field §"HEVC and AV1 by number".
"""

from typing import Final

from rtmplite.flv.enhanced_raw import VIDEO_MULTITRACK, codecs
from rtmplite.flv.enhanced_video import VideoFourCc
from rtmplite.flv.video import CodecId, FieldCodecId
from siprtmp.media.translate.flv_to_h264 import H264
from siprtmp.media.translate.flv_to_h265 import H265
from siprtmp.media.translate.flv_to_vp8 import VP8

FOUR_CCS: Final = {H264: VideoFourCc.AVC, H265: VideoFourCc.HEVC, VP8: VideoFourCc.VP8}
_NUMBERS: Final = {int(CodecId.AVC): H264, int(FieldCodecId.HEVC): H265}
_NAMES: Final = {int(number): name for name, number in FOUR_CCS.items()}


def codec_of(body: bytes) -> str:
    """The name of a tag's codec, of the default track if there are several; "" for others.

    FLV 10.1 §E.4.3.1.
    """
    if body[:1] >= b"\x80":
        return _NAMES.get(codecs(body, VIDEO_MULTITRACK).get(0, 0), "")
    return _NUMBERS.get(body[0] & 0x0F, "") if body else ""
