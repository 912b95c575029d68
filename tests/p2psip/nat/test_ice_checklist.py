"""The pairs of ICE: which are made, in which order they are tried, and which make room."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.nat.ice_candidate import CandidateType, IceCandidate
from p2psip.nat.ice_checklist import IceChecklist, PairState

BASE = ("192.0.2.1", 5000)


def candidate(rank, host="192.0.2.2", port=6000, foundation="1"):
    return IceCandidate(foundation, 1, "UDP", rank, host, port, CandidateType.HOST)


def add(pairs, rank, **remote):
    return pairs.add(candidate(100, *BASE), BASE, candidate(rank, **remote), controlling=True)


@given(st.integers(1, 2**31 - 1), st.integers(1, 2**31 - 1))
def test_a_pair_has_one_priority_at_both_ends(ours, theirs):
    """Covers RFC 8445 §6.1.2.3 [pair-priority-by-formula]."""
    near = IceChecklist().add(candidate(ours), BASE, candidate(theirs), controlling=True)
    far = IceChecklist().add(candidate(theirs), BASE, candidate(ours), controlling=False)
    rank = near.priority(controlling=True)
    assert rank == far.priority(controlling=False)
    assert rank == 2**32 * min(ours, theirs) + 2 * max(ours, theirs) + (1 if ours > theirs else 0)


def test_an_address_is_paired_once_whatever_its_type():
    """Covers RFC 8445 §6.1.2.4 [reflexive-is-its-base]."""
    pairs = IceChecklist()
    assert add(pairs, 10) is not None
    reflexive = IceCandidate(
        "2", 1, "UDP", 50, "203.0.113.1", 1, CandidateType.SERVER_REFLEXIVE, BASE
    )
    assert pairs.add(reflexive, BASE, candidate(10), controlling=True) is None
    assert len(pairs.pairs) == 1


def test_pairs_are_tried_by_priority_and_those_alike_when_one_works():
    """Covers RFC 8445 §7.2.5.3.3 [unfreezes-its-foundation]."""
    pairs = IceChecklist()
    first = add(pairs, 10)
    alike = [add(pairs, 20 + port, port=port) for port in (1, 2)]
    other = add(pairs, 5, port=3, foundation="9")
    states = [each.state for each in (first, *alike, other)]
    assert states == [
        PairState.WAITING, PairState.FROZEN, PairState.FROZEN, PairState.WAITING
    ]  # fmt: skip
    assert pairs.next(controlling=True) is first
    first.state = PairState.IN_PROGRESS
    assert pairs.next(controlling=True) is other
    other.state = PairState.IN_PROGRESS
    assert pairs.next(controlling=True) is None  # those alike wait for the first
    pairs.succeeded(first)
    assert pairs.next(controlling=True) is alike[1]
    assert not pairs.is_exhausted


def test_where_there_are_too_many_the_worst_goes():
    """Covers RFC 8838 §10 [failed-pairs-make-room] [lower-pairs-make-room]."""
    pairs = IceChecklist(3)
    failed, low, high = (add(pairs, rank, port=rank) for rank in (90, 10, 50))
    failed.state = PairState.FAILED
    assert add(pairs, 20, port=1) is not None and failed not in pairs.pairs
    assert add(pairs, 5, port=2) is None
    assert add(pairs, 30, port=3) is not None and low not in pairs.pairs
    assert high in pairs.pairs and len(pairs.pairs) == 3
    high.state = PairState.SUCCEEDED
    assert add(pairs, 99, port=4) is not None and high in pairs.pairs


@pytest.mark.parametrize(
    ("ours", "theirs", "fit"),
    [
        ("192.0.2.1", "192.0.2.2", True),
        ("192.0.2.1", "2001:db8::1", False),
        ("169.254.0.1", "192.0.2.2", True),
        ("fe80::1", "2001:db8::1", False),
        ("2001:db8::1", "fe80::1", False),
        ("fe80::1", "fe80::2", True),
    ],
)
def test_addresses_of_a_pair_are_of_one_kind(ours, theirs, fit):
    """Covers RFC 8445 §6.1.2.2 [link-local-with-link-local]."""
    pair = IceChecklist().add(candidate(1, ours), (ours, 1), candidate(1, theirs), controlling=True)
    assert (pair is not None) is fit
