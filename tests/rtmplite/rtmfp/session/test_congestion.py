"""The congestion window against the pseudocode of the appendix."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmplite.rtmfp.session.congestion import (
    MSS,
    NOTICE_SECONDS,
    Burst,
    CongestionControl,
    TimeCritical,
)
from rtmplite.rtmfp.session.rtt import RoundTrip


def control(cwnd=4380, ssthresh=math.inf, notices=None):
    congestion = CongestionControl(notices or TimeCritical(), RoundTrip())
    congestion.cwnd, congestion.ssthresh = cwnd, ssthresh
    return congestion


def packet(congestion, now=10.0, *, outstanding=None, acked=0, naks=False, lost=0, left=0):
    """One received packet; without `outstanding` the window was full, and `left` is in flight."""
    congestion.filled(congestion.cwnd if outstanding is None else outstanding)
    congestion.begin()
    if acked:
        congestion.acknowledged(acked)
    congestion.any_naks, congestion.lost = naks, lost
    congestion.finish(left, now)
    return congestion


def measured_burst():
    """A burst on a path of 100 ms."""
    timing = RoundTrip()
    timing.srtt = 0.1
    return Burst(timing)


def test_the_beginning():
    """Covers RFC 7016 §A.2 [initial]."""
    congestion = CongestionControl(TimeCritical(), RoundTrip())
    assert (congestion.cwnd, congestion.ssthresh) == (4380, math.inf)


def test_no_more_than_the_window():
    """Covers RFC 7016 §3.5.2 [tcp-compatible]."""
    congestion = control()
    assert congestion.allows(4379)
    assert not congestion.allows(4380)


def test_no_more_than_six_segments_until_an_acknowledgement_or_a_timeout():
    """RFC 7016 §3.5.2.3, counted in bytes."""
    congestion = control(100_000)
    congestion.burst = measured_burst()
    for again in (lambda: congestion.acknowledged(0), lambda: congestion.timeout(True)):
        for _ in range(6):
            assert congestion.allows(0)
            congestion.sent(MSS, False, 1.0)
        assert not congestion.allows(0)
        again()
        assert congestion.allows(0)


def test_slow_start_grows_by_what_arrived_and_a_segment_at_most():
    """Covers RFC 7016 §A.2 [increase-capped], §3.5.2 [not-above-slow-start]."""
    assert packet(control(), acked=1000).cwnd == 5380
    assert packet(control(), acked=4000).cwnd == 5840
    assert packet(control(cwnd=1460), acked=100).cwnd == 4380


@pytest.mark.parametrize(
    ("cwnd", "acked", "want", "left"),
    [
        (48000, 3000, 48096, 0),
        (48000, 2999, 48000, 2999),
        (48000, 6001, 48192, 1),
        (96000, 6000, 96096, 0),
        (160000, 9599, 160000, 9599),
        (160000, 9600, 160096, 0),
    ],
)
def test_above_the_threshold_it_grows_by_shares(cwnd, acked, want, left):
    """RFC 7016 §A.2, by twice as much."""
    congestion = packet(control(cwnd, ssthresh=20000), acked=acked)
    assert (congestion.cwnd, congestion.acked_bytes_accumulator) == (want, left)


def test_the_smallest_share_is_64_bytes():
    """RFC 7016 §A.2."""
    assert packet(control(640, ssthresh=0), acked=64).acked_bytes_accumulator == 0


def test_only_a_full_window_without_trouble_grows():
    """RFC 7016 §A.2; full is what has no room for a 64th."""
    assert packet(control(), outstanding=4380 - 68, acked=1000).cwnd == 4380
    assert packet(control(), outstanding=4380 - 67, acked=1000).cwnd == 5380
    assert packet(control(), acked=1000, naks=True).cwnd == 4380
    assert packet(control()).cwnd == 4380


@pytest.mark.parametrize(
    ("outstanding", "tc_ago", "tcr_ago", "want"),
    [
        (40000, None, None, 20000),
        (40000, 0.79, None, 78750),
        (40000, 0.81, None, 20000),
        (80000, None, None, 70000),
        (67200, None, None, 33600),
        (67208, None, None, 58807),
        (80000, None, 0.5, 40000),
        (80000, 0.5, 0.5, 78750),
        (5000, None, None, 4380),
        (99999, None, None, 78750),
    ],
)
def test_loss(outstanding, tc_ago, tcr_ago, want):
    """Covers RFC 7016 §A.2 [fastgrow]; the window counts if more than that was outstanding."""
    congestion = control(cwnd=90000)
    congestion.acked_bytes_accumulator = 5
    if tc_ago is not None:
        congestion.sent(100, True, 10.0 - tc_ago)
    if tcr_ago is not None:
        congestion.tcr_received = 10.0 - tcr_ago
    packet(congestion, outstanding=outstanding, acked=1000, naks=True, lost=1000)
    assert congestion.cwnd == congestion.ssthresh == want
    assert congestion.acked_bytes_accumulator == 0


def test_who_yields_does_not_slow_start():
    """Covers RFC 7016 §3.5.2.1 [no-slow-start], §A.2 [fastgrow]."""
    congestion = control(cwnd=48000)
    congestion.tcr_received = 0.0
    packet(congestion, now=0.8, acked=3000)
    assert congestion.cwnd == 48024
    packet(congestion, now=0.81, acked=1000)
    assert congestion.cwnd == 49024


def test_real_time_data_starts_up_as_fast_as_others():
    """Covers RFC 7016 §3.5.2.1 [no-slow-start]."""
    congestion = control()
    congestion.sent(100, True, 9.5)
    packet(congestion, acked=1001)
    assert congestion.cwnd == 4380 + 1001
    congestion.ssthresh = congestion.cwnd
    packet(congestion, acked=1)
    assert congestion.cwnd == congestion.ssthresh


def test_real_time_data_grow_a_window_that_is_half_full():
    """RFC 7016 §A.2: but not one that is emptier."""
    congestion = control(cwnd=20_000)
    congestion.sent(100, True, 9.5)
    assert packet(congestion, outstanding=10_000, acked=1000).cwnd == 20_000
    assert packet(congestion, outstanding=10_001, acked=1000).cwnd == 21_000
    congestion.ssthresh = 20_000
    packet(congestion, outstanding=11_000, acked=21_000 // 16)
    assert congestion.cwnd == 21_048
    packet(congestion, now=9.5 + NOTICE_SECONDS + 0.1, outstanding=20_000, acked=5000)
    assert congestion.cwnd == 21_048


@pytest.mark.parametrize(("critical", "bytes_a_share"), [(True, 48), (False, 24)])
def test_the_largest_share_beside_real_time_data(critical, bytes_a_share):
    """Covers RFC 7016 §3.5.2.1 [half-percent]."""
    congestion = control(cwnd=200000, ssthresh=100000)
    congestion.tcr_received = 9.9
    if critical:
        congestion.sent(100, True, 9.9)
    packet(congestion, acked=4799)
    assert congestion.cwnd == 200000
    packet(congestion, acked=1)
    assert congestion.cwnd == 200_000 + bytes_a_share


@given(st.integers(4380, 500_000), st.booleans())
def test_a_yielding_round_trip_adds_little(cwnd, started):
    """Covers RFC 7016 §3.5.2.1 [half-percent]."""
    congestion = control(cwnd=cwnd, ssthresh=0 if started else math.inf)
    congestion.tcr_received = 9.9
    left = cwnd
    while left > 0:
        packet(congestion, acked=min(left, 1400))
        left -= 1400
    assert congestion.cwnd - cwnd <= max(cwnd * 0.005, 384) + 24


def test_real_time_data_on_another_session_makes_us_yield():
    """Covers RFC 7016 §A.2 [fastgrow]."""
    notices = TimeCritical()
    here, there = control(48000, notices=notices), control(notices=notices)
    there.sent(100, True, 9.3)
    packet(here, acked=3000)
    assert here.cwnd == 48024
    packet(here, now=10.2, acked=1000)
    assert here.cwnd == 49024
    here, there = control(48000, notices=notices), control(notices=notices)
    there.sent(100, True, 0.0)
    packet(here, now=NOTICE_SECONDS, acked=3000)
    assert here.cwnd == 48024


@pytest.mark.parametrize(("was_loss", "cwnd"), [(True, 1460), (False, 4380)])
def test_a_timeout_closes_the_window(was_loss, cwnd):
    """Covers RFC 7016 §A.2 [timeout]."""
    congestion = control(cwnd=40000, ssthresh=20000)
    congestion.acked_bytes_accumulator = 5
    congestion.timeout(was_loss)
    assert (congestion.cwnd, congestion.ssthresh) == (cwnd, 30000)
    assert congestion.acked_bytes_accumulator == 0
    congestion.timeout(was_loss)
    assert congestion.ssthresh == 30000


def test_other_sessions_are_told_of_real_time_data():
    """Covers RFC 7016 §3.5.2 [tcr-when-others]."""
    notices, one, two, three = TimeCritical(), object(), object(), object()
    assert not notices.others(one, 1.0)
    notices.heard(one, 1.0)
    notices.heard(one, 1.1)
    assert (notices.others(one, 1.1), notices.others(two, 1.1)) == (False, True)
    notices.heard(two, 1.2)
    assert (notices.others(one, 1.2), notices.others(two, 1.2)) == (True, True)
    assert notices.others(three, 2.0)
    assert not notices.others(three, 2.1)
    assert not notices.others(two, 1.91)
    notices.forget(two)
    assert not notices.others(one, 1.2)
    notices.heard(two, 1.2)
    notices.forget(one)
    assert (notices.others(two, 1.2), notices.others(one, 1.2)) == (False, True)


def test_each_packet_is_judged_by_itself():
    """RFC 7016 §A.2: nothing is left of the packet before."""
    congestion = packet(control(100_000), acked=1000, lost=1000)
    assert congestion.cwnd < 100_000
    after = congestion.cwnd
    for more in ({}, {"naks": True, "acked": after // 16}):
        congestion.begin()
        assert packet(congestion, 11.0, **more).cwnd == after
    assert packet(congestion, 13.0, acked=after // 16).cwnd == after + 96


def test_at_the_threshold_slow_start_is_over():
    """RFC 7016 §A.2."""
    congestion = packet(control(16_000, ssthresh=16_000), acked=1000)
    assert congestion.cwnd == 16_000 + 96


def test_a_notice_holds_to_its_last_moment():
    """RFC 7016 §A.2: a sender of real-time data loses an eighth, no more."""
    congestion = control(64_000)
    congestion.sent(100, True, 0.0)
    assert packet(congestion, NOTICE_SECONDS, lost=1000).cwnd == 56_000


def test_the_losses_of_one_window_cut_it_once():
    """RFC 7016 §A.2: until what was in flight at the cut has been acknowledged or lost."""
    congestion = packet(control(64_000), acked=1000, lost=1000, left=62_000)
    assert congestion.cwnd == 32_000
    for left in range(60_000, 0, -2000):
        packet(congestion, acked=1000, lost=200 if left > 40_000 else 0, left=left)
        assert congestion.cwnd == 32_000
    packet(congestion, acked=30_000)  # more than is left of the recovery: it is over
    assert congestion.cwnd > 32_000
    before = congestion.cwnd
    assert packet(congestion, acked=1000, lost=1000).cwnd == before // 2


def test_a_window_far_too_large_is_cut_by_what_it_has_lost():
    """RFC 7016 §A.2: by one and a half of it, at once or during the recovery."""
    congestion = packet(control(160_000), acked=1000, lost=40_000, left=119_000)
    assert congestion.cwnd == congestion.ssthresh == 100_000
    packet(congestion, acked=1000, lost=20_000, left=98_000)
    assert congestion.cwnd == congestion.ssthresh == 70_000
    packet(congestion, acked=1000, lost=50_000, left=47_000)
    assert congestion.cwnd == congestion.ssthresh == 4380


def test_acknowledgements_read_together_find_the_window_as_it_was():
    """RFC 7016 §A.2: what the first one drains does not make the second one find it half empty."""
    congestion = control(16_000)
    congestion.filled(16_000)
    for _ in range(3):
        congestion.begin()
        congestion.acknowledged(1000)
        congestion.finish(13_000, 10.0)
    assert congestion.cwnd == 19_000
    congestion.filled(13_000)
    congestion.begin()
    congestion.acknowledged(1000)
    congestion.finish(12_000, 10.0)
    assert congestion.cwnd == 19_000


def test_a_timeout_ends_the_recovery():
    """RFC 7016 §A.2: all that was in flight is lost by then."""
    congestion = packet(control(64_000), acked=1000, lost=1000, left=62_000)
    congestion.timeout(True)
    assert packet(congestion, acked=1000, outstanding=1460).cwnd == 4380


def test_another_path_begins_with_a_small_window():
    """RFC 7016 §3.5.4.2."""
    congestion = packet(control(64_000), acked=1000, lost=1000, left=62_000)
    congestion.moved()
    assert (congestion.cwnd, congestion.ssthresh) == (4380, 32_000)
    assert packet(congestion, acked=1000).cwnd == 5380  # no recovery is left
