"""The committed scores of mutants: they add up run by run, and last as long as the lines."""

import pytest

from rfc_annotations import results
from rfc_annotations.mutants import Trial
from rfc_annotations.mutants_accepted import Accepted
from rfc_annotations.mutate import Mutator

CODE = "src/tea/pot.py"
KEY = ("RFC 7001", "2", "waits")
SUM = "    return cups + 3  # RFC 7001 §2 [waits]\n"  # three mutants
WAS = "return cups + 3"


@pytest.fixture
def claim(repo):
    """The line of a claim, behind all others of its file."""
    text = (repo.root / CODE).read_text() + f"\n\ndef fill(cups):\n{SUM}"
    repo.write(CODE, text)
    return len(text.splitlines())


@pytest.fixture
def note(repo, claim, tmp_path):
    """`note(killed, survived)` saves a run of so many mutants; returns the file."""

    def note(killed, survived=0, accepted=()):
        mutants = list(Mutator(CODE, (repo.root / CODE).read_text()).of_claim(claim))
        trial = Trial(accepted, mutants[:killed], [], mutants[killed : killed + survived])
        results.save(tmp_path / "mutants.txt", trial, repo.project())
        return tmp_path / "mutants.txt"

    return note


def scores(path, repo):
    found = results.load(path, repo.project())
    return [(each.killed, each.tried, each.possible) for each in found.values()]


def test_a_score_says_what_was_tried_of_what_is_possible(note, repo):
    path = note(1, 1)
    assert scores(path, repo) == [(1, 2, 3)]
    assert f"\n{CODE}\n  " in path.read_text() and "  1/2/3  20" in path.read_text()
    assert "RFC 7001 §2 [waits]\n" in path.read_text()


def test_a_larger_run_and_one_with_a_survivor_are_news(note, repo):
    assert scores(note(2), repo) == [(2, 2, 3)]
    assert scores(note(1), repo) == [(2, 2, 3)]
    assert scores(note(0, 1), repo) == [(0, 1, 3)]
    assert scores(note(3), repo) == [(3, 3, 3)]


def test_what_may_live_is_not_possible(note, repo, claim):
    entries = [
        Accepted(m.file, m.was, m.now, "It is all the same.")
        for m in Mutator(CODE, (repo.root / CODE).read_text()).of_claim(claim)
    ]
    assert scores(note(0, 3, entries[:2]), repo) == [(0, 1, 1)]


def test_a_changed_line_has_no_score(note, repo):
    path = note(3)
    repo.replace(CODE, "def fill", "MILK = True\n\n\ndef fill")
    repo.replace(CODE, "  # RFC 7001 §2 [waits]\n", "  # in cups: RFC 7001 §2 [waits]\n")
    assert scores(path, repo) == [(3, 3, 3)], "the code is the same"
    repo.replace(CODE, WAS, "return cups + 4")
    assert scores(path, repo) == []


def test_a_line_that_changed_leaves_the_file_when_others_are_added(note, repo):
    path = note(3)
    repo.replace(CODE, WAS, "return cups + 4")
    results.save(path, Trial(()), repo.project())
    assert path.read_text() == results.HEADER


def test_a_requirement_is_guarded_if_nothing_survived_on_any_of_its_lines(note, repo):
    whole = results.load(note(3), repo.project())
    assert results.by_requirement(whole) == {KEY: True}
    assert results.by_requirement(results.load(note(2, 1), repo.project())) == {KEY: False}


def test_another_file_is_no_list_of_scores(tmp_path, repo):
    path = tmp_path / "other.txt"
    path.write_text("src/tea/pot.py\n  killed all\n")
    with pytest.raises(ValueError, match="killed all"):
        results.load(path, repo.project())
