"""The results of a test run: the outcome of each test, and the claims whose lines it ran.

The file is written by the pytest plugin and read by `check --evidence`.  A claim is named by file
and line, so the file also holds a digest of each source: evidence about other text counts for
nothing.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from rfc_annotations.scan import Cited

PARAMETERS: Final = re.compile(r"\[.*\]\Z", re.DOTALL)
Place = tuple[str, int]  # file and line of a code claim


@dataclass(frozen=True, slots=True)
class Run:
    """One test, all its parameters taken together."""

    outcome: str  # passed, failed, skipped, or xpassed: it was expected to fail
    reached: frozenset[Place]


@dataclass(frozen=True)
class Evidence:
    """All tests by pytest's name, and the digest of every file that they depend on."""

    runs: Mapping[str, Run]
    digests: Mapping[str, str]

    def of(self, claim: Cited) -> Run:
        """Look up the result of the test, or group of tests, that makes `claim`."""
        merged = Run("not run", frozenset())
        for name, run in self._by_file.get(claim.file, ()):
            if speaks_for(claim, name):
                merged = merge(merged, run)
        return merged

    @cached_property
    def _by_file(self) -> Mapping[str, list[tuple[str, Run]]]:
        found: dict[str, list[tuple[str, Run]]] = {}
        for name, run in self.runs.items():
            found.setdefault(name.partition("::")[0], []).append((name, run))
        return found

    def stale(self, root: Path, file: str) -> bool:
        """Whether `file` has changed since the run, or was not part of it."""
        return self.digests.get(file) != digest(root / file)


def merge(one: Run, other: Run) -> Run:
    """Merge two runs: a failure in either counts, and a skip does not hide a pass."""
    order = ("not run", "skipped", "passed", "xpassed", "failed")
    outcome = max(one.outcome, other.outcome, key=order.index)
    return Run(outcome, one.reached | other.reached)


def speaks_for(claim: Cited, test: str) -> bool:
    """Is `test` (a pytest node id) one that makes `claim`?

    >>> claim = Cited("tests/test_a.py", 3, "RFC 1", "1", (), "", owner="TestB")
    >>> [speaks_for(claim, f"tests/test_a.py::{n}") for n in ("TestB::test_c[7]", "TestBoy", "d")]
    [True, False, False]
    """
    file, _, name = PARAMETERS.sub("", test).partition("::")
    return file == claim.file and (claim.owner in ("", name) or name.startswith(f"{claim.owner}::"))


def digest(path: Path) -> str:
    """Tell one text of a file from another; empty for a file that is gone."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


def save(path: Path, evidence: Evidence) -> None:
    """Write the evidence as JSON."""
    runs = {
        name: {"outcome": run.outcome, "reached": [f"{f}:{n}" for f, n in sorted(run.reached)]}
        for name, run in sorted(evidence.runs.items())
    }
    document = {"digests": dict(sorted(evidence.digests.items())), "tests": runs}
    path.write_text(json.dumps(document, indent=1) + "\n")


def load(path: Path) -> Evidence:
    """Read the evidence back."""
    document = json.loads(path.read_text())
    runs = {}
    for name, entry in document["tests"].items():
        places = (place.rpartition(":") for place in entry["reached"])
        runs[name] = Run(entry["outcome"], frozenset((file, int(n)) for file, _, n in places))
    return Evidence(runs, document["digests"])
