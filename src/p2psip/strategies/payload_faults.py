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
from p2psip.strategies.faults import Octets, by_clause
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

H264_FAULTS: Final = by_clause(
    {
        "RFC 6184 §5.3": {"nothing": _NOTHING},
        "RFC 6184 §5.8": {
            "fragment cut": _FU_A,
            "fragment of a packet": _joined(_FU_A, _octet(_NO_UNIT.map((0x80).__or__)), _ANY),
        },
        "RFC 6184 §5.7.1": {
            "aggregate of nothing": _STAP_A,
            "size cut": _joined(_STAP_A, _FEW, st.just(b"\0")),
            "unit beyond the end": _joined(_STAP_A, _FEW, _beyond(_ANY)),
            "unit of nothing": _joined(_STAP_A, _FEW, st.just(b"\0\0")),
        },
        "RFC 6184 §5.7": {
            "aggregate of packets": _joined(
                _STAP_A, _FEW, _joined(_octet(_NO_UNIT), _ANY).map(_sized)
            )
        },
        "RFC 6184 §6.3": {
            "interleaved packet": _joined(_octet(st.sampled_from([25, 26, 27, 29])), _ANY)
        },
    }
)
"""Every fault of a payload of packetization modes 0 and 1: RFC 6184 §5, §6.3."""


def _h265(kinds: SearchStrategy[int]) -> Octets:
    """The header of a payload or a NAL unit of some type: RFC 7798 §1.1.4."""
    return kinds.map(lambda kind: bytes((kind << 1, 1)))


_AP, _FU, _PACI = _h265(st.just(48)), _h265(st.just(49)), _h265(st.just(50))
_FEW_H265: Final = st.lists(h265_units().map(_sized), max_size=2).map(b"".join)

H265_FAULTS: Final = by_clause(
    {
        "RFC 7798 §4.4": {"header cut": _cut(_h265(st.integers(0, 63)))},
        "RFC 7798 §4.4.3": {
            "fragment header cut": _FU,
            "fragment of nothing": _joined(_FU, _octet(st.integers(0, 47))),
            "fragment of a packet": _joined(_FU, _octet(st.integers(48, 63)), _SOME),
        },
        "RFC 7798 §4.4.2": {
            "aggregate of nothing": _AP,
            "size cut": _joined(_AP, _FEW_H265, st.just(b"\0")),
            "unit beyond the end": _joined(_AP, _FEW_H265, _beyond(_ANY)),
            "unit of one octet": _joined(_AP, _FEW_H265, st.just(b"\0\1\x02")),
            "aggregate of packets": _joined(
                _AP, _FEW_H265, _joined(_h265(st.sampled_from([48, 49])), _ANY).map(_sized)
            ),
        },
        "RFC 7798 §4.4.4": {
            "PACI cut": _joined(_PACI, _cut(st.binary(min_size=2, max_size=2))),
            "PACI within a PACI": _joined(_PACI, st.just(pack("!H", 50 << 9)), _ANY),
            "PACI extension cut": st.integers(1, 31).flatmap(
                lambda size: _joined(
                    _PACI, st.just(pack("!H", 1 << 9 | size << 4)), st.binary(max_size=size - 1)
                )
            ),
        },
    }
)
"""Every fault of a payload of one stream in the order of decoding: RFC 7798 §4.4."""

VP8_FAULTS: Final = by_clause(
    {
        "RFC 7741 §4.2": {
            "nothing": _NOTHING,
            "descriptor cut": _cut(vp8_descriptors().map(bytes).filter(lambda data: len(data) > 1)),
        },
    }
)
"""Every fault of a descriptor: RFC 7741 §4.2."""


def _aac(headers: list[int], data: bytes) -> bytes:
    words = b"".join(pack("!H", header) for header in headers)
    return pack("!H", 8 * len(words)) + words + data


_TWO: Final = st.tuples(_SOME, _SOME)

AAC_FAULTS: Final = by_clause(
    {
        "RFC 3640 §3.2.1": {
            "length cut": st.binary(max_size=1),
            "headers beyond the end": st.builds(
                lambda count, data: pack("!H", 16 * count) + data, st.integers(11, 64), _ANY
            ),
            "no frame": st.lists(st.integers(1, 99), max_size=4).map(
                lambda sizes: _aac([size << 3 for size in sizes], b"")
            ),
        },
        "RFC 3640 §3.3.6": {
            "half a header": st.builds(
                lambda bits, data: pack("!HH", 16 + bits, len(data) << 3) + data,
                st.integers(1, 15),
                _SOME,
            ),
            "no header": _SOME.map(lambda data: _aac([], data)),
            "interleaved frames": st.builds(
                lambda two, delta: _aac(
                    [len(two[0]) << 3, len(two[1]) << 3 | delta], b"".join(two)
                ),
                _TWO,
                st.integers(1, 7),
            ),
            "octets behind the frame": _TWO.map(
                lambda two: _aac([len(two[0]) << 3], b"".join(two))
            ),
        },
        "RFC 3640 §3.2.1.1": {
            "frame of nothing": _SOME.map(lambda data: _aac([0, len(data) << 3], data)),
            "frames beyond the end": _TWO.map(
                lambda two: _aac([len(two[0]) << 3, len(two[1]) + 1 << 3], b"".join(two))
            ),
        },
    }
)
"""Every fault of a payload in the mode AAC-hbr: RFC 3640 §3.2.1, §3.3.6."""

