"""Diffie-Hellman groups, keys that must be refused, and shared secrets."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto import dh
from rtmplite.rtmfp.crypto.dh import GROUPS, KeyPair
from rtmplite.strategies.rtmfp_crypto import key_pairs

SMALL = GROUPS[2]


def _printed_primes(text):
    """The primes that an RFC prints, by their length in bits."""
    text = re.sub(r"\n+[^\n]*\[Page \d+\]\n\f?\n*RFC \d+[^\n]*\n", "\n", text)
    blocks = (re.sub(r"\s", "", m[0]) for m in re.finditer(r"(?:\s+[0-9A-F]{8}\b)+", text))
    return {len(digits) * 4: int(digits, 16) for digits in blocks}


def test_primes_are_those_the_specs_print(specs):
    """Covers RFC 7425 §4.2 [group-2] [groups-5-14] [more-groups] and RFC 2409 §6.2 [second-group].

    The lengths of exponents are those of the table in RFC 3526 §8, the higher estimate.
    """
    table = (specs / "rfc3526.txt").read_text()
    primes = _printed_primes((specs / "rfc2409.txt").read_text()) | _printed_primes(table)
    assert GROUPS.keys() == {2, 5, 14, 15, 16}
    for number, bits in {2: 1024, 5: 1536, 14: 2048, 15: 3072, 16: 4096}.items():
        group = GROUPS[number]
        assert (group.group_id, group.prime, group.generator) == (number, primes[bits], 2)
        assert not group.is_acceptable(group.prime)
        row = re.search(rf"\| +{number} +\| {bits}-bit .* (\d+)- \|\n", table)
        assert group.exponent_bits == (240 if number == 2 else int(row[1]))


def test_pi():
    """Own design: the first digits are well known."""
    assert dh.pi_bits(20) == 3294198
    assert f"{dh.pi_bits(32):x}" == "3243f6a88"


@pytest.mark.parametrize("group", GROUPS.values(), ids=lambda group: str(group.group_id))
def test_both_ends_find_one_secret(group):
    """Covers RFC 7425 §4.2 [group-2] [groups-5-14] [more-groups].

    Covers RFC 2409 §6.2 [second-group].
    """
    ours = KeyPair.generate(group, lambda n: b"\x5a" * n)
    theirs = KeyPair.generate(group, lambda n: b"\xa5" * n)
    assert ours.private.bit_length() == theirs.private.bit_length() == group.exponent_bits
    assert ours.secret(theirs.public) == theirs.secret(ours.public)
    assert pow(theirs.public, ours.private, group.prime) == int.from_bytes(
        ours.secret(theirs.public)
    )


@pytest.mark.parametrize(
    "public",
    [
        *(0, 1, 2, SMALL.prime - 1, SMALL.prime, SMALL.prime + 1, SMALL.prime * 2),
        (1 << 24) - 1,  # though it has 24 ones
        SMALL.prime - (1 << 24) + 1,
        1 << 1000,  # one bit set
        0x7FFF << 900,  # 15 bits set
        (1 << 900) - 1,  # no bit clear
        ((1 << 900) - 1) ^ (0x7FFF << 100),  # 15 bits clear
        1 << 5000,
    ],
)
def test_refused_keys(public):
    """Covers RFC 7425 §4.6.2 [at-least-2-24] [at-most-p-less-2-24] [16-ones] [16-zeros].

    And with them there is no secret: RFC 7425 §4.6.2 [no-session-with-bad-key].
    """
    assert not SMALL.is_acceptable(public)
    with pytest.raises(RemoteError, match="not acceptable"):
        KeyPair.of(SMALL, 1 << 200).secret(public)


@pytest.mark.parametrize(
    "public",
    [
        0xFFFF << 900,  # 16 bits set
        ((1 << 900) - 1) ^ (0xFFFF << 100),  # 16 bits clear
        0xFFFF << 16,
        (SMALL.prime - (1 << 24)) & ~0xFFFF,
        SMALL.prime - (1 << 24),
    ],
)
def test_accepted_keys(public):
    """Covers RFC 7425 §4.6.2 [at-least-2-24] [at-most-p-less-2-24] [16-ones] [16-zeros]."""
    assert SMALL.is_acceptable(public)


def test_edges_of_the_range():
    """Covers RFC 7425 §4.6.2 [at-least-2-24] [at-most-p-less-2-24].

    2**24 itself has but one bit, so a smaller prime shows where the range begins and ends.
    """
    group = dh.Group(0, 0xFFFF_0000_0000 + (1 << 24), 40)
    assert group.is_acceptable(0xFFFF_0000_0000)
    assert not group.is_acceptable(0xFFFF_0000_0001)
    low = (1 << 24) + 0xFFFF  # 17 ones, 8 zeros: refused for its zeros alone
    assert not group.is_acceptable(low)
    assert group.is_acceptable(0x1_0000_FFFF)
    assert not group.is_acceptable(0xFFFF_00)  # 16 ones, and below 2**24


def test_secret_has_no_leading_zeros():
    """Covers RFC 7425 §4.6.2 [secret-without-zeros]."""
    lengths = set()
    for exponent in range(1500, 2200):
        secret = KeyPair(SMALL, 0, exponent).secret(0xFFFF << 900)
        assert secret[0]
        lengths.add(len(secret))
        if len(lengths) > 1:
            break
    assert lengths == {127, 128}


@given(key_pairs(), key_pairs())
def test_secrets_agree(ours, theirs):
    """RFC 7425 §4.6.2: both ends compute the same secret."""
    assert ours.secret(theirs.public) == theirs.secret(ours.public)


@given(st.integers(0, 1 << 1100))
def test_acceptable_says_what_the_text_says(public):
    """Covers RFC 7425 §4.6.2 [at-least-2-24] [at-most-p-less-2-24] [16-ones] [16-zeros]."""
    digits = f"{public:b}"
    assert SMALL.is_acceptable(public) == (
        2**24 <= public <= SMALL.prime - 2**24
        and digits.count("1") >= 16
        and digits.count("0") >= 16
    )


def test_private_exponent_is_not_shown():
    """Own design: no repr shows a secret."""
    pair = KeyPair.of(SMALL, 123456789123456789)
    assert "123456789" not in repr(pair)
