"""Cases of the RTMP family's codecs, drawn by the strategies of `rtmplite.strategies`.

Own design: needs Hypothesis, so `catalogue` imports it late.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from rtclab.oracle.cases import Cases, broken, excessive, odd, rarely, valid
from rtclab.oracle.codec import Case, Codec
from rtclab.oracle.rtmplite_codecs import FlvFile
from rtmplite.flv import file
from rtmplite.flv.enhanced import ModExType
from rtmplite.flv.enhanced_audio import AudioFourCc, AudioPacketType, ExAudioTag
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType
from rtmplite.flv.file import FlvHeader
from rtmplite.flv.tag import Tag, TagType
from rtmplite.rtmfp.wire.packet import Mode, Packet
from rtmplite.strategies import (
    amf,
    amf3,
    amf_faults,
    avc,
    avc_faults,
    enhanced,
    enhanced_faults,
    flv,
    flv_faults,
    large,
    limits,
    rtmfp,
    rtmfp_faults,
    rtmp,
    rtmp_faults,
    rtws,
)
from rtmplite.strategies.faults import Drawn, Fault
from rtmplite.strategies.faults import broken as drawn

_T = TypeVar("_T")
_Maker: TypeAlias = Callable[[Codec], Cases]


def _one(item: _T) -> list[_T]:
    """A message of one item."""
    return [item]


def _alone(pair: tuple[bytes, _T]) -> tuple[bytes, list[_T]]:
    """The octets of one item are those of a message."""
    return pair[0], [pair[1]]


def _large_values(codec: Codec) -> SearchStrategy[Case]:
    """Long, deep or wide values, which a reader with limits of its own may refuse."""
    cases = valid(codec, large.values().map(_one))
    return cases.map(lambda case: replace(case, allowed=("error",)))


def _amf0(codec: Codec) -> Cases:
    messages = st.lists(amf.values(), min_size=1, max_size=3)
    graphs = amf.graphs().map(lambda graph: [graph])
    unusual, unagreed = amf.unusual().map(_alone), amf.unagreed().map(_alone)
    return {
        "valid": rarely(_large_values(codec), valid(codec, messages | graphs)),
        "odd": odd(codec, unusual, codec.citation) | odd(codec, unagreed, "AMF3 §3.12", "error"),
        "broken": rarely(
            excessive(drawn(limits.AMF0_LIMITS)),
            broken(drawn(amf_faults.AMF0_FAULTS)),
        ),
    }


def _amf3(codec: Codec) -> Cases:
    messages = st.lists(amf3.values(), min_size=1, max_size=3)
    graphs = amf3.graphs().map(lambda graph: [graph])
    unusual, unagreed = amf3.unusual().map(_alone), amf3.unagreed().map(_alone)
    return {
        "valid": rarely(_large_values(codec), valid(codec, messages | graphs)),
        "odd": odd(codec, unusual, codec.citation) | odd(codec, unagreed, "AMF3 §3.12", "error"),
        "broken": rarely(
            excessive(drawn(limits.AMF3_LIMITS)),
            broken(drawn(amf_faults.AMF3_FAULTS)),
        ),
    }


def _is_reserved(tag: Tag) -> bool:
    return tag.stream_id != 0 or tag.tag_type not in set(TagType)


def _flv_tag(codec: Codec) -> Cases:
    """FLV 10.1 §E.4.1 for reserved types and streams: a reader may refuse them."""
    reserved = flv.reserved_tags().filter(_is_reserved).map(lambda tag: (bytes(tag), tag))
    return {
        "valid": valid(codec, flv.proper_tags()),
        "odd": odd(codec, reserved, codec.citation, "error"),
        "broken": broken(drawn(flv_faults.TAG_FAULTS)),
    }


def _file_of(tags: list[Tag]) -> FlvFile:
    return FlvFile(FlvHeader.parse(file.write_flv(tags)), tuple(tags))


def _miscounted(tags: list[Tag], size: bytes) -> tuple[bytes, FlvFile]:
    """A file with wrong sizes behind its tags, as writers that crash leave them: FLV 10.1 §E.3."""
    data = file.start(False, False) + b"".join(bytes(tag) + size for tag in tags)
    return data, FlvFile(FlvHeader(False, False), tuple(tags))


def _flv(codec: Codec) -> Cases:
    tags = st.lists(flv.proper_tags(), max_size=4)
    miscounted = st.builds(_miscounted, tags, st.binary(min_size=4, max_size=4))
    return {
        "valid": valid(codec, tags.map(_file_of)),
        "odd": odd(codec, miscounted, "FLV 10.1 §E.3", "error"),
        "broken": broken(drawn(flv_faults.FILE_FAULTS)),
    }


def _rtmp(codec: Codec) -> Cases:
    """RTMP 1.0 §5.3: chunk streams, some cut off, and some with chunks that it leaves undefined."""
    messages = st.lists(rtmp.messages(), min_size=1, max_size=4)
    open_ended = odd(codec, rtmp.chunk_streams() | rtmp.cut_streams(), codec.citation)
    tolerated = odd(codec, rtmp.tolerated_streams(), "RTMP 1.0 §5.3.1.2.4", "value", "error")
    return {
        "valid": rarely(valid(codec, large.messages().map(_one)), valid(codec, messages)),
        "odd": rarely(tolerated, open_ended),
        "broken": rarely(
            excessive(drawn(limits.CHUNK_LIMITS)),
            broken(drawn(rtmp_faults.CHUNK_FAULTS)),
        ),
    }


def _damaged(codec: Codec, drawn: Drawn[rtmfp_faults.Chunk], mode: Mode) -> Case:
    """A packet with one damaged chunk, which is left out: RFC 7016 §2.3."""
    fault, (type_id, payload) = drawn
    empty = Packet(mode, ())
    octets = empty.encode() + bytes((type_id,)) + len(payload).to_bytes(2, "big") + payload
    value = codec.to_neutral(empty)
    return Case("broken", fault.clause, octets, value, allowed=("error",))


def _rtmfp(codec: Codec) -> Cases:
    swapped = rtmfp.received_packets().map(lambda pair: (pair[1], pair[0]))
    damaged: SearchStrategy[Case] = st.one_of(
        drawn(rtmfp_faults.STARTUP_FAULTS).map(lambda each: _damaged(codec, each, Mode.STARTUP)),
        drawn(rtmfp_faults.SESSION_FAULTS).map(lambda each: _damaged(codec, each, Mode.INITIATOR)),
    )
    return {
        "valid": valid(codec, rtmfp.packets()),
        "odd": odd(codec, swapped, "RFC 7016 §2.3"),
        "broken": broken(drawn(rtmfp_faults.PACKET_FAULTS)) | damaged,
    }


def _rtws(codec: Codec) -> Cases:
    """Field §"RTWebSocket frames" for those of other kinds: a reader may refuse instead."""
    ignored = rtws.ignored_frames().map(lambda octets: (octets, None))
    return {
        "valid": valid(codec, rtws.any_frame()),
        "odd": odd(codec, rtws.odd_frames(), "RFC 7016 §2.1.2")
        | odd(codec, ignored, codec.citation, "error"),
        "broken": rarely(
            excessive(drawn(rtws.FRAME_LIMITS)),
            broken(drawn(rtws.FRAME_FAULTS)),
        ),
    }


def _h264_config(codec: Codec) -> Cases:
    return {
        "valid": valid(codec, avc.avc_configs()),
        "broken": broken(drawn(avc_faults.CONFIG_FAULTS)),
    }


def _h264_sps(codec: Codec) -> Cases:
    """Sets with any of their optional parts; H.264 leaves to the writer which there are."""
    cut = odd(codec, avc_faults.cut_usability(), "H.264 E.1.1", "error")
    return {
        "odd": rarely(cut, odd(codec, avc.sequence_parameter_sets(), codec.citation)),
        "broken": rarely(
            excessive(drawn(limits.H264_LIMITS)),
            broken(drawn(avc_faults.SPS_FAULTS)),
        ),
    }


def _left_open(tag: ExAudioTag | ExVideoTag, case: Case) -> Case:
    """What is not defined is carried on by some readers, and refused by others.

    E-RTMP v2 §"Enhanced Video".
    """
    video = isinstance(tag, ExVideoTag)
    codecs = tuple(VideoFourCc if video else AudioFourCc)
    kinds = tuple(VideoPacketType if video else AudioPacketType)
    is_known = (
        (tag.packet_type in kinds or not tag.tracks)
        and all(track.four_cc in codecs for track in tag.tracks)
        and all(each.kind in tuple(ModExType) for each in tag.mod_ex)
    )
    return case if is_known else replace(case, allowed=("error",))


def _enhanced(
    codec: Codec,
    tags: SearchStrategy[ExAudioTag] | SearchStrategy[ExVideoTag],
    wrong: Sequence[Fault[bytes]],
    above: Sequence[Fault[bytes]],
) -> Cases:
    def case(tag: ExAudioTag | ExVideoTag) -> Case:
        return _left_open(tag, Case("valid", codec.citation, bytes(tag), codec.to_neutral(tag)))

    many = large.tracks().filter(lambda tag: isinstance(tag, codec.hint))
    return {
        "valid": rarely(many.map(case), tags.map(case)),
        "broken": rarely(excessive(drawn(above)), broken(drawn(wrong))),
    }


def _enhanced_audio(codec: Codec) -> Cases:
    tags, wrong = enhanced.audio_tags(), enhanced_faults.AUDIO_FAULTS
    return _enhanced(codec, tags, wrong, limits.AUDIO_LIMITS)


def _enhanced_video(codec: Codec) -> Cases:
    tags, wrong = enhanced.video_tags(), enhanced_faults.VIDEO_FAULTS
    return _enhanced(codec, tags, wrong, limits.VIDEO_LIMITS)


CASES: Final[Mapping[str, _Maker]] = {
    "amf0": _amf0,
    "amf3": _amf3,
    "flv-tag": _flv_tag,
    "flv": _flv,
    "enhanced-audio": _enhanced_audio,
    "enhanced-video": _enhanced_video,
    "rtmp": _rtmp,
    "rtmfp": _rtmfp,
    "rtws": _rtws,
    "h264-config": _h264_config,
    "h264-sps": _h264_sps,
}
