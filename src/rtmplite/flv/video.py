"""Video tags: the first byte has frame type and codec, AVC needs four more.

Implements FLV 10.1 §E.4.3.1.  `is_key_frame` and `is_sequence_header` work on the raw payload,
for a media path that never looks deeper, and know the FourCC codecs as well.  HEVC and AV1 by
number have the four bytes of AVC too: Field §"HEVC and AV1 by number".

    >>> tag = VideoTag(FrameType.KEY, CodecId.AVC, AvcPacketType.NALU, -40, b"...")
    >>> bytes(tag).hex(" ")
    '17 01 ff ff d8 2e 2e 2e'
    >>> is_key_frame(bytes(tag)), is_sequence_header(bytes(tag))
    (True, False)
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Self

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv.enhanced_raw import video_packet_type


class FrameType(IntEnum):
    """The kinds of frame, by the frames they depend on: §E.4.3.1 [frame-types]."""

    KEY = 1
    INTER = 2
    DISPOSABLE_INTER = 3
    GENERATED_KEY = 4
    INFO_OR_COMMAND = 5


class CodecId(IntEnum):
    """The codecs: §E.4.3.1 [codec-ids]."""

    SORENSON_H263 = 2
    SCREEN_VIDEO = 3
    ON2_VP6 = 4
    ON2_VP6_ALPHA = 5
    SCREEN_VIDEO_2 = 6
    AVC = 7


class FieldCodecId(IntEnum):
    """The codecs that encoders number beyond those of §E.4.3.1: Field §"HEVC and AV1 by number"."""

    HEVC = 12
    AV1 = 13


CODEC_NAMES: Final[dict[int, str]] = {each.value: each.name for each in (*CodecId, *FieldCodecId)}


class AvcPacketType(IntEnum):
    """The contents of an AVC tag: §E.4.3.1 [avc-packet-type]."""

    SEQUENCE_HEADER = 0
    NALU = 1
    END_OF_SEQUENCE = 2


# Plain numbers: looking up a member of an enumeration takes longer than all the rest.
_KEY: Final = int(FrameType.KEY)
_INFO: Final = int(FrameType.INFO_OR_COMMAND)
# Codecs whose tags say whether they are a header: Field §"HEVC and AV1 by number" for the last two.
_PACKETED: Final = frozenset((int(CodecId.AVC), *map(int, FieldCodecId)))
_AVC_NALU: Final = int(AvcPacketType.NALU)
_AVC_SEQUENCE_HEADER: Final = int(AvcPacketType.SEQUENCE_HEADER)
_EXTENDED: Final = 0x80  # the flag IsExHeader: E-RTMP v1 §"Defining Additional Video Codecs"
_EXTENDED_FRAMES: Final = (1, 3)  # CodedFrames, CodedFramesX, of the same section
_EXTENDED_STARTS: Final = (0, 5)  # SequenceStart, MPEG2TSSequenceStart


@dataclass(frozen=True, slots=True)
class VideoTag:
    """The body of a video tag or message: §E.4.3.1.

    `avc_packet_type` is None unless the codec is AVC, or another one with its bytes (Field §"HEVC
    and AV1 by number"); `composition_time` is in ms, signed, what to add to the tag's time to get
    the frame's; `data` is the codec's own (§E.4.3.2 for AVC).
    """

    frame_type: int
    codec_id: int
    avc_packet_type: int | None
    composition_time: int
    data: bytes

    @classmethod
    def parse(cls, payload: bytes | memoryview) -> Self:
        """Read a video payload: §E.4.3.1.

        An info frame has one byte of data and no AVC fields, even for AVC (§E.4.3.1, VideoTagBody).
        Raises RemoteError if the payload is too short or announces a FourCC.
        """
        if not payload:
            raise RemoteError("an empty video tag")
        frame_type, codec_id = payload[0] >> 4, payload[0] & 0x0F  # §E.4.3.1 [header-bits]
        if payload[0] & _EXTENDED:
            raise RemoteError("enhanced video has no VideoTagHeader")
        if codec_id not in _PACKETED or frame_type == FrameType.INFO_OR_COMMAND:
            # §E.4.3.1 [info-frame]
            return cls(frame_type, codec_id, None, 0, bytes(payload[1:]))
        if len(payload) < 5:
            raise RemoteError(f"an {CODEC_NAMES[codec_id]} tag of {len(payload)} bytes")
        time = int.from_bytes(payload[2:5], "big", signed=True)  # §E.4.3.1 [composition-time]
        # §E.4.3.1 [avc-packet-type]
        return cls(frame_type, codec_id, payload[1], time, bytes(payload[5:]))

    def __bytes__(self) -> bytes:
        first = self.frame_type << 4 | self.codec_id  # §E.4.3.1 [header-bits]
        avc = self.codec_id in _PACKETED and self.frame_type != FrameType.INFO_OR_COMMAND
        if avc != (self.avc_packet_type is not None):
            raise LocalError("frames of AVC and its like, and no others, have an AVCPacketType")
        if self.avc_packet_type is None:
            return bytes((first,)) + self.data
        if not -(1 << 23) <= self.composition_time < 1 << 23:
            raise LocalError(f"a composition time of {self.composition_time} ms")
        # §E.4.3.1 [composition-time]
        time = self.composition_time.to_bytes(3, "big", signed=True)
        return bytes((first, self.avc_packet_type)) + time + self.data


def is_key_frame(payload: bytes | memoryview) -> bool:
    """Tell whether a player can begin with this payload: §E.4.3.1.

    A sequence header is marked like a key frame and is not one: it has no frame.  For codecs
    named by FourCC, in one track or several: E-RTMP v2 §"Enhanced Video"; for those of
    `FieldCodecId` Field §"HEVC and AV1 by number".
    """
    if len(payload) < 2:
        return False
    first = payload[0]
    if first & _EXTENDED:
        return first >> 4 & 7 == _KEY and video_packet_type(payload) in _EXTENDED_FRAMES
    if first >> 4 != _KEY:
        return False
    return first & 0x0F not in _PACKETED or payload[1] == _AVC_NALU


def is_sequence_header(payload: bytes | memoryview) -> bool:
    """Tell whether a decoder needs this before any frame: §E.4.3.1 for AVC.

    For codecs named by FourCC, in one track or several: E-RTMP v2 §"Enhanced Video"; for those of
    `FieldCodecId` Field §"HEVC and AV1 by number".
    """
    if len(payload) < 2:
        return False
    if payload[0] & _EXTENDED:
        return video_packet_type(payload) in _EXTENDED_STARTS
    if payload[1] != _AVC_SEQUENCE_HEADER:
        return False
    return payload[0] & 0x0F in _PACKETED and payload[0] >> 4 != _INFO
