"""Hosts and ports as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siprtmp.operation.numbers import format_host_port, parse_host_port, parse_port_range


@given(st.sampled_from(["127.0.0.1", "::1", "fe80::1%lo", "localhost"]), st.integers(0, 65535))
def test_what_is_written_is_read(host, port):
    """Covers RFC 3986 §3.2.2."""
    assert parse_host_port(format_host_port(host, port)) == (host, port)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "host",
        ":1",
        "::1:1",
        "host:",
        "host:x",
        "host:-1",
        "host:65536",
        "h:٣",
        "h:" + "1" * 5000,
    ],
)
def test_what_is_no_listener(text):
    with pytest.raises(ValueError):
        parse_host_port(text)


@pytest.mark.parametrize("text", ["10000-10001", "10001-10003", "1024-65535"])
def test_a_range_holds_a_pair(text):
    """Covers RFC 3550 §11."""
    low, high = parse_port_range(text)
    assert f"{low}-{high}" == text and high > low + low % 2


@given(st.text(max_size=12) | st.from_regex(r"[0-9]{0,6}-[0-9]{0,6}", fullmatch=True))
def test_any_text_is_a_range_or_an_error(text):
    try:
        low, high = parse_port_range(text)
    except ValueError:
        return
    assert 1024 <= low + low % 2 < high <= 65535
