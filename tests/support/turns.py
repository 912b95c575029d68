"""Tests that need both cores get them, although others run at the same time.

A test marked `alone` begins when the other workers have finished the test they are at, and
they wait until it has ended.  Such a test counts what real peers do within a few
milliseconds of each other: on two cores, a neighbour's encoder would be counted with it.
"""

import fcntl
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest
from support.peers.process import SYSTEM_PATH


class Turns:
    """A lock that all share or one has, and a gate that keeps newcomers behind who waits."""

    def __init__(self, folder: Path) -> None:
        self._gate, self._floor = folder / "gate", folder / "floor"
        self._held: TextIO | None = None

    @contextmanager
    def take(self, alone: bool) -> Iterator[None]:
        """Wait for a turn, and have it for the length of the block."""
        with self._floor.open("w") as floor:
            with self._gate.open("w") as gate:
                fcntl.flock(gate, fcntl.LOCK_EX)
                fcntl.flock(floor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            self._held = floor
            yield
            self._held = None

    def share(self) -> None:
        """Let the others go on: what is left to do needs no core."""
        if self._held is not None:
            fcntl.flock(self._held, fcntl.LOCK_SH)


TURNS = pytest.StashKey[Turns | None]()


def pytest_configure(config: pytest.Config) -> None:
    """The workers of one run meet in its folder; without workers there is nobody to wait for."""
    several = hasattr(config, "workerinput")
    config.stash[TURNS] = Turns(Path(config.option.basetemp).parent) if several else None


@pytest.fixture
def measured(request: pytest.FixtureRequest) -> Callable[[], None]:
    """`measured()`: a test that is `alone` has counted, and only waits from now on."""
    turns = request.config.stash[TURNS]
    return turns.share if turns else lambda: None


@pytest.hookimpl(hookwrapper=True, tryfirst=True)  # the wait does not count for the time-out
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Begin when it is this test's turn."""
    turns = item.config.stash[TURNS]
    if turns is None:
        yield
        return
    with turns.take(alone=_needs_both_cores(item)):
        yield


def _needs_both_cores(item: pytest.Item) -> bool:
    """Whether it is `alone` and all is there that it needs: nobody waits for one that skips."""
    if item.get_closest_marker("alone") is None:
        return False
    programs = (each for marker in item.iter_markers("needs") for each in marker.args)
    return all(shutil.which(each, path=SYSTEM_PATH) for each in programs)
