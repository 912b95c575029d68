"""Payloads of video and audio that every reader must refuse, one fault at a time.

Own design: `p2psip.strategies.faults` says why faults are drawn one at a time.
The clauses are of RFC 6184 §5, RFC 7798 §4.4, RFC 7741 §4.2, RFC 3640 §3.2.1, RFC 6716 §3.2,
RFC 2198 §3, RFC 3389 §3.3, RFC 3551 §4.5.11 and RFC 5574 §3.3.
"""

from struct import pack
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from p2psip.rtp.payload.speex import MAX_FRAMES, MAX_OCTETS
from p2psip.strategies.faults import Drawn, MediaFault, Octets, broken
from p2psip.strategies.video import h265_units, nal_units, vp8_descriptors

_SOME: Final = st.binary(min_size=1, max_size=20)
_ANY: Final = st.binary(max_size=20)
_NOTHING: Final = st.just(b"")


def _joined(*parts: Octets) -> Octets:
    return st.tuples(*parts).map(b"".join)


def _octet(values: SearchStrategy[int]) -> Octets:
    return values.map(lambda value: bytes((value,)))


def _cut(whole: Octets) -> Octets:
    return whole.flatmap(lambda data: st.integers(0, len(data) - 1).map(lambda end: data[:end]))


def _sized(unit: bytes) -> bytes:
    return pack("!H", len(unit)) + unit


def _beyond(units: Octets) -> Octets:
    """A unit behind a size that is larger."""
    return st.builds(
        lambda unit, more: pack("!H", len(unit) + more) + unit, units, st.integers(1, 999)
    )


_STAP_A, _FU_A = st.sampled_from([b"\x18", b"\x78"]), st.sampled_from([b"\x1c", b"\x7c"])
_NO_UNIT: Final = st.integers(24, 29)  # types of packets: RFC 6184 §5.4 Table 3
_SIZED_UNIT: Final = nal_units().map(_sized)
_FEW: Final = st.lists(_SIZED_UNIT, max_size=2).map(b"".join)

H264_FAULTS: Final = (
    MediaFault("nothing", "RFC 6184 §5.3", _NOTHING),
    MediaFault("fragment cut", "RFC 6184 §5.8", _FU_A),
    MediaFault(
        "fragment of a packet",
        "RFC 6184 §5.8",
        _joined(_FU_A, _octet(_NO_UNIT.map((0x80).__or__)), _ANY),
    ),
    MediaFault("aggregate of nothing", "RFC 6184 §5.7.1", _STAP_A),
    MediaFault("size cut", "RFC 6184 §5.7.1", _joined(_STAP_A, _FEW, st.just(b"\0"))),
    MediaFault("unit beyond the end", "RFC 6184 §5.7.1", _joined(_STAP_A, _FEW, _beyond(_ANY))),
    MediaFault("unit of nothing", "RFC 6184 §5.7.1", _joined(_STAP_A, _FEW, st.just(b"\0\0"))),
    MediaFault(
        "aggregate of packets",
        "RFC 6184 §5.7",
        _joined(_STAP_A, _FEW, _joined(_octet(_NO_UNIT), _ANY).map(_sized)),
    ),
    MediaFault(
        "interleaved packet",
        "RFC 6184 §6.3",
        _joined(_octet(st.sampled_from([25, 26, 27, 29])), _ANY),
    ),
)
"""Every fault of a payload of packetization modes 0 and 1: RFC 6184 §5, §6.3."""


def _h265(kinds: SearchStrategy[int]) -> Octets:
    """The header of a payload or a NAL unit of some type: RFC 7798 §1.1.4."""
    return kinds.map(lambda kind: bytes((kind << 1, 1)))


_AP, _FU, _PACI = _h265(st.just(48)), _h265(st.just(49)), _h265(st.just(50))
_FEW_H265: Final = st.lists(h265_units().map(_sized), max_size=2).map(b"".join)

