"""Integers of variable length are as long as Flash makes them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.rtmp.amf_corpus import manifest

from rtmplite.amf import u29
from rtmplite.errors import LocalError


@given(st.integers(0, u29.MAX))
@example(0x7F)
@example(0x80)
@example(0x3FFF)
@example(0x4000)
@example(0x1FFFFF)
@example(0x200000)
@example(u29.MAX)
def test_what_is_written_reads_back(value):
    """Covers AMF3 §1.3.1 [u29-layout]."""
    raw = u29.pack(value)
    assert u29.unpack(b"." + raw + b"\xff", 1) == (value, 1 + len(raw))
    assert len(raw) == next(n for n in (1, 2, 3, 4) if n == 4 or value < 1 << 7 * n)
    assert all(byte & 0x80 for byte in raw[:-1])
    assert u29.unpack(raw[:-1], 0) is None


@pytest.mark.parametrize(
    "line", manifest("amf/vectors_u29.json", "vectors"), ids=lambda line: line.get("hex", "")
)
def test_vectors(corpus, line):
    """Covers AMF3 §1.3.1 [u29-layout]."""
    raw = bytes.fromhex(line["hex"])
    assert u29.pack(line["value"]) == raw
    assert u29.unpack(raw, 0) == (line["value"], len(raw))


@pytest.mark.parametrize("value", [-1, 1 << 29, 0x40000000, 1 << 64])
def test_what_has_more_than_29_bits_is_refused(value):
    """Covers AMF3 §1.3.1 [u29-range]."""
    assert u29.unpack(u29.pack((1 << 29) - 1), 0) == ((1 << 29) - 1, 4)
    assert u29.pack(0) == b"\0"
    with pytest.raises(LocalError):
        u29.pack(value)


@pytest.mark.parametrize(
    ("value", "signed"), [(0, 0), (0xFFFFFFF, 0xFFFFFFF), (0x10000000, -(1 << 28)), (u29.MAX, -1)]
)
def test_the_highest_bit_may_be_a_sign(value, signed):
    """Covers AMF3 §3.6 [integer-is-signed]."""
    assert u29.signed(value) == signed
