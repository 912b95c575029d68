"""Reports come neither too often nor too rarely, and never in step."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.rtp.rtcp_timer import BANDWIDTH, COMPENSATION, MIN_SECONDS, RtcpTimer, interval

chances = st.integers(0, (1 << 32) - 1)


def fixed(chance):
    return lambda count: chance.to_bytes(4, "big")[:count]


@given(
    st.integers(1, 5000), st.integers(0, 5000), st.booleans(), st.floats(40, 1500), st.booleans()
)
def test_all_together_stay_within_the_bandwidth(members, senders, we_sent, size, initial):
    """Covers RFC 3550 §6.3.1: and nobody speaks more often than the minimum.

    Covers RFC 3551 §2 [quarter-for-senders].
    """
    senders = min(senders, members)
    each = interval(members, senders, BANDWIDTH, we_sent, size, initial)
    assert each >= MIN_SECONDS / (2 if initial else 1)
    group = members
    share = 1.0
    if senders <= members / 4:
        group = senders if we_sent else members - senders
        share = 0.25 if we_sent else 0.75
    assert group * size / each <= BANDWIDTH * share * 1.0001


def test_two_in_a_call_report_every_five_seconds():
    """Covers RFC 3550 §6.2: the minimum rules in any telephone call.

    Covers RFC 3550 §6.2 [five-percent] [five-seconds] [lower-bound].
    """
    assert 8 * BANDWIDTH == 64_000 * 5 / 100
    assert interval(2, 2, BANDWIDTH, True, 128) == 5.0
    assert interval(2, 1, BANDWIDTH, False, 128, initial=True) == 2.5
    assert interval(1000, 1000, BANDWIDTH, True, 128) == 128 * 1000 / BANDWIDTH > 5


@given(chances)
def test_an_interval_is_drawn_within_its_bounds(chance):
    """Covers RFC 3550 §6.3.1 and §6.3.2: half the minimum before the first report.

    Covers RFC 3550 §6.2 [waits-first] and §6.3 [drawn-intervals].
    """
    longest = RtcpTimer(0.0, lambda count: b"\xff" * count).deadline * COMPENSATION / 2.5
    assert longest == pytest.approx(1.5)
    timer = RtcpTimer(100.0, fixed(chance))
    assert 0.5 <= (timer.deadline - 100.0) * COMPENSATION / 2.5 < 1.5
    assert not timer.tick(100.0)
    if timer.tick(timer.deadline):
        timer.sent(128, 105.0)
        assert 0.5 <= (timer.deadline - 105.0) * COMPENSATION / 5.0 < 1.5


def test_the_first_report_waits():
    """Covers RFC 3550 §6.2 [waits-first]: then it may leave, since nobody has come."""
    timer = RtcpTimer(100.0, fixed(0))
    assert not timer.tick(100.0) and not timer.tick(timer.deadline - 0.001)
    assert timer.tick(timer.deadline)


def test_the_mean_interval_is_the_calculated_one():
    """Covers RFC 3550 §6.3.6: reconsideration would stretch it, were it not compensated."""
    chance = random.Random(7)
    timer = RtcpTimer(0.0, chance.randbytes)
    timer.members = timer.senders = 2
    sent, now = [], 0.0
    while len(sent) < 2000:
        now = timer.deadline
        if timer.tick(now):
            timer.sent(128, now)
            sent.append(now)
    assert 4.8 < (sent[-1] - sent[0]) / (len(sent) - 1) < 5.2
    assert not timer.initial and abs(timer.avg_rtcp_size - 128) < 1


def test_a_growing_group_waits_longer():
    """Covers RFC 3550 §6.3.6: a time drawn for few members is not kept for many."""
    timer = RtcpTimer(0.0, fixed(1 << 31))
    timer.members = 1000
    assert not timer.tick(timer.deadline) and timer.deadline > 100


@given(st.integers(2, 100), st.integers(1, 100))
def test_a_shrinking_group_waits_less(before, after):
    """Covers RFC 3550 §6.3.4: both the last time and the next are moved towards now."""
    timer = RtcpTimer(0.0, fixed(1 << 31))
    timer.pmembers, timer.members = before, after
    timer.tp, timer.tn = 8.0, 14.0
    timer.reconsider(10.0)
    share = min(after / before, 1.0)
    assert abs(timer.tn - (10 + share * 4)) < 1e-9 and abs(timer.tp - (10 - share * 2)) < 1e-9
