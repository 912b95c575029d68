"""The session timer: who refreshes when, and when a session counts as dead."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.dialog.session_timer import (
    LEAST,
    TEXT,
    Do,
    Event,
    SessionExpires,
    SessionTimer,
    State,
    answer,
)
from p2psip.errors import RemoteError


def on(refreshes, interval=1800, now=0.0):
    timer = SessionTimer(now)
    timer.agree(SessionExpires(interval), refreshes=refreshes, now=now)
    return timer


def test_the_table_has_a_timer_for_each_arrow():
    assert list(TEXT[State.WE_REFRESH]) == [Event.HALF, Event.LATE]
    assert list(TEXT[State.THEY_REFRESH]) == [Event.LATE]
    assert not TEXT[State.OFF] and not TEXT[State.EXPIRED]


@pytest.mark.parametrize(
    ("interval", "refreshes", "expected"),
    [
        (1800, True, [(900.0, Do.REFRESH), (1768.0, Do.EXPIRED)]),
        (1800, False, [(1768.0, Do.EXPIRED)]),
        (90, True, [(45.0, Do.REFRESH), (60.0, Do.EXPIRED)]),
        (90, False, [(60.0, Do.EXPIRED)]),
    ],
)
def test_when_a_session_is_refreshed_and_when_it_ends(interval, refreshes, expected):
    """Covers RFC 4028 §7.2 [refreshes-in-time] [at-half-the-interval], §9 [refreshes-in-time]
    [at-half-the-interval] and §10 [bye-without-a-refresh] [a-third-or-32-s].
    """
    timer, found = on(refreshes, interval), []
    while timer.deadline is not None and len(found) < 9:
        now = timer.deadline
        found += [(now, do) for do in timer.tick(now)]
    assert found == expected and timer.state is State.EXPIRED and not timer.is_on


def test_a_refresh_that_failed_is_tried_again_later_each_time():
    """Covers RFC 4028 §10 [not-continuously]."""
    timer, times = on(refreshes=True, interval=1000), []
    while timer.deadline is not None and len(times) < 9:
        now = timer.deadline
        if Do.REFRESH in timer.tick(now):
            times.append(now)
            timer.failed(now)
    assert times == [500.0, 750.0, 875.0, 937.5] and timer.state is State.EXPIRED
    quiet = on(refreshes=False)
    quiet.failed(10.0)
    assert quiet.deadline == 1768.0


def test_a_2xx_without_terms_turns_it_off():
    timer = on(refreshes=True)
    timer.agree(None, refreshes=False, now=5.0)
    assert timer.deadline is None and not timer.is_on


@pytest.mark.parametrize(
    ("wanted", "least", "supported", "expected"),
    [
        (None, 0, False, None),
        (None, 0, True, "1800;refresher=uas"),
        (None, 4000, True, "4000;refresher=uas"),
        ("600", 0, False, "600;refresher=uas"),
        ("600", 0, True, "600;refresher=uac"),
        ("600;refresher=uac", 0, True, "600;refresher=uac"),
        ("600;refresher=uas", 500, True, "600;refresher=uas"),
    ],
)
def test_the_terms_of_an_answer(wanted, least, supported, expected):
    """Covers RFC 4028 §9 [unasked-above-min-se] [no-lower-than-min-se] [not-increased]
    [names-the-refresher].
    """
    asked = SessionExpires.parse(wanted) if wanted else None
    terms = answer(asked, least, 1800, supported=supported)
    assert (None if terms is None else str(terms)) == expected


@given(st.integers(0, 2**31 - 1), st.sampled_from(["", "uac", "uas"]))
def test_terms_are_read_as_they_are_written(interval, refresher):
    terms = SessionExpires(interval, refresher)
    assert SessionExpires.parse(str(terms)) == terms


@pytest.mark.parametrize("text", ["", "x", "-1", "90;refresher=me", "9" * 20, '"'])
def test_terms_that_are_none(text):
    with pytest.raises(RemoteError):
        SessionExpires.parse(text)


def test_the_least_is_what_the_spec_says():
    """Covers Field §"Short session timers"."""
    assert LEAST == 90
