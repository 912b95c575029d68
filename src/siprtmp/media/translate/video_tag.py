"""The codecs of video, by their names in the client's API, and what a tag body of one has.

Implements FLV 10.1 §E.4.3.1, and E-RTMP v2 §"Enhanced Video" for FourCCs; HEVC may have a number,
Field §"HEVC and AV1 by number".
"""

from collections.abc import Container
from typing import Final, NamedTuple

from rtmplite.flv.enhanced import four_cc_text
from rtmplite.flv.enhanced_raw import VIDEO_MULTITRACK, codecs
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType
from rtmplite.flv.video import (
    CODEC_NAMES,
    AvcPacketType,
    CodecId,
    FieldCodecId,
    FrameType,
    VideoTag,
)
from siprtmp.media.translate.conversion import UnsuitableError

H264: Final = "h264"
H265: Final = "h265"
VP8: Final = "vp8"
FOUR_CCS: Final = {H264: VideoFourCc.AVC, H265: VideoFourCc.HEVC, VP8: VideoFourCc.VP8}
_NUMBERS: Final = {int(CodecId.AVC): H264, int(FieldCodecId.HEVC): H265}
_NAMES: Final = {int(number): name for name, number in FOUR_CCS.items()}
_CODED: Final = (VideoPacketType.CODED_FRAMES, VideoPacketType.CODED_FRAMES_X)


def codec_of(body: bytes) -> str:
    """The name of a tag's codec, of the default track if there are several; "" for others."""
    if body[:1] >= b"\x80":
        return _NAMES.get(codecs(body, VIDEO_MULTITRACK).get(0, 0), "")
    return _NUMBERS.get(body[0] & 0x0F, "") if body else ""


class VideoContent(NamedTuple):
    """A header or a frame: its codec's number or FourCC, composition time (ms), and octets."""

    codec: int
    is_header: bool
    is_key: bool
    composition: int
    data: bytes


def read_video(body: bytes, known: Container[int]) -> VideoContent | None:
    """Read a tag body, the default track if there are several; None without header or frame.

    Raises RemoteError for what is broken, and UnsuitableError for a codec that is not `known`.
    """
    return (_numbered if body[:1] < b"\x80" else _enhanced)(body, known)


def _numbered(body: bytes, known: Container[int]) -> VideoContent | None:
    tag = VideoTag.parse(body)
    if tag.codec_id not in known:
        raise UnsuitableError(f"video codec {CODEC_NAMES.get(tag.codec_id, tag.codec_id)}")
    is_header = tag.avc_packet_type == AvcPacketType.SEQUENCE_HEADER
    if tag.frame_type == FrameType.INFO_OR_COMMAND:
        return None
    if not is_header and tag.avc_packet_type not in (AvcPacketType.NALU, None):
        return None  # None is for a codec whose tags do not say
    is_key = tag.frame_type == FrameType.KEY and not is_header
    return VideoContent(tag.codec_id, is_header, is_key, tag.composition_time, tag.data)


def _enhanced(body: bytes, known: Container[int]) -> VideoContent | None:
    tag = ExVideoTag.parse(body)
    track = next((each for each in tag.tracks if not each.track_id), None)
    if track is None or tag.packet_type == VideoPacketType.METADATA:
        return None
    if track.four_cc not in known:
        raise UnsuitableError(f"video codec {four_cc_text(track.four_cc)}")
    is_header = tag.packet_type == VideoPacketType.SEQUENCE_START
    if not is_header and tag.packet_type not in _CODED:
        return None
    is_key = tag.frame_type == FrameType.KEY and not is_header
    return VideoContent(track.four_cc, is_header, is_key, track.composition_time, track.data)
