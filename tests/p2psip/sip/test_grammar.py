"""Tokens, quotes, lists, numbers and hosts mean what the grammar says, in linear time."""

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.errors import RemoteError
from p2psip.sip.grammar import (
    MAX_VALUES,
    bytes_of,
    host_port,
    number,
    quote,
    split,
    split_list,
    text_of,
    unquote,
)

text = st.text(st.characters(exclude_categories=["Cs"]))


def test_text_is_utf_8():
    """Covers RFC 3261 §7 [utf-8]: and octets that are none come back as they were."""
    assert text_of("\u0416\u00e9".encode()) == "\u0416\u00e9"
    assert bytes_of(text_of(b"\xff\xc3")) == b"\xff\xc3"


@given(text)
def test_quoting_is_undone_by_unquoting(value):
    """Covers RFC 3261 §25.1 [escapes-in-quotes]."""
    assert unquote(quote(value)) == value
    assert split(f"a;{quote(value)};<{quote(value).replace('>', '')}>", ";")[1] == quote(value)


@given(st.lists(text.map(quote), min_size=1, max_size=5))
def test_separators_inside_quotes_do_not_separate(values):
    """Covers RFC 3261 §7.3.1."""
    assert split_list(" ,  ".join(values)) == values


@pytest.mark.parametrize("value", ["a,,b", ",,", "a,,", 'a,"b', "<a,b", 'a,"b\\"'])
def test_empty_values_and_open_quotes_are_refused(value):
    """Covers RFC 4475 §3.1.2.1 [empty-values-refused] and §3.1.2.6 [open-quote-refused]."""
    with pytest.raises(RemoteError):
        split_list(value)


def test_an_empty_header_and_a_comma_at_the_end_are_forgiven():
    """Covers RFC 3261 §7.3.1: phones write both.

    Covers Field §"Separators too many".
    """
    assert split_list("") == split_list(" ") == [] and split_list("a, b ,") == ["a", "b"]


def test_too_many_values_are_refused():
    """Covers RFC 3261 §8.1.1.6: nobody needs more Vias than hops."""
    assert len(split_list(",".join("a" * MAX_VALUES))) == MAX_VALUES
    with pytest.raises(RemoteError, match="513"):
        split_list(",".join("a" * (MAX_VALUES + 1)))


@pytest.mark.parametrize("value", ["", "-1", "+1", " 1", "1 ", "1.0", "five", "²", "٣", "9" * 5000])
def test_what_is_no_number_is_refused(value):
    """Covers RFC 4475 §3.1.2.3 and §3.1.2.4."""
    with pytest.raises(RemoteError):
        number(value, 2**32 - 1)


def test_numbers_have_a_range_and_may_have_zeros_in_front():
    """Covers RFC 4475 §3.1.1.1 and §3.1.2.4."""
    assert number("0068", 255) == 68 and number("0" * 5000, 255) == 0
    assert number("4294967295", 2**32 - 1) == 2**32 - 1
    with pytest.raises(RemoteError):
        number("4294967296", 2**32 - 1)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("Example.COM", "example.com", None),
        ("192.0.2.1:5060", "192.0.2.1", 5060),
        ("[2001:DB8::1]:0", "2001:db8::1", 0),
        ("[2001:db8:::192.0.2.1]", "2001:db8::192.0.2.1", None),
        ("host : 7", "host", 7),
        ("[::1] : 7", "::1", 7),
    ],
)
def test_hosts_with_and_without_ports(text, host, port):
    """Covers RFC 5118 §4.1, §4.4 and §4.10."""
    assert host_port(text) == (host, port)


BAD = [
    "", ":1", "a:", "a:b", "a:65536", "2001:db8::10", "[::1", "[::1]x", "[a.b]", "[fe80::1%a]",
    "a b", "a@b", "[]", "é.example",
]  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_bad_hosts_are_refused(text):
    """Covers RFC 5118 §4.2."""
    with pytest.raises(RemoteError):
        host_port(text)


@pytest.mark.parametrize(
    "evil", ['"\\' * 30000, '"' * 60001, "<" * 60000, " " * 60000, ",;" * 30000]
)
def test_no_input_takes_more_than_linear_time(evil):
    """Own design: a datagram of 64 KiB must not hold up a call."""
    start = time.process_time()
    for call in (lambda: split(evil, ","), lambda: number(evil, 9), lambda: host_port(evil)):
        with suppress(RemoteError):
            call()
    assert time.process_time() - start < 0.5
