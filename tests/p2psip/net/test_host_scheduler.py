"""Hosts follow each other, for a slice of each turn of the loop."""

import time

import gevent
import pytest
from gevent.event import Event
from support.sockets import PATIENCE, until

from p2psip.net import host_scheduler
from p2psip.net.host_scheduler import HostScheduler


@pytest.fixture
def made():
    made = HostScheduler()
    yield made
    made.close()


def pieces(count, note):
    """Work of so many pieces, each of which is noted."""
    left = [count]

    def work():
        note()
        left[0] -= 1
        return left[0] > 0

    return work


def test_a_host_with_little_is_served_beside_hosts_with_much(made):
    done = []
    for host, count in (("a", 50), ("b", 50), ("c", 1)):
        for _ in range(count):
            made.add(host, pieces(2, lambda host=host: done.append(host)))
    assert until(lambda: len(done) == 202)
    assert done[:6] == ["a", "a", "b", "a", "c", "b"]
    assert [done[6:].count(host) for host in "abc"] == [97, 98, 1]


@pytest.mark.sources
def test_a_newcomer_waits_for_none_but_its_like(made, monkeypatch):
    """Own design: beside fifty hosts with much, a host with one request has every other piece."""
    monkeypatch.setattr(host_scheduler, "SLICE", -1.0)  # one piece in a turn
    done = []
    for host in range(50):
        made.add(str(host), pieces(100, lambda: done.append("flood")))
    assert until(lambda: len(done) > 100)
    before = len(done)
    made.add("new", pieces(1, lambda: done.append("new")))
    made.add("newer", pieces(1, lambda: done.append("newer")))
    assert until(lambda: "newer" in done)
    assert done.index("new") - before <= 1 and done.index("newer") - before <= 3


def test_the_time_of_others_is_not_counted_as_ours(made):
    """A slice is time of the processor: what waits for its core is not cut short for that."""
    loop, slept, worked = gevent.get_hub().loop, set(), set()

    def sleep():
        time.sleep(2 * host_scheduler.SLICE)
        slept.add(loop.now())

    def work():
        end = time.thread_time() + 2 * host_scheduler.SLICE
        while time.thread_time() < end:
            pass
        worked.add(loop.now())

    made.add("a", pieces(5, sleep))
    assert until(lambda: slept)
    made.add("a", pieces(5, work))
    assert until(lambda: len(worked) == 5)
    assert len(slept) == 1


@pytest.mark.sources
def test_the_loop_does_not_sleep_while_something_waits(made, monkeypatch):
    monkeypatch.setattr(host_scheduler, "SLICE", -1.0)  # one piece in a turn
    last = Event()
    made.add("a", pieces(50, lambda: None))
    made.add("b", pieces(50, lambda: None))
    made.add("c", pieces(60, lambda: last.set() if not (made._waiting or made._fresh) else None))
    assert last.wait(PATIENCE)


def test_a_fault_ends_that_work_alone(made, caplog):
    done = []

    def fault():
        raise ZeroDivisionError

    made.add("a", fault)
    made.add("a", pieces(2, lambda: done.append("a")))
    made.add("b", pieces(2, lambda: done.append("b")))
    assert until(lambda: sorted(done) == ["a", "a", "b", "b"])
    assert caplog.text.count("a fault of ours") == 1


def test_nothing_is_done_once_it_is_closed(made):
    done = []

    def close():
        done.append("closed")
        made.close()
        return True

    made.add("a", close)
    made.add("a", pieces(2, lambda: done.append("a")))
    made.add("b", pieces(2, lambda: done.append("b")))
    assert until(lambda: done)
    gevent.sleep(0)
    assert done == ["closed"]


@pytest.mark.sources
def test_the_loop_sleeps_after_work_that_took_more_than_a_slice(made, monkeypatch):
    """The last piece may end after the slice: nothing waits then, and the loop must not turn.

    Counted turns would be those of others too, and few where no core is free.
    """
    monkeypatch.setattr(host_scheduler, "SLICE", -1.0)
    done = Event()
    made.add("a", pieces(1, done.set))
    assert done.wait(PATIENCE)
    assert not made._waker.active and not made._server.active
