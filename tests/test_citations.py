"""The repository keeps its own citation rules; rfc_annotations/README.md explains them."""

from pathlib import Path

from rfc_annotations.check import Check
from rfc_annotations.project import Project

ROOT = Path(__file__).resolve().parent.parent
NEED_COPIES = (6, 8, 10)


def problems(project, need_copies):
    found = Check(project).run()
    return [str(problem) for problem in found if (problem.rule in NEED_COPIES) is need_copies]


def test_citations_claims_and_the_snapshot_hold():
    assert problems(Project(ROOT), need_copies=False) == []


def test_marks_are_found_and_nothing_was_copied(specs):
    assert problems(Project(ROOT, specs), need_copies=True) == []
