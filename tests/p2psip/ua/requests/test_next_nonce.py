"""The next nonce that a server names: the next request has it, and is not challenged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.errors import RemoteError
from p2psip.sip.auth import Challenge, Credentials, ha1, verify
from p2psip.sip.authentication_info import AuthenticationInfo
from p2psip.sip.build import response_to
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.strategies import sip
from p2psip.ua.requests.digest_client import DigestClient, Login

HOME = "sip:b.com"


def asked(*realms):
    """A digest_client that has met these realms' challenges."""
    keys = DigestClient(Login("alice", "secret", Uri.parse(HOME)), lambda count: bytes(count))
    headers = [("WWW-Authenticate", Challenge.digest(realm, nonce="first")) for realm in realms]
    keys.learn(keys.asked(response_to(request(), 401, headers=headers)))
    return keys


def request():
    fields = [("From", "<sip:a@b.com>;tag=a"), ("To", "<sip:b@b.com>"), ("Call-ID", "c")]
    return Request("MESSAGE", Uri.parse(HOME), Headers([*fields, ("CSeq", "1 MESSAGE")]))


def told(keys):
    """The credentials of the next request."""
    found = keys.sign(request()).headers.values("Authorization")
    return [Credentials.parse(value) for value in found]


def answered(keys, value):
    keys.informed(response_to(request(), 200, headers=[("Authentication-Info", value)]))


def test_it_is_used_and_counted_from_one():
    """Covers RFC 7616 §3.5 [takes-next-nonce]."""
    keys = asked("b.com")
    assert [(each.nonce, each.nc) for each in told(keys) + told(keys)] == [
        ("first", 1),
        ("first", 2),
    ]
    answered(keys, 'nextnonce="second", qop=auth')
    proofs = told(keys) + told(keys)
    assert [(each.nonce, each.nc) for each in proofs] == [("second", 1), ("second", 2)]
    assert verify(proofs[0], "MESSAGE", ha1("alice", "b.com", "secret"))


@pytest.mark.parametrize("value", ['nextnonce="first"', "qop=auth", 'nextnonce=""', '"', "=;"])
def test_what_names_none_changes_nothing(value):
    """Covers RFC 7616 §3.4: the count of a nonce never starts again."""
    keys = asked("b.com")
    told(keys)
    answered(keys, value)
    assert [(each.nonce, each.nc) for each in told(keys)] == [("first", 2)]


def test_of_several_realms_it_is_nobodys():
    """Own design: the header has no realm."""
    keys = asked("b.com", "c.com")
    answered(keys, 'nextnonce="second"')
    assert {each.nonce for each in told(keys)} == {"first"}


@given(st.dictionaries(sip.tokens(), sip.tokens(), min_size=1, max_size=4))
def test_a_value_comes_back(params):
    text = ", ".join(f"{name}={value}" for name, value in params.items())
    assert str(AuthenticationInfo.parse(text)) == text


@given(st.binary())
def test_no_octets_break_it(octets):
    try:
        str(AuthenticationInfo.parse(octets))
    except RemoteError:
        return
