"""Flow synchronization: who waits for whom."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.netconnection.incoming import MAX_FLOWS, FlowSynchronizer
from rtmplite.rtmfp.netconnection.messages import FlowSynchronization


def test_the_example():
    """Covers RFC 7425 §5.2 [suspends], by Figure 2: M5 after M1 to M4, M7 and M6 after M5."""
    synchronizer = FlowSynchronizer()
    assert synchronizer.meet("F2", FlowSynchronization(8, 2)) == [] and "F2" in synchronizer
    assert synchronizer.meet("F1", FlowSynchronization(8, 2)) == ["F2", "F1"]
    assert "F1" not in synchronizer and "F2" not in synchronizer
    assert synchronizer.meet("F1", FlowSynchronization(13, 2)) == []
    assert synchronizer.meet("F2", FlowSynchronization(13, 2)) == ["F1", "F2"]


def test_a_barrier_for_one_is_none():
    """Covers RFC 7425 §5.2 [count-at-least-1] [suspends]."""
    synchronizer = FlowSynchronizer()
    assert synchronizer.meet("F1", FlowSynchronization(1, 1)) == ["F1"] and "F1" not in synchronizer
    assert synchronizer.meet("F2", FlowSynchronization(2, MAX_FLOWS)) == [] and "F2" in synchronizer


@pytest.mark.parametrize("count", [0, MAX_FLOWS + 1, 0xFFFFFFFF])
def test_a_barrier_for_nobody_and_for_everybody(count):
    """Covers RFC 7425 §5.2 [count-at-least-1]."""
    with pytest.raises(RemoteError):
        FlowSynchronizer().meet("F1", FlowSynchronization(1, count))


def test_nobody_meets_two():
    """What comes behind a barrier is not taken: RFC 7425 §5.2 [suspends]."""
    synchronizer = FlowSynchronizer()
    synchronizer.meet("F1", FlowSynchronization(1, 2))
    with pytest.raises(RemoteError):
        synchronizer.meet("F1", FlowSynchronization(2, 2))


def test_who_leaves_waits_no_longer():
    """And nothing is kept of a barrier that nobody waits at."""
    synchronizer = FlowSynchronizer()
    synchronizer.meet("F1", FlowSynchronization(1, 3))
    synchronizer.meet("F2", FlowSynchronization(1, 3))
    synchronizer.leave("F1")
    assert "F1" not in synchronizer and "F2" in synchronizer
    synchronizer.leave("F2")
    synchronizer.leave("F3")
    assert not synchronizer
    assert synchronizer.meet("F4", FlowSynchronization(1, 2)) == []


@given(st.permutations([(sync, flow) for sync in (1, 2) for flow in "abc"]))
def test_all_go_on_in_the_end(arrivals):
    """Covers RFC 7425 §5.2 [suspends]: in whatever order flows meet their synchronizer."""
    synchronizer, free = FlowSynchronizer(), []
    for sync, flow in arrivals:
        free += synchronizer.meet((sync, flow), FlowSynchronization(sync, 3))
    assert sorted(free) == sorted(arrivals)
