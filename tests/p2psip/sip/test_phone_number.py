"""Telephone numbers are found in the URIs that people write."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from p2psip.errors import RemoteError
from p2psip.sip.phone_number import called_number, number_at
from p2psip.sip.uri import Uri
from p2psip.strategies.sip import uris


@given(st.from_regex(r"\+?[0-9]{1,20}", fullmatch=True), st.data())
def test_separators_change_nothing(number, data):
    """Covers RFC 3966 §5.1.1 [separators-are-not-dialled], RFC 3261 §19.1.1 [says-phone]."""
    seen = "".join(
        letter + data.draw(st.sampled_from(["", "-", ".", "(", ")"])) for letter in number
    )
    assert called_number(Uri.parse(f"tel:{seen}")) == number
    assert called_number(Uri.parse(f"sip:{seen}@home")) == number
    made = number_at(number, Uri.parse("sip:a.example:5070"))
    assert called_number(made) == number and made.param("user") == "phone"


@given(uris())
def test_any_uri_has_a_number_or_none(uri):
    try:
        number = called_number(uri)
    except RemoteError as error:
        event(str(error.status))
        assert uri.scheme == "tel"
    else:
        event("number" if number else "none")
        assert number is None or not set(number) - set("+0123456789*#abcdefABCDEF")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("sip:bob@home", None),
        ("sip:home", None),
        ("sip:@home", None),
        ("sip:+@home", None),
        ("sip:*@home", None),
        ("sip:*21#@home", "*21#"),
        ("sip:abba@home", None),
        ("tel:abba", "abba"),
        ("sips:+1-212-555-1212;ext=5@home;user=phone", "+12125551212"),
        ("mailto:1@2", None),
        ("tel:112", "112"),
        ("tel:7042;phone-context=example.com", "7042"),
        ("tel:+49;phone-context=of.no.matter;isub=1", "+49"),
    ],
)
def test_what_is_a_number(text, number):
    """Covers RFC 3966 §3 and RFC 3261 §19.1.1."""
    assert called_number(Uri.parse(text), lambda context: context == "example.com") == number


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("tel:+49;m-more=1", 416),
        ("tel:+49;M-more=1", 416),
        ("tel:hello", 400),
        ("tel:+", 400),
        ("tel:-", 400),
        ("tel:7042;phone-context=example.com", 404),
    ],
)
def test_what_cannot_be_called(text, status):
    """Covers RFC 3966 §5.4 [unknown-mandatory-refused]."""
    with pytest.raises(RemoteError) as caught:
        called_number(Uri.parse(text))
    assert caught.value.status == status
