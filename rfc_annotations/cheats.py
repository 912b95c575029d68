"""Claims that prove nothing by their form: rule 12.

`cheats_tests` judges the form of the tests, `cheats_code` that of the claimed lines.
"""

import ast
from collections.abc import Iterator

from rfc_annotations import cheats_code, cheats_tests
from rfc_annotations.grammar import DEPARTS, NOT_DONE
from rfc_annotations.project import Project
from rfc_annotations.scan import Cited

Finding = tuple[str, int, str]  # file, line, message


def findings(project: Project) -> Iterator[Finding]:
    """Yield every claim that the form of its test, or of its line, makes worthless."""
    claims: dict[str, list[Cited]] = {}
    for cited in project.cited:
        if cited.slugs and cited.verb not in (DEPARTS, NOT_DONE):
            claims.setdefault(cited.file, []).append(cited)
    yield from cheats_tests.findings(_trees(project, "test"), claims)
    yield from cheats_code.findings(_trees(project, "code"), claims)


def _trees(project: Project, kind: str) -> dict[str, ast.Module]:
    """The files of a kind that can be read; of the others rule 1 has said so."""
    return {
        scanned.file: scanned.tree
        for scanned in project.scanned
        if scanned.kind == kind and scanned.tree is not None
    }
