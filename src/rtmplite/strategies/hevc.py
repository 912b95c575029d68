"""Strategies for H.265 in FLV: sequence parameter sets and records.

Own design: over E-RTMP v2 §"Enhanced Video" and the syntax of ITU-T H.265, which is not in the
catalogue.
"""

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from rtmplite.flv.hevc import PPS, SPS, VPS, HevcArray, HevcConfig, HevcParameters
from rtmplite.strategies.avc import BitWriter

_FLAG = st.integers(0, 1)
_CROPS = st.none() | st.tuples(*[st.integers(0, 3)] * 4)


@st.composite
def hevc_parameter_sets(draw: DrawFn) -> tuple[bytes, HevcParameters]:
    """A sequence parameter set with any of its parts before the short-term ones, and its fields."""
    more, nested, set_id = draw(st.integers(0, 6)), draw(_FLAG), draw(st.integers(0, 15))
    general = draw(st.binary(min_size=12, max_size=12))
    bits = BitWriter()
    bits.put(8, 0x01)  # the second octet of the header
    bits.put(4, 0)
    bits.put(3, more)
    bits.put(1, nested)
    bits.put(96, int.from_bytes(general, "big"))
    present = [(draw(_FLAG), draw(_FLAG)) for _ in range(more)]
    for flags in present:
        bits.put(1, flags[0])
        bits.put(1, flags[1])
    if more:
        bits.put(2 * (8 - more), 0)
    for has_profile, has_level in present:
        if size := 88 * has_profile + 8 * has_level:
            bits.put(size, draw(st.integers(0, (1 << size) - 1)))
    chroma = draw(st.integers(0, 3))
    bits.exp_golomb(set_id, chroma)
    is_planar = draw(_FLAG) if chroma == 3 else 0
    if chroma == 3:
        bits.put(1, is_planar)
    width, height = _put_size(draw, bits, 0 if is_planar else chroma)
    depths = draw(st.tuples(st.integers(8, 15), st.integers(8, 15)))
    bits.exp_golomb(depths[0] - 8, depths[1] - 8, draw(st.integers(0, 12)))
    for_each = draw(_FLAG)
    bits.put(1, for_each)
    reorder = 0
    for _ in range(more + 1 if for_each else 1):
        reorder = draw(st.integers(0, 15))
        bits.exp_golomb(draw(st.integers(0, 15)), reorder, draw(st.integers(0, 15)))
    fields = HevcParameters(
        general, more + 1, bool(nested), set_id, chroma, *depths, width, height, reorder
    )
    return bits.unit(SPS << 1), fields


def _put_size(draw: DrawFn, bits: BitWriter, chroma: int) -> tuple[int, int]:
    width, height = draw(st.integers(16, 8192)), draw(st.integers(16, 8192))
    bits.exp_golomb(width, height)
    crops = draw(_CROPS)
    bits.put(1, crops is not None)
    if crops is not None:
        bits.exp_golomb(*crops)
        width -= sum(crops[:2]) * (2 if chroma in (1, 2) else 1)
        height -= sum(crops[2:]) * (2 if chroma == 1 else 1)
    return width, height


def hevc_units() -> SearchStrategy[bytes]:
    """NAL units of any type, with any content."""
    return st.builds(
        lambda kind, body: bytes((kind << 1, 1)) + body,
        st.sampled_from([1, 19, VPS, SPS, PPS]) | st.integers(0, 63),
        st.binary(max_size=40),
    )


def hevc_configs() -> SearchStrategy[HevcConfig]:
    """Records with any sets: E-RTMP v2 §"Enhanced Video"."""
    arrays = st.builds(
        HevcArray, st.integers(0, 63), st.lists(hevc_units(), max_size=3).map(tuple), st.booleans()
    )
    return st.builds(
        HevcConfig,
        st.binary(min_size=12, max_size=12),
        st.lists(arrays, max_size=4).map(tuple),
        st.integers(0, 0xFFF),
        *[st.integers(0, 3)] * 2,
        *[st.integers(8, 15)] * 2,
        st.integers(0, 0xFFFF),
        st.integers(0, 3),
        st.integers(0, 7),
        st.booleans(),
        st.integers(1, 4),
    )
