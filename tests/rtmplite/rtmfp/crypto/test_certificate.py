"""Certificates, and which of their options count."""

from hashlib import sha256

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto import certificate
from rtmplite.rtmfp.crypto.certificate import Certificate
from rtmplite.rtmfp.crypto.fields import OPTIONS_MOST
from rtmplite.strategies.rtmfp_crypto import certificates

ENCODED = certificates().map(lambda pair: pair[0])


@given(certificates())
def test_what_is_read(pair):
    """Covers RFC 7425 §4.3.1 [canonical-section] and RFC 7425 §4.3.3 [unknown-ignored].

    After the marker nothing counts but randomness: RFC 7425 §4.3.3.1 [hostname-canonical],
    RFC 7425 §4.3.3.2 [ancillary-canonical], RFC 7425 §4.3.3.4 [group-canonical] and
    RFC 7425 §4.3.3.5 [key-canonical].  RFC 7425 §4.3.3.4 [several-groups] and
    RFC 7425 §4.3.3.5 [several-keys].
    """
    encoded, expected = pair
    assert Certificate.parse(encoded) == expected
    event("tail" if len(encoded) > len(expected.canonical) else "canonical only")


@given(certificates())
def test_fingerprint(pair):
    """Covers RFC 7425 §4.3.2 [fingerprint]: what follows the marker does not change it."""
    encoded, expected = pair
    assert Certificate.parse(encoded).fingerprint == sha256(expected.canonical).digest()


def test_marker_of_two_bytes():
    """Covers RFC 7425 §4.3.1 [canonical-section]: a length may be written in too many bytes."""
    parsed = Certificate.parse(bytes.fromhex("01 0a 80 00 02 00 41"))
    assert parsed == Certificate(b"\x01\x0a", accepts_ancillary_data=True)


def test_randomness_after_the_marker():
    """RFC 7425 §4.3.3.3: it need not be canonical."""
    parsed = Certificate.parse(bytes.fromhex("00 03 0e aa bb"))
    assert parsed.extra_randomness == (b"\xaa\xbb",)
    assert parsed.canonical == b""


def test_build():
    """RFC 7425 §4.3.3: every option, in canonical order."""
    encoded = certificate.build(
        hostname=b"h", accepts_ancillary_data=True, keys=[(2, 0x0102), (14, 3)], extra=b"xyz"
    )
    assert encoded.hex(" ") == "02 00 68 01 0a 04 1d 02 01 02 03 1d 0e 03 04 0e 78 79 7a"
    assert Certificate.parse(encoded) == Certificate(
        encoded, b"h", True, (), {2: 0x0102, 14: 3}, (b"xyz",)
    )
    assert Certificate.parse(encoded).groups == (2, 14)


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [
        ("02 00 41 02 00 42", "more than once"),
        ("02 00 41 02 00 41", "more than once"),
        ("02 15 02 03 1d 02 07", "static and ephemeral"),
        ("03 1d 02 07 02 15 0e", "static and ephemeral"),
        ("02 0a", "announced"),
        ("01 15", "cut off"),
        ("02 15 82", "cut off"),
        ("00 05 0a", "announced"),
        ("81", "cut off"),
    ],
)
def test_refused(encoded, reason):
    """Covers RFC 7425 §4.3.3.1 [hostname-once].

    RFC 7425 §4.3.3.4 [ephemeral-excludes-static], RFC 7425 §4.3.3.5 [static-excludes-ephemeral],
    RFC 7425 §3 [truncation-noticed] [error-aborts-element].
    """
    with pytest.raises(RemoteError, match=reason):
        Certificate.parse(bytes.fromhex(encoded))


@given(mutations(ENCODED))
def test_never_crashes(data):
    """Covers RFC 7425 §3 [truncation-noticed]: a certificate, or RemoteError."""

    def attempt():
        try:
            Certificate.parse(data)
            event("a certificate")
        except RemoteError:
            event("refused")

    assert peak(attempt) <= 32 * len(data) + 65536


@given(st.integers(1, 400))
@example(OPTIONS_MOST)
@example(OPTIONS_MOST + 1)
def test_many_options_cost_little(count):
    """Own design: repeated options take little memory."""
    data = b"\x02\x15\x02" * count

    def attempt():
        try:
            assert len(Certificate.parse(data).ephemeral_groups) == count <= OPTIONS_MOST
        except RemoteError:
            assert count > OPTIONS_MOST

    assert peak(attempt) <= 32 * len(data) + 65536
