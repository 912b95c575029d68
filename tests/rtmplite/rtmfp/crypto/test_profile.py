"""The promises of any profile that the startup relies on, tested with Flash's."""

from itertools import combinations
from random import Random

from hypothesis import given

from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.strategies import rtmfp_crypto as any_of

CLIENTS = [FlashProfile.client(Random(seed).randbytes, groups=(2,)) for seed in range(4)]


def certificates():
    return any_of.certificates().map(lambda pair: pair[0])


@given(certificates(), certificates(), any_of.epds().map(lambda pair: pair[0]))
def test_what_is_said_once_is_always_said(one, other, epd):
    """Covers RFC 7016 §3.2 [deterministic]."""
    near = CLIENTS[0]

    def all_answers():
        return (
            near.is_authentic(one),
            near.is_selected(one, epd),
            near.selects(epd),
            near.canonical_epd(one),
            near.fingerprint(one),
            near.wanted_fingerprint(epd),
            near.verify(one, b"parameters", b"X"),
            near.sign(b"parameters"),
            near.wins_glare(one),
            near.overrides(one, other),
        )

    first = all_answers()
    assert [all_answers() for _ in range(3)] == [first] * 3


@given(certificates(), certificates())
def test_identities_are_told_apart(one, other):
    """Covers RFC 7016 §3.2 [canonical-distinct] [identical-overrides]."""
    near = CLIENTS[0]
    names = near.fingerprint(one), near.fingerprint(other)
    epd = near.canonical_epd(one)
    assert (epd == near.canonical_epd(other)) is (names[0] == names[1])
    assert near.is_selected(one, epd)
    assert near.wanted_fingerprint(epd) == names[0]
    assert near.overrides(one, other) is (one == other)
    assert near.overrides(one, one)


def test_two_ends_agree_on_who_prevails():
    """Covers RFC 7016 §3.2 [same-conclusion]."""
    for near, far in combinations(CLIENTS, 2):
        assert near.wins_glare(far.certificate) is not far.wins_glare(near.certificate)
