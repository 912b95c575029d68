"""The header multimap keeps order and spelling, and lets no line break in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.headers import MAX_HEADERS, Headers, canonical
from p2psip.strategies.sip import free_text, tokens

names = st.sampled_from(["Via", "v", "CONTACT", "m", "To", "X-A", "x-a", "X-B"]) | tokens()
sections = st.lists(st.tuples(names, free_text()), max_size=8).map(Headers)


@given(sections, names, st.lists(free_text(), max_size=3))
def test_replacing_puts_new_values_where_the_old_stood(headers, name, values):
    """Covers RFC 3261 §7.3.1."""
    new = headers.with_(name, *values)
    assert new.values(name) == tuple(values)
    assert new.without(name) == headers.without(name)
    if name in headers and values:
        place = [n.lower() for n, _ in headers].index(canonical(name).lower())
        assert new.fields[place] == (canonical(name), values[0])


@given(sections, names, free_text())
def test_prepending_and_appending_keep_the_order(headers, name, value):
    """Covers RFC 3261 §7.3.1."""
    old = headers.values(name)
    assert headers.prepend(name, value).values(name) == (value, *old)
    assert headers.append(name, value).values(name) == (*old, value)
    assert headers.prepend(name, value)[name] == value
    assert len(headers.append(name, value)) == len(headers) + 1


def test_compact_forms_capitals_and_unknown_names():
    """Covers RFC 3261 §7.3.3 [both-forms], §8.2.2 [odd-fields-pass].

    And RFC 3261 §7.3.1 [names-have-no-case] [space-around-the-colon].
    """
    headers = Headers.parse_lines(
        ["v:  SIP/2.0/UDP a ", "TO : x", "i\t:y", "l:0", "X-Odd: ;;,,;;,;", "s:", "k: path, gruu"]
    )
    assert [name for name, _ in headers] == [
        "Via", "To", "Call-ID", "Content-Length", "X-Odd", "Subject", "Supported",
    ]  # fmt: skip
    assert headers["call-id"] == headers["I"] == "y" and headers["t"] == "x"
    assert headers["x-ODD"] == ";;,,;;,;" and headers["Subject"] == ""
    assert headers.all("k") == ("path", "gruu") and headers.all("X-Odd") == (";;,,;;,;",)
    assert headers.get("Route") is None and headers.get("Route", "none") == "none"
    assert "Route" not in headers and "subject" in headers
    with pytest.raises(KeyError):
        _ = headers["Route"]


def test_lists_come_apart_at_their_commas_only():
    """Covers RFC 3261 §7.3.1 [rows-combine] [no-joined-credentials]."""
    asked = [("WWW-Authenticate", f'Digest realm="{realm}", nonce="1"') for realm in "ab"]
    assert Headers(asked).all("WWW-Authenticate") == tuple(value for _, value in asked)
    headers = Headers([("Contact", '"a, b" <sip:c@d;x=1,2>, <sip:e@f>'), ("m", "sip:g@h")])
    assert headers.all("Contact") == ('"a, b" <sip:c@d;x=1,2>', "<sip:e@f>", "sip:g@h")
    assert Headers([("Date", "Sat, 15 Oct 2005")]).all("Date") == ("Sat, 15 Oct 2005",)
    assert Headers([("Supported", "")]).all("Supported") == ()
    with pytest.raises(RemoteError):
        Headers([("Contact", '"open')]).all("Contact")


def test_values_may_be_objects():
    """Own design: a typed value is written by its own `str`."""
    assert Headers([("Max-Forwards", 70)]).append("Expires", 60).with_("l", 1).fields == (
        ("Max-Forwards", "70"),
        ("Expires", "60"),
        ("Content-Length", "1"),
    )


@pytest.mark.parametrize("line", ["", "no colon", ": v", "a b: c", "a@b: c", "é: c", "\x00: c"])
def test_bad_lines_are_refused(line):
    """Covers RFC 3261 §7.3.1."""
    with pytest.raises(RemoteError):
        Headers.parse_lines([line])


def test_a_name_cannot_smuggle():
    """Covers RFC 3261 §7.3.1: only a token names a header."""
    for name in ("A\r\nB", "A: b", "", "A B"):
        with pytest.raises(LocalError):
            Headers([(name, "x")])
        with pytest.raises(LocalError):
            Headers().append(name, "x")


def test_too_many_lines_are_refused():
    """Covers RFC 3261 §21.5.7: what is too large is told so."""
    assert len(Headers.parse_lines(["a:b"] * MAX_HEADERS)) == MAX_HEADERS
    with pytest.raises(RemoteError, match="513"):
        Headers.parse_lines(["a:b"] * (MAX_HEADERS + 1))
