"""The sound and the pictures of an FLV file, as far as their tags tell.

Implements FLV 10.1 §E.4.2 and §E.4.3, and E-RTMP v2, from the reader's side.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.flv.peer import FlvData, RawTag
from rtmplite.errors import RemoteError
from rtmplite.flv.audio import AacPacketType, SoundFormat
from rtmplite.flv.avc import AvcConfig, split_units
from rtmplite.flv.enhanced import four_cc_text
from rtmplite.flv.enhanced_audio import AudioFourCc, AudioPacketType, ExAudioTag
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType
from rtmplite.flv.tag import TagType
from rtmplite.flv.video import AvcPacketType, CodecId, FrameType

cases: Cases[FlvData] = Cases()
must = partial(cases.case, role="file")
should = partial(cases.case, role="file", level="SHOULD")
IDR: Final = 5  # NAL unit type of a picture that needs no other
RANDOM_ACCESS: Final = range(16, 24)  # NAL unit types of HEVC that need no other
RESERVED_RATES: Final = (13, 14)  # of AudioSpecificConfig
ADTS: Final = b"\xff\xf1", b"\xff\xf9"
STARTS: Final = 0, 5  # SequenceStart, MPEG2TSSequenceStart
FRAMES: Final = 1, 3  # CodedFrames, CodedFramesX


@must("FLV 10.1 §E.4.2.1", "sound-formats")
def sound_format_is_known(flv: FlvData) -> None:
    """SoundFormat is one of the table (§E.4.2.1)."""
    for tag in flv.of(TagType.AUDIO):
        if tag.data and tag.data[0] >> 4 not in tuple(SoundFormat):
            raise Unmet("a SoundFormat of the table", f"{tag.data[0] >> 4} in {tag}")


@should("FLV 10.1 §E.4.2.1", "aac-says-stereo")
def aac_says_44_khz_and_stereo(flv: FlvData) -> None:
    """The header of AAC says 44 kHz and stereo, whatever it is (§E.4.2.1)."""
    for tag in _aac(flv):
        if tag.data[0] & 0x0D != 0x0D:
            raise Unmet("SoundRate 3 and SoundType 1", f"{tag.data[0]:#x} in {tag}")


@must("FLV 10.1 §E.4.2.1", "speex-fixed")
def speex_says_16_bits_and_mono(flv: FlvData) -> None:
    """The header of Speex is SoundRate 0, SoundSize 1 and SoundType 0 (§E.4.2.1)."""
    found = [
        tag for tag in flv.of(TagType.AUDIO) if tag.data and tag.data[0] >> 4 == SoundFormat.SPEEX
    ]
    if not found:
        raise NotApplicable("no Speex")
    for tag in found:
        if tag.data[0] & 15 != 2:
            raise Unmet("0xb2", f"{tag.data[0]:#x} in {tag}")


@must('Field §"Beginnings of streams"', "headers-first")
def aac_config_comes_before_frames(flv: FlvData) -> None:
    """The first tag of AAC is its sequence header (Field §"Beginnings of streams")."""
    first = _aac(flv)[0]
    if first.data[1] != AacPacketType.SEQUENCE_HEADER:
        raise Unmet("a sequence header", f"AACPacketType {first.data[1]} in {first}")


@must("FLV 10.1 §E.4.2.2", "audio-specific-config")
def aac_config_makes_sense(flv: FlvData) -> None:
    """The sequence header is an AudioSpecificConfig: type, rate and channels (§E.4.2.2)."""
    for tag in _aac(flv):
        if tag.data[1] != AacPacketType.SEQUENCE_HEADER:
            continue
        head = int.from_bytes(tag.data[2:4], "big")
        if len(tag.data) < 4 or not head >> 11 or head >> 7 & 15 in RESERVED_RATES:
            raise Unmet("an AudioSpecificConfig", f"{tag.data[2:].hex(' ')} in {tag}")


@must("FLV 10.1 §E.4.2.2", "raw-frames")
def aac_frames_are_raw(flv: FlvData) -> None:
    """Frames of AAC have no ADTS header (§E.4.2.2)."""
    for tag in _aac(flv):
        if tag.data[1] == AacPacketType.RAW and tag.data[2:4] in ADTS:
            raise Unmet("a raw frame", f"an ADTS header in {tag}")


@must("FLV 10.1 §E.4.3.1", "frame-types")
def frame_type_and_codec_are_known(flv: FlvData) -> None:
    """Frame type and CodecID of pictures without a FourCC are those of the table (§E.4.3.1)."""
    for tag in flv.of(TagType.VIDEO):
        if tag.is_enhanced or not tag.data:
            continue
        frame, codec = tag.data[0] >> 4, tag.data[0] & 15
        if frame not in tuple(FrameType) or codec not in tuple(CodecId):
            raise Unmet("a frame type and a CodecID", f"{frame} and {codec} in {tag}")


@should('Field §"Beginnings of streams"', "key-frame-first")
def first_picture_is_a_key_frame(flv: FlvData) -> None:
    """The first picture needs no other (Field §"Beginnings of streams")."""
    for tag in flv.of(TagType.VIDEO):
        if tag.data and not _is_header(tag):
            frame = tag.data[0] >> 4 & 7
            if frame not in (FrameType.KEY, FrameType.GENERATED_KEY):
                raise Unmet("a key frame", f"frame type {frame} in {tag}")
            return


@must('Field §"Beginnings of streams"', "headers-first")
def avc_config_comes_before_pictures(flv: FlvData) -> None:
    """The first tag of AVC is its sequence header (Field §"Beginnings of streams")."""
    first = _avc(flv)[0]
    if first.data[1] != AvcPacketType.SEQUENCE_HEADER:
        raise Unmet("a sequence header", f"AVCPacketType {first.data[1]} in {first}")


@must("FLV 10.1 §E.4.3.2", "decoder-configuration")
def avc_config_makes_sense(flv: FlvData) -> None:
    """The sequence header is a whole AVCDecoderConfigurationRecord (§E.4.3.2)."""
    for tag in _avc(flv):
        if tag.data[1] == AvcPacketType.SEQUENCE_HEADER:
            _config(tag)


@must("FLV 10.1 §E.4.3.2", "full-frames")
def nal_units_fill_their_tag(flv: FlvData) -> None:
    """The lengths of the NAL units end where the tag ends (§E.4.3.2)."""
    for _ in _pictures(flv):
        pass


@must("FLV 10.1 §E.4.3.1", "frame-types")
def idr_pictures_are_key_frames(flv: FlvData) -> None:
    """A tag with an IDR slice is of frame type 1, or 4 (§E.4.3.1)."""
    for tag, kinds in _pictures(flv):
        if IDR in kinds and tag.data[0] >> 4 not in (FrameType.KEY, FrameType.GENERATED_KEY):
            raise Unmet("frame type 1", f"{tag.data[0] >> 4} in {tag}")


@should("FLV 10.1 §E.4.3.1", "frame-types")
def key_frames_are_idr_pictures(flv: FlvData) -> None:
    """A tag of frame type 1 has an IDR slice: a player can begin there (§E.4.3.1)."""
    for tag, kinds in _pictures(flv):
        if tag.data[0] >> 4 == FrameType.KEY and 1 in kinds and IDR not in kinds:
            raise Unmet("an IDR slice", f"none in {tag}")


@must("FLV 10.1 §E.4.3.1", "composition-time")
def composition_time_is_for_pictures(flv: FlvData) -> None:
    """CompositionTime is 0 in a sequence header and at a sequence's end (§E.4.3.1)."""
    for tag in _avc(flv):
        if tag.data[1] != AvcPacketType.NALU and tag.data[2:5] != bytes(3):
            raise Unmet("0", f"{tag.data[2:5].hex(' ')} in {tag}")


