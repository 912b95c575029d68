"""Candidates as the attribute says them: those of browsers, any at all, and broken ones."""

import pytest
from hypothesis import given
from support.faults import refused

from p2psip.errors import RemoteError
from p2psip.nat.ice_candidate import CandidateType, IceCandidate
from p2psip.strategies.faults import broken
from p2psip.strategies.ice import CANDIDATE_FAULTS, candidates

FORM = "Not a candidate of ICE"
OTHER = "A candidate of another type or foundation"
RANGE = "A candidate with a number out of range"
REASONS = {
    "cut": FORM,
    "foundation with another character": OTHER,
    "foundation of 33": OTHER,
    "component of none or too many": "A candidate with a number",
    "priority out of range": "A candidate with a number",
    "port out of range": "A candidate with a number",
    "no typ": FORM,
    "unknown type": OTHER,
    "name without a value": FORM,
}


@given(candidates())
def test_what_is_written_is_read(candidate):
    """Covers RFC 8839 §5.1 [unknown-pairs-are-ignored] [others-have-related]."""
    assert IceCandidate.parse(str(candidate)) == candidate


def test_each_fault_is_refused():
    """Covers RFC 8839 §5.1."""
    read = lambda data: IceCandidate.parse(data.decode())  # noqa: E731
    refused(broken(CANDIDATE_FAULTS), read, RemoteError, REASONS)


@pytest.mark.parametrize(
    ("text", "version", "kind", "related"),
    [
        # Chromium, with the name of a private address
        (
            "3188156428 1 udp 2113937151 9b36eaac-bb2e-49bb-bb78-21c41c499900.local 37045 typ host"
            " generation 0 ufrag EsAw network-cost 999",
            None, CandidateType.HOST, None,
        ),
        # Firefox, over TCP
        ("1 1 TCP 2105524479 192.0.2.5 9 typ host tcptype active", 4, CandidateType.HOST, None),
        (
            "2 1 UDP 1686052863 2001:db8::7 40000 typ srflx raddr 0.0.0.0 rport 0",
            6, CandidateType.SERVER_REFLEXIVE, ("0.0.0.0", 0),
        ),
    ],
)  # fmt: skip
def test_those_of_browsers_are_read(text, version, kind, related):
    """Covers RFC 8839 §5.1 [unknown-pairs-are-ignored]."""
    candidate = IceCandidate.parse(text)
    assert (candidate.version, candidate.type, candidate.related) == (version, kind, related)
    assert str(candidate) == text
