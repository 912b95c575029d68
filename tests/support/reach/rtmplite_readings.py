"""The parsers of the RTMP family, and what the strategies draw for them."""

from support.reach.reading import Family, of_oracle

from rtmplite.amf import amf0, amf3, amf3_reader, cursor, externals, u29
from rtmplite.flv import avc, avc_sps, file, tag
from rtmplite.rtmfp.wire import (
    acks,
    address,
    chunks,
    control_chunks,
    flow_chunks,
    option,
    packet,
    startup_chunks,
    vlu,
)
from rtmplite.rtmp.wire import chunk, chunk_header, chunk_reader, control, message

_PARSERS = (
    *(amf0, amf3, amf3_reader, cursor, externals, u29),
    *(avc, avc_sps, file, tag),
    *(acks, address, chunks, control_chunks, flow_chunks, option, packet, startup_chunks, vlu),
    *(chunk, chunk_header, chunk_reader, control, message),
)

FAMILY = Family(
    _PARSERS,
    of_oracle("amf0", "amf3", "flv-tag", "flv", "rtmp", "rtmfp", "h264-config", "h264-sps"),
)
