"""What nobody has catalogued is counted, and may only fall."""

import pytest

from rfc_annotations import counts, ratchet, results
from rfc_annotations.__main__ import main
from rfc_annotations.check import Check
from rfc_annotations.fingerprint import fingerprint
from rfc_annotations.mutants import Trial
from rfc_annotations.mutate import Mutator
from rfc_annotations.sentences import unmarked

FILE = "rfc_annotations/ratchet.toml"
WARM = (
    "The host MUST warm the pot before any water of a rolling boil is poured on the leaves that"
    " were measured out for the guests in the room."
)
WARMS = f"""
[[requirement]]
section = "1"
slug = "warms"
level = "MAY"
who = "host"
summary = "Cold pots are for iced tea."
mark = "{fingerprint(WARM)}"
"""


def figures(repo, **more):
    check = Check(repo.project())
    return counts.count(check.project, check.claims, check.measured, **more)["RFC 7001"]


def numbers(repo):
    return ratchet.load(repo.project())["RFC 7001"]


def test_cited_sections_are_counted_by_sentence_and_by_requirement(repo):
    assert numbers(repo) == ratchet.Numbers(3, {"1": (1, 1), "2": (1, 0)})
    assert figures(repo) == {
        "1": counts.Count(sentences=1, uncatalogued=1),
        "2": counts.Count(sentences=1, requirements=1, claimed=1, tested=1),
    }


def test_a_sentence_more_that_is_not_catalogued_is_refused(repo):
    repo.replace("src/tea/pot.py", "(§2)", "(§2, §1.1)")
    (problem,) = repo.problems(14)
    assert "RFC 7001 §1.1: 1 of 1 normative sentences are not catalogued, and" in problem
    assert problem.endswith("ratchet.toml allows 0")
    repo.update()
    assert len(repo.problems(14)) == 1, "updating raises nothing"


def test_one_less_is_to_be_committed_and_cannot_come_back(repo):
    with (repo.root / "rfc_annotations/requirements/rfc7001.toml").open("a") as file:
        file.write(WARMS)
    (problem,) = repo.problems(14)
    assert "stale" in problem
    repo.update()
    assert repo.problems(14) == [] and numbers(repo).sections["1"] == (1, 0)
    repo.replace("rfc_annotations/requirements/rfc7001.toml", WARMS, "")
    assert "allows 0" in repo.problems(14)[0]


def test_dropping_the_citation_does_not_lower_the_figure(repo):
    repo.replace("src/tea/pot.py", "Implements RFC 7001 §1.", "Implements RFC 7001.")
    assert repo.problems(14) == []
    repo.update()
    assert numbers(repo).uncatalogued == 1


def test_without_copies_the_committed_numbers_stand_unverified(repo, capsys, monkeypatch):
    monkeypatch.delenv("RFC_SPECS", raising=False)
    assert main(["coverage", "--root", str(repo.root)]) == 0
    out = capsys.readouterr().out
    assert "RFC 7001     2 = 1 + 1; 1: 1 claimed, 1 tested, 0 excused" in out
    assert "(whole text: 3, unverified)" in out
    assert "1 of 2 normative sentences in 2 cited sections are not catalogued" in out


def test_the_snapshot_counts_by_spec_and_section_with_and_without_copies(repo):
    text = repo.project().snapshot.read_text()
    assert "RFC 7001     2 = 1 + 1; " in text and "  RFC 7001 §1  1 = 0 + 1; 0: " in text
    assert "1 of 2 normative sentences" in text
    assert repo.problems(9) == repo.problems(9, specs=False) == []


@pytest.mark.parametrize(("word", "count"), [("must", 1), ("may", 0), ("MUST", 1)])
def test_small_letters_bind_in_a_spec_that_writes_so(word, count):
    assert len(list(unmarked(f"Tea {word} be hot.", (), plain=True))) == count


@pytest.mark.parametrize("noticed", [True, False])
def test_mutants_are_counted_where_they_were_tried(repo, noticed):
    row = figures(repo, killed={("RFC 7001", "2", "waits"): noticed})["2"]
    assert (row.killed, row.mutated) == (noticed, 1)


CLAIMED = "claims-without-a-killed-mutant"
TOLD = f"{FILE}:1: rule 15: "


def tried(repo, killed, survived=0):
    """Write the scores of one run over the mutants of the claim in the code."""
    code = "src/tea/pot.py"
    mutants = list(Mutator(code, (repo.root / code).read_text()).of_claim(10))
    trial = Trial((), mutants[:killed], [], mutants[killed : killed + survived])
    results.save(repo.root / "rfc_annotations" / results.NAME, trial, repo.project())


def update(repo):
    return main(
        ["coverage", "--write", "--root", str(repo.root), "--specs", str(repo.root / "specs")]
    )


def test_claims_without_a_killed_mutant_are_counted_once_mutants_were_tried(repo):
    assert repo.problems(15) == [] and ratchet.load_claims(repo.project()) is None
    tried(repo, 0, 1)
    assert repo.problems(15) == [f"{TOLD}stale; run `python -m rfc_annotations coverage --write`"]
    assert update(repo) == 0 and repo.problems() == []
    assert ratchet.load_claims(repo.project()) == 1, "a survivor guards nothing"
    assert numbers(repo).sections["2"] == (1, 0)


def test_a_claim_more_without_a_killed_mutant_is_refused(repo):
    tried(repo, 1)
    assert update(repo) == 0 and repo.problems() == []
    assert ratchet.load_claims(repo.project()) == 0
    repo.replace("src/tea/pot.py", "    if minutes", "    # §2 [waits]\n    if minutes")
    told = "1 claims have no killed mutant in mutants.txt, and 0 may; try those that you added"
    (problem,) = repo.problems(15)
    assert problem.startswith(f"{TOLD}{told}")
    assert update(repo) == 0
    assert repo.problems(15) == [problem], "updating raises nothing"


def test_a_score_ends_with_the_line_that_it_is_of_and_with_the_file(repo):
    tried(repo, 1)
    assert update(repo) == 0
    repo.replace("src/tea/pot.py", 'return "tea"', 'return "te" + "a"')
    (changed,) = repo.problems(15)
    (repo.root / "rfc_annotations" / results.NAME).unlink()
    (gone,) = repo.problems(15)
    assert "1 claims have no killed mutant" in changed and changed == gone


def test_one_claim_less_is_to_be_committed(repo):
    tried(repo, 0, 1)
    assert update(repo) == 0
    tried(repo, 1)
    (problem,) = repo.problems(15)
    assert "stale" in problem
    assert update(repo) == 0 and repo.problems(15) == []
    assert f"{CLAIMED} = 0\n" in (repo.root / FILE).read_text()