H265_FAULTS: Final = (
    MediaFault("header cut", "RFC 7798 §4.4", _cut(_h265(st.integers(0, 63)))),
    MediaFault("fragment header cut", "RFC 7798 §4.4.3", _FU),
    MediaFault("fragment of nothing", "RFC 7798 §4.4.3", _joined(_FU, _octet(st.integers(0, 47)))),
    MediaFault(
        "fragment of a packet", "RFC 7798 §4.4.3", _joined(_FU, _octet(st.integers(48, 63)), _SOME)
    ),
    MediaFault("aggregate of nothing", "RFC 7798 §4.4.2", _AP),
    MediaFault("size cut", "RFC 7798 §4.4.2", _joined(_AP, _FEW_H265, st.just(b"\0"))),
    MediaFault("unit beyond the end", "RFC 7798 §4.4.2", _joined(_AP, _FEW_H265, _beyond(_ANY))),
    MediaFault(
        "unit of one octet", "RFC 7798 §4.4.2", _joined(_AP, _FEW_H265, st.just(b"\0\1\x02"))
    ),
    MediaFault(
        "aggregate of packets",
        "RFC 7798 §4.4.2",
        _joined(_AP, _FEW_H265, _joined(_h265(st.sampled_from([48, 49])), _ANY).map(_sized)),
    ),
    MediaFault(
        "PACI cut", "RFC 7798 §4.4.4", _joined(_PACI, _cut(st.binary(min_size=2, max_size=2)))
    ),
    MediaFault(
        "PACI within a PACI", "RFC 7798 §4.4.4", _joined(_PACI, st.just(pack("!H", 50 << 9)), _ANY)
    ),
    MediaFault(
        "PACI extension cut",
        "RFC 7798 §4.4.4",
        st.integers(1, 31).flatmap(
            lambda size: _joined(
                _PACI, st.just(pack("!H", 1 << 9 | size << 4)), st.binary(max_size=size - 1)
            )
        ),
    ),
)
"""Every fault of a payload of one stream in the order of decoding: RFC 7798 §4.4."""

VP8_FAULTS: Final = (
    MediaFault("nothing", "RFC 7741 §4.2", _NOTHING),
    MediaFault(
        "descriptor cut",
        "RFC 7741 §4.2",
        _cut(vp8_descriptors().map(bytes).filter(lambda data: len(data) > 1)),
    ),
)
"""Every fault of a descriptor: RFC 7741 §4.2."""


def _aac(headers: list[int], data: bytes) -> bytes:
    words = b"".join(pack("!H", header) for header in headers)
    return pack("!H", 8 * len(words)) + words + data


_TWO: Final = st.tuples(_SOME, _SOME)

AAC_FAULTS: Final = (
    MediaFault("length cut", "RFC 3640 §3.2.1", st.binary(max_size=1)),
    MediaFault(
        "half a header",
        "RFC 3640 §3.3.6",
        st.builds(
            lambda bits, data: pack("!HH", 16 + bits, len(data) << 3) + data,
            st.integers(1, 15),
            _SOME,
        ),
    ),
    MediaFault(
        "headers beyond the end",
        "RFC 3640 §3.2.1",
        st.builds(lambda count, data: pack("!H", 16 * count) + data, st.integers(11, 64), _ANY),
    ),
    MediaFault(
        "no frame",
        "RFC 3640 §3.2.1",
        st.lists(st.integers(1, 99), max_size=4).map(
            lambda sizes: _aac([size << 3 for size in sizes], b"")
        ),
    ),
    MediaFault("no header", "RFC 3640 §3.3.6", _SOME.map(lambda data: _aac([], data))),
    MediaFault(
        "interleaved frames",
        "RFC 3640 §3.3.6",
        st.builds(
            lambda two, delta: _aac([len(two[0]) << 3, len(two[1]) << 3 | delta], b"".join(two)),
            _TWO,
            st.integers(1, 7),
        ),
    ),
    MediaFault(
        "octets behind the frame",
        "RFC 3640 §3.3.6",
        _TWO.map(lambda two: _aac([len(two[0]) << 3], b"".join(two))),
    ),
    MediaFault(
        "frame of nothing",
        "RFC 3640 §3.2.1.1",
        _SOME.map(lambda data: _aac([0, len(data) << 3], data)),
    ),
    MediaFault(
        "frames beyond the end",
        "RFC 3640 §3.2.1.1",
        _TWO.map(lambda two: _aac([len(two[0]) << 3, len(two[1]) + 1 << 3], b"".join(two))),
    ),
)
"""Every fault of a payload in the mode AAC-hbr: RFC 3640 §3.2.1, §3.3.6."""

