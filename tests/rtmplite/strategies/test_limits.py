"""Our readers refuse what is beyond their own limits, and say which."""

import pytest
from support.faults import refused

from rtmplite.amf import amf0, amf3
from rtmplite.errors import RemoteError
from rtmplite.flv.avc import SequenceParameters
from rtmplite.flv.enhanced_audio import ExAudioTag
from rtmplite.flv.enhanced_video import ExVideoTag
from rtmplite.rtmfp.crypto.certificate import Certificate
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.keying import Component
from rtmplite.rtmp.wire.aggregate import aggregated
from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import MessageType
from rtmplite.rtmp.wire.shared_object import SharedObject
from rtmplite.strategies import limits

DEEP, MEMORY = "nested more than 64 deep", "far more memory than their message"
MEDIA = {"too many modifiers": "more than 16 ModEx", "too many tracks": "more than 256 tracks"}
OPTIONS = {"too many options": "more than 64 options", "too many markers": "more than 64 Markers"}
CHUNKS = {
    "flood of media": "a flood",
    "flood of messages of type 0": "a flood",
    "too many chunk streams": "more than 4096 chunk streams",
}
MESSAGES = {
    "long command": "a command of [0-9]+ bytes",
    "long shared object": "a shared object message of [0-9]+ bytes",
    "too many events": "or too many",
    "too many parts": "more than 1024 parts",
}
READERS = {
    MessageType.COMMAND: Command.parse,
    MessageType.SHARED_OBJECT: SharedObject.parse,
    MessageType.AGGREGATE: lambda message: list(aggregated(message)),
}
SIZE = "a picture beyond the limits"


@pytest.mark.parametrize(
    ("beyond", "read", "reasons"),
    [
        (
            limits.amf0_messages(),
            amf0.decode,
            {"nested too deep": DEEP, "too many small objects": MEMORY},
        ),
        (
            limits.amf3_messages(),
            amf3.decode,
            {"nested too deep": DEEP, "too many small arrays": MEMORY},
        ),
        (limits.chunk_streams(), lambda data: ChunkReader().feed(data), CHUNKS),
        (limits.messages(), lambda message: READERS[message.type_id](message), MESSAGES),
        (limits.audio_payloads(), ExAudioTag.parse, MEDIA),
        (limits.video_payloads(), ExVideoTag.parse, MEDIA),
        (limits.h264_sets(), SequenceParameters.parse, {"too wide": SIZE, "too high": SIZE}),
        (limits.option_fields(), Certificate.parse, OPTIONS),
        (limits.option_fields(), Epd.parse, OPTIONS),
        (limits.option_fields(), Component.parse, OPTIONS),
    ],
    ids=["AMF0", "AMF3", "chunks", "message", "audio", "video", "H.264", "cert", "epd", "keying"],
)
def test_each_limit_is_kept(beyond, read, reasons):
    """Covers AMF0 §2.5, AMF3 §3.11 and §3.12, RTMP 1.0 §5.3 and §7.1, RFC 7425 §4.3.1.

    And E-RTMP v2 §"Enhanced Audio" and E-RTMP v2 §"Enhanced Video".
    """
    refused(beyond, read, RemoteError, reasons)
