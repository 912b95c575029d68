"""The codecs of video, by their names in the client's API, and what a tag body of one has.

Implements FLV 10.1 §E.4.3.1, and E-RTMP v2 §"Enhanced Video" for FourCCs; HEVC may have a number,
Field §"HEVC and AV1 by number".
"""

from collections.abc import Container
from dataclasses import replace
from typing import Final, NamedTuple

from rtmplite.flv.enhanced import MOD_EX, four_cc_text
from rtmplite.flv.enhanced_raw import VIDEO_MULTITRACK, codecs, track_ids
from rtmplite.flv.enhanced_video import (
    ExVideoTag,
    VideoFourCc,
    VideoPacketType,
    VideoTrack,
)
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
_STARTS: Final = (VideoPacketType.SEQUENCE_START, VideoPacketType.MPEG2TS_SEQUENCE_START)
SEVERAL: Final = 0x86  # bits of the first octet of a tag that may name its tracks
DEFAULT: Final = 0  # the track: E-RTMP v2 §"Multitrack Media Message Guidelines"


def codec_of(body: bytes) -> str:
    """The name of a tag's codec, of the default track if there are several; "" for others."""
    if body[:1] >= b"\x80":
        return _NAMES.get(codecs(body, VIDEO_MULTITRACK).get(0, 0), "")
    return _NUMBERS.get(body[0] & 0x0F, "") if body else ""


def has_several_tracks(body: bytes) -> bool:
    """Whether a tag names its tracks, though it may have one alone: E-RTMP v2 §"Enhanced Video"."""
    return body[:1] >= b"\x80" and body[0] & 0x0F in (VIDEO_MULTITRACK, MOD_EX)


def is_of_default(body: bytes) -> bool:
    """Whether a tag has the track that is shown where none is chosen, perhaps among others."""
    return not has_several_tracks(body) or DEFAULT in track_ids(body, VIDEO_MULTITRACK)


def tracks_of(body: bytes) -> list[tuple[int, bytes]]:
    """The tracks of a tag, and a tag of each alone: E-RTMP v2 §"Enhanced Video".

    A tag that names tracks, and has neither headers nor frames, gives none.  Raises RemoteError for
    what is broken.
    """
    if not has_several_tracks(body):
        return [(DEFAULT, body)]
    tag = ExVideoTag.parse(body)
    if tag.packet_type not in (*_STARTS, *_CODED):
        return []
    return [
        (each.track_id, bytes(ExVideoTag(tag.frame_type, tag.packet_type, (_alone(each),))))
        for each in tag.tracks
    ]


def _alone(track: VideoTrack) -> VideoTrack:
    return replace(track, track_id=DEFAULT)


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
    track = next((each for each in tag.tracks if each.track_id == DEFAULT), None)
    if track is None or tag.packet_type == VideoPacketType.METADATA:
        return None
    if track.four_cc not in known:
        raise UnsuitableError(f"video codec {four_cc_text(track.four_cc)}")
    is_header = tag.packet_type == VideoPacketType.SEQUENCE_START
    if not is_header and tag.packet_type not in _CODED:
        return None
    is_key = tag.frame_type == FrameType.KEY and not is_header
    return VideoContent(track.four_cc, is_header, is_key, track.composition_time, track.data)
