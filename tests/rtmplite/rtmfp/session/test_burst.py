"""How much leaves at once, and when the rest of the window follows."""

from math import inf

import pytest

from rtmplite.rtmfp.session.congestion import BURST_BYTES, MSS, PACED_SECONDS, Burst
from rtmplite.rtmfp.session.rtt import RoundTrip


def burst(srtt=0.1, erto=0.5):
    timing = RoundTrip()
    timing.srtt, timing.erto = srtt, erto
    return Burst(timing)


def test_the_rest_of_the_window_is_spread_over_the_round_trip():
    """RFC 7016 §3.5.2.3: a segment when its share of the time has passed."""
    sending, now, times = burst(), 0.0, []
    for _ in range(40):
        while sending.allows:
            sending.sent(MSS, 20 * MSS, now)
            times.append(now)
        now = sending.alarm
        sending.tick(now - 0.001, 20 * MSS)
        assert not sending.allows
        sending.tick(now, 20 * MSS)
    assert times[:6] == [0.0] * 6
    assert times[6:9] == pytest.approx([0.005, 0.010, 0.015])
    assert len([at for at in times if 0.0525 < at < 0.1525]) == 20


def test_what_was_sent_beyond_the_limit_is_waited_for():
    """RFC 7016 §3.5.2.3: the last packet may exceed it."""
    sending = burst()
    sending.sent(BURST_BYTES + MSS, 20 * MSS, 0.0)
    assert sending.alarm == pytest.approx(0.01)


def test_a_late_alarm_gives_what_was_due_meanwhile():
    """RFC 7016 §3.5.2.3: as on a busy machine, whose timers are late."""
    sending = burst()
    sending.sent(BURST_BYTES, 20 * MSS, 0.0)
    sending.tick(sending.alarm + 0.02, 20 * MSS)
    assert sending.left == pytest.approx(MSS + 4 * MSS, abs=1)
    assert sending.alarm == inf


def test_an_acknowledgement_lets_six_segments_go():
    """RFC 7016 §3.5.2.3."""
    sending = burst()
    sending.sent(BURST_BYTES + 500, 20 * MSS, 0.0)
    sending.acknowledged()
    assert (sending.left, sending.alarm) == (BURST_BYTES, inf)
    sending.left = 2 * BURST_BYTES  # of a late alarm
    sending.acknowledged()
    assert sending.left == 2 * BURST_BYTES


def test_a_short_round_trip_has_no_limit():
    """RFC 7016 §3.5.2.3: there is no time to spread anything over."""
    sending = burst(PACED_SECONDS * 0.9)
    sending.sent(BURST_BYTES, 20 * MSS, 0.0)
    assert (sending.allows, sending.alarm) == (True, inf)
    sending = burst(PACED_SECONDS)
    sending.sent(BURST_BYTES, 20 * MSS, 0.0)
    assert not sending.allows
    assert sending.alarm < inf


@pytest.mark.parametrize("srtt", [0.001, 0.1])
def test_a_silent_far_end_gets_six_packets_however_small(srtt):
    """RFC 7016 §3.5.2.3: after a time-out, or ERTO without an acknowledgement."""
    sending = burst(srtt)
    sending.timeout()
    for _ in range(6):
        assert sending.allows
        sending.sent(10, 20 * MSS, 1.0)
    assert (sending.allows, sending.alarm) == (False, inf)
    sending.acknowledged()
    for now in 2.0, 2.1, 2.5:
        sending.sent(10, 20 * MSS, now)
    assert sending.left == BURST_BYTES - 30
    for _ in range(6):
        assert sending.allows
        sending.sent(10, 20 * MSS, 2.51)
    assert (sending.allows, sending.alarm) == (False, inf)


def test_nothing_is_spread_before_the_round_trip_is_measured():
    """RFC 7016 §3.5.2.3."""
    sending = burst(None)
    sending.sent(BURST_BYTES, 20 * MSS, 0.0)
    assert (sending.allows, sending.alarm) == (False, inf)
