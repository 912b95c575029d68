"""The pacer: no burst leaves, nothing of a file is lost, a live call does not stay late."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from siprtmp.pacing import Pacer

PTIME = 0.02


def drain(pacer, until, now=0.0):
    """Everything sent by ticking at each deadline up to `until`, as (time, item)."""
    sent = []
    while pacer.deadline is not None and pacer.deadline <= until:
        now = max(now, pacer.deadline)
        sent += [(now, item) for item in pacer.tick(now)]
    return sent


def test_a_file_sent_at_once_leaves_at_the_packet_time():
    """Covers RFC 3551 §4.2."""
    pacer = Pacer()
    sent = [(0.0, item) for i in range(500) for item in pacer.put(i * PTIME, i, 0.0)]
    assert pacer.is_ahead
    sent += drain(pacer, until=11.0)
    assert [item for _, item in sent] == list(range(500)) and not pacer.dropped
    assert all(abs(b - a - PTIME) < 1e-6 for (a, _), (b, _) in pairwise(sent))


@given(st.lists(st.floats(0.0, 0.009), min_size=50, max_size=50))
def test_punctual_packets_meet_no_timer(jitter):
    """Own design: jitter below half a packet costs nothing."""
    pacer = Pacer()
    for i, late in enumerate(jitter):
        now = i * PTIME + late
        assert pacer.put(i * PTIME, i, now) == [i] and pacer.deadline is None


@given(st.lists(st.floats(0.0, 0.3), min_size=2, max_size=60), st.booleans())
def test_packets_leave_in_order_and_never_two_at_once(gaps, file_like):
    """RFC 3551 §4.2: whatever the arrival, the phone sees packets a packet time apart."""
    pacer, now, sent, taken = Pacer(), 0.0, [], 0
    for i, gap in enumerate(gaps):
        until = now + (0.0 if file_like else gap)
        sent += drain(pacer, until, now)
        now = until
        sent += [(now, item) for item in pacer.put(i * PTIME, i, now)]
        taken += 1
    sent += drain(pacer, now + 60.0, now)
    assert [item for _, item in sent] == sorted(item for _, item in sent)
    assert len(sent) + pacer.dropped == taken
    if file_like:
        assert not pacer.dropped
    assert all(b - a >= PTIME - pacer.early - 1e-6 for (a, _), (b, _) in pairwise(sent))


def test_a_live_publisher_is_not_late_for_good_after_a_stall():
    """Own design: a backlog of a stalled live source is history."""
    pacer = Pacer()
    for i in range(100):
        assert pacer.put(i * PTIME, i, i * PTIME) == [i]
    sent = []
    for i in range(100, 250):  # three seconds arrive together, three seconds late
        sent += pacer.put(i * PTIME, i, 250 * PTIME)
    assert pacer.dropped > 100 and pacer.backlog <= 0.25
    for i in range(250, 300):
        now = i * PTIME
        sent += [item for _, item in drain(pacer, now, now)]
        sent += pacer.put(i * PTIME, i, now)
    assert sent[-1] >= 285
