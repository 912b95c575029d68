"""The repository keeps its own citation rules; rfc_annotations/README.md explains them."""

from pathlib import Path

import book
import pytest

from rfc_annotations import check, results
from rfc_annotations.project import Project

ROOT = Path(__file__).resolve().parent.parent
NEED_COPIES = (check.mark_found, check.own_words, check.complete, check.entries, check.only_falls)
LABORATORY = "src/rtclab/"  # it reads and tests others: nothing of ours depends on what it does
OTHERS = [rule for rule in check.RULES if rule not in NEED_COPIES]


@pytest.fixture(scope="module")
def scanned():
    """Every file, read once for both tests, and by this worker for the pages of the specs."""
    return book.book().project.scanned


def problems(scanned, folder, rules):
    project = Project(ROOT, folder)
    project.scanned = scanned
    return [str(problem) for problem in check.Check(project).run(rules)]


def test_citations_claims_and_the_snapshot_hold(scanned):
    assert problems(scanned, None, OTHERS) == []


def test_marks_are_found_and_nothing_was_copied(scanned, specs):
    assert problems(scanned, specs, NEED_COPIES) == []


def test_no_promise_is_kept_in_the_laboratory(scanned):
    project = Project(ROOT)
    project.scanned = scanned
    made = [each for each in project.cited if results.claims(project, each)]
    assert [(c.file, c.line) for c in made if c.file.startswith(LABORATORY)] == []
    assert len(made) > 3000
