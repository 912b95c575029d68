"""A busy loop looks less often; one with few calls never waits."""

import time

import gevent
import pytest

from siprtmp.edge.wakeup_coalescing import BUSY_CALLS, GATHER_SECONDS, WakeupCoalescer

TURNS = 20


@pytest.fixture
def gatherer():
    gatherer = WakeupCoalescer()
    yield gatherer
    gatherer.set_calls(0)


def seconds_of_turns():
    start = time.monotonic()
    for _ in range(TURNS):
        gevent.sleep(0.00001)  # by a timer, so that the loop has to look
    return time.monotonic() - start


def test_many_calls_make_turns_longer_and_few_do_not(gatherer):
    for calls, longer in ((BUSY_CALLS - 1, False), (BUSY_CALLS, True), (BUSY_CALLS - 1, False)):
        gatherer.set_calls(calls)
        gatherer.set_calls(calls)
        waited = min(seconds_of_turns() for _ in range(5))
        assert (waited > TURNS * GATHER_SECONDS * 0.9) == longer


def test_the_last_call_ends_it(gatherer):
    gatherer.set_calls(2 * BUSY_CALLS)
    gatherer.set_calls(0)
    assert min(seconds_of_turns() for _ in range(5)) < TURNS * GATHER_SECONDS
