"""The codecs of the RTMP family: AMF, FLV, enhanced media, RTMP, RTMFP, RTWebSocket, H.264's sets.

Own design: a table; each codec is a module of `rtmplite`, which has the citations.
"""

from dataclasses import dataclass
from typing import Final

from rtclab.oracle import amf_neutral
from rtclab.oracle.codec import Codec
from rtmplite.amf import amf0, amf3
from rtmplite.amf.values import Value
from rtmplite.flv import file
from rtmplite.flv.avc import AvcConfig, SequenceParameters
from rtmplite.flv.enhanced_audio import ExAudioTag
from rtmplite.flv.enhanced_video import ExVideoTag
from rtmplite.flv.file import FlvHeader
from rtmplite.flv.tag import Tag
from rtmplite.rtmfp.wire.packet import Packet
from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.chunk_writer import ChunkWriter
from rtmplite.rtmp.wire.control import SetChunkSize
from rtmplite.rtmp.wire.message import Message, MessageType
from rtmplite.rtws.frames import Frame, parse_frame

CHUNK_STREAM: Final = 3  # that all messages are written on


@dataclass(frozen=True, slots=True)
class FlvFile:
    """A whole file: FLV 10.1 §E.2, §E.3."""

    header: FlvHeader
    tags: tuple[Tag, ...]


def _read_file(data: bytes) -> FlvFile:
    header, tags = file.read_flv(data)
    return FlvFile(header, tuple(tags))


def _write_file(flv: FlvFile) -> bytes:
    return bytes(flv.header) + bytes(4) + b"".join(map(file.framed, flv.tags))


def _read_chunks(data: bytes) -> list[Message]:
    return ChunkReader().feed(data)


def _write_chunks(messages: list[Message]) -> bytes:
    writer, parts = ChunkWriter(), []
    for message in messages:
        parts.append(writer.write(message, CHUNK_STREAM))
        if message.type_id == MessageType.SET_CHUNK_SIZE:  # RTMP 1.0 §5.4.1
            writer.chunk_size = SetChunkSize.parse(message.payload).size
    return b"".join(parts)


def _write_values(values: list[Value]) -> bytes:
    return amf0.encode(*values)


def _write_values3(values: list[Value]) -> bytes:
    return amf3.encode(*values)


_AMF0_CLAUSES: Final = {
    "double": "AMF0 §2.2",
    "object": "AMF0 §2.5",
    "undefined": "AMF0 §2.8",
    "reference": "AMF0 §2.9",
    "ecma-array": "AMF0 §2.10",
    "strict-array": "AMF0 §2.12",
    "date": "AMF0 §2.13",
    "unsupported": "AMF0 §2.15",
    "xml-document": "AMF0 §2.17",
    "typed-object": "AMF0 §2.18",
}
_AMF3_CLAUSES: Final = {
    "undefined": "AMF3 §3.2",
    "integer": "AMF3 §3.6",
    "double": "AMF3 §3.7",
    "xml-document": "AMF3 §3.9",
    "date": "AMF3 §3.10",
    "array": "AMF3 §3.11",
    "ecma-array": "AMF3 §3.11",
    "strict-array": "AMF3 §3.11",
    "object": "AMF3 §3.12",
    "typed-object": "AMF3 §3.12",
    "externalizable": "AMF3 §3.12",
    "xml": "AMF3 §3.13",
    "byte-array": "AMF3 §3.14",
    "vector": "AMF3 §3.15",
    "dictionary": "AMF3 §3.16",
    "reference": "AMF3 §2.2",
}

CODECS: Final = (
    Codec(
        "amf0",
        "AMF0 §2",
        "the values of one message",
        list[Value],
        amf0.decode,
        _write_values,
        amf_neutral.write,
        amf_neutral.read,
        _AMF0_CLAUSES,
        amf_neutral.SHAPE,
    ),
    Codec(
        "amf3",
        "AMF3 §3",
        "the values of one message",
        list[Value],
        amf3.decode,
        _write_values3,
        amf_neutral.write,
        amf_neutral.read,
        _AMF3_CLAUSES,
        amf_neutral.SHAPE,
    ),
    Codec("flv-tag", "FLV 10.1 §E.4.1", "a tag, without the size behind it", Tag, Tag.parse),
    Codec(
        "flv",
        "FLV 10.1 §E.3",
        "a whole file",
        FlvFile,
        _read_file,
        _write_file,
        clauses={"header": "FLV 10.1 §E.2", "tags": "FLV 10.1 §E.4.1"},
    ),
    Codec(
        "enhanced-audio",
        'E-RTMP v2 §"Enhanced Audio"',
        "audio whose codecs have FourCCs, without a tag",
        ExAudioTag,
        ExAudioTag.parse,
    ),
    Codec(
        "enhanced-video",
        'E-RTMP v2 §"Enhanced Video"',
        "video whose codecs have FourCCs, without a tag",
        ExVideoTag,
        ExVideoTag.parse,
    ),
    Codec(
        "rtmp",
        "RTMP 1.0 §5.3",
        "the messages of a chunk stream, which begins behind the handshake",
        list[Message],
        _read_chunks,
        _write_chunks,
        clauses={
            "timestamp": "RTMP 1.0 §5.3.1.2",
            "stream_id": "RTMP 1.0 §5.3.1.2.5",
            "type_id": "RTMP 1.0 §5.3.1.2.1",
        },
    ),
    Codec(
        "rtmfp",
        "RFC 7016 §2.2.4",
        "a plain packet with its chunks and padding",
        Packet,
        Packet.parse,
        Packet.encode,
        clauses={
            "fragment": "RFC 7016 §2.3.1",
            "initiator-hello": "RFC 7016 §2.3.2",
            "forwarded-initiator-hello": "RFC 7016 §2.3.3",
            "responder-hello": "RFC 7016 §2.3.4",
            "responder-redirect": "RFC 7016 §2.3.5",
            "rhello-cookie-change": "RFC 7016 §2.3.6",
            "initiator-initial-keying": "RFC 7016 §2.3.7",
            "responder-initial-keying": "RFC 7016 §2.3.8",
            "ping": "RFC 7016 §2.3.9",
            "ping-reply": "RFC 7016 §2.3.10",
            "user-data": "RFC 7016 §2.3.11",
            "next-user-data": "RFC 7016 §2.3.12",
            "data-ack-bitmap": "RFC 7016 §2.3.13",
            "data-ack-ranges": "RFC 7016 §2.3.14",
            "buffer-probe": "RFC 7016 §2.3.15",
            "flow-exception": "RFC 7016 §2.3.16",
            "session-close": "RFC 7016 §2.3.17",
            "session-close-ack": "RFC 7016 §2.3.18",
            "unknown-chunk": "RFC 7016 §2.3",
            "options": "RFC 7016 §2.1.4",
        },
    ),
    Codec(
        "rtws",
        'Field §"RTWebSocket frames"',
        "a frame of RTWebSocket, null for one that is ignored",
        Frame | None,
        parse_frame,
        clauses={
            "ack-window": 'Field §"RTWebSocket acknowledgements"',
            "data-ack": 'Field §"RTWebSocket acknowledgements"',
        },
    ),
    Codec(
        "h264-config",
        "FLV 10.1 §E.4.3.2",
        "the record with a decoder's parameter sets",
        AvcConfig,
        AvcConfig.parse,
    ),
    Codec(
        "h264-sps",
        "H.264 7.3.2.1.1",
        "the fields of a sequence parameter set, read only",
        SequenceParameters,
        SequenceParameters.parse,
        None,
    ),
)
