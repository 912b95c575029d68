"""How many requirements may be claimed in one place: rules 16 and 17."""

import pytest

from rfc_annotations import ratchet
from rfc_annotations.__main__ import main

CODE, TEST, FILE = "src/tea/pot.py", "tests/test_pot.py", "rfc_annotations/ratchet.toml"
CLAIM = "[waits]."


def slugs(count):
    return " ".join(f"[slug-{number}]" for number in range(count))


@pytest.mark.parametrize(("first", "second", "told"), [(3, 3, None), (4, 0, 4), (2, 1, None)])
def test_a_line_of_code_claims_three_requirements_at_most(repo, first, second, told):
    repo.replace(CODE, "# §2 [waits]", f"# §2 {slugs(first)}\n    # §1.1 {slugs(second)}")
    text = f"{CODE}:10: rule 16: claims {told} requirements; put each beside the line that meets it"
    assert repo.problems(16) == ([text] if told else [])


def test_two_citations_of_a_line_are_counted_together(repo):
    repo.replace(CODE, "# §2 [waits]", "# §2 [waits] [stirs], §1.1 [pours] [drinks]")
    assert "claims 4 requirements" in repo.problems(16)[0]


def test_what_is_declined_is_no_claim(repo):
    reason = f"Not done: RFC 7001 §2 {slugs(4)}: nobody asked."
    repo.replace(CODE, "§1.", f"§1.\n\n{reason}\n")
    assert repo.problems(16) == []


@pytest.mark.parametrize("count", [8, 9])
def test_a_test_claims_eight_requirements_at_most(repo, count):
    repo.replace(TEST, CLAIM, f"{slugs(count - 1)} and\n    §1.1 [slug-0].")
    text = f"{TEST}:7: rule 17: test_brew claims 9 requirements, and is no table; 0 such tests may"
    assert repo.problems(17) == ([text] if count > 8 else [])


def test_a_requirement_that_is_claimed_twice_counts_once(repo):
    repo.replace(TEST, CLAIM, f"{slugs(8)}.\n\n    Covers RFC 7001 §2 {slugs(8)}.")
    assert repo.problems(17) == []


@pytest.mark.parametrize("place", ["function", "class", "method"])
def test_a_table_may_claim_more(repo, place):
    table = '@pytest.mark.parametrize("minutes", [4, 5])\n'
    text = (repo.root / TEST).read_text().replace(CLAIM, f"{slugs(9)}.")
    if place == "function":
        text = text.replace("def test", f"{table}def test")
    else:
        head, _, body = text.partition("def test")
        body = "".join(f"    {line}\n" for line in f"def test{body}".splitlines())
        inside = f"    {table}" if place == "method" else ""
        text = f"{head}{table if place == 'class' else ''}class TestTea:\n{inside}{body}"
    repo.write(TEST, text)
    assert bool(repo.problems(17)) == (place == "class"), "the claims stand in a method"
    repo.write(TEST, text.replace("parametrize", "usefixtures"))
    assert len(repo.problems(17)) == 1


def test_each_rule_of_a_state_machine_is_counted_alone(repo):
    rule = """    def {name}(self):
        \"\"\"Covers RFC 7001 {section} {slugs}.\"\"\"
"""
    one = rule.format(name="one", section="§2", slugs=slugs(8))
    two = rule.format(name="two", section="§1.1", slugs=slugs(8))
    repo.write(TEST, f"class Machine:\n{one}\n{two}\n\nTestTea = Machine.TestCase\n")
    assert repo.problems(17) == []
    repo.replace(TEST, "§1.1", "§2 [more],\n        §1.1")
    assert "claims 9 requirements" in repo.problems(17)[0]


def test_the_tests_that_claim_more_only_become_fewer(repo):
    good = (repo.root / TEST).read_text()
    repo.replace(TEST, CLAIM, f"{slugs(9)}.")
    assert len(repo.problems(17)) == 1
    write = ["coverage", "--write", "--root", str(repo.root), "--specs", str(repo.root / "specs")]
    assert main(write) == 0
    assert len(repo.problems(17)) == 1, "writing raises nothing"
    path = repo.root / FILE
    ratchet.save(path, ratchet.load(repo.project()), tests=1)
    assert repo.problems(17) == [] and ratchet.load_tests(repo.project()) == 1
    repo.write(TEST, good)
    stale = "stale; run `python -m rfc_annotations coverage --write`"
    assert repo.problems(17) == [f"{FILE}:1: rule 17: {stale}"]
    assert main(write) == 0 and repo.problems(17) == []
    assert ratchet.load_tests(repo.project()) == 0
