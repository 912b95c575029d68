"""Endpoint Discriminators, and the certificates that they select."""

import pytest
from hypothesis import event, given
from support.mutations import mutations, peak

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto.certificate import Certificate
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.strategies.rtmfp_crypto import certificates, epds

NAMED = Certificate(b"canonical", hostname=b"a.example", accepts_ancillary_data=True)
PLAIN = Certificate(b"another")


@given(epds())
def test_what_is_read(pair):
    """Covers RFC 7425 §4.4.2 [unknown-ignored]."""
    encoded, expected = pair
    assert Epd.parse(encoded) == expected


@pytest.mark.parametrize(
    ("epd", "named", "plain"),
    [
        (Epd(), False, False),
        (Epd(fingerprint=NAMED.fingerprint), True, False),
        (Epd(fingerprint=PLAIN.fingerprint), False, True),
        (Epd(b"a.example", b"rtmfp://x/", PLAIN.fingerprint), False, True),
        (Epd(b"b.example", b"rtmfp://x/", NAMED.fingerprint), True, False),
        (Epd(b"a.example"), True, False),
        (Epd(b"A.example"), False, False),
        (Epd(b"a.example", b"rtmfp://x/"), True, False),
        (Epd(b"b.example", b"rtmfp://x/"), False, False),
        (Epd(ancillary_data=b"rtmfp://x/"), True, False),
        (Epd(ancillary_data=b""), True, False),
    ],
)
def test_whom_it_selects(epd, named, plain):
    """Covers RFC 7425 §4.4.3 [one-option-at-least] [fingerprint-decides] [selection-method].

    RFC 7425 §4.4.3 [hostname-identical] [ancillary-accepted].
    """
    assert epd.selects(NAMED) is named
    assert epd.selects(PLAIN) is plain


@given(epds(), certificates())
def test_figure_1(pair, other):
    """Covers RFC 7425 §4.4.3 [selection-method], told once more with the figure's branches."""
    epd, certificate = pair[1], other[1]

    def figure():
        if epd.fingerprint is not None:
            return certificate.fingerprint == epd.fingerprint
        wanted = epd.required_hostname
        if wanted is not None and (certificate.hostname is None or certificate.hostname != wanted):
            return False
        if epd.ancillary_data is not None:
            return certificate.accepts_ancillary_data
        return wanted is not None

    assert epd.selects(certificate) == figure()


def test_canonical():
    """Covers RFC 7425 §4.4.4 [canonical-epd]."""
    encoded = Epd(fingerprint=bytes(range(32))).encode()
    assert encoded == b"\x21\x0f" + bytes(range(32))
    assert len(encoded) == 34


@pytest.mark.parametrize(
    "encoded",
    [
        b"\x02\x00a\x02\x00b",
        b"\x02\x0aa\x02\x0aa",
        (b"\x21\x0f" + bytes(32)) * 2,
        b"\x20\x0f" + bytes(31),
        b"\x22\x0f" + bytes(33),
        b"\x01\x0f",
        b"\x09\x0artmfp:",
    ],
)
def test_refused(encoded):
    """Covers RFC 7425 §4.4.2.1 [hostname-once] and RFC 7425 §4.4.2.2 [ancillary-once].

    RFC 7425 §4.4.2.3 [fingerprint-once] [32-bytes].
    """
    with pytest.raises(RemoteError):
        Epd.parse(encoded)


@given(mutations(epds().map(lambda pair: pair[0])))
def test_never_crashes(data):
    """RFC 7425 §3: a discriminator, or RemoteError."""

    def attempt():
        try:
            Epd.parse(data)
            event("a discriminator")
        except RemoteError:
            event("refused")

    assert peak(attempt) <= 32 * len(data) + 65536
