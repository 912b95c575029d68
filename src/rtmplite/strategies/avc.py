"""Strategies for H.264 in FLV: parameter sets, records and the NAL units of a tag.

Own design: over FLV 10.1 §E.4.3.2 and the syntax of ITU-T H.264, which is not in the catalogue.
"""

from itertools import product

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from rtmplite.flv.avc import HIGH_PROFILES, AvcConfig, SequenceParameters

_FLAG = st.integers(0, 1)
_OLD_PROFILES = (66, 77, 88)
_PROFILES = st.sampled_from([*_OLD_PROFILES, *sorted(HIGH_PROFILES)])
_SCALINGS = {
    size: st.lists(st.integers(1, 255), max_size=3) | st.just([9] * size) for size in (16, 64)
}
_OFFSETS = st.lists(st.integers(-(1 << 31) + 1, 1 << 31), max_size=4)
_CROPS = st.none() | st.tuples(*[st.integers(0, 3)] * 4)
_PARTS = st.sampled_from(list(product((0, 1), repeat=8)))
_ASPECTS = st.sampled_from([1, 255])


class BitWriter:
    """Writes the bits of a NAL unit, the mirror of `BitReader`."""

    def __init__(self) -> None:
        self._bits: list[str] = []

    def put(self, count: int, number: int) -> None:
        """Write `number` in `count` bits."""
        self._bits.append(f"{number:0{count}b}")

    def exp_golomb(self, *numbers: int) -> None:
        """Write unsigned numbers of variable length."""
        for number in numbers:
            digits = f"{number + 1:b}"
            self._bits.append("0" * (len(digits) - 1) + digits)

    def signed(self, number: int) -> None:
        """Write a signed number of variable length."""
        self.exp_golomb(2 * number - 1 if number > 0 else -2 * number)

    def unit(self, header: int) -> bytes:
        """Give the NAL unit, ended by a one and kept free of start codes."""
        bits = "".join((*self._bits, "1"))
        size = -(-len(bits) // 8)
        body = int(bits.ljust(8 * size, "0"), 2).to_bytes(size, "big")
        out = bytearray((header,))
        for octet in body:
            if out[-2:] == b"\0\0" and octet <= 3:
                out.append(3)
            out.append(octet)
        return bytes(out)


@st.composite
def sequence_parameter_sets(draw: DrawFn) -> tuple[bytes, SequenceParameters]:
    """A sequence parameter set with any of its optional parts, and its fields."""
    profile = draw(_PROFILES)
    compatibility, level, set_id = (draw(st.integers(0, n)) for n in (255, 255, 31))
    bits = BitWriter()
    for octet in (profile, compatibility, level):
        bits.put(8, octet)
    bits.exp_golomb(set_id)
    chroma, depths, is_planar = 1, (8, 8), 0
    if profile in HIGH_PROFILES:
        chroma = draw(st.integers(0, 3))
        depths = draw(st.tuples(st.integers(8, 14), st.integers(8, 14)))
        bits.exp_golomb(chroma)
        if chroma == 3:
            is_planar = draw(_FLAG)
            bits.put(1, is_planar)
        bits.exp_golomb(depths[0] - 8, depths[1] - 8)
        bits.put(1, draw(_FLAG))
        _put_scaling(draw, bits, 12 if chroma == 3 else 8)
    _put_order(draw, bits)
    width, height = _put_size(draw, bits, 0 if is_planar else chroma)
    reorder = _put_usability(draw, bits)
    fields = SequenceParameters(
        profile, compatibility, level, set_id, chroma, *depths, width, height, reorder
    )
    return bits.unit(0x67), fields


def _put_scaling(draw: DrawFn, bits: BitWriter, lists: int) -> None:
    present = draw(_FLAG)
    bits.put(1, present)
    for at in range(lists * present):
        size = 16 if at < 6 else 64
        values = draw(_SCALINGS[size])
        bits.put(1, bool(values))
        last = 8
        for value in values:
            bits.signed((value - last + 128) % 256 - 128)
            last = value
        if 0 < len(values) < size:
            bits.signed((-last + 128) % 256 - 128)  # zero: the rest is as the last one


def _put_order(draw: DrawFn, bits: BitWriter) -> None:
    bits.exp_golomb(draw(st.integers(0, 12)))
    kind = draw(st.integers(0, 2))
    bits.exp_golomb(kind)
    if kind == 0:
        bits.exp_golomb(draw(st.integers(0, 12)))
    elif kind == 1:
        offsets = draw(_OFFSETS)
        bits.put(1, draw(_FLAG))
        bits.signed(draw(st.integers(-9, 9)))
        bits.signed(draw(st.integers(-9, 9)))
        bits.exp_golomb(len(offsets))
        for offset in offsets:
            bits.signed(offset)
    bits.exp_golomb(draw(st.integers(0, 16)))
    bits.put(1, draw(_FLAG))


def _put_size(draw: DrawFn, bits: BitWriter, chroma: int) -> tuple[int, int]:
    across, down, is_progressive = draw(st.integers(1, 256)), draw(st.integers(1, 256)), draw(_FLAG)
    bits.exp_golomb(across - 1, down - 1)
    bits.put(1, is_progressive)
    if not is_progressive:
        bits.put(1, draw(_FLAG))
    bits.put(1, draw(_FLAG))
    width, height = 16 * across, 16 * down * (2 - is_progressive)
    crops = draw(_CROPS)
    bits.put(1, crops is not None)
    if crops is not None:
        bits.exp_golomb(*crops)
        width -= sum(crops[:2]) * (2 if chroma in (1, 2) else 1)
        height -= sum(crops[2:]) * (2 if chroma == 1 else 1) * (2 - is_progressive)
    return width, height


def _put_usability(draw: DrawFn, bits: BitWriter) -> int | None:
    """Write the parts before the limit on reordering, and that; give it, None without."""
    is_there, *parts, restriction = draw(_PARTS)
    bits.put(1, is_there)
    if not is_there:
        return None
    aspect, overscan, signal, chroma, timing, model = parts
    bits.put(1, aspect)
    if aspect:
        kind = draw(_ASPECTS)
        bits.put(8, kind)
        if kind == 255:
            bits.put(32, draw(st.integers(0, (1 << 32) - 1)))
    bits.put(1, overscan)
    if overscan:
        bits.put(1, draw(_FLAG))
    bits.put(1, signal)
    if signal:
        has_colours = draw(_FLAG)
        bits.put(4, draw(st.integers(0, 15)))
        bits.put(1, has_colours)
        if has_colours:
            bits.put(24, draw(st.integers(0, (1 << 24) - 1)))
    bits.put(1, chroma)
    if chroma:
        bits.exp_golomb(draw(st.integers(0, 5)), draw(st.integers(0, 5)))
    bits.put(1, timing)
    if timing:
        bits.put(65, draw(st.integers(0, (1 << 65) - 1)))
    for is_modelled in (model, draw(_FLAG)):
        bits.put(1, is_modelled)
        if is_modelled:
            _put_model(draw, bits)
        model |= is_modelled
    if model:
        bits.put(1, draw(_FLAG))
    bits.put(1, draw(_FLAG))
    bits.put(1, restriction)
    if not restriction:
        return None
    reorder = draw(st.integers(0, 16))
    bits.put(1, draw(_FLAG))
    bits.exp_golomb(2, 1, 9, 9, reorder, 16)
    return reorder


def _put_model(draw: DrawFn, bits: BitWriter) -> None:
    count = draw(st.integers(1, 3))
    bits.exp_golomb(count - 1)
    bits.put(8, draw(st.integers(0, 255)))
    for _ in range(count):
        bits.exp_golomb(draw(st.integers(0, 1 << 20)), draw(st.integers(0, 1 << 20)))
        bits.put(1, draw(_FLAG))
    bits.put(20, draw(st.integers(0, (1 << 20) - 1)))


def avc_units() -> SearchStrategy[bytes]:
    """NAL units of any type, with any content: FLV 10.1 §E.4.3.2."""
    return st.builds(
        lambda kind, body: bytes((0x60 | kind,)) + body,
        st.sampled_from([1, 5, 6, 7, 8, 9]) | st.integers(0, 31),
        st.binary(max_size=40),
    )


def avc_configs() -> SearchStrategy[AvcConfig]:
    """Records with any sets and anything behind them: FLV 10.1 §E.4.3.2."""
    octet, sets = st.integers(0, 255), st.lists(avc_units(), max_size=4).map(tuple)
    sizes, rest = st.sampled_from([1, 2, 4]), st.binary(max_size=8)
    return st.builds(AvcConfig, octet, octet, octet, sets, sets, sizes, rest)
