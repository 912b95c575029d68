"""Input that goes beyond a limit of this library, where the specification has none.

Own design: nothing is wrong with it, so that another reader may well accept it; ours refuses it, to
keep memory and time in proportion.  A fault is a limit, and its `clause` leaves the number open.
What is just within the limits is in `rtmplite.strategies.large`.
"""

from struct import pack
from typing import Final

from hypothesis import strategies as st

from rtmplite.amf import amf0, u29
from rtmplite.amf.cursor import MAX_DEPTH
from rtmplite.flv.avc import SPS
from rtmplite.flv.enhanced import MAX_MOD_EX, MAX_TRACKS
from rtmplite.rtmfp.crypto.fields import OPTIONS_MOST
from rtmplite.rtmfp.wire.option import MARKER, Option, encode_options
from rtmplite.rtmp.wire.aggregate import MAX_PARTS
from rtmplite.rtmp.wire.chunk_reader import MAX_STREAMS
from rtmplite.rtmp.wire.command import MAX_COMMAND
from rtmplite.rtmp.wire.message import Message, MessageType
from rtmplite.rtmp.wire.shared_object import MAX_EVENTS, MAX_MESSAGE
from rtmplite.strategies.avc import BitWriter
from rtmplite.strategies.faults import Fault, Octets

_MORE: Final = st.integers(1, 9)  # than a limit
_TINY: Final = 4096  # objects, whose octets say so little that they take the budget for memory


def _nested(*opened: tuple[bytes, bytes]) -> Octets:
    """Containers in each other, of one kind: what begins one, and what ends it."""
    depths = _MORE.map(MAX_DEPTH.__add__)
    return st.builds(
        lambda ends, depth: ends[0] * depth + b"\x05" + ends[1] * depth,
        st.sampled_from(opened),
        depths,
    )


_OBJECTS: Final = b"\x0a" + pack(">I", _TINY) + b"\x03\0\1a\x05\0\0\x09" * _TINY
_ARRAYS: Final = b"\x09" + u29.pack(_TINY << 1 | 1) + b"\x01" + b"\x09\1\1" * _TINY

AMF0_LIMITS: Final = (
    Fault(
        "nested too deep", "AMF0 §2.5", _nested((b"\x0a\0\0\0\1", b""), (b"\x03\0\1a", b"\0\0\x09"))
    ),
    Fault("too many small objects", "AMF0 §2.5", st.just(_OBJECTS)),
)
"""The limits for AMF0: AMF0 §2.5."""

AMF3_LIMITS: Final = (
    Fault("nested too deep", "AMF3 §3.12", _nested((b"\x09\3\1", b""), (b"\x0a\x0b\1\3a", b"\1"))),
    Fault("too many small arrays", "AMF3 §3.11", st.just(_ARRAYS)),
)
"""The limits for AMF3: AMF3 §3.11, §3.12."""


def _flood(type_id: int) -> Octets:
    """Messages of no octets, each but the first in one octet: RTMP 1.0 §5.3.1.2.4."""
    first = b"\x04\0\0\0\0\0\0" + bytes((type_id,)) + bytes(4)
    return st.integers(600, 700).map(lambda count: first + b"\xc4" * count)


def _begin(number: int) -> bytes:
    """Begin a chunk stream with a message of no octets: RTMP 1.0 §5.3.1.1."""
    low, high = number - 64 & 0xFF, number - 64 >> 8
    return bytes((1, low, high, 0, 0, 0, 0, 0, 0, MessageType.AUDIO, 0, 0, 0, 0))


CHUNK_LIMITS: Final = (
    Fault("flood of media", "RTMP 1.0 §5.3", _flood(MessageType.AUDIO)),
    Fault("flood of messages of type 0", "RTMP 1.0 §5.3", _flood(0)),
    Fault(
        "too many chunk streams",
        "RTMP 1.0 §5.3.1.1",
        st.integers(64, 300).map(
            lambda first: b"".join(map(_begin, range(first, first + MAX_STREAMS + 1)))
        ),
    ),
)
"""The limits for chunk streams: RTMP 1.0 §5.3."""


