"""What is known of each requirement, put together: states, lines, tests, mutants, our ledger."""

import json

import pytest

from rfc_annotations import evidence
from rfc_annotations.evidence import Evidence, Run
from rfc_annotations.page import page
from rfc_annotations.record import Book, part_document
from rfc_annotations.results import Score

MUTANTS = """\
[[accepted]]
file = "src/tea/pot.py"
was = 'return "tea"  # §2 [waits]'
now = 'return "TEA"  # §2 [waits]'
why = "It tastes the same."
"""


def book(repo, **known):
    return Book(repo.project(), **known)


def chapter(repo, section="2", **known):
    [part] = [part for part in book(repo, **known).parts if part.name == "RFC 7001"]
    return next(each for each in part.chapters if each.number == section)


def run_of(repo, outcome):
    digests = {f: evidence.digest(repo.root / f) for f in ("src/tea/pot.py", "tests/test_pot.py")}
    return Evidence({"tests/test_pot.py::test_brew": Run(outcome, frozenset())}, digests)


def test_a_rule_has_its_code_and_its_tests(repo):
    [rule] = chapter(repo).rules
    assert (rule.item.slug, rule.status) == ("waits", "held and tested")
    [code], [test] = rule.code, rule.tests
    assert (code.file, code.line, code.lines) == ("src/tea/pot.py", 10, range(10, 11))
    assert (test.file, test.name, test.outcome) == ("tests/test_pot.py", "test_brew", "")


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        ("passed", "held and tested"),
        ("failed", "held, not shown by the last test run"),
        ("skipped", "held, not shown by the last test run"),
    ],
)
def test_the_last_run_speaks_for_the_tests(repo, outcome, status):
    [rule] = chapter(repo, proof=run_of(repo, outcome)).rules
    assert (rule.tests[0].outcome, rule.status) == (outcome, status)


def test_a_run_of_other_text_is_told(repo):
    proof = run_of(repo, "passed")
    repo.replace("tests/test_pot.py", "== ", "==  ")
    [rule] = chapter(repo, proof=proof).rules
    assert rule.tests[0].outcome == "passed, before the last change"


def test_what_nobody_ran_is_no_proof(repo):
    [rule] = chapter(repo, proof=Evidence({}, {})).rules
    assert (rule.tests[0].outcome, rule.state) == ("not run", "not passed")


def test_a_departure_shows_the_line_with_its_reason(repo):
    reason = "# Departs from RFC 7001 §2 [waits]: the pot is too slow"
    repo.replace("src/tea/pot.py", "# §2 [waits]", reason)
    [rule] = chapter(repo).rules
    assert rule.status == "departs"
    assert "too slow" in book(repo).excerpts.text(rule.code[0].file, rule.code[0].lines)[0]


def test_mutants_that_may_live(repo):
    repo.write("rfc_annotations/mutants.toml", MUTANTS)
    [rule] = chapter(repo).rules
    assert [each.why for each in rule.alive] == ["It tastes the same."]


def test_code_has_the_score_of_its_mutants(repo):
    project = repo.project()
    [claim] = [c for c in project.cited if c.slugs and c.file == "src/tea/pot.py"]
    score = Score(1, 2, 3, "2025-01-31")
    scored = Book(project, scores={claim: score})
    assert "src/tea/pot.py:10 1 of 2 mutants killed, of 3 possible" in "".join(page(scored))
    [part] = [part for part in scored.parts if part.states]
    [rule] = part.rules
    assert [spot.score for spot in rule.code] == [score]
    [chapter] = [each for each in part_document(part)["sections"] if each["requirements"]]
    [spot] = chapter["requirements"][0]["code"]
    assert spot["mutants"] == {"killed": 1, "tried": 2, "possible": 3, "day": "2025-01-31"}


def test_a_section_has_its_pointers_its_sentences_and_the_habits_of_peers(repo):
    ledger = "# Field\n\n## Old kettles\n\nRFC 7001 §1 fails.\n"
    repo.write("rfc_annotations/index/field.md", ledger)
    pouring = chapter(repo, "1")
    assert [(spot.file, spot.line) for spot in pouring.cited] == [("src/tea/pot.py", 1)]
    assert pouring.sentences == (1, 1)
    assert pouring.quirks == (("Field", "Old kettles"),)
    assert not pouring.rules


def test_sections_stand_in_the_order_of_the_spec(repo):
    [part] = [part for part in book(repo).parts if part.name == "RFC 7001"]
    assert [each.number for each in part.chapters] == ["1", "1.1", "2"]


def test_the_document_is_plain_values(repo):
    document = json.loads(json.dumps(book(repo).document()))
    [spec] = document["specs"]
    assert spec["states"] == {"met": 1}
    [rule] = [r for section in spec["sections"] for r in section["requirements"]]
    assert rule["code"] == [{"file": "src/tea/pot.py", "line": 10, "lines": [10, 10]}]
