"""Whether this tree is slower than the commit before, by paired runs of small pieces of work.

Both trees do the same rounds in turns, on one core: old, new, new, old, and so on.  What the
machine does beside them falls on both, so the ratio of a pair says more than its times.  The figure
is the median of the ratios, its confidence comes from drawing them again (bootstrap): a work is
slower if 95 of 100 draws agree on more than `NOISE`.
"""

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Self

from guard_work import ROUND_NS, WORKS
from options import Options
from results import GuardRow

HERE = Path(__file__).resolve().parent
PAIRS = 10  # for each of --runs
DRAWS = 2000
LIVES = 5  # of the processes: where memory falls differs, which is some 5% for a whole life
NOISE = 0.1  # of the time; equal sources have differed by 5%


class Worker:
    """A process that does one work with the sources of one tree."""

    def __init__(self, source: Path, name: str, core: int) -> None:
        """`source` is the folder `src` of the tree."""
        self._process = subprocess.Popen(
            ["taskset", "-c", str(core), sys.executable, str(HERE / "guard_work.py"), name],
            env=os.environ | {"PYTHONPATH": str(source), "SIPRTMP_PURE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.is_able = bool(self._process.stdout.readline())  # an old tree may lack what it needs

    def round(self, count: int) -> int:
        """The ns of CPU time for so many."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        """It runs since it was made."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


def ratios(old: Worker, new: Worker, pairs: int) -> list[float]:
    """The time of the new tree to that of the old one, pair by pair."""
    count = 1
    while old.round(count) < ROUND_NS / 2:
        count *= 2
    new.round(count)
    found = []
    for pair in range(pairs):
        order = (old, new) if pair % 2 == 0 else (new, old)
        taken = {each: each.round(count) for each in order}
        found.append(taken[new] / taken[old])
    return found


def confidence(found: Sequence[float], seed: int = 1) -> tuple[float, float]:
    """Where the median lies in 90 draws of 100: its 5th and 95th percentile."""
    dice = random.Random(seed)
    drawn = sorted(median(dice.choices(found, k=len(found))) for _ in range(DRAWS))
    return drawn[DRAWS // 20], drawn[-DRAWS // 20]


def judge(name: str, found: Sequence[float]) -> GuardRow:
    """The row of one work."""
    low, high = confidence(found)
    return GuardRow(name, len(found), median(found), low, high, worse=low > 1 + NOISE)


def compare(name: str, old: Path, new: Path, core: int, pairs: int) -> GuardRow | None:
    """The row of one work with the sources of two trees; None if the old one cannot do it."""
    found: list[float] = []
    for _ in range(LIVES):
        with Worker(old, name, core) as before, Worker(new, name, core) as after:
            if not after.is_able:
                raise RuntimeError(f"this tree cannot do the work {name}")
            if not before.is_able:
                return None
            found += ratios(before, after, max(2, pairs // LIVES))
    return judge(name, found)


def sources_before(folder: Path) -> Path | None:
    """The sources of HEAD if the tree has changes to them, else of the commit before it.

    None without such a commit, as in a shallow clone.
    """
    git = ["git", "-C", str(HERE.parent)]
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "src"]).returncode != 0
    revision = "HEAD" if changed else "HEAD~1"
    archive = subprocess.run([*git, "archive", revision, "src"], capture_output=True)
    if archive.returncode != 0:
        print(f"no {revision} to compare with: {archive.stderr.decode().strip()}")
        return None
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "src"


def rows(options: Options) -> Iterator[GuardRow]:
    """A row for each work."""
    with ExitStack() as after:
        folder = Path(after.enter_context(tempfile.TemporaryDirectory()))
        old = sources_before(folder)
        if old is None:
            return
        for name in WORKS:
            pairs = PAIRS * options.runs
            row = compare(name, old, HERE.parent / "src", options.load_core, pairs)
            if row is not None:
                yield row
