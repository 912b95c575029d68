"""Draws of Hypothesis outside of a test: many different cases, or the smallest of a kind.

Own design: the same seed draws the same cases in the same installation; nothing is read from an
example database, or written to one.
"""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Final

from hypothesis import Phase, find, settings
from hypothesis.errors import NoSuchExample
from hypothesis.strategies import SearchStrategy

from rtclab.oracle.codec import Case

_TRIES_PER_CASE: Final = 20  # draws, of which many are alike where a strategy has few values


class _Enough(BaseException):  # Hypothesis takes any Exception for a failure of the condition
    """What ends a search from within."""


def draws(strategy: SearchStrategy[Case], count: int, seed: int) -> list[Case]:
    """Draw `count` cases of different octets, or fewer where the strategy has no more."""
    found: dict[bytes, Case] = {}

    def enough(case: Case) -> bool:
        found.setdefault(case.octets, case)
        return len(found) == count

    _find(strategy, enough, count * _TRIES_PER_CASE, seed, [Phase.generate])
    return list(found.values())


def drawn(
    strategy: SearchStrategy[Case], look: Callable[[Case], bool], count: int, seed: int
) -> None:
    """Show `count` cases to `look`, or fewer once it says that it has seen enough."""
    _find(strategy, look, count, seed, [Phase.generate])


def smallest(
    strategy: SearchStrategy[Case],
    shows: Callable[[Case], bool],
    count: int,
    seed: int,
    is_late: Callable[[], bool],
) -> Case | None:
    """Find the smallest case that `shows` something, until it is late; None if there is none.

    The first one is among those that `drawn` gives for the same count and seed.
    """
    best: list[Case] = []

    def condition(case: Case) -> bool:
        if best and is_late():
            raise _Enough
        if not shows(case):
            return False
        if not best or len(case.octets) <= len(best[0].octets):
            best[:] = [case]  # of equal lengths the last one, which is shrunk further
        return True

    with suppress(_Enough):
        _find(strategy, condition, count, seed, [Phase.generate, Phase.shrink])
    return best[0] if best else None


def _find(
    strategy: SearchStrategy[Case],
    condition: Callable[[Case], bool],
    count: int,
    seed: int,
    phases: list[Phase],
) -> None:
    quiet = settings(
        max_examples=count, deadline=None, database=None, derandomize=False, phases=phases
    )
    with suppress(NoSuchExample):
        find(strategy, condition, settings=quiet, random=Random(seed))