def _message(name: str, section: str, type_id: int, payload: bytes) -> Fault[Message]:
    drawn = st.builds(Message, st.just(type_id), st.just(0), st.integers(0, 1), st.just(payload))
    return Fault(name, f"RTMP 1.0 §{section}", drawn)


_OBJECT: Final = b"\x00\x01s" + bytes(12)  # name, version and flags of a shared object
_PART: Final = bytes((MessageType.AUDIO, *bytes(14)))  # of an aggregate: no octets, and its size

MESSAGE_LIMITS: Final = (
    _message(
        "long command",
        "7.1.1",
        MessageType.COMMAND,
        amf0.encode("play", 0.0, None, "a" * MAX_COMMAND),
    ),
    _message(
        "long shared object",
        "7.1.3",
        MessageType.SHARED_OBJECT,
        _OBJECT + pack(">BI", 99, MAX_MESSAGE) + bytes(MAX_MESSAGE),
    ),
    _message(
        "too many events",
        "7.1.3",
        MessageType.SHARED_OBJECT,
        _OBJECT + b"\x08\0\0\0\0" * (MAX_EVENTS + 1),
    ),
    _message("too many parts", "7.1.6", MessageType.AGGREGATE, _PART * (MAX_PARTS + 1)),
)
"""The limits for messages: RTMP 1.0 §7.1."""


def _media(clause: str, modified: int, tracks: int) -> tuple[Fault[bytes], ...]:
    """The limits of both media, by the first octets of either: modifiers, and tracks."""
    offset = b"\x02\0\0\1"
    modifiers = _MORE.map(lambda more: offset + (b"\x07" + offset) * (MAX_MOD_EX - 1 + more))
    many = _MORE.map(lambda more: b"".join(bytes((n & 0xFF, 0, 0, 0)) for n in range(256 + more)))
    assert MAX_TRACKS == 256
    return (
        Fault(
            "too many modifiers",
            clause,
            modifiers.map(lambda chain: bytes((modified,)) + chain + b"\x01Opus"),
        ),
        Fault(
            "too many tracks", clause, many.map(lambda all_: bytes((tracks, 0x11)) + b"Opus" + all_)
        ),
    )


AUDIO_LIMITS: Final = _media('E-RTMP v2 §"Enhanced Audio"', 0x97, 0x95)
"""The limits for enhanced audio: E-RTMP v2 §"Enhanced Audio"."""

VIDEO_LIMITS: Final = _media('E-RTMP v2 §"Enhanced Video"', 0x97, 0x96)
"""The limits for enhanced video: E-RTMP v2 §"Enhanced Video"."""


def _large(across: int, down: int) -> bytes:
    """A sequence parameter set of the baseline, by its size in macroblocks."""
    bits = BitWriter()
    bits.put(24, 0x42_00_0C)
    bits.exp_golomb(0, 0, 2, 1)
    bits.put(1, 0)
    bits.exp_golomb(across - 1, down - 1)
    bits.put(4, 0xC)
    return bits.unit(0x60 | SPS)


_BEYOND: Final = st.integers(1056, 9999)  # macroblocks

H264_LIMITS: Final = (
    Fault("too wide", "H.264 A.3.1", _BEYOND.map(lambda side: _large(side, 9))),
    Fault("too high", "H.264 A.3.1", _BEYOND.map(lambda side: _large(9, side))),
)
"""The limits for sequence parameter sets: H.264, clause A.3.1."""

_OPTIONS: Final = _MORE.map(lambda more: encode_options([Option(0x55)] * (OPTIONS_MOST + more)))

OPTION_LIMITS: Final = (
    Fault("too many options", "RFC 7425 §4.3.1", _OPTIONS),
    Fault(
        "too many markers",
        "RFC 7425 §4.3.1",
        _MORE.map((OPTIONS_MOST + 1).__add__).map(MARKER.__mul__),
    ),
)
"""The limits for fields of options: RFC 7425 §4.3.1."""
