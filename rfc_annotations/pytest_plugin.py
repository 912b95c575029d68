"""The pytest plugin: records how each test ended, and which claimed lines it ran.

Run `pytest -p rfc_annotations.pytest_plugin --annotations FILE`.  A test that makes claims runs
under a trace function that looks only into the functions holding those claims, and that takes
itself away once each has been reached; other tests run untouched.  A trace function that was
there before (a debugger's, coverage's) sees nothing of the tests that make claims.
"""

import os
import pickle
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, Self

import pytest

from rfc_annotations import evidence
from rfc_annotations.catalogue import Key
from rfc_annotations.claims import traceable
from rfc_annotations.evidence import Evidence, Place, Run
from rfc_annotations.project import Project
from rfc_annotations.scan import Cited

PROPERTY: Final = "rfc_annotations"
Trace = Callable[[FrameType, str, Any], Any]
Watched = Generator[None, object, object]


@cache
def _real(path: str) -> str:
    return os.path.realpath(path)


class Tracer:
    """A trace function that notes which of some claims are reached, then stops."""

    def __init__(self, root: Path, claims: Iterable[Cited]) -> None:
        self._missing: dict[Place, Cited] = {(c.file, c.line): c for c in claims}
        self.reached: set[Place] = set()
        self._lines: dict[str, dict[int, list[Place]]] = {}
        self._codes: dict[CodeType, Trace | None] = {}
        for place, claim in self._missing.items():
            lines = self._lines.setdefault(_real(str(root / claim.file)), {})
            for line in claim.anchor:
                lines.setdefault(line, []).append(place)

    def start(self) -> None:
        """Begin to look, unless all has been seen."""
        if self._missing:
            sys.settrace(self._call)
            threading.settrace(self._call)

    def stop(self) -> None:
        """Look no more."""
        sys.settrace(None)
        threading.settrace(None)

    def _call(self, frame: FrameType, event: str, arg: Any) -> Trace | None:
        code = frame.f_code
        if code not in self._codes:
            self._codes[code] = self._local(code)
        return self._codes[code]

    def _local(self, code: CodeType) -> Trace | None:
        wanted = self._lines.get(_real(code.co_filename))
        own = {line for _, _, line in code.co_lines() if line is not None}
        if not wanted or own.isdisjoint(wanted):
            return None

        def trace(frame: FrameType, event: str, arg: Any) -> Trace | None:
            if event == "line" and frame.f_lineno in wanted:
                self._reach(wanted[frame.f_lineno])
            return trace if self._missing else None

        return trace

    def _reach(self, places: list[Place]) -> None:
        for place in places:
            if self._missing.pop(place, None):
                self.reached.add(place)
        if not self._missing:
            self.stop()


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
    """Traces the tests that make claims, and adds the lines that they reached to their reports."""

    root: Path
    watch: Watch
    _tracers: dict[str, Tracer | None] = field(default_factory=dict)

    def tracer(self, test: str) -> Tracer | None:
        """Give the tracer of a test, or None if it makes no claim that can be traced."""
        if test not in self._tracers:
            claims = self.watch.claims(test)
            self._tracers[test] = Tracer(self.root, claims) if claims else None
        return self._tracers[test]

    def _traced(self, item: pytest.Item) -> Watched:
        tracer = self.tracer(item.nodeid)
        if tracer is None:
            return (yield)
        before = sys.gettrace()
        tracer.start()
        try:
            return (yield)
        finally:
            tracer.stop()
            sys.settrace(before)
            item.user_properties[:] = [p for p in item.user_properties if p[0] != PROPERTY]
            item.user_properties.append((PROPERTY, sorted(tracer.reached)))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Watched:
        """Watch the fixtures too: a fixture may run the claimed line."""
        return (yield from self._traced(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Watched:
        """Watch the test itself."""
        return (yield from self._traced(item))


@dataclass(eq=False)
class Recorder:
    """Collects the evidence of one session and saves it at the end."""

    project: Project
    path: Path
    watch: Watch
    _runs: dict[str, Run] = field(default_factory=dict)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send a worker of xdist the claims, to spare it reading the whole project."""
        node.workerinput[PROPERTY] = pickle.dumps(self.watch)

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


def pytest_configure(config: pytest.Config) -> None:
    """Record if asked to."""
    path = config.getoption("--annotations")
    if not path:
        return
    root = config.rootpath
    if hasattr(config, "workerinput"):  # under xdist the controller records
        watch = pickle.loads(config.workerinput[PROPERTY])
    else:
        project = Project(root)
        watch = Watch.of(project)
        config.pluginmanager.register(Recorder(project, Path(path), watch))
    config.pluginmanager.register(Watcher(root, watch))
