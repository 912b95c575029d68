"""Trying mutants: do the tests that claim a line notice when it is wrong?

Everything happens in a temporary copy of the repository, one mutant at a time, each in a process
of its own that runs only the tests which the evidence names: those that passed and ran the claim.
A mutant that no test minds is a survivor, unless mutants.toml accepts it with a reason.
"""

import importlib.util
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path
from typing import Final

from rfc_annotations.catalogue import Key
from rfc_annotations.claims import Claims, collect
from rfc_annotations.evidence import PARAMETERS, Evidence, speaks_for
from rfc_annotations.mutate import Mutant, Mutator
from rfc_annotations.project import SKIPPED, Project
from rfc_annotations.scan import Cited

BESIDE: Final = "shared"  # a folder beside the repository that tests may read
PATIENCE: Final = 10  # times as long as without a mutant, after which tests hang, and notice so
LEAST_PATIENCE: Final = 5.0  # s
MEMORY: Final = 4 << 30  # bytes that a mutant may fill
Tests = frozenset[str]


class Unusable(Exception):  # noqa: N818
    """The mutants cannot be judged: the evidence is stale, or tests fail without any mutant."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A mutant that may live: it changes nothing that anybody could notice, and `why`."""

    file: str
    was: str
    now: str
    why: str

    def __str__(self) -> str:
        return f"{self.file}: {self.was}  ->  {self.now}"


def accepted(path: Path) -> list[Accepted]:
    """Read mutants.toml; raise Unusable when an entry gives no reason."""
    entries = tomllib.loads(path.read_text()).get("accepted", []) if path.is_file() else []
    found = [Accepted(e["file"], e["was"], e["now"], e.get("why", "")) for e in entries]
    for entry in found:
        if not entry.why:
            raise Unusable(f"{path.name} accepts without a why: {entry}")
    return found


@dataclass(slots=True)
class Trial:
    """The mutants' results so far."""

    accepted: Sequence[Accepted]
    killed: list[Mutant] = field(default_factory=list)
    spared: list[Accepted] = field(default_factory=list)
    survivors: list[Mutant] = field(default_factory=list)
    left: int = 0

    def note(self, mutant: Mutant, noticed: bool) -> None:
        """Take down one result."""
        if noticed:
            self.killed.append(mutant)
        elif entry := self._entry(mutant):
            self.spared.append(entry)
        else:
            self.survivors.append(mutant)

    def needless(self) -> list[Accepted]:
        """List the accepted survivors that a test notices now."""
        return [entry for mutant in self.killed if (entry := self._entry(mutant))]

    def __str__(self) -> str:
        tried = len(self.killed) + len(self.spared) + len(self.survivors)
        return (
            f"{tried} mutants tried: {len(self.killed)} killed, {len(self.spared)} accepted,"
            f" {len(self.survivors)} survived; {self.left} not tried"
        )

    def _entry(self, mutant: Mutant) -> Accepted | None:
        name = (mutant.file, mutant.was, mutant.now)
        return next((e for e in self.accepted if (e.file, e.was, e.now) == name), None)


def plan(
    project: Project, evidence: Evidence, only: Sequence[str], docstrings: bool
) -> dict[Mutant, Tests]:
    """Choose the mutants to try and their tests: first one of each claim, then a second one."""
    of_claims: list[list[tuple[Mutant, Tests]]] = []
    makers = collect(project)
    for file, claims in _claimed(project, only).items():
        if evidence.stale(project.root, file):
            raise Unusable(f"{file} changed since the evidence was taken; run the tests again")
        mutator = Mutator(file, (project.root / file).read_text())
        for claim in claims:
            tests = _tests(evidence, claim, makers)
            mutants = mutator.of_claim(claim.line, docstrings) if tests else ()
            of_claims.append([(mutant, tests) for mutant in dict.fromkeys(mutants)])
    planned: dict[Mutant, Tests] = {}
    for found in chain.from_iterable(zip_longest(*of_claims)):
        if found:
            mutant, tests = found
            planned[mutant] = planned.get(mutant, Tests()) | tests
    for file in {test.partition("::")[0] for tests in planned.values() for test in tests}:
        if evidence.stale(project.root, file):
            raise Unusable(f"{file} changed since the evidence was taken; run the tests again")
    return planned


