"""The old generation is walked through when nobody speaks, or when memory asks for it."""

import gc

import pytest
from support.gateway.gateway_world import Log
from support.sip.homes import ALICE, BOB, Home, register, request

from p2psip.net.garbage_collection import (
    CALLS,
    GROWTH_MB,
    LATEST,
    LOOK,
    NEVER,
    PAUSE,
    QUIET,
    GarbageCollector,
    resident_mb,
    settle,
)
from p2psip.sip.build import response_to
from p2psip.sip.message import Request
from siprtmp.operation.audit_log import AuditLog


class World:
    """A gateway as the collector sees it, with a clock of its own."""

    garbage = False  # whether all that has come is

    def __init__(self):
        self.quiet, self.megabytes, self.now, self.collected = True, 50.0, 0.0, []
        self.ended = 0
        self.collector = GarbageCollector(
            lambda: self.quiet, lambda: self.ended, 0.0, self.collect, lambda: self.megabytes
        )

    def collect(self):
        self.collected.append(self.now)
        if self.garbage:
            self.megabytes = 50.0

    def run(self, until):
        while self.collector.deadline <= until:
            self.now = self.collector.deadline
            self.collector.tick(self.now)
        return self.collected


def test_it_waits_for_silence():
    """Own design: not while anybody speaks, but soon after."""
    world = World()
    world.quiet = False
    assert world.run(2 * QUIET) == []
    world.quiet = True
    assert world.run(2 * QUIET + LOOK) == [2 * QUIET + LOOK]
    assert len(world.run(12 * QUIET)) == pytest.approx(10, abs=1)


def test_it_follows_calls_that_have_ended():
    """Own design: each leaves some cycles; fifty are worth a pause, one a minute at most."""
    world = World()
    world.quiet = False
    world.ended = CALLS - 1
    assert world.run(2 * PAUSE) == []
    world.ended += 1
    assert world.run(2 * PAUSE + LOOK) == [2 * PAUSE + LOOK]
    world.ended += 10 * CALLS
    assert world.run(5 * PAUSE) == [2 * PAUSE + LOOK, 3 * PAUSE + LOOK]


def test_memory_is_bounded_whoever_speaks():
    """Own design: cycles that nobody foresaw would otherwise fill it within weeks."""
    world = World()
    world.quiet, world.garbage = False, True
    for turn in range(1, 1000):
        world.megabytes += 5.0
        world.run(turn * LOOK)
        assert world.megabytes <= 1.5 * 50.0 + GROWTH_MB + 5.0
    assert len(world.collected) > 20


def test_a_flood_of_what_is_no_garbage_is_not_collected_again_and_again():
    """Own design: each one waits until there is half as much more."""
    world = World()
    world.quiet = False
    for turn in range(1, 100):
        world.megabytes += 10.0  # to a gigabyte
        world.run(turn * LOOK)
    assert 0 < len(world.collected) <= 5


def test_it_happens_at_the_latest_after_hours():
    """Own design: where the system does not tell how large we are, too."""
    world = World()
    world.quiet, world.megabytes = False, 0.0
    assert world.run(2 * LATEST + LOOK) == [LATEST, 2 * LATEST]


@pytest.fixture
def thresholds():
    """The collector's own settings, put back afterwards; what is frozen stays so for all tests."""
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_the_old_generation_is_left_alone(thresholds):
    """Own design: whatever is made and kept, the automatic collections pass it by."""
    settle()
    assert gc.get_threshold() == (*thresholds[:2], NEVER)
    walked = gc.get_stats()[2]["collections"]
    kept = [[number] for number in range(200_000)]
    assert gc.get_stats()[2]["collections"] == walked and len(kept) == 200_000
    assert resident_mb() > 5.0


@pytest.fixture
def counted_only():
    """References are counted, cycles stay; gives how many new objects were in such."""
    gc.freeze()
    gc.disable()
    yield gc.collect
    gc.enable()


def requests(home):
    """What comes to nothing, many times over."""
    for number in range(20):
        for method in ("OPTIONS", "INVITE", "BYE", "MESSAGE"):
            home.hear(request(method, call=f"{method}{number}"), source=ALICE)
        home.hear(register(contact=None, cseq=number + 1), source=BOB)


def calls(home):
    """Calls that are forwarded and refused, many times over."""
    home.hear(register(), source=BOB)
    for number in range(20):
        sent = home.hear(request(call=f"call{number}"), source=ALICE)
        for out, to, _ in sent:
            if isinstance(out, Request) and to == BOB:
                home.hear(response_to(out, 486, to_tag="b"), source=BOB)


@pytest.mark.parametrize("traffic", [requests, calls])
def test_what_strangers_send_leaves_no_cycles(traffic, counted_only):
    """Own design: a flood is forgotten as its transactions are, without a collection."""
    home = Home()
    home.endpoint.observer = AuditLog(home.endpoint.registrar, Log())
    traffic(home)
    home.wait(300.0)
    assert home.idle and counted_only() == 0
