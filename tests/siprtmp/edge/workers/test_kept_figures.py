"""What a worker has counted outlives it, also if it is killed while it writes."""

import random

from siprtmp.edge.workers import kept_figures as module
from siprtmp.edge.workers.kept_figures import HALF, KeptFigures


def test_each_worker_has_its_own_and_the_last_counts():
    kept = KeptFigures(2)
    assert kept.kept(0) == kept.kept(1) == {}
    for number in range(5):
        kept.keep(0, {"calls": number})
        kept.keep(1, {"calls": -number})
    assert (kept.kept(0), kept.kept(1)) == ({"calls": 4}, {"calls": -4})


def test_a_half_that_was_being_written_is_left_out():
    kept = KeptFigures(1)
    kept.keep(0, {"calls": 1})
    kept.keep(0, {"calls": 2})
    begins = [begin for begin in (0, HALF) if b'"calls": 2' in kept._memory[begin : begin + 100]]
    kept._memory[begins[0] + 20] ^= 1
    assert kept.kept(0) == {"calls": 1}
    kept.keep(0, {"calls": 3})
    assert kept.kept(0) == {"calls": 3}


def test_any_damage_is_survived():
    kept, dice = KeptFigures(1), random.Random(1)
    for _ in range(300):
        kept.keep(0, {"calls": 1})
        for _ in range(9):
            kept._memory[dice.choice((0, HALF)) + dice.randrange(40)] = dice.randrange(256)
        assert kept.kept(0) in ({}, {"calls": 1})


def test_what_does_not_fit_is_not_kept(monkeypatch):
    monkeypatch.setattr(module, "HALF", 100)
    kept = KeptFigures(2)
    kept.keep(0, {"calls": 1})
    kept.keep(0, {"calls": "x" * 100})
    assert kept.kept(0) == {"calls": 1} and kept.kept(1) == {}
