"""Order of the tests: those that wait for programs or timers stand between those that compute.

A worker that waits leaves its processor to the others.  In the order of the folders all workers
compute at the same time and then wait at the same time, the last of them alone.  Each worker begins
with its share of the list, and in the end takes from what is left at the ends of the other shares:
those have none that wait, so that no processor is idle while the last tests run.
"""

from collections.abc import Iterator, Mapping, Sequence

import pytest

FIRST = (  # longest, or needs both cores: nobody else has begun yet
    "tests/interop/calls/test_sipp.py",
    "tests/interop/calls/test_linphone.py",
    "tests/test_citations.py",  # reads every file, and so do the next: one worker, once
    "tests/test_docs_book.py",
    "tests/test_layers.py",
    "tests/test_sizes.py",
    "tests/rfc_annotations/test_mutants.py",
)
WAITING = (
    *("tests/interop/", "tests/rtmplite/cli/", "tests/rtmplite/net/", "tests/rtclab/conform/"),
    *("tests/p2psip/test_main.py", "tests/p2psip/test_serve.py", "tests/siprtmp/test_main.py"),
    *("tests/siprtmp/test_demo.py", "tests/siprtmp/test_reload.py", "tests/test_perf.py"),
)
EARLY = 0.7  # of a worker's share, in which its waiting tests stand


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Move whole modules, whose tests keep their order."""
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    modules: dict[str, list[pytest.Item]] = {}
    for item in items:
        modules.setdefault(item.nodeid.partition("::")[0], []).append(item)
    sizes = {name: len(tests) for name, tests in modules.items()}
    items[:] = [item for name in spread(sizes, workers) for item in modules[name]]


def spread(sizes: Mapping[str, int], workers: int) -> list[str]:
    """The names in their new order, given how many tests each has."""
    rest = [name for name in sizes if name not in FIRST]
    waiting = [name for name in rest if name.startswith(WAITING)]
    computing = [name for name in rest if not name.startswith(WAITING)]
    early = [
        ((int(place * workers) + place * workers % 1 * EARLY) / workers, name)
        for place, name in _places(waiting, sizes)
    ]
    merged = sorted([*early, *_places(computing, sizes)], key=lambda each: each[0])
    return [*(name for name in FIRST if name in sizes), *(name for _, name in merged)]


def _places(names: Sequence[str], sizes: Mapping[str, int]) -> Iterator[tuple[float, str]]:
    """Where the middle of each stands among all of its kind, from 0 to 1."""
    total, before = sum(sizes[name] for name in names), 0
    for name in names:
        yield (before + sizes[name] / 2) / total, name
        before += sizes[name]
