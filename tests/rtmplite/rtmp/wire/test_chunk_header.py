"""The basic header: every chunk stream in every form, and the shortest one written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmplite.errors import LocalError
from rtmplite.rtmp.wire.chunk_header import MAX_CHUNK_STREAM, basic_header, read_basic_header


@pytest.fixture(autouse=True)
def fresh():
    """Forget headers made before, so that every test makes its own."""
    basic_header.cache_clear()


@pytest.mark.parametrize(
    ("number", "raw"),
    [
        (2, "c2"),
        (63, "ff"),
        (64, "c000"),
        (319, "c0ff"),
        (320, "c10001"),
        (365, "c12d01"),
        (65599, "c1ffff"),
    ],
)
def test_the_smallest_form_is_written(number, raw):
    """Covers RTMP 1.0 §5.3.1.1 [smallest-form] [three-byte-order] [id-range].

    And RTMP Errata §4.1 [number-is-little].
    """
    header = basic_header(3, number)
    assert header == bytes.fromhex(raw)
    assert read_basic_header(header, 0) == (3, number, len(header))


@given(st.integers(0, 3), st.integers(2, MAX_CHUNK_STREAM))
def test_what_is_written_reads_back(fmt, number):
    """Covers RTMP 1.0 §5.3.1.1 [forms] [three-byte-order] [smallest-form]."""
    header = b"?" + basic_header(fmt, number)
    assert read_basic_header(header, 1) == (fmt, number, len(header))
    for end in range(1, len(header)):
        with pytest.raises(IndexError):
            read_basic_header(header[:end], 1)


@pytest.mark.parametrize("raw", ["00 05", "01 05 00"])
def test_longer_forms_are_read(raw):
    """Covers RTMP 1.0 §5.3.1.1 [forms] [three-byte-order]."""
    data = bytes.fromhex(raw)
    assert read_basic_header(data, 0) == (0, 69, len(data))


@pytest.mark.parametrize("number", [-1, 0, 1, 65600])
def test_other_numbers_are_our_bug(number):
    """Covers RTMP 1.0 §5.3.1.1 [id-range]."""
    with pytest.raises(LocalError):
        basic_header(0, number)
