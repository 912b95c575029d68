"""Which worker has which stream, and what holds for all of them together."""

import json

from siprtmp.edge.metrics import CallTotals, Histogram
from siprtmp.edge.whole import added
from siprtmp.edge.workers.directory import Directory
from siprtmp.edge.workers.shared_counts import SharedConnectionLimit, SharedCounts


def test_the_lower_of_two_workers_has_a_name_in_whatever_order_they_tell():
    for order in ((1, 2), (2, 1)):
        directory = Directory()
        for worker in order:
            directory.add(worker, ("live", "demo"))
        assert directory.owner(("live", "demo")) == 1
        directory.remove(1, ("live", "demo"))
        assert directory.owner(("live", "demo")) == 2


def test_a_worker_that_has_ended_has_nothing():
    directory = Directory()
    directory.add(0, ("live", "one"))
    directory.add(1, ("live", "one"))
    directory.add(1, ("live", "two"))
    assert sorted(directory.lost(1)) == [("live", "one"), ("live", "two")]
    assert (directory.owner(("live", "one")), directory.owner(("live", "two"))) == (0, None)


def test_limits_of_connections_hold_for_all_workers():
    counts = SharedCounts(2)
    first, second = (SharedConnectionLimit(counts, each, 3, 2) for each in (0, 1))
    assert first.admits("192.0.2.1") and second.admits("192.0.2.1")
    assert not first.admits("192.0.2.1") and not second.admits("192.0.2.1")
    assert second.admits("192.0.2.2") and first.is_full and not first.admits("192.0.2.3")
    second.leaves("192.0.2.1")
    assert first.admits("192.0.2.1") and not second.admits("192.0.2.2")
    counts.clear(0)
    assert second.admits("192.0.2.1") and second.total() == 2


def test_figures_are_added_but_for_the_worst_and_the_words():
    several = [
        {"version": "1", "streams": 2, "loop_lag_ms": 3.0},
        {"version": "1", "streams": 1, "loop_lag_ms": 1.0, "calls": 1},
    ]
    assert added(several) == {"version": "1", "streams": 3, "loop_lag_ms": 3.0, "calls": 1}


def test_scores_are_the_lowest_and_the_mean_of_all_calls():
    none = {"calls": 0, "mos_lowest": None, "mos_mean": None}
    several = [
        {"calls": 1, "mos_lowest": 3.0, "mos_mean": 3.0},
        {"calls": 3, "mos_lowest": 2.0, "mos_mean": 4.0},
    ]
    assert added([none, *several]) == {"calls": 4, "mos_lowest": 2.0, "mos_mean": 3.75}
    assert added([none, none]) == none


def test_calls_that_have_ended_are_those_of_all_workers():
    one, other = CallTotals(), CallTotals()
    one.ended["in", "answered"] += 2
    other.ended["in", "answered"] += 1
    other.ended["out", "busy"] += 1
    other.left_out = 7
    other.seconds.add(5)
    one.load(json.loads(json.dumps(other.dump())))
    assert one.ended == {("in", "answered"): 3, ("out", "busy"): 1}
    assert (one.left_out, one.seconds.count) == (7, 1)


def test_a_histogram_takes_the_counts_of_another():
    one, other = Histogram((1.0, 2.0)), Histogram((1.0, 2.0))
    one.add(0.5)
    other.add(1.5)
    other.add(3.0)
    one.load(other.dump())
    assert (list(one.buckets()), one.total) == ([("1", 1), ("2", 2), ("+Inf", 3)], 5.0)
