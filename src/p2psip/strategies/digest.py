"""Challenges, credentials and what follows them: digest authentication, valid and broken.

Implements RFC 7616 §3.3 to §3.5 in reverse, in the headers of RFC 3261 §20.6, §20.7 and §20.44.

Own design: `p2psip.strategies.faults` says why faults are drawn one at a time.
"""

from functools import cache
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from p2psip.sip.auth import Challenge, Credentials, answer
from p2psip.sip.authentication_info import AuthenticationInfo
from p2psip.sip.grammar import quote
from p2psip.sip.params import put
from p2psip.strategies.faults import MediaFault, written
from p2psip.strategies.sip_parts import free_text, header_params, tokens

_HASHES: Final = ("MD5", "SHA-256", "SHA-512-256")  # Source: RFC 8760 §2.1
_KNOWN: Final = st.sampled_from([*_HASHES, *(f"{each}-sess" for each in _HASHES), "sha-256"])
_QOPS: Final = st.sampled_from([None, "auth", "auth-int", "auth,auth-int", "auth, other"])
_OPTIONAL: Final = st.none() | free_text()


@cache
def challenges() -> SearchStrategy[Challenge]:
    """Challenges with a hash that we have, or with another one: RFC 7616 §3.3."""
    return _challenges(_KNOWN | tokens(), _QOPS | st.just("other"))


def _challenges(
    algorithms: SearchStrategy[str], qops: SearchStrategy[str | None]
) -> SearchStrategy[Challenge]:
    return st.builds(
        Challenge.digest,
        free_text(),
        nonce=free_text(),
        algorithm=algorithms,
        qop=qops,
        opaque=_OPTIONAL,
        stale=st.booleans(),
    )


_ANSWERED: Final = _challenges(_KNOWN, _QOPS)
_COUNTS: Final = st.integers(1, 0xFFFFFFFF)


@cache
@st.composite
def credentials(draw: DrawFn) -> Credentials:
    """Answers to challenges, by a user and a password of any kind: RFC 7616 §3.4."""
    return answer(
        draw(_ANSWERED),
        draw(tokens()),
        draw(free_text()),
        draw(free_text()),
        draw(free_text()),
        cnonce=draw(free_text()),
        nc=draw(_COUNTS),
    )


@cache
def foreign_credentials() -> SearchStrategy[Credentials]:
    """Credentials by an algorithm or a quality that nobody knows: RFC 7616 §3.4, §6.1."""
    edits = st.sampled_from([("algorithm", "x-hash"), ("qop", "x-auth"), ("nc", "x")])
    return st.builds(
        lambda told, edit: Credentials("Digest", put(told.params, *edit)), credentials(), edits
    )


@cache
def authentication_infos() -> SearchStrategy[AuthenticationInfo]:
    """What comes with the answer to an accepted proof, maybe with the next nonce: RFC 7616 §3.5."""
    nonces = free_text().map(lambda text: (("nextnonce", quote(text)),))
    some = st.just(()) | nonces
    return st.builds(lambda two, more: AuthenticationInfo((*two, *more)), some, header_params())


@cache
def other_schemes() -> SearchStrategy[str]:
    """Challenges and credentials of schemes other than Digest: RFC 4475 §3.3.7."""
    names = tokens().filter(lambda name: name.lower() != "digest")
    return st.builds("{} {}".format, names, st.sampled_from(["", "Zm9v", 'realm="a", x=1']))


_GRAMMAR: Final = "RFC 3261 §25.1"
_REALM, _NONCE = 'realm="a"', 'nonce="b"'
_REST: Final = f"{_REALM}, {_NONCE}"
_TOLD: Final = (
    *('username="c"', _REALM, _NONCE, 'uri="sip:a"'),
    'response="d41d8cd98f00b204e9800998ecf8427e"',
)
_PROOF: Final = ", ".join(_TOLD)


def _of_form(rest: str) -> tuple[MediaFault, ...]:
    """Faults of form, in a value whose parameters are `rest`."""
    return (
        written("scheme of no token", _GRAMMAR, *(f"{each} {rest}" for each in ('"x"', "D=", "@"))),
        written("no scheme", _GRAMMAR, "", rest, f", {rest}"),
        written("open quote", _GRAMMAR, f'Digest {rest}, opaque="x', f'Digest x="y, {rest}'),
        written("parameter without a name", _GRAMMAR, f'Digest {rest}, ="x"', f"Digest =, {rest}"),
        written("text behind a quote", _GRAMMAR, f'Digest {rest}, opaque="x"y'),
    )


CHALLENGE_FAULTS: Final = (
    *_of_form(_REST),
    written("no realm", "RFC 7616 §3.3", f"Digest {_NONCE}", f"Digest {_NONCE}, qop=auth"),
    written("no nonce", "RFC 7616 §3.3", f"Digest {_REALM}", f"Digest {_REALM}, algorithm=MD5"),
)
"""Every fault of a challenge: RFC 3261 §25.1, RFC 7616 §3.3."""

CREDENTIAL_FAULTS: Final = (
    *_of_form(_PROOF),
    *(
        written(
            f"no {each.partition('=')[0]}",
            "RFC 7616 §3.4",
            "Digest " + ", ".join(other for other in _TOLD if other != each),
        )
        for each in _TOLD
    ),
    written("two user names", "RFC 7616 §3.4", f"Digest {_PROOF}, username*=UTF-8''c"),
)
"""Every fault of credentials: RFC 3261 §25.1, RFC 7616 §3.4."""

INFO_FAULTS: Final = (
    written("open quote", _GRAMMAR, 'nextnonce="x', 'nextnonce=x, rspauth="'),
    written("parameter without a name", _GRAMMAR, '="x"', "nextnonce=x, =1"),
    written("text behind a quote", _GRAMMAR, 'nextnonce="x"y'),
)
"""Every fault of what follows credentials: RFC 3261 §20.6, §25.1."""
