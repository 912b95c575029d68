"""The congestion window against the pseudocode of the appendix."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmplite.rtmfp.session.congestion import NOTICE_SECONDS, CongestionControl, TimeCritical


def control(cwnd=4380, ssthresh=math.inf, notices=None):
    congestion = CongestionControl(notices or TimeCritical())
    congestion.cwnd, congestion.ssthresh = cwnd, ssthresh
    return congestion


def packet(congestion, now=10.0, *, outstanding=None, acked=0, naks=False, loss=False):
    """One received packet; without `outstanding` the window was full."""
    congestion.begin(congestion.cwnd if outstanding is None else outstanding)
    if acked:
        congestion.acknowledged(acked)
    congestion.any_naks, congestion.any_loss = naks, loss
    congestion.finish(now)
    return congestion


def test_the_beginning():
    """Covers RFC 7016 §A.2 [initial]."""
    congestion = CongestionControl(TimeCritical())
    assert (congestion.cwnd, congestion.ssthresh) == (4380, math.inf)


def test_no_more_than_the_window_and_six_packets():
    """Covers RFC 7016 §3.5.2 [tcp-compatible], §3.5.2.3 [six-packets]."""
    congestion = control()
    assert congestion.allows(4379)
    assert not congestion.allows(4380)
    for count in range(6):
        assert congestion.allows(count)
        congestion.sent(False, 1.0)
    assert not congestion.allows(0)
    congestion.acknowledged(0)
    assert congestion.allows(0)
    for _ in range(6):
        congestion.sent(False, 1.0)
    congestion.timeout(True)
    for _ in range(6):
        assert congestion.allows(0)
        congestion.sent(False, 1.0)
    assert not congestion.allows(0)


def test_slow_start_grows_by_what_arrived_and_a_segment_at_most():
    """Covers RFC 7016 §A.2 [normal-increase] [increase-capped], §3.5.2 [not-above-slow-start]."""
    assert packet(control(), acked=1000).cwnd == 5380
    assert packet(control(), acked=4000).cwnd == 5840
    assert packet(control(cwnd=1460), acked=100).cwnd == 4380


@pytest.mark.parametrize(
    ("cwnd", "acked", "want", "left"),
    [
        (48000, 3000, 48048, 0),
        (48000, 2999, 48000, 2999),
        (48000, 6001, 48096, 1),
        (96000, 4800, 96048, 0),
        (160000, 4799, 160000, 4799),
    ],
)
def test_above_the_threshold_it_grows_by_shares(cwnd, acked, want, left):
    """Covers RFC 7016 §A.2 [normal-increase]."""
    congestion = packet(control(cwnd, ssthresh=20000), acked=acked)
    assert (congestion.cwnd, congestion.acked_bytes_accumulator) == (want, left)


def test_the_smallest_share_is_64_bytes():
    """Covers RFC 7016 §A.2 [normal-increase]."""
    assert packet(control(640, ssthresh=0), acked=64).acked_bytes_accumulator == 0


def test_only_a_full_window_without_trouble_grows():
    """Covers RFC 7016 §A.2 [full-window-grows]."""
    assert packet(control(), outstanding=4379, acked=1000).cwnd == 4380
    assert packet(control(), acked=1000, naks=True).cwnd == 4380
    assert packet(control()).cwnd == 4380


@pytest.mark.parametrize(
    ("outstanding", "tc_ago", "tcr_ago", "want"),
    [
        (40000, None, None, 20000),
        (40000, 0.79, None, 35000),
        (40000, 0.81, None, 20000),
        (80000, None, None, 70000),
        (67200, None, None, 33600),
        (67208, None, None, 58807),
        (80000, None, 0.5, 40000),
        (80000, 0.5, 0.5, 70000),
        (5000, None, None, 4380),
    ],
)
def test_loss(outstanding, tc_ago, tcr_ago, want):
    """Covers RFC 7016 §A.2 [loss] [fastgrow]."""
    congestion = control(cwnd=90000)
    congestion.acked_bytes_accumulator = 5
    if tc_ago is not None:
        congestion.sent(True, 10.0 - tc_ago)
    if tcr_ago is not None:
        congestion.tcr_received = 10.0 - tcr_ago
    packet(congestion, outstanding=outstanding, acked=1000, naks=True, loss=True)
    assert congestion.cwnd == congestion.ssthresh == want
    assert congestion.acked_bytes_accumulator == 0


def test_who_yields_does_not_slow_start():
    """Covers RFC 7016 §3.5.2.1 [no-slow-start], §A.2 [yielding-increase] [fastgrow]."""
    congestion = control(cwnd=48000)
    congestion.tcr_received = 0.0
    packet(congestion, now=0.8, acked=3000)
    assert congestion.cwnd == 48024
    packet(congestion, now=0.81, acked=1000)
    assert congestion.cwnd == 49024


def test_real_time_data_starts_up_by_a_quarter():
    """Covers RFC 7016 §A.2 [yielding-increase], §3.5.2.1 [no-slow-start]."""
    congestion = control()
    congestion.sent(True, 9.5)
    packet(congestion, acked=1001)
    assert congestion.cwnd == 4380 + 251
    congestion.ssthresh = congestion.cwnd
    packet(congestion, acked=1)
    assert congestion.cwnd == congestion.ssthresh


@pytest.mark.parametrize(("critical", "share"), [(True, 2400), (False, 4800)])
def test_the_largest_share_beside_real_time_data(critical, share):
    """Covers RFC 7016 §A.2 [yielding-increase], §3.5.2.1 [half-percent]."""
    congestion = control(cwnd=200000, ssthresh=100000)
    congestion.tcr_received = 9.9
    if critical:
        congestion.sent(True, 9.9)
    packet(congestion, acked=share - 1)
    assert congestion.cwnd == 200000
    packet(congestion, acked=1)
    assert congestion.cwnd == 200024


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
    there.sent(True, 9.3)
    packet(here, acked=3000)
    assert here.cwnd == 48024
    packet(here, now=10.2, acked=1000)
    assert here.cwnd == 49024
    here, there = control(48000, notices=notices), control(notices=notices)
    there.sent(True, 0.0)
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
    """Covers RFC 7016 §A.2 [loss] [full-window-grows]: nothing is left of the packet before."""
    congestion = control(100_000)
    congestion.begin(100_000)
    congestion.any_loss = True
    congestion.acknowledged(1000)
    congestion.finish(10.0)
    assert congestion.cwnd < 100_000
    after = congestion.cwnd
    congestion.begin(after)
    congestion.finish(11.0)
    assert congestion.cwnd == after
    congestion.begin(after)
    congestion.any_naks = True
    congestion.acknowledged(after // 16)
    congestion.finish(12.0)
    assert congestion.cwnd == after
    congestion.begin(after)
    congestion.acknowledged(after // 16)
    congestion.finish(13.0)
    assert congestion.cwnd == after + 48


def test_at_the_threshold_slow_start_is_over():
    """Covers RFC 7016 §A.2 [normal-increase]."""
    congestion = control(16_000, ssthresh=16_000)
    congestion.begin(16_000)
    congestion.acknowledged(1000)
    congestion.finish(10.0)
    assert congestion.cwnd == 16_000 + 48


def test_a_notice_holds_to_its_last_moment():
    """Covers RFC 7016 §A.2 [loss]: a sender of real-time data loses an eighth, no more."""
    congestion = control(64_000)
    congestion.sent(True, 0.0)
    congestion.begin(64_000)
    congestion.any_loss = True
    congestion.finish(NOTICE_SECONDS)
    assert congestion.cwnd == 56_000
