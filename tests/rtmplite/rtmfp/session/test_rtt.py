"""Timestamps and echoes, and the timeout that follows from them."""

import pytest

from rtmplite.rtmfp.session.rtt import RoundTrip


def measured(*rtts):
    """A RoundTrip that has measured the given times, in seconds."""
    timing = RoundTrip()
    for turn, rtt in enumerate(rtts):
        now = 100.0 + turn
        timestamp, _ = timing.stamp(now)
        timing.heard(None, timestamp, now + rtt)
    return timing


def test_at_first_there_is_nothing_to_echo():
    """Covers RFC 7016 §3.5.2.2 [echo-initial] [erto-initial]."""
    timing = RoundTrip()
    assert (timing.ts_rx, timing.ts_rx_time, timing.ts_echo_tx) == (None, float("-inf"), None)
    assert (timing.srtt, timing.rttvar, timing.mrto, timing.erto) == (None, 0.0, 0.25, 3.0)
    assert timing.stamp(1.0) == (250, None)


def test_the_same_timestamp_and_the_same_echo_go_once():
    """Covers RFC 7016 §3.5.2.2 [echo-when-new], §2.2.4 [clock-250-hz]."""
    timing = RoundTrip()
    timing.heard(7, None, 1.0)
    assert timing.stamp(1.0) == (250, 7)
    assert timing.stamp(1.003) == (None, None)
    assert timing.stamp(1.0042) == (251, 8)


@pytest.mark.parametrize(
    ("elapsed", "echo"),
    [(0.0, 65530), (0.0039, 65530), (0.0041, 65531), (0.0241, 0), (128.0, 31994)],
)
def test_the_echo_is_the_far_clock_as_it_would_read_now(elapsed, echo):
    """Covers RFC 7016 §3.5.2.2 [echo-ticks], §2.2.4 [echo-estimates]."""
    timing = RoundTrip()
    timing.heard(65530, None, 0.0)
    assert timing.stamp(elapsed)[1] == echo


def test_a_repeated_timestamp_is_as_old_as_its_first():
    """Covers RFC 7016 §3.5.2.2 [echo-remembers]."""
    timing = RoundTrip()
    timing.heard(10, None, 0.0)
    timing.heard(10, None, 1.0)
    assert timing.stamp(1.0)[1] == 260
    timing.heard(11, None, 2.0)
    assert timing.stamp(2.0)[1] == 11


def test_an_old_timestamp_is_forgotten():
    """Covers RFC 7016 §3.5.2.2 [echo-forgets]."""
    timing = RoundTrip()
    timing.heard(10, None, 0.0)
    assert timing.stamp(128.0)[1] is not None
    assert timing.stamp(128.01)[1] is None
    assert (timing.ts_rx, timing.ts_echo_tx) == (None, None)
    assert timing.stamp(129.0)[1] is None


def test_measurements_are_smoothed():
    """Covers RFC 7016 §3.5.2.2 [rtt-smoothed] [erto-measured]."""
    timing = measured(0.4)
    assert (timing.srtt, timing.rttvar) == (0.4, 0.2)
    assert timing.mrto == timing.erto == pytest.approx(0.4 + 4 * 0.2 + 0.2)
    timing = measured(0.4, 0.8)
    assert timing.srtt == pytest.approx((7 * 0.4 + 0.8) / 8)
    assert timing.rttvar == pytest.approx((3 * 0.2 + 0.4) / 4)


def test_an_echo_is_measured_once_and_not_from_the_future():
    """Covers RFC 7016 §3.5.2.2 [rtt-valid]."""
    timing = measured(0.4)
    timing.heard(None, timing.ts_echo_rx, 200.0)
    assert timing.srtt == 0.4
    now = int(300.0 * 250)
    timing.heard(None, (now + 1) % 65536, 300.0)
    timing.heard(None, (now - 32768) % 65536, 300.0)
    assert timing.srtt == 0.4
    timing.heard(None, (now - 32767) % 65536, 300.0)
    assert timing.srtt == pytest.approx((7 * 0.4 + 32767 / 250) / 8)


@pytest.mark.parametrize("rtt", [0.0, 0.004, 0.2, 5.0])
def test_the_timeout_leaves_room_for_a_delayed_acknowledgement(rtt):
    """Covers RFC 7016 §3.5.2.2 [erto-least] [erto-allows-delay] [erto-not-below-rtt]."""
    timing = measured(*[rtt] * 60)
    assert timing.erto >= 0.25
    assert rtt + 0.2 <= timing.erto + 1e-9 <= max(rtt + 0.21, 0.26)


def test_timeouts_back_off_to_ten_seconds():
    """Covers RFC 7016 §3.5.2.2 [erto-backoff]."""
    timing = RoundTrip()
    timing.back_off()
    assert timing.erto == pytest.approx(3.0 * 1.4142)
    for _ in range(5):
        timing.back_off()
    assert timing.erto == 10.0
    timing = measured(12.0)
    timing.back_off()
    assert timing.erto == timing.mrto > 12.0


def test_another_path_begins_with_the_measured_timeout():
    """RFC 7016 §3.5.4.2: what time-outs have added says nothing of it."""
    timing = measured(0.1, 0.1)
    before = timing.erto
    timing.back_off()
    assert timing.erto > before
    timing.reset()
    assert timing.erto == before
    timing = RoundTrip()
    timing.back_off()
    timing.reset()
    assert timing.erto == 3.0
