"""From a phone's frames of H.265 to FLV video tags.

Implements E-RTMP v2 §"Enhanced Video" with the FourCC `hvc1`, from the frames of RFC 7798 §4.1.

Own design: all but the tags and the parameter sets is as `H264ToFlv` has it.
"""

from p2psip.rtp.payload.h265 import kind_of
from p2psip.rtp.payload.h265_access_units import SLICES
from rtmplite.flv.avc import join_units
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType, VideoTrack
from rtmplite.flv.hevc import HevcConfig
from rtmplite.flv.parameter_sets import HevcSets
from rtmplite.flv.video import FrameType
from siprtmp.media.translate.h264_to_flv import H264ToFlv


class H265ToFlv(H264ToFlv):
    """Turns one phone's frames into tags: E-RTMP v2 §"Enhanced Video"."""

    _new_sets = HevcSets

    @staticmethod
    def _is_slice(unit: bytes) -> bool:
        return kind_of(unit) in SLICES

    @staticmethod
    def _header(config: object) -> bytes:
        assert isinstance(config, HevcConfig)
        return _tag(FrameType.KEY, VideoPacketType.SEQUENCE_START, bytes(config))

    @staticmethod
    def _tag(is_key: bool, composition: int, slices: list[bytes]) -> bytes:
        kind = FrameType.KEY if is_key else FrameType.INTER
        return _tag(kind, VideoPacketType.CODED_FRAMES, join_units(slices), composition)


def _tag(kind: FrameType, packet_type: VideoPacketType, data: bytes, composition: int = 0) -> bytes:
    track = VideoTrack(VideoFourCc.HEVC, data, composition_time=composition)
    return bytes(ExVideoTag(kind, packet_type, (track,)))
