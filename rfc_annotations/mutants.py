"""Trying mutants: do the tests that claim a line notice when it is wrong?

Everything happens in a temporary copy of the repository, one mutant at a time, each in a process
of its own that runs only the tests which the evidence names: those that passed and ran the claim.
A mutant that no test minds is a survivor, unless mutants.toml accepts it with a reason.
"""

import hashlib
import importlib.util
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Final

from rfc_annotations.catalogue import Key
from rfc_annotations.claims import Claims, collect
from rfc_annotations.evidence import PARAMETERS, Evidence, speaks_for
from rfc_annotations.grammar import DEPARTS, NOT_DONE
from rfc_annotations.mutants_accepted import Accepted, Unusable
from rfc_annotations.mutate import Mutant, Mutator
from rfc_annotations.processes import Nursery, Outcome, outcome
from rfc_annotations.project import SKIPPED, Project
from rfc_annotations.scan import Cited, is_python

PLUGINS: Final = ("hypothesis.stateful", "hypothesis.extra.pytestplugin")  # where installed
PATIENCE: Final = 10  # times as long as without a mutant, after which tests are stopped
LEAST_PATIENCE: Final = 5.0  # s
MORE_PATIENCE: Final = 30.0  # s longer than without a mutant, at most
ATTEMPTS: Final = 2  # of tests without a mutant: one with real programs may fail by bad luck
Tests = frozenset[str]


@dataclass(slots=True)
class Trial:
    """The mutants' results so far."""

    accepted: Sequence[Accepted]
    killed: list[Mutant] = field(default_factory=list)
    spared: list[Accepted] = field(default_factory=list)
    survivors: list[Mutant] = field(default_factory=list)
    too_slow: list[Mutant] = field(default_factory=list)
    left: int = 0

    def note(self, mutant: Mutant, outcome: Outcome) -> None:
        """Take down one result."""
        if outcome is Outcome.KILLED:
            self.killed.append(mutant)
        elif outcome is Outcome.TOO_SLOW:
            self.too_slow.append(mutant)
        elif entry := self._entry(mutant):
            self.spared.append(entry)
        else:
            self.survivors.append(mutant)

    def needless(self) -> list[Accepted]:
        """List the accepted survivors that a test notices now."""
        return [entry for mutant in self.killed if (entry := self._entry(mutant))]

    def __str__(self) -> str:
        judged = len(self.killed) + len(self.spared) + len(self.survivors)
        return (
            f"{judged + len(self.too_slow)} mutants tried: {len(self.killed)} killed,"
            f" {len(self.spared)} accepted, {len(self.survivors)} survived,"
            f" {len(self.too_slow)} too slow to tell; {self.left} not tried"
        )

    def _entry(self, mutant: Mutant) -> Accepted | None:
        name = (mutant.file, mutant.was, mutant.now)
        return next((e for e in self.accepted if (e.file, e.was, e.now) == name), None)


def plan(project: Project, evidence: Evidence, only: Sequence[str]) -> dict[Mutant, Tests]:
    """Choose the mutants to try and their tests: first one of each claim, then the others."""
    planner = _Planner(project, evidence)
    of_claims = [planner.of(claim) for claim in _claimed(project, only)]
    planned: dict[Mutant, Tests] = {}
    for mutant, tests in chain(*(found[:1] for found in of_claims), *of_claims):
        planned[mutant] = planned.get(mutant, Tests()) | tests
    return planned


def draw(
    project: Project, evidence: Evidence, only: Sequence[str], number: int, seed: int
) -> dict[Mutant, Tests]:
    """Draw claims at random, and plan one mutant of each; the same ones for the same `seed`.

    A claim that is added or taken away leaves the others drawn or not, as they were.
    """

    def lot(*of: object) -> bytes:
        return hashlib.sha256(repr((seed, *of)).encode()).digest()

    planner, claims = _Planner(project, evidence), list(_claimed(project, only))
    drawn: list[Mutant] = []
    for claim in sorted(claims, key=lambda c: lot(c.file, c.spec, c.section, c.slugs)):
        if len(drawn) < number and (found := planner.of(claim)):
            drawn.append(min((one for one, _ in found), key=lambda one: lot(one.was, one.now)))
    planned = dict.fromkeys(drawn, Tests())
    for claim in claims:  # of which others may bear on the same line
        if any(mutant.file == claim.file for mutant in planned):
            for mutant, tests in planner.of(claim):
                if mutant in planned:
                    planned[mutant] |= tests
    return planned


@dataclass
class _Planner:
    """Finds the mutants of claims, and the tests that must notice."""

    project: Project
    evidence: Evidence
    _mutators: dict[str, Mutator] = field(default_factory=dict)

    @cached_property
    def _makers(self) -> Mapping[Key, Claims]:
        return collect(self.project)

    def of(self, claim: Cited) -> list[tuple[Mutant, Tests]]:
        """Give the mutants of a claim, and the tests of the claim."""
        tests = _tests(self.evidence, claim, self._makers)
        for test in tests:
            self._fresh(test.partition("::")[0])
        if claim.file not in self._mutators:
            self._fresh(claim.file)
            source = (self.project.root / claim.file).read_text()
            self._mutators[claim.file] = Mutator(claim.file, source)
        mutants = self._mutators[claim.file].of_claim(claim.line) if tests else ()
        return [(mutant, tests) for mutant in dict.fromkeys(mutants)]

    def _fresh(self, file: str) -> None:
        if self.evidence.stale(self.project.root, file):
            raise Unusable(f"{file} changed since the evidence was taken; run the tests again")


