"""The window where two of its rules meet."""

import math

from rtmplite.rtmfp.session.congestion import NOTICE_SECONDS, CongestionControl, TimeCritical


def control(cwnd, ssthresh=math.inf):
    congestion = CongestionControl(TimeCritical())
    congestion.cwnd, congestion.ssthresh = cwnd, ssthresh
    return congestion


def test_each_packet_is_judged_by_itself():
    """Covers RFC 7016 §A.2 [loss] [full-window-grows]: what the one before told is forgotten."""
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
    """Covers RFC 7016 §A.2 [loss]: who sends real-time data loses an eighth, no more."""
    congestion = control(64_000)
    congestion.sent(True, 0.0)
    congestion.begin(64_000)
    congestion.any_loss = True
    congestion.finish(NOTICE_SECONDS)
    assert congestion.cwnd == 56_000
