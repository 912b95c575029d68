"""The order of the tests: whole modules, the waiting ones spread among the others."""

from support.order import FIRST, WAITING, spread

REAL = {f"{WAITING[0]}test_{number}.py": 10 for number in range(4)}
UNIT = {f"tests/p2psip/test_{number}.py": 100 for number in range(4)}


def test_every_module_has_its_place():
    assert sorted(spread(REAL | UNIT)) == sorted(REAL | UNIT)
    assert spread(UNIT) == list(UNIT) and spread({}) == []


def test_those_that_wait_alternate_with_those_that_compute():
    order = spread(REAL | UNIT)
    assert {name in REAL for name in order[::2]} != {True, False}
    assert [name for name in order if name in UNIT] == list(UNIT)


def test_the_longest_begin():
    assert spread(UNIT | dict.fromkeys(FIRST, 1))[: len(FIRST)] == list(FIRST)
