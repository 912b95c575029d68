"""The order of the tests: whole modules, the waiting ones spread among the others."""

from support.order import FIRST, WAITING, spread

REAL = {f"{WAITING[0]}test_{number}.py": 10 for number in range(4)}
UNIT = {f"tests/p2psip/test_{number}.py": 100 for number in range(4)}


def test_every_module_has_its_place():
    assert sorted(spread(REAL | UNIT, 1)) == sorted(REAL | UNIT)
    assert spread(UNIT, 1) == list(UNIT) and spread({}, 1) == []


def test_those_that_wait_alternate_with_those_that_compute():
    order = spread(REAL | UNIT, 1)
    kinds = [name in REAL for name in order]
    assert all({True, False} == set(kinds[at : at + 3]) for at in range(len(kinds) - 2))
    assert [name for name in order if name in UNIT] == list(UNIT)


def test_nothing_waits_at_the_end_of_a_workers_share():
    real = {f"{WAITING[0]}test_{number:02}.py": 10 for number in range(40)}
    order = spread(real | {f"tests/test_{number:02}.py": 10 for number in range(40)}, 2)
    shares = order[:40], order[40:]
    assert [sum(name in real for name in share) for share in shares] == [20, 20]
    assert not any(name in real for share in shares for name in share[-5:])


def test_the_longest_begin():
    assert spread(UNIT | dict.fromkeys(FIRST, 1), 4)[: len(FIRST)] == list(FIRST)