def _claimed(project: Project, only: Sequence[str]) -> Iterator[Cited]:
    for cited in project.cited:
        wanted = not only or any(f"{cited.file}/".startswith(f"{name}/") for name in only)
        declined = cited.verb in (DEPARTS, NOT_DONE)
        in_code = project.kind(cited.file) == "code" and is_python(cited.file)
        if cited.slugs and wanted and not declined and in_code:
            yield cited


def _tests(evidence: Evidence, claim: Cited, makers: Mapping[Key, Claims]) -> Tests:
    """Name the tests that passed and ran the line of the claim `claim`.

    A claim that has no line to run gets the tests that passed and cover its requirements.
    """
    place = (claim.file, claim.line)
    keys = ((claim.spec, claim.section, slug) for slug in claim.slugs)
    alike = [] if claim.anchor else [test for key in keys for test in makers[key].tests]
    return frozenset(
        PARAMETERS.sub("", name)
        for name, run in evidence.runs.items()
        if run.outcome == "passed"
        if place in run.reached or any(speaks_for(test, name) for test in alike)
    )


def run(
    project: Project, planned: Mapping[Mutant, Tests], trial: Trial, seconds: float
) -> Iterator[Mutant]:
    """Try the planned mutants until `seconds` have passed; yield each survivor."""
    end = time.monotonic() + seconds
    for module in ("pytest", *(PLUGINS if importlib.util.find_spec("hypothesis") else ())):
        importlib.import_module(module)  # once, for all the processes to come
    with _copy(project.root, project.settings.beside) as top:
        sys.pycache_prefix = str(top.parent / "pycache")  # nothing goes to the work tree
        with closing(_Bench(top, planned)) as bench:
            for done, (mutant, tests) in enumerate(planned.items()):
                if time.monotonic() > end:
                    trial.left = len(planned) - done
                    return
                trial.note(mutant, bench.judge(mutant, tests))
                if mutant in trial.survivors[-1:]:
                    yield mutant


class _Bench:
    """Tries mutants in a copy, once the tests of a file pass without one."""

    def __init__(self, top: Path, planned: Mapping[Mutant, Tests]) -> None:
        self._top = top
        self._patience: dict[str, float] = {}
        self._imported: set[str] = set()  # files of the copy that tests are known to import
        self._tests: dict[str, Tests] = {}
        self._nursery: Nursery | None = None
        for mutant, names in planned.items():
            self._tests[mutant.file] = self._tests.get(mutant.file, Tests()) | names

    def judge(self, mutant: Mutant, tests: Tests) -> Outcome:
        """Run the tests with a mutant."""
        file = mutant.file
        if file not in self._patience:
            self._calibrate(file)
        text = mutant.apply((self._top / file).read_text())
        if self._nursery_of(file).kills(text, tests):
            self._imported.add(file)
            return Outcome.KILLED
        with _changed(self._top / file, text):
            result = outcome(self._top, tests, self._patience[file])
        if result is Outcome.SURVIVED and file not in self._imported:
            with _changed(self._top / file, "raise RuntimeError\n"):
                without = outcome(self._top, self._tests[file], self._patience[file])
                if without is Outcome.SURVIVED:
                    raise Unusable(f"the tests of {file} run another copy of it")
        self._imported.add(file)
        return result

    def close(self) -> None:
        """End the process that is kept for the next mutant of the same file."""
        if self._nursery:
            self._nursery.close()

    def _nursery_of(self, file: str) -> Nursery:
        if not self._nursery or self._nursery.file != file:
            self.close()
            self._nursery = Nursery(self._top, file, self._tests[file], self._patience[file])
        return self._nursery

    def _calibrate(self, file: str) -> None:
        for _ in range(ATTEMPTS):
            began = time.monotonic()
            result = outcome(self._top, self._tests[file], 600.0, write_bytecode=True)
            usual = time.monotonic() - began
            self._patience[file] = max(LEAST_PATIENCE, min(PATIENCE * usual, usual + MORE_PATIENCE))
            if result is Outcome.SURVIVED:
                return
        raise Unusable(f"the tests of {file} fail without any mutant")


@contextmanager
def _copy(root: Path, beside: Sequence[str]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        top = Path(folder) / root.name
        shutil.copytree(root, top, ignore=_ignored, symlinks=True)
        for name in beside:
            if (root.parent / name).exists():
                (Path(folder) / name).symlink_to(root.parent / name)
        yield top


def _ignored(folder: str, names: list[str]) -> set[str]:
    return {
        name
        for name in names
        if name in SKIPPED or name.startswith(".") or Path(folder, name, "pyvenv.cfg").is_file()
    }


@contextmanager
def _changed(path: Path, text: str) -> Iterator[None]:
    """Write other text into a file of the copy, and drop the bytecode compiled from it."""
    before = path.read_text()
    Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)
    path.write_text(text)
    try:
        yield
    finally:
        path.write_text(before)
