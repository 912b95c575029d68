"""Flow synchronization: who waits for whom."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.netconnection.flow_sync import MAX_FLOWS, Barriers
from rtmplite.rtmfp.netconnection.messages import FlowSynchronization


def test_the_example():
    """Covers RFC 7425 §5.2 [suspends], by Figure 2: M5 after M1 to M4, M7 and M6 after M5."""
    barriers = Barriers()
    assert barriers.meet("F2", FlowSynchronization(8, 2)) == [] and "F2" in barriers
    assert barriers.meet("F1", FlowSynchronization(8, 2)) == ["F2", "F1"]
    assert "F1" not in barriers and "F2" not in barriers
    assert barriers.meet("F1", FlowSynchronization(13, 2)) == []
    assert barriers.meet("F2", FlowSynchronization(13, 2)) == ["F1", "F2"]


def test_a_barrier_for_one_is_none():
    """Covers RFC 7425 §5.2 [count-at-least-1] [suspends]."""
    barriers = Barriers()
    assert barriers.meet("F1", FlowSynchronization(1, 1)) == ["F1"] and "F1" not in barriers
    assert barriers.meet("F2", FlowSynchronization(2, MAX_FLOWS)) == [] and "F2" in barriers


@pytest.mark.parametrize("count", [0, MAX_FLOWS + 1, 0xFFFFFFFF])
def test_a_barrier_for_nobody_and_for_everybody(count):
    """Covers RFC 7425 §5.2 [count-at-least-1]."""
    with pytest.raises(RemoteError):
        Barriers().meet("F1", FlowSynchronization(1, count))


def test_nobody_meets_two():
    """What comes behind a barrier is not taken: RFC 7425 §5.2 [suspends]."""
    barriers = Barriers()
    barriers.meet("F1", FlowSynchronization(1, 2))
    with pytest.raises(RemoteError):
        barriers.meet("F1", FlowSynchronization(2, 2))


def test_who_leaves_waits_no_longer():
    """And nothing is kept of a barrier that nobody waits at."""
    barriers = Barriers()
    barriers.meet("F1", FlowSynchronization(1, 3))
    barriers.meet("F2", FlowSynchronization(1, 3))
    barriers.leave("F1")
    assert "F1" not in barriers and "F2" in barriers
    barriers.leave("F2")
    barriers.leave("F3")
    assert not barriers
    assert barriers.meet("F4", FlowSynchronization(1, 2)) == []


@given(st.permutations([(sync, flow) for sync in (1, 2) for flow in "abc"]))
def test_all_go_on_in_the_end(arrivals):
    """Covers RFC 7425 §5.2 [suspends]: in whatever order flows meet their barriers."""
    barriers, free = Barriers(), []
    for sync, flow in arrivals:
        free += barriers.meet((sync, flow), FlowSynchronization(sync, 3))
    assert sorted(free) == sorted(arrivals)
