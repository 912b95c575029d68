"""A busy loop looks less often; one with few calls never waits."""

import gevent
import pytest

from siprtmp.edge import media_side
from siprtmp.edge.media_side import BUSY_CALLS, GATHER_SECONDS, WakeupCoalescer

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


def turns():
    for _ in range(TURNS):
        gevent.sleep(0.00001)  # by a timer, so that the loop has to look


def test_many_calls_make_turns_longer_and_few_do_not(gatherer, naps):
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
