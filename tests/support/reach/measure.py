"""Which branches of the parsers were taken while they read, and which were not.

Own design: inputs are drawn first and read afterwards, and only the reading is measured, so that a
strategy that builds its input with the same module does not count.  A branch is in scope when it
stands in a function that a reading entered: writers, and methods for callers, are left out, and so
is what raises LocalError, which is a caller's bug.  So that no parser escapes by never being
called, a function whose name says that it reads has to be entered.  `coverage` sees lines: two ways
through one line, as in `a if b else c`, are one to it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from linecache import getline
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from coverage import Coverage
from support.reach.reading import Family, Reading

_READS = re.compile(r"(.*\.)?_*(parse|read|decode|unpack)(_\w+)?")


@dataclass(frozen=True, order=True)
class Branch:
    """A way through a function: from one line to another, or 0 where there is but one line."""

    module: str
    function: str
    file: str
    line: int
    to: int = 0

    @property
    def name(self) -> str:
        """What it is called in a table of excuses: without line numbers, which move."""
        start, end = self._text(self.line), self._text(self.to)
        return f"{self.module} {self.function}: {start}" + (f" -> {end}" if self.to else "")

    def _text(self, line: int) -> str:
        return getline(self.file, line).strip() if line > 0 else "the end"

    def __str__(self) -> str:
        to = "" if not self.to else f" -> {self.to if self.to > 0 else 'end'}"
        return f"{self.file}:{self.line}{to}\n    {self.name}"


class Measurement:
    """The branches of a family, over any number of rounds of reading."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._files = {str(module.__file__): module for module in family.parsers}
        self._coverage = Coverage(
            branch=True, include=list(self._files), data_file=None, config_file=False
        )

    def read(self, readings: Iterable[Reading], count: int, seed: int) -> None:
        """Draw `count` inputs for each of these readings, and read them."""
        for reading in readings:
            inputs = reading.draw(count, seed)
            self._coverage.start()
            self._coverage.switch_context(reading.name)
            try:
                reading.feed(inputs)
            finally:
                self._coverage.stop()

    def unreached(self) -> list[Branch]:
        """The branches in scope that nothing took, and parsers that nothing entered."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "reach.json"
            self._coverage.json_report(morfs=list(self._files), outfile=str(path))
            found = json.loads(path.read_text())["files"]
        return sorted(
            branch
            for name, content in found.items()
            for branch in _of_file(self._module(name), content["functions"])
        )

    def candidates(self, branches: Iterable[Branch]) -> Sequence[Reading]:
        """The readings that have entered a module of these branches; all, where none has."""
        data, names = self._coverage.get_data(), set[str]()
        for file in {branch.file for branch in branches}:
            entered = {name for each in data.contexts_by_lineno(file).values() for name in each}
            if not entered:
                return self._family.readings
            names |= entered
        return [each for each in self._family.readings if each.name in names]

    def _module(self, name: str) -> ModuleType:
        """`coverage` names a file from the working directory on, where it can."""
        return self._files[str(Path(name).absolute())]


def _of_file(module: ModuleType, functions: dict[str, Any]) -> Iterator[Branch]:
    for name, region in functions.items():
        place = module.__name__, name, str(module.__file__)
        if not name:  # the module's own lines
            continue
        if region["executed_lines"]:
            for line, to in _missing(region):
                if not getline(place[2], max(to, 0)).strip().startswith("raise LocalError"):
                    yield Branch(*place, line, to)
        elif _READS.fullmatch(name):
            yield Branch(*place, region["start_line"])


def _missing(region: dict[str, Any]) -> Iterator[tuple[int, int]]:
    """Branches that were not taken, and lines behind one that ran, such as an `except`."""
    taken = set(region["executed_lines"])
    branches = [(line, to) for line, to in region["missing_branches"] if line in taken]
    yield from branches
    ends = {to for _, to in branches}
    lines = sorted({*taken, *region["missing_lines"]})
    for before, line in pairwise(lines):
        if before in taken and line not in taken | ends:
            yield line, 0