@should("FLV 10.1 §E.4.3.1", "composition-time")
def pictures_have_times_of_their_own(flv: FlvData) -> None:
    """No two pictures are shown at one time: time and CompositionTime together (§E.4.3.1)."""
    seen: dict[int, RawTag] = {}
    for tag, _ in _pictures(flv):
        time = tag.timestamp + int.from_bytes(tag.data[2:5], "big", signed=True)
        if time in seen:
            raise Unmet(f"another time than {seen[time]}", f"{time} ms in {tag}")
        seen[time] = tag


@must('E-RTMP v2 §"Enhanced Video"', "video-packet-types")
def enhanced_tags_are_whole(flv: FlvData) -> None:
    """Tags with a FourCC are laid out as their packet type says (E-RTMP v2 §"Enhanced Video")."""
    for tag in _enhanced(flv):
        try:
            _ = tag.enhanced
        except RemoteError as error:
            raise Unmet("a whole enhanced tag", f"{error}, in {tag}") from None


@should('E-RTMP v2 §"Enhanced Video"', "video-fourccs")
def four_ccs_are_known(flv: FlvData) -> None:
    """FourCCs are those of the tables (E-RTMP v2 §"Enhanced Video", §"Enhanced Audio")."""
    known = {*map(int, VideoFourCc), *map(int, AudioFourCc)}
    for tag in _enhanced(flv):
        for track in _tracks(tag):
            if track not in known:
                raise Unmet("a FourCC of the tables", f"{four_cc_text(track)!r} in {tag}")