_ODD: Final = st.integers(0, 9).map(lambda size: bytes(2 * size + 1))


def _opus(code: int, rest: Octets) -> Octets:
    return _joined(_octet(st.integers(0, 63).map(lambda high: high << 2 | code)), rest)


OPUS_FAULTS: Final = (
    MediaFault("nothing", "RFC 6716 §3.1", _NOTHING),
    MediaFault("frame of 1276 octets", "RFC 6716 §3.2.1", _opus(0, st.just(bytes(1276)))),
    MediaFault("two frames of odd length", "RFC 6716 §3.2.3", _opus(1, _ODD)),
    MediaFault("length missing", "RFC 6716 §3.2.4", _opus(2, _NOTHING)),
    MediaFault("length cut", "RFC 6716 §3.2.4", _opus(2, _octet(st.integers(252, 255)))),
    MediaFault(
        "frame beyond the end",
        "RFC 6716 §3.2.4",
        _opus(2, _joined(_octet(st.integers(21, 251)), _ANY)),
    ),
    MediaFault("count missing", "RFC 6716 §3.2.5", _opus(3, _NOTHING)),
    MediaFault(
        "no frames",
        "RFC 6716 §3.2.5",
        _opus(3, _joined(_octet(st.sampled_from([0x00, 0x80])), _ANY)),
    ),
    MediaFault(
        "padding without a length",
        "RFC 6716 §3.2.5",
        _opus(3, st.sampled_from([b"\x41", b"\x41\xff", b"\xc1"])),
    ),
    MediaFault(
        "padding beyond the end",
        "RFC 6716 §3.2.5",
        _opus(3, _joined(st.sampled_from([b"\x41", b"\xc1"]), _octet(st.integers(21, 254)), _ANY)),
    ),
    MediaFault(
        "frames that are not equal", "RFC 6716 §3.2.5", _opus(3, _joined(st.just(b"\2"), _ODD))
    ),
    MediaFault(
        "lengths missing", "RFC 6716 §3.2.5", _opus(3, st.sampled_from([b"\x82", b"\x83\1"]))
    ),
    MediaFault(
        "frames beyond the end",
        "RFC 6716 §3.2.5",
        _opus(3, _joined(st.just(b"\x82"), _octet(st.integers(21, 251)), _ANY)),
    ),
    MediaFault(
        "more than 120 ms",
        "RFC 6716 §3.2.5",
        st.just(b"\x03\x0d" + bytes(13)) | st.just(b"\xff\x31" + bytes(49)),
    ),
)
"""Every fault of an Opus packet: RFC 6716 §3.2, §3.4."""


def _red(block: int, length: int) -> bytes:
    return pack("!I", 0x80000000 | block << 24 | length)


RED_FAULTS: Final = (
    MediaFault("header cut", "RFC 2198 §3", _cut(st.just(_red(5, 0))).filter(bool)),
    MediaFault(
        "no primary payload",
        "RFC 2198 §3",
        _NOTHING | st.integers(1, 3).map(lambda count: _red(5, 0) * count),
    ),
    MediaFault(
        "block beyond the end",
        "RFC 2198 §3",
        st.builds(lambda length, data: _red(5, length) + b"\0" + data, st.integers(21, 1023), _ANY),
    ),
)
"""Every fault of redundant audio: RFC 2198 §3."""

