"""Records and sequence parameter sets of H.264 that every reader must refuse.

Own design, over FLV 10.1 §E.4.3.2 and the syntax of ITU-T H.264, which is not in the catalogue.
"""

from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from rtmplite.flv.avc import SPS, AvcConfig, SequenceParameters
from rtmplite.strategies.avc import BitWriter, avc_configs, avc_units, sequence_parameter_sets
from rtmplite.strategies.faults import Fault, cut

_RECORD: Final = "FLV 10.1 §E.4.3.2"
_SET: Final = "H.264 7.4.2.1.1"


def cut_usability() -> SearchStrategy[tuple[bytes, SequenceParameters]]:
    """A set that ends in what a decoder may do without, and its fields but the last.

    Own design: that is H.264, clause E.1.1; a reader may refuse the set as well.
    """
    return st.builds(_cut_usability, st.integers(1, 255), st.integers(1, 255))


def _start(set_id: int = 0, order: int = 2) -> BitWriter:
    """A set of the baseline, as far as its numbering of frames."""
    bits = BitWriter()
    bits.put(24, 0x42_00_0C)
    bits.exp_golomb(set_id, 0, order)
    return bits


def _finish(bits: BitWriter, width: int, height: int, crops: tuple[int, ...] = ()) -> bytes:
    """The rest of a set: references, size in macroblocks, cropping, no usability information."""
    bits.exp_golomb(1)
    bits.put(1, 0)
    bits.exp_golomb(width - 1, height - 1)
    bits.put(2, 3)
    bits.put(1, bool(crops))
    bits.exp_golomb(*crops)
    bits.put(1, 0)
    return bits.unit(0x60 | SPS)


def _cut_usability(width: int, height: int) -> tuple[bytes, SequenceParameters]:
    bits = _start()
    bits.exp_golomb(1)
    bits.put(1, 0)
    bits.exp_golomb(width - 1, height - 1)
    bits.put(3, 6)
    bits.put(6, 0x21)  # of usability only the rate of pictures, whose 65 bits do not come
    fields = SequenceParameters(0x42, 0, 0x0C, 0, 1, 8, 8, 16 * width, 16 * height)
    return bits.unit(0x60 | SPS), fields


def _high(chroma: int, luma_depth: int, chroma_depth: int) -> bytes:
    bits = BitWriter()
    bits.put(24, 0x64_00_0C)
    bits.exp_golomb(0, chroma)
    if chroma == 3:
        bits.put(1, 0)
    bits.exp_golomb(luma_depth - 8, chroma_depth - 8)
    bits.put(2, 0)
    bits.exp_golomb(0, 2)
    return _finish(bits, 20, 15)


def _endless() -> bytes:
    """The id of the set is a number whose end does not come."""
    bits = BitWriter()
    bits.put(24, 0x42_00_0C)
    bits.put(64, 1)
    return bits.unit(0x60 | SPS)


def _of_empty_set(before: AvcConfig, in_pps: bool) -> bytes:
    """A record in which a set has no octets, behind whole ones."""
    head = bytes(AvcConfig(before.profile, before.compatibility, before.level, (), ()))[:5]
    sets = b"".join(len(each).to_bytes(2, "big") + each for each in before.sps)
    if in_pps:
        return head + bytes((0xE0 | len(before.sps),)) + sets + b"\1\0\0"
    return head + bytes((0xE1 + len(before.sps),)) + sets + b"\0\0\0"


def _without_pps(config: AvcConfig) -> bytes:
    """A record that ends where these are counted."""
    head = config.profile, config.compatibility, config.level
    return bytes(AvcConfig(*head, config.sps, ()))[:-1]


_WHOLE: Final = avc_configs().map(
    lambda each: bytes(AvcConfig(each.profile, each.compatibility, each.level, each.sps, each.pps))
)

CONFIG_FAULTS: Final = (
    Fault("record cut", _RECORD, cut(_WHOLE)),
    Fault(
        "another version",
        _RECORD,
        st.builds(
            lambda data, version: bytes((version,)) + data[1:],
            _WHOLE,
            st.integers(0, 255).filter(lambda version: version != 1),
        ),
    ),
    Fault("no picture parameter sets", _RECORD, avc_configs().map(_without_pps)),
    Fault("empty set", _RECORD, st.builds(_of_empty_set, avc_configs(), st.booleans())),
)
"""Every fault of a record: FLV 10.1 §E.4.3.2."""

_OTHERS: Final = avc_units().filter(lambda unit: unit[0] & 0x1F != SPS)
_SIZE: Final = st.integers(1, 16)

SPS_FAULTS: Final = (
    Fault("no parameter set", "H.264 7.4.1", _OTHERS),
    Fault(
        "set cut",
        _SET,
        st.builds(
            lambda drawn, size: drawn[0][:size], sequence_parameter_sets(), st.integers(1, 5)
        ),
    ),
    Fault("id of the set", _SET, st.integers(32, 999).map(lambda n: _finish(_start(n), 20, 15))),
    Fault("chroma format", _SET, st.integers(4, 99).map(lambda n: _high(n, 8, 8))),
    Fault("depth of luma", _SET, st.integers(15, 99).map(lambda n: _high(1, n, 8))),
    Fault("depth of chroma", _SET, st.integers(15, 99).map(lambda n: _high(1, 8, n))),
    Fault("kind of order", _SET, st.integers(3, 99).map(lambda n: _finish(_start(0, n), 20, 15))),
    Fault("number without an end", "H.264 9.1", st.builds(_endless)),
    Fault(
        "cropped to nothing",
        _SET,
        st.builds(lambda n, more: _finish(_start(), n, 15, (8 * n, more, 0, 0)), _SIZE, _SIZE),
    ),
    Fault(
        "cropped to no lines",
        _SET,
        st.builds(lambda n, more: _finish(_start(), 20, n, (0, 0, more, 8 * n)), _SIZE, _SIZE),
    ),
)
"""Every fault of a sequence parameter set: H.264, clause 7.4.2.1.1."""
