"""The repository keeps its own citation rules; rfc_annotations/README.md explains them."""

from pathlib import Path

import pytest

from rfc_annotations.check import Check
from rfc_annotations.project import Project

ROOT = Path(__file__).resolve().parent.parent
NEED_COPIES = (6, 8, 10, 13, 14)


@pytest.fixture(scope="module")
def scanned():
    """Every file, read once for both tests."""
    return Project(ROOT).scanned


def problems(scanned, folder, need_copies):
    project = Project(ROOT, folder)
    project.scanned = scanned
    found = Check(project).run()
    return [str(problem) for problem in found if (problem.rule in NEED_COPIES) is need_copies]


def test_citations_claims_and_the_snapshot_hold(scanned):
    assert problems(scanned, None, need_copies=False) == []


def test_marks_are_found_and_nothing_was_copied(scanned, specs):
    assert problems(scanned, specs, need_copies=True) == []
