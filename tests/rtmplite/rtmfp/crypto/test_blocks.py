"""Arithmetic on blocks, in Python and in C: the same of the same."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.pump.built import built

from rtmplite.rtmfp.crypto import blocks as python

pytestmark = pytest.mark.needs("gcc")


def compiled():
    return built("_blocks", "rtmplite.rtmfp.crypto")


@given(st.binary(max_size=70) | st.integers(0, 5000).map(lambda size: b"\xff" * size))
@example(b"")
@example(bytes(7))
@example(b"\xff\xff\x00")
def test_the_checksum(data):
    """RFC 7425 §4.7.3.1; RFC 1071 §1 [end-around-carry]."""
    assert compiled().checksum(data) == python.checksum(data)


@given(st.binary(max_size=50), st.binary(min_size=14, max_size=17))
def test_the_first_block(data, block):
    """RFC 7425 §4.7.1."""
    try:
        mixed = python.mix(data, block)
    except ValueError:
        with pytest.raises(ValueError, match="no block"):
            compiled().mix(data, block)
        return
    assert compiled().mix(data, block) == mixed
    assert mixed[16:] == data[16:] and python.mix(mixed, block) == data


@pytest.mark.parametrize("given_", [(), (b"",), ("", b""), (bytes(16), 1), (bytes(16),) * 3])
def test_what_is_no_block(given_):
    """Own design: a mistake of ours is an error, not a fault."""
    with pytest.raises(TypeError):
        compiled().mix(*given_)
    with pytest.raises(TypeError):
        compiled().checksum("text")
