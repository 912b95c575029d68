"""Cases of the RTMP family's codecs, drawn by the strategies of `rtmplite.strategies`.

Own design: needs Hypothesis, so `catalogue` imports it late.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from rtmplite.flv import file
from rtmplite.flv.file import FlvHeader
from rtmplite.flv.tag import Tag
from rtmplite.rtmfp.wire.packet import Mode, Packet
from rtmplite.strategies import (
    amf,
    amf3,
    amf_faults,
    avc,
    flv,
    flv_faults,
    rtmfp,
    rtmfp_faults,
    rtmp,
    rtmp_faults,
)
from rtmplite.strategies.faults import Drawn
from siprtmp.oracle.cases import Cases, broken, odd, valid
from siprtmp.oracle.codec import Case, Codec
from siprtmp.oracle.rtmplite_codecs import FlvFile

_Maker: TypeAlias = Callable[[Codec], Cases]


def _amf0(codec: Codec) -> Cases:
    messages = st.lists(amf.values(), min_size=1, max_size=3)
    graphs = amf.graphs().map(lambda graph: [graph])
    unusual = amf.unusual().map(lambda pair: (pair[0], [pair[1]]))
    return {
        "valid": valid(codec, messages | graphs),
        "odd": odd(codec, unusual, codec.citation),
        "broken": broken(amf_faults.amf0_messages()),
    }


def _amf3(codec: Codec) -> Cases:
    messages = st.lists(amf3.values(), min_size=1, max_size=3)
    graphs = amf3.graphs().map(lambda graph: [graph])
    unusual = amf3.unusual().map(lambda pair: (pair[0], [pair[1]]))
    return {
        "valid": valid(codec, messages | graphs),
        "odd": odd(codec, unusual, codec.citation),
        "broken": broken(amf_faults.amf3_messages()),
    }


def _flv_tag(codec: Codec) -> Cases:
    return {"valid": valid(codec, flv.tags()), "broken": broken(flv_faults.broken_tags())}


def _file_of(tags: list[Tag]) -> FlvFile:
    return FlvFile(FlvHeader.parse(file.write_flv(tags)), tuple(tags))


def _miscounted(tags: list[Tag], size: bytes) -> tuple[bytes, FlvFile]:
    """A file with wrong sizes behind its tags, as writers that crash leave them: FLV 10.1 §E.3."""
    data = file.start(False, False) + b"".join(bytes(tag) + size for tag in tags)
    return data, FlvFile(FlvHeader(False, False), tuple(tags))


def _flv(codec: Codec) -> Cases:
    tags = st.lists(flv.tags(), max_size=4)
    miscounted = st.builds(_miscounted, tags, st.binary(min_size=4, max_size=4))
    return {
        "valid": valid(codec, tags.map(_file_of)),
        "odd": odd(codec, miscounted, "FLV 10.1 §E.3", "error"),
        "broken": broken(flv_faults.broken_files()),
    }


def _rtmp(codec: Codec) -> Cases:
    messages = st.lists(rtmp.messages(), min_size=1, max_size=4)
    return {
        "valid": valid(codec, messages),
        "odd": odd(codec, rtmp.chunk_streams(), codec.citation),
        "broken": broken(rtmp_faults.chunk_stream_faults()),
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
        rtmfp_faults.startup_chunks().map(lambda each: _damaged(codec, each, Mode.STARTUP)),
        rtmfp_faults.session_chunks().map(lambda each: _damaged(codec, each, Mode.INITIATOR)),
    )
    return {
        "valid": valid(codec, rtmfp.packets()),
        "odd": odd(codec, swapped, "RFC 7016 §2.3"),
        "broken": broken(rtmfp_faults.packets()) | damaged,
    }


def _h264_config(codec: Codec) -> Cases:
    return {"valid": valid(codec, avc.avc_configs())}


def _h264_sps(codec: Codec) -> Cases:
    """Sets with any of their optional parts; H.264 leaves to the writer which there are."""
    return {"odd": odd(codec, avc.sequence_parameter_sets(), codec.citation)}


CASES: Final[Mapping[str, _Maker]] = {
    "amf0": _amf0,
    "amf3": _amf3,
    "flv-tag": _flv_tag,
    "flv": _flv,
    "rtmp": _rtmp,
    "rtmfp": _rtmfp,
    "h264-config": _h264_config,
    "h264-sps": _h264_sps,
}
