"""The types of settings."""

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siprtmp.settings.types import port_range


@pytest.mark.parametrize("text", ["10000-10001", "10001-10003", "1024-65535"])
def test_a_range_holds_a_pair(text):
    """Covers RFC 3550 §11."""
    low, high = port_range(text)
    assert f"{low}-{high}" == text and high > low + low % 2


@given(st.text(max_size=12) | st.from_regex(r"[0-9]{0,6}-[0-9]{0,6}", fullmatch=True))
def test_any_text_is_a_range_or_an_error(text):
    try:
        low, high = port_range(text)
    except argparse.ArgumentTypeError:
        return
    assert 1024 <= low + low % 2 < high <= 65535
