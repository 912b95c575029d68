"""What one worker has compiled, the others read.

All workers import all modules in the same order.  In a fresh tree each would compile each of them
at the same moment, which takes three times as long as to read what one has written.
"""

import fcntl
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

LOCK = pytest.StashKey[Path | None]()


def pytest_configure(config: pytest.Config) -> None:
    """The workers of one run meet in its folder, unless none keeps what it compiles."""
    several = hasattr(config, "workerinput") and not sys.dont_write_bytecode
    config.stash[LOCK] = Path(config.option.basetemp).parent / "compiling" if several else None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Import a module that nobody has compiled while no other worker does."""
    lock = collector.config.stash[LOCK]
    if lock is None or not isinstance(collector, pytest.Module) or is_compiled(collector.path):
        return (yield)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        return (yield)


def is_compiled(source: Path) -> bool:
    """Whether there is a compiled form as new as the source, with pytest's assertions or without.

    One of another version of pytest counts too: then each worker compiles for itself.
    """
    plain = Path(importlib.util.cache_from_source(str(source)))
    changed = source.stat().st_mtime
    return any(each.stat().st_mtime >= changed for each in plain.parent.glob(f"{plain.stem}*.pyc"))
