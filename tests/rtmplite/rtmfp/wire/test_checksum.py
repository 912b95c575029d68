"""The Internet checksum."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmplite.rtmfp.crypto.blocks import checksum


def by_the_word(data):
    """Add up as RFC 1071 §4.1 does, an odd last byte as a word of its own."""
    words = [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]
    total = 0
    for word in words:
        total += word
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


@given(st.binary(max_size=200) | st.sampled_from([b"\0" * 9, b"\xff" * 8, b"\xff" * 1201]))
def test_it_is_the_ones_complement_sum(data):
    """Covers RFC 1071 §1 [end-around-carry] and §2 [carries-of-carries], RFC 7425 §4.7.3.1."""
    assert checksum(data) == by_the_word(data)


@pytest.mark.parametrize(
    ("data", "want"),
    [(b"", 0xFFFF), (b"\0\0", 0xFFFF), (b"\xff\xff", 0), (b"\x01", 0xFFFE), (b"\x01\0", 0xFEFF)],
)
def test_its_two_zeros_and_an_odd_byte(data, want):
    """Covers RFC 1071 §1, RFC 7425 §4.7.3.1."""
    assert checksum(data) == want
