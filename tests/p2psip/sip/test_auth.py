"""Digest answers equal the RFCs' own examples, and only the right password verifies."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.auth import (
    Challenge,
    Credentials,
    answer,
    challenges,
    digest_response,
    ha1,
    strongest,
    verify,
)
from p2psip.sip.headers import Headers

# Source: RFC 8760 §2.7
ALGORITHMS = ["MD5", "MD5-sess", "SHA-256", "SHA-256-sess", "SHA-512-256", "SHA-512-256-sess"]
algorithms = st.sampled_from(ALGORITHMS)
qops = st.sampled_from([None, "auth", "auth-int", "auth,auth-int"])
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=10)


# Source: RFC 7616 §3.9.1, and RFC 2617 §3.5 for the last but one
@pytest.mark.parametrize(
    ("algorithm", "realm", "nonce", "cnonce", "password", "response"),
    [
        (
            "MD5",
            "http-auth@example.org",
            "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
            "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
            "Circle of Life",
            "8ca523f5e9506fed4657c9700eebdbec",
        ),
        (
            "SHA-256",
            "http-auth@example.org",
            "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
            "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
            "Circle of Life",
            "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
        ),
        (
            "MD5",
            "testrealm@host.com",
            "dcd98b7102dd2f0e8b11d0f600bfb0c093",
            "0a4f113b",
            "Circle Of Life",
            "6629fae49393a05397450978507c4ef1",
        ),
    ],
)
def test_published_vectors(algorithm, realm, nonce, cnonce, password, response):
    """Covers RFC 7616 §3.9.1 and §3.4.1."""
    challenge = Challenge.digest(realm, nonce=nonce, algorithm=algorithm, qop="auth, auth-int")
    told = answer(challenge, "GET", "/dir/index.html", "Mufasa", password, cnonce=cnonce)
    assert told.response == response and told.qop == "auth" and told.nc == 1
    assert verify(told, "GET", ha1("Mufasa", realm, password, algorithm))


def test_the_published_example_is_found_in_the_spec(specs):
    """Covers RFC 7616 §3.9.1: the header fields as the RFC prints them verify."""
    text = (specs / "rfc7616.txt").read_text(errors="replace")
    found = 0
    for block in text.split("Authorization: Digest")[1:]:
        value = "".join(line.strip() for line in block.split("\n\n")[0].splitlines())
        if 'username="Mufasa"' in value:
            told = Credentials.parse("Digest " + value)
            secret = ha1("Mufasa", told.realm, "Circle of Life", told.algorithm)
            assert verify(told, "GET", secret)
            found += 1
    assert found == 2


def test_the_older_form_without_quality():
    """Covers RFC 3261 §22.4 [no-cnonce-alone]."""
    challenge = Challenge.parse('Digest realm="biloxi.com", nonce="dcd98b", opaque=""')
    told = answer(challenge, "INVITE", "sip:bob@biloxi.com", "bob", "zanzibar", cnonce="unused")
    assert told.qop is None and told.param("cnonce") is None and told.opaque == ""
    assert told.response == digest_response(
        ha1("bob", "biloxi.com", "zanzibar"), nonce="dcd98b", method="INVITE", uri=told.uri
    )
    for wants_one in ('qop="auth"', "algorithm=MD5-sess"):
        challenge = Challenge.parse(f'Digest realm="biloxi.com", nonce="dcd98b", {wants_one}')
        told = answer(challenge, "INVITE", "sip:bob@biloxi.com", "bob", "zanzibar", cnonce="used")
        assert told.param("cnonce") == "used"


@given(st.data())
def test_the_right_secret_verifies_and_nothing_else(data):
    """Covers RFC 7616 §3.4.1, §3.4.2 and §3.4.3.

    Covers RFC 8760 §2.6 [server-reads-qop] and RFC 7616 §3.6 [same-digest].
    Covers RFC 7616 §3.3 [opaque-comes-back] and RFC 7616 §4 [any-password].
    """
    algorithm, qop = data.draw(algorithms), data.draw(qops)
    user, realm, password, nonce = (data.draw(words) for _ in range(4))
    opaque, nc = data.draw(st.none() | words), data.draw(st.integers(1, 2**32 - 1))
    body = data.draw(st.binary(max_size=20))
    asked = Challenge.digest(realm, nonce=nonce, algorithm=algorithm, qop=qop, opaque=opaque)
    assert Challenge.parse(str(asked)) == asked and asked.is_supported
    told = answer(asked, "INVITE", "sip:a@b;lr", user, password, cnonce="c", nc=nc, body=body)
    assert Credentials.parse(str(told).encode()) == told
    assert (told.username, told.realm, told.nonce, told.opaque) == (user, realm, nonce, opaque)
    assert told.algorithm == algorithm and told.nc == (nc if qop else None)
    secret = ha1(user, realm, password, algorithm)
    again = answer(
        asked, "INVITE", "sip:a@b;lr", user, secret, cnonce="c", nc=nc, body=body, hashed=True
    )
    assert again == told and verify(told, "INVITE", secret, body)
    assert not verify(told, "BYE", secret, body)
    assert not verify(told, "INVITE", ha1(user, realm, password + "x", algorithm), body)
    assert verify(told, "INVITE", secret, body + b"x") == (told.qop != "auth-int")


def test_unknown_schemes_and_algorithms():
    """Covers RFC 4475 §3.3.7, RFC 8760 §2.4, RFC 3261 §22 [no-basic-taken]."""
    odd = Credentials.parse("NoOneKnowsThisScheme opaque-data=here")
    assert not odd.is_digest and str(odd) == "NoOneKnowsThisScheme opaque-data=here"
    assert not verify(odd, "REGISTER", "")
    assert str(Challenge.parse("Basic QWxhZGRpbg==")) == "Basic QWxhZGRpbg=="
    strange = Challenge.parse('Digest realm="a", nonce="b", algorithm=SHA3, qop="auth"')
    assert strange.algorithm == "SHA3" and not strange.is_supported
    with pytest.raises(LocalError):
        answer(strange, "A", "sip:a", "u", "p", cnonce="c")
    with pytest.raises(LocalError):
        ha1("u", "r", "p", "SHA3")
    assert not Challenge.parse('Digest realm="a", nonce="b", qop="odd"').is_supported
    told = answer(Challenge.digest("a", nonce="b"), "A", "sip:a", "u", "p", cnonce="c")
    text, secret = str(told), ha1("u", "a", "p")
    assert verify(told, "A", secret)
    assert not verify(Credentials("Basic", told.params), "A", secret)
    assert not verify(Credentials.parse(text.replace("qop=auth", "qop=odd")), "A", "x")
    assert not verify(Credentials.parse(text.replace("=MD5", "=SHA3")), "A", "x")
    assert Credentials.parse(text.replace("nc=00000001", "nc=zz")).nc is None


def test_capitals_do_not_matter_where_they_should_not():
    """Covers RFC 7616 §3.3.

    Covers Field §"Digest with and without quotes".
    """
    asked = Challenge.parse('DIGEST REALM="a" , nonce = "b",algorithm="sha-256-SESS", stale=TRUE,')
    assert asked.algorithm == "SHA-256-sess" and asked.stale and asked.is_supported
    assert asked.qop == () and asked.opaque is None
    assert Challenge.digest("a", nonce="b", stale=True).stale


def test_the_strongest_challenge_of_each_realm_is_answered():
    """Covers RFC 8760 §2.4.

    Covers RFC 8760 §2.4 [strongest-by-policy] [unknown-is-ignored] [any-realm].
    Covers RFC 8760 §2.6 [never-basic], RFC 7616 §5.6 [strongest-scheme] and RFC 7616 §5.8
    [always-strongest].

    Covers RFC 7616 §3.3 [unknown-is-ignored].
    """
    headers = Headers(
        [
            ("WWW-Authenticate", 'Digest realm="a", nonce="1", algorithm=MD5, qop="auth"'),
            ("WWW-Authenticate", 'Digest realm="a", nonce="2", algorithm=SHA-256, qop="auth"'),
            ("WWW-Authenticate", 'Digest realm="a", nonce="3", algorithm=SHA-256, qop="auth"'),
            ("WWW-Authenticate", 'Digest realm="b", nonce="4"'),
            ("WWW-Authenticate", 'Digest realm="a", nonce="5", algorithm=X9, qop="auth"'),
            ("WWW-Authenticate", 'Basic realm="a"'),
            ("WWW-Authenticate", "Digest nonsense"),
            ("WWW-Authenticate", 'Digest realm="open'),
            ("Proxy-Authenticate", 'Digest realm="c", nonce="6"'),
        ]
    )
    found = challenges(headers, "WWW-Authenticate")
    assert [challenge.nonce for challenge in found] == ["1", "2", "3", "4"]
    assert [challenge.nonce for challenge in strongest(found)] == ["2", "4"]
    assert strongest(()) == ()


@pytest.mark.parametrize(
    "value", ["", "Digest", 'Digest realm="a"', 'Digest nonce="a"', "Di,gest a=b", 'Digest realm="']
)
def test_bad_challenges_are_refused(value):
    """Covers RFC 7616 §3.3."""
    with pytest.raises(RemoteError):
        Challenge.parse(value)


good = st.one_of(
    st.builds(lambda r, n, q: Challenge.digest(r, nonce=n, qop=q), words, words, qops),
    st.builds(
        lambda r, u, a: answer(
            Challenge.digest(r, nonce="n", algorithm=a), "A", "sip:a", u, "p", cnonce="c"
        ),
        words,
        words,
        algorithms,
    ),
)


def test_what_stands_in_quotes_and_what_does_not():
    """Covers RFC 7616 §3.3 [quoted-in-challenge] [bare-in-challenge].

    Covers RFC 7616 §3.4 [quoted-in-answer] [bare-in-answer] [cnonce-in-answer] [count-in-answer].
    Covers RFC 8760 §2.6 [uri-is-quoted] [client-sends-qop].

    Covers Field §"Digest with and without quotes".
    """
    asked = Challenge.digest("r", nonce="n", algorithm="SHA-256", opaque="o", stale=True)
    assert str(asked) == (
        'Digest realm="r", nonce="n", opaque="o", stale=true, algorithm=SHA-256, qop="auth"'
    )
    told = answer(asked, "BYE", "sip:b@r", "a", "p", cnonce="c", nc=26)
    assert str(told) == (
        'Digest username="a", realm="r", nonce="n", uri="sip:b@r", '
        f'response="{told.response}", algorithm=SHA-256, cnonce="c", opaque="o", '
        "qop=auth, nc=0000001a"
    )


@pytest.mark.parametrize(
    ("offered", "used"),
    [("auth", "auth"), ("auth-int,auth", "auth"), ("auth-int", "auth-int"), ("odd, auth", "auth")],
)
def test_the_quality_is_one_that_was_offered(offered, used):
    """Covers RFC 8760 §2.6 [client-reads-qop] and RFC 7616 §3.4 [qop-as-offered].

    Covers RFC 7616 §3.3 [other-qops-ignored].

    Covers Field §"Proofs of the body".
    """
    asked = Challenge.digest("r", nonce="n", qop=offered)
    assert asked.is_supported and not Challenge.digest("r", nonce="n", qop="odd").is_supported
    assert answer(asked, "BYE", "sip:b@r", "a", "p", cnonce="c").qop == used


def test_two_forms_of_a_name_are_an_error():
    """Covers RFC 7616 §3.4 [one-username]."""
    told = str(answer(Challenge.digest("r", nonce="n"), "A", "sip:a", "u", "p", cnonce="c"))
    assert Credentials.parse(told).username == "u"
    with pytest.raises(RemoteError):
        Credentials.parse(f"{told}, username*=UTF-8''u")


@given(mutations(good.map(lambda value: str(value).encode())))
def test_no_input_crashes(data):
    """Covers RFC 4475 §3.3.7: accept, or RemoteError, nothing else."""
    for kind in (Challenge, Credentials):
        try:
            value = kind.parse(data)
        except RemoteError as error:
            event(f"{kind.__name__}: {error}")
            continue
        event(f"{kind.__name__}: accepted")
        assert kind.parse(str(value)) == value
        if isinstance(value, Credentials):
            _ = value.nc, value.qop, value.opaque
            assert not verify(value, "A", "00" * 16)
        elif value.is_supported:
            answer(value, "A", "sip:a", "u", "p", cnonce="c")