_ODD: Final = st.integers(0, 9).map(lambda size: bytes(2 * size + 1))


def _opus(code: int, rest: Octets) -> Octets:
    return _joined(_octet(st.integers(0, 63).map(lambda high: high << 2 | code)), rest)


OPUS_FAULTS: Final = by_clause(
    {
        "RFC 6716 §3.1": {"nothing": _NOTHING},
        "RFC 6716 §3.2.1": {"frame of 1276 octets": _opus(0, st.just(bytes(1276)))},
        "RFC 6716 §3.2.3": {"two frames of odd length": _opus(1, _ODD)},
        "RFC 6716 §3.2.4": {
            "length missing": _opus(2, _NOTHING),
            "length cut": _opus(2, _octet(st.integers(252, 255))),
            "frame beyond the end": _opus(2, _joined(_octet(st.integers(21, 251)), _ANY)),
        },
        "RFC 6716 §3.2.5": {
            "count missing": _opus(3, _NOTHING),
            "no frames": _opus(3, _joined(_octet(st.sampled_from([0x00, 0x80])), _ANY)),
            "padding without a length": _opus(3, st.sampled_from([b"\x41", b"\x41\xff", b"\xc1"])),
            "padding beyond the end": _opus(
                3, _joined(st.sampled_from([b"\x41", b"\xc1"]), _octet(st.integers(21, 254)), _ANY)
            ),
            "frames that are not equal": _opus(3, _joined(st.just(b"\2"), _ODD)),
            "lengths missing": _opus(3, st.sampled_from([b"\x82", b"\x83\1"])),
            "frames beyond the end": _opus(
                3, _joined(st.just(b"\x82"), _octet(st.integers(21, 251)), _ANY)
            ),
            "more than 120 ms": st.just(b"\x03\x0d" + bytes(13)) | st.just(b"\xff\x31" + bytes(49)),
        },
    }
)
"""Every fault of an Opus packet: RFC 6716 §3.2, §3.4."""


def _red(block: int, length: int) -> bytes:
    return pack("!I", 0x80000000 | block << 24 | length)


RED_FAULTS: Final = by_clause(
    {
        "RFC 2198 §3": {
            "header cut": _cut(st.just(_red(5, 0))).filter(bool),
            "no primary payload": _NOTHING
            | st.integers(1, 3).map(lambda count: _red(5, 0) * count),
            "block beyond the end": st.builds(
                lambda length, data: _red(5, length) + b"\0" + data, st.integers(21, 1023), _ANY
            ),
        },
    }
)
"""Every fault of redundant audio: RFC 2198 §3."""

NOISE_FAULTS: Final = by_clause(
    {
        "RFC 3389 §3.3": {"nothing": _NOTHING},
    }
)
"""The one fault of comfort noise: RFC 3389 §3.3."""

L16_FAULTS: Final = by_clause(
    {
        "RFC 3551 §4.5.11": {"half a sample": st.binary(max_size=40).map(lambda x: 2 * x + b"x")},
    }
)
"""The one fault of audio that is not compressed: RFC 3551 §4.5.11."""

SPEEX_FAULTS: Final = by_clause(
    {
        "RFC 5574 §3.3": {
            "nothing": _NOTHING,
            "no frame": _octet(st.integers(0x78, 0x7F)),
            "frame cut": _joined(
                _octet(st.integers(1, 8).map(lambda mode: mode << 3)), st.binary(max_size=4)
            ),
            "unknown mode": _joined(_octet(st.integers(9, 12).map(lambda mode: mode << 3)), _ANY),
            "layer of an unknown mode": _joined(
                st.integers(5, 7).map(lambda mode: pack("!H", (0x08 | mode) << 7)), _ANY
            ),
            "request cut": _joined(st.just(b"\x77\0"), st.binary(max_size=7)),
        },
    }
)
"""Every fault of a Speex packet: RFC 5574 §3.3."""

SPEEX_LIMITS: Final = by_clause(
    {
        "RFC 5574 §3.3": {
            "too many frames": st.just(bytes(5 * (MAX_FRAMES + 1) // 8 + 1)),
            "too many octets": st.just(bytes(MAX_OCTETS + 1)),
        },
    }
)
"""Speex packets that are well-formed, and more than ours takes: RFC 5574 §3.3."""
