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
from rtmplite.strategies.faults import broken

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
            broken(limits.AMF0_LIMITS),
            amf0.decode,
            {"nested too deep": DEEP, "too many small objects": MEMORY},
        ),
        (
            broken(limits.AMF3_LIMITS),
            amf3.decode,
            {"nested too deep": DEEP, "too many small arrays": MEMORY},
        ),
        (broken(limits.CHUNK_LIMITS), lambda data: ChunkReader().feed(data), CHUNKS),
        (
            broken(limits.MESSAGE_LIMITS),
            lambda message: READERS[message.type_id](message),
            MESSAGES,
        ),
        (broken(limits.AUDIO_LIMITS), ExAudioTag.parse, MEDIA),
        (broken(limits.VIDEO_LIMITS), ExVideoTag.parse, MEDIA),
        (
            broken(limits.H264_LIMITS),
            SequenceParameters.parse,
            {"too wide": SIZE, "too high": SIZE},
        ),
        (broken(limits.OPTION_LIMITS), Certificate.parse, OPTIONS),
        (broken(limits.OPTION_LIMITS), Epd.parse, OPTIONS),
        (broken(limits.OPTION_LIMITS), Component.parse, OPTIONS),
    ],
    ids=["AMF0", "AMF3", "chunks", "message", "audio", "video", "H.264", "cert", "epd", "keying"],
)
def test_each_limit_is_kept(beyond, read, reasons):
    """Covers AMF0 §2.5, AMF3 §3.11 and §3.12, RTMP 1.0 §5.3 and §7.1, RFC 7425 §4.3.1.

    And E-RTMP v2 §"Enhanced Audio" and E-RTMP v2 §"Enhanced Video".
    """
    refused(beyond, read, RemoteError, reasons)