def _claimed(project: Project, only: Sequence[str]) -> dict[str, list[Cited]]:
    found: dict[str, list[Cited]] = {}
    for cited in project.cited:
        wanted = not only or any(f"{cited.file}/".startswith(f"{name}/") for name in only)
        if cited.slugs and wanted and project.kind(cited.file) == "code":
            found.setdefault(cited.file, []).append(cited)
    return found


def _tests(evidence: Evidence, claim: Cited, makers: Mapping[Key, Claims]) -> Tests:
    """Name the tests that make the claim `claim`, passed, and ran its line if it has one."""
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
    for module in ("pytest", "hypothesis.stateful", "hypothesis.extra.pytestplugin"):
        importlib.import_module(module)  # once, for all the processes to come
    with _copy(project.root) as top:
        sys.pycache_prefix = str(top.parent / "pycache")  # nothing goes to the work tree
        patience = _calibrate(top, planned)
        for done, (mutant, tests) in enumerate(planned.items()):
            if time.monotonic() > end:
                trial.left = len(planned) - done
                return
            with _changed(top / mutant.file, mutant.apply((top / mutant.file).read_text())):
                trial.note(mutant, not _pass(top, tests, patience[mutant.file]))
            if mutant in trial.survivors[-1:]:
                yield mutant


def _calibrate(top: Path, planned: Mapping[Mutant, Tests]) -> dict[str, float]:
    """Run the tests of each file without a mutant, and check that they import the copy."""
    patience: dict[str, float] = {}
    tests: dict[str, Tests] = {}
    for mutant, names in planned.items():
        tests[mutant.file] = tests.get(mutant.file, Tests()) | names
    for file, names in tests.items():
        began = time.monotonic()
        if not _pass(top, names, 600.0, write_bytecode=True):
            raise Unusable(f"the tests of {file} fail without any mutant")
        patience[file] = max(LEAST_PATIENCE, PATIENCE * (time.monotonic() - began))
        with _changed(top / file, "raise RuntimeError\n"):
            if _pass(top, names, patience[file]):
                raise Unusable(f"the tests of {file} run another copy of it")
    return patience


@contextmanager
def _copy(root: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        top = Path(folder) / root.name
        shutil.copytree(root, top, ignore=_ignored, symlinks=True)
        if (root.parent / BESIDE).exists():
            (Path(folder) / BESIDE).symlink_to(root.parent / BESIDE)
        yield top


def _ignored(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name in SKIPPED or name.startswith(".")}


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


def _pass(top: Path, tests: Iterable[str], patience: float, write_bytecode: bool = False) -> bool:
    """Run tests in a process of their own; tests that hang do not pass."""
    context = multiprocessing.get_context("fork")  # with pytest and Hypothesis loaded already
    ordered = sorted(tests, key=lambda test: ("::Test" in test, test))  # state machines last
    arguments = (top, ordered, write_bytecode)
    process = context.Process(target=_child, args=arguments)
    process.start()
    assert process.pid
    process.join(patience)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # it, or what its tests started
    process.join()
    return process.exitcode == 0


def _child(top: Path, tests: list[str], write_bytecode: bool) -> None:
    import resource

    import pytest

    os.setsid()
    os.chdir(top)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.dont_write_bytecode = not write_bytecode
    os.environ["PYTHONPATH"] = str(top / "src")
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # in the processes that tests start
    options = ["-x", "-q", "-p", "no:cacheprovider", "--no-header"]
    os._exit(int(pytest.main([*options, *tests], plugins=[_Quick()])))


class _Quick:
    """Draws the same examples each time; replays no failure of another mutant, shrinks none."""

    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile(
            "mutants", settings.default, phases=phases, derandomize=True, database=None
        )
        settings.load_profile("mutants")