NOISE_FAULTS: Final = (MediaFault("nothing", "RFC 3389 §3.3", _NOTHING),)
"""The one fault of comfort noise: RFC 3389 §3.3."""

L16_FAULTS: Final = (
    MediaFault(
        "half a sample", "RFC 3551 §4.5.11", st.binary(max_size=40).map(lambda x: 2 * x + b"x")
    ),
)
"""The one fault of audio that is not compressed: RFC 3551 §4.5.11."""

SPEEX_FAULTS: Final = (
    MediaFault("nothing", "RFC 5574 §3.3", _NOTHING),
    MediaFault("no frame", "RFC 5574 §3.3", _octet(st.integers(0x78, 0x7F))),
    MediaFault(
        "frame cut",
        "RFC 5574 §3.3",
        _joined(_octet(st.integers(1, 8).map(lambda mode: mode << 3)), st.binary(max_size=4)),
    ),
    MediaFault(
        "unknown mode",
        "RFC 5574 §3.3",
        _joined(_octet(st.integers(9, 12).map(lambda mode: mode << 3)), _ANY),
    ),
    MediaFault(
        "layer of an unknown mode",
        "RFC 5574 §3.3",
        _joined(st.integers(5, 7).map(lambda mode: pack("!H", (0x08 | mode) << 7)), _ANY),
    ),
    MediaFault("request cut", "RFC 5574 §3.3", _joined(st.just(b"\x77\0"), st.binary(max_size=7))),
)
"""Every fault of a Speex packet: RFC 5574 §3.3."""

SPEEX_LIMITS: Final = (
    MediaFault("too many frames", "RFC 5574 §3.3", st.just(bytes(5 * (MAX_FRAMES + 1) // 8 + 1))),
    MediaFault("too many octets", "RFC 5574 §3.3", st.just(bytes(MAX_OCTETS + 1))),
)
"""Speex packets that are well-formed, and more than ours takes: RFC 5574 §3.3."""


def broken_h264() -> SearchStrategy[Drawn]:
    """Payloads of H.264 with one fault: RFC 6184 §5."""
    return broken(H264_FAULTS)


def broken_h265() -> SearchStrategy[Drawn]:
    """Payloads of H.265 with one fault: RFC 7798 §4.4."""
    return broken(H265_FAULTS)


def broken_vp8() -> SearchStrategy[Drawn]:
    """Payloads of VP8 without a whole descriptor: RFC 7741 §4.2."""
    return broken(VP8_FAULTS)


def broken_aac() -> SearchStrategy[Drawn]:
    """Payloads of AAC with one fault: RFC 3640 §3.3.6."""
    return broken(AAC_FAULTS)


def broken_opus() -> SearchStrategy[Drawn]:
    """Opus packets with one fault: RFC 6716 §3.2."""
    return broken(OPUS_FAULTS)


def broken_red() -> SearchStrategy[Drawn]:
    """Payloads of redundant audio with one fault: RFC 2198 §3."""
    return broken(RED_FAULTS)


def broken_noise() -> SearchStrategy[Drawn]:
    """Comfort noise without a level: RFC 3389 §3.3."""
    return broken(NOISE_FAULTS)


def broken_l16() -> SearchStrategy[Drawn]:
    """Sound that ends within a sample: RFC 3551 §4.5.11."""
    return broken(L16_FAULTS)


def broken_speex() -> SearchStrategy[Drawn]:
    """Speex packets with one fault: RFC 5574 §3.3."""
    return broken(SPEEX_FAULTS)


def excessive_speex() -> SearchStrategy[Drawn]:
    """Speex packets of more than ours takes: RFC 5574 §3.3."""
    return broken(SPEEX_LIMITS)