@must('E-RTMP v2 §"Enhanced Video"', "one-sequence-start")
def enhanced_start_comes_before_frames(flv: FlvData) -> None:
    """AV1, HEVC, AVC and VVC have a SequenceStart before frames (E-RTMP v2 §"Enhanced Video")."""
    needs = {int(each) for each in VideoFourCc if each not in (VideoFourCc.VP8, VideoFourCc.VP9)}
    started: set[int] = set()
    for tag in _enhanced(flv):
        body = _body(tag)
        if not isinstance(body, ExVideoTag):
            continue
        codecs = {each.four_cc for each in body.tracks}
        if body.packet_type in STARTS:
            started |= codecs
        elif body.packet_type in FRAMES and codecs & needs - started:
            raise Unmet("SequenceStart before", f"frames in {tag}")


@must('Field §"Beginnings of streams"', "headers-first")
def enhanced_sound_starts_before_frames(flv: FlvData) -> None:
    """AAC with a FourCC has a SequenceStart before frames (Field §"Beginnings of streams")."""
    started: set[int] = set()
    for tag in _enhanced(flv):
        body = _body(tag)
        if isinstance(body, ExVideoTag) or body is None:
            continue
        codecs = {each.four_cc for each in body.tracks}
        if body.packet_type == AudioPacketType.SEQUENCE_START:
            started |= codecs
        elif body.packet_type == AudioPacketType.CODED_FRAMES and AudioFourCc.AAC in (
            codecs - started
        ):
            raise Unmet("SequenceStart before", f"frames in {tag}")


@must("FLV 10.1 §E.4.3.1", "frame-types")
def hevc_pictures_have_their_frame_type(flv: FlvData) -> None:
    """HEVC that needs no other picture alone is a key frame (§E.4.3.1)."""
    found = False
    for tag in _enhanced(flv):
        body = _body(tag)
        if not isinstance(body, ExVideoTag) or body.packet_type not in FRAMES:
            continue
        for track in body.tracks:
            if track.four_cc == VideoFourCc.HEVC:
                found = True
                kinds = {unit[0] >> 1 & 63 for unit in _units(tag, track.data)}
                is_key = bool(kinds & set(RANDOM_ACCESS))
                if is_key != (body.frame_type == FrameType.KEY):
                    raise Unmet(f"key frame: {is_key}", f"frame type {body.frame_type} in {tag}")
    if not found:
        raise NotApplicable("no HEVC with a FourCC")


def _aac(flv: FlvData) -> list[RawTag]:
    if found := [each for each in flv.of(TagType.AUDIO) if each.is_aac]:
        return found
    raise NotApplicable("no AAC")


def _avc(flv: FlvData) -> list[RawTag]:
    if found := [each for each in flv.of(TagType.VIDEO) if each.is_avc]:
        return found
    raise NotApplicable("no AVC")


def _config(tag: RawTag) -> AvcConfig:
    try:
        return AvcConfig.parse(tag.data[5:])
    except RemoteError as error:
        raise Unmet("an AVCDecoderConfigurationRecord", f"{error}, in {tag}") from None


def _pictures(flv: FlvData) -> Iterator[tuple[RawTag, set[int]]]:
    """The AVC tags with pictures, and the types of their NAL units."""
    size = 4
    for tag in _avc(flv):
        if tag.data[1] == AvcPacketType.SEQUENCE_HEADER:
            size = _config(tag).length_size
        elif tag.data[1] == AvcPacketType.NALU:
            yield tag, {unit[0] & 31 for unit in _units(tag, tag.data[5:], size)}


def _units(tag: RawTag, data: bytes, size: int = 4) -> list[bytes]:
    try:
        return [unit for unit in split_units(data, size) if unit]
    except RemoteError as error:
        raise Unmet("NAL units with their lengths", f"{error}, in {tag}") from None


def _is_header(tag: RawTag) -> bool:
    """Whether a tag of video has no picture: a header, an end, or a command."""
    if tag.is_enhanced:
        kind = tag.data[0] & 15
        return kind not in (VideoPacketType.CODED_FRAMES, VideoPacketType.CODED_FRAMES_X)
    return tag.data[0] >> 4 == FrameType.INFO_OR_COMMAND or (
        tag.is_avc and tag.data[1] != AvcPacketType.NALU
    )


def _enhanced(flv: FlvData) -> list[RawTag]:
    if found := [each for each in flv.tags if each.is_enhanced]:
        return found
    raise NotApplicable("no codec with a FourCC")


def _body(tag: RawTag) -> ExVideoTag | ExAudioTag | None:
    """The body of an enhanced tag; another case is about one that is not whole."""
    try:
        return tag.enhanced
    except RemoteError:
        return None


def _tracks(tag: RawTag) -> list[int]:
    body = _body(tag)
    return [] if body is None else [each.four_cc for each in body.tracks]
