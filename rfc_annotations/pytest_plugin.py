"""The pytest plugin: records how each test ended, and which claimed lines it ran.

Run `pytest -p rfc_annotations.pytest_plugin --annotations FILE`; where the tool is installed apart
from siprtmp, pytest finds the plugin by itself.
"""

import os
import pickle
import sys
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self

import pytest

from rfc_annotations import evidence
from rfc_annotations.catalogue import Key
from rfc_annotations.claims import traceable
from rfc_annotations.evidence import Evidence, Place, Run
from rfc_annotations.probes import Probes
from rfc_annotations.project import Project
from rfc_annotations.scan import Cited
from rfc_annotations.settings import SettingsError

PROPERTY: Final = "rfc_annotations"
CLAIMS: Final = "RFC_ANNOTATIONS_CLAIMS"  # the variable that names the file with the claims
Watched = Generator[None, object, object]


@dataclass(frozen=True, slots=True)
class Watch:
    """The claims to watch: the tests' claims by file, the code's claims by requirement."""

    tests: Mapping[str, list[Cited]]
    code: Mapping[Key, list[Cited]]

    @classmethod
    def of(cls, project: Project) -> Self:
        """Read the whole project, which takes some seconds."""
        tests: dict[str, list[Cited]] = {}
        code: dict[Key, list[Cited]] = {}
        for claim in project.cited:
            if claim.slugs and project.kind(claim.file) == "test":
                tests.setdefault(claim.file, []).append(claim)
        for claim in traceable(project):
            for slug in claim.slugs:
                code.setdefault((claim.spec, claim.section, slug), []).append(claim)
        return cls(tests, code)

    @property
    def claimed(self) -> Iterable[Cited]:
        """Every claim of the code, once."""
        return dict.fromkeys(claim for claims in self.code.values() for claim in claims)

    def claims(self, test: str) -> list[Cited]:
        """Give the code claims that `test` is to reach."""
        wanted = {
            (claim.spec, claim.section, slug)
            for claim in self.tests.get(test.partition("::")[0], ())
            if evidence.speaks_for(claim, test)
            for slug in claim.slugs
        }
        return list({claim: None for key in wanted for claim in self.code.get(key, ())})


@dataclass(eq=False)  # pytest keeps its plugins in sets
class Watcher:
    """Adds to a test's report the claims that it makes and whose lines it ran."""

    watch: Watch
    probes: Probes
    _places: dict[str, list[Place]] = field(default_factory=dict)

    def places(self, test: str) -> list[Place]:
        """Give the claims of the code that a test is to reach."""
        if test not in self._places:
            self._places[test] = list({(c.file, c.line): None for c in self.watch.claims(test)})
        return self._places[test]

    def _watched(self, item: pytest.Item) -> Watched:
        try:
            return (yield)
        finally:
            if places := self.places(item.nodeid):
                item.user_properties[:] = [p for p in item.user_properties if p[0] != PROPERTY]
                item.user_properties.append((PROPERTY, sorted(self.probes.reached(places))))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Watched:
        """Watch the fixtures too: a fixture may run the claimed line."""
        self.probes.clear()
        return (yield from self._watched(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Watched:
        """Watch the test itself."""
        return (yield from self._watched(item))


@dataclass(eq=False)
class Recorder:
    """Collects the evidence of one session and saves it at the end."""

    project: Project
    path: Path
    watch: Watch
    _runs: dict[str, Run] = field(default_factory=dict)
    _shared: TemporaryDirectory[str] = field(init=False)

    def __post_init__(self) -> None:
        self._shared = TemporaryDirectory()
        file = Path(self._shared.name, "claims")
        file.write_bytes(pickle.dumps((self.project.root, self.watch)))
        os.environ[CLAIMS] = str(file)

    def pytest_unconfigure(self) -> None:
        """Take away what the workers share."""
        del os.environ[CLAIMS]
        self._shared.cleanup()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome; a failing set-up or tear-down fails the test."""
        if report.when != "call" and report.outcome == "passed":
            return
        properties: dict[str, Any] = dict(report.user_properties)
        places = properties.get(PROPERTY, ())
        surprise = report.outcome == "passed" and hasattr(report, "wasxfail")
        outcome = "xpassed" if surprise else report.outcome
        run = Run(outcome, frozenset((str(file), int(line)) for file, line in places))
        self._runs[report.nodeid] = evidence.merge(
            self._runs.get(report.nodeid, Run("not run", frozenset())), run
        )

    def pytest_sessionfinish(self) -> None:
        """Save."""
        claims = (claim for claim in self.project.cited if claim.slugs)
        files = {c.file for c in claims if self.project.kind(c.file) in ("code", "test")}
        digests = {file: evidence.digest(self.project.root / file) for file in files}
        evidence.save(self.path, Evidence(self._runs, digests))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--annotations FILE`."""
    group = parser.getgroup("rfc_annotations")
    group.addoption("--annotations", metavar="FILE", help="write citation evidence to FILE")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Record if asked to, and put probes into what the first conftest.py imports and all after it.

    A worker of xdist has no input yet.  It finds the claims in a file, which spares it reading the
    whole project; so would a run that a test starts, but that is of another project.
    """
    path, root = early_config.known_args_namespace.annotations, early_config.rootpath
    if not path:
        return
    read, watch, shared = None, None, None
    if file := os.environ.get(CLAIMS):
        read, watch = pickle.loads(Path(file).read_bytes())
        shared = Path(file).parent
    if watch is None or read != root:
        try:
            project = Project(root)
        except SettingsError as error:
            raise pytest.UsageError(f"--annotations: {error}") from None
        watch = Watch.of(project)
        early_config.pluginmanager.register(Recorder(project, Path(path), watch))
        shared = None
    probes = Probes(root, watch.claimed, shared)
    sys.meta_path.insert(0, probes)
    early_config.pluginmanager.register(Watcher(watch, probes))
