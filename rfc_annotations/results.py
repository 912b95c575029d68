"""The results of a run of the mutants, kept for the figures: requirements whose lines are guarded.

The file names each mutant that was tried by file and line, and holds a digest of each source:
results about other text count for nothing.  What mutants.toml accepts is left out.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rfc_annotations.catalogue import Key
from rfc_annotations.evidence import digest
from rfc_annotations.project import Project

if TYPE_CHECKING:
    from rfc_annotations.mutants import Trial  # which takes pytest, and time to start


def save(path: Path, trial: "Trial", root: Path) -> None:
    """Write the mutants tried, and whether a test noticed each."""
    tried = [(m.file, m.line, True) for m in trial.killed]
    tried += [(m.file, m.line, False) for m in trial.survivors]
    digests = {file: digest(root / file) for file in sorted({file for file, _, _ in tried})}
    path.write_text(json.dumps({"digests": digests, "mutants": sorted(tried)}, indent=1) + "\n")


def load(path: Path, project: Project) -> dict[Key, bool]:
    """Say of each requirement that had a mutant on a line of its claims: was every one killed?

    A claim in a docstring takes all mutants of its function, those of other claims in it too.
    """
    document = json.loads(path.read_text())
    fresh = {f for f, known in document["digests"].items() if digest(project.root / f) == known}
    tried: dict[str, list[tuple[int, bool]]] = {}
    for file, line, noticed in document["mutants"]:
        if file in fresh:
            tried.setdefault(file, []).append((line, noticed))
    found: dict[Key, bool] = {}
    for cited in project.cited:
        if not cited.slugs or cited.file not in tried or project.kind(cited.file) != "code":
            continue
        lines = cited.anchor | {cited.line}
        _note(found, cited.spec, cited.section, cited.slugs, [
            noticed for line, noticed in tried[cited.file] if line in lines
        ])  # fmt: skip
    return found


def _note(
    found: dict[Key, bool], spec: str, section: str, slugs: Iterable[str], outcomes: list[bool]
) -> None:
    if outcomes:
        for slug in slugs:
            key = (spec, section, slug)
            found[key] = found.get(key, True) and all(outcomes)
