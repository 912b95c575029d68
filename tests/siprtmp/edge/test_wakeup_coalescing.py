"""A busy loop looks less often; one with few calls never waits."""

import gevent
import pytest

from siprtmp.edge import media_side
from siprtmp.edge.media_side import BUNCHED, BUSY_CALLS, GATHER_SECONDS, QUIET, WakeupCoalescer

TURNS = 20


@pytest.fixture
def gatherer():
    gatherer = WakeupCoalescer()
    yield gatherer
    gatherer.set_calls(0)


@pytest.fixture
def naps(monkeypatch):
    """How long the loop has slept on its own, each time."""
    slept = []
    monkeypatch.setattr(media_side.time, "sleep", slept.append)
    return slept


@pytest.fixture
def at_once(monkeypatch):
    """No stall of the machine between two turns counts as quiet."""
    monkeypatch.setattr(media_side, "QUIET", 60.0)


def turns():
    for _ in range(TURNS):
        gevent.sleep(0.00001)  # by a timer, so that the loop has to look


def test_many_calls_make_turns_longer_and_few_do_not(gatherer, naps, at_once):
    for calls, longer in ((BUSY_CALLS - 1, False), (BUSY_CALLS, True), (BUSY_CALLS - 1, False)):
        gatherer.set_calls(calls)
        gatherer.set_calls(calls)
        naps.clear()
        turns()
        assert len(naps) >= TURNS if longer else not naps
        assert set(naps) <= {GATHER_SECONDS}


def test_the_last_call_ends_it(gatherer, naps):
    gatherer.set_calls(2 * BUSY_CALLS)
    gatherer.set_calls(0)
    turns()
    assert naps == []


def test_packets_that_come_together_are_not_waited_for(gatherer, naps):
    """Own design: they are read in groups without it, and would only be late."""
    at = 1000.0

    def turn(after):
        nonlocal at
        at += after
        before = len(naps)
        gatherer.gather(lambda: at)
        return len(naps) > before

    assert turn(1.0) is False  # nothing came for so long
    assert turn(0.0) is False and turn(QUIET / 2) is False
    few = int(BUNCHED / QUIET) - 1
    assert [turn(QUIET / 2) for _ in range(few)] == [False] * few
    assert [turn(QUIET / 2) for _ in range(4 * few)][-few:] == [True] * few
    assert turn(QUIET) is False and turn(QUIET / 2) is False
