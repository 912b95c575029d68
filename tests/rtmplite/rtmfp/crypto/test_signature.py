"""Signatures by password, and none at all."""

import hmac

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.rtmfp.crypto.flash_profile import is_valid, sign
from rtmplite.strategies.rtmfp_crypto import signatures

KNOWN = {b"alice": b"one", b"": b"two"}
GOOD = sign(b"parameters", [(b"alice", b"one")])


def _option(identifier, password, parameters=b"parameters"):
    digest = hmac.digest(password, parameters, "sha256")
    return bytes([1 + len(digest + identifier)]) + b"\x1d" + digest + identifier


def test_layout():
    """Covers RFC 7425 §4.3.5.1.1 [password-layout] and RFC 7425 §4.3.5 [x-for-none]."""
    assert _option(b"alice", b"one") == GOOD
    assert sign(b"parameters", [(b"a", b"b"), (b"c", b"d")]) == (
        _option(b"a", b"b") + _option(b"c", b"d")
    )
    assert sign(b"parameters", []) == b"X"


@pytest.mark.parametrize(
    ("signature", "valid"),
    [
        (GOOD, True),
        (_option(b"", b"two"), True),
        (_option(b"carol", b"?") + GOOD, True),  # an older version's, say
        (b"\x02\x0aA" + GOOD + b"\x01\x55", True),
        (_option(b"carol", b"?"), False),
        (_option(b"alice", b"wrong") + _option(b"", b"two"), False),
        (_option(b"", b"two") + _option(b"alice", b"wrong"), False),
        (_option(b"alice", b"one", b"other parameters"), False),
        (GOOD[:-1], False),
        (GOOD + b"\x05", False),
        (b"\x02\x1dA", False),
        (b"X", False),
        (b"", False),
    ],
)
def test_required(signature, valid):
    """Covers RFC 7425 §4.3.5 [malformed-is-empty] [any-valid-if-not-required] [may-require].

    RFC 7425 §4.3.5.1 [unknown-options-ignored] and
    RFC 7425 §4.3.5.1.1 [unrecognized-ignored] [one-bad-spoils-all] [password-layout].
    """
    assert is_valid(signature, b"parameters", KNOWN, required=True) is valid
    assert is_valid(signature, b"parameters", KNOWN, required=False)


@given(st.binary(), st.lists(st.tuples(st.binary(max_size=9), st.binary()), min_size=1, max_size=3))
def test_our_own_is_valid(parameters, passwords):
    """Covers RFC 7425 §4.3.5.1.1 [password-layout]."""
    known = dict(passwords)
    signature = sign(parameters, known.items())
    assert is_valid(signature, parameters, known, required=True)
    # a password is a key of HMAC, which makes no difference of zeros behind a short one
    others = {name: password + b"!" for name, password in known.items()}
    assert not is_valid(signature, parameters, others, required=True)


@given(mutations(signatures()))
def test_never_crashes(data):
    """Covers RFC 7425 §4.3.5 [malformed-is-empty]."""

    def attempt():
        event(str(is_valid(data, b"", {bytes(n): b"" for n in range(9)}, required=True)))

    assert peak(attempt) <= 32 * len(data) + 65536
