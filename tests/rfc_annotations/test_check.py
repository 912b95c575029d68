"""Each rule, broken once and kept once."""

import pytest

from rfc_annotations import ratchet
from rfc_annotations.__main__ import main
from rfc_annotations.evidence import Evidence, Run, digest, save
from rfc_annotations.fingerprint import fingerprint

CODE, TEST, README = "src/tea/pot.py", "tests/test_pot.py", "README.md"
CATALOGUE = "rfc_annotations/requirements/rfc7001.toml"
CLAIM = (CODE, 10)
SLUG, RATCHET = "[waits].", "rfc_annotations/ratchet.toml"


def test_a_sound_repository_has_no_problems(repo):
    assert repo.problems() == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("RFC 7001 §two", "README.md:3: rule 1: cannot read the section in '§two'"),
        ("RFC 7001 § 2", "README.md:3: rule 1: cannot read the section in '§ 2'"),
        ("RFC 7002 §2", "README.md:3: rule 1: unknown spec 'RFC 7002'"),
        ("ISO 9 §2", "README.md:3: rule 1: unknown spec 'ISO 9'"),
        ("as §2 says", "README.md:3: rule 1: §2 without a spec"),
        ("Not done: RFC 7001 §2 [waits]", "rule 1: 'Not done' gives no reason after a colon"),
    ],
)
def test_rule_1_wants_citations_that_parse(repo, text, message):
    repo.write(README, f"# Tea\n\n{text}\n")
    (problem,) = repo.problems(1)
    assert message in problem


def test_a_bare_section_is_the_default_unless_a_list_goes_on(repo):
    repo.replace(CODE, "(§2)", '(§1.1, Field §"Old kettles", §2; but then §1.1)')
    assert repo.problems(2) == [f"{CODE}:7: rule 2: there is no Field §2"]


def test_without_a_default_a_bare_section_goes_with_the_spec_before_it(repo):
    repo.replace(TEST, "[waits].", '[waits].\n\n    Then §1.1, Field §"Old kettles"; so §3.\n    ')
    assert repo.problems(1) == []
    assert repo.problems(2) == [f"{TEST}:9: rule 2: there is no Field §3"]


def test_rule_1_leaves_code_fences_and_a_mere_sign_alone(repo):
    repo.write(README, "# Tea\n\nThe sign § is called section.\n\n```\nRFC 1 §x\n```\n")
    assert repo.problems(1) == []


def test_rule_1_wants_a_catalogue_that_can_be_read(repo):
    repo.replace(CATALOGUE, '"MUST"', '"OUGHT"')
    (problem,) = repo.problems(1)
    assert problem.startswith(f"{CATALOGUE}:3: rule 1:") and "'OUGHT'" in problem
    repo.write(CATALOGUE, "spec = ")
    assert len(repo.problems(1)) == 1


def test_rule_1_lets_files_share_a_spec_but_not_a_requirement(repo):
    more = (repo.root / CATALOGUE).read_text()
    part = CATALOGUE.replace(".toml", "-milk.toml")
    repo.write(part, more.replace('"waits"', '"waits-again"'))
    assert repo.problems(1) == [] and repo.problems(6) == []
    repo.replace(CODE, "[waits]", "[waits] [waits-again]")
    assert repo.problems(3) == []
    repo.write(part, more)
    (problem,) = repo.problems(1)
    assert problem.startswith(f"{CATALOGUE}:3: rule 1:") and "defined twice" in problem


def test_rule_2_wants_sections_that_exist(repo):
    repo.write(README, '# Tea\n\nRFC 7001 §1.1, RFC 7001 §1.2, Field §"Old kettles"\n')
    assert repo.problems(2) == ["README.md:3: rule 2: there is no RFC 7001 §1.2"]


def test_rule_2_needs_no_copy_but_an_index(repo):
    repo.replace(CODE, "(§2)", "(§3)")
    assert repo.problems(2, specs=False) == [f"{CODE}:7: rule 2: there is no RFC 7001 §3"]
    (repo.root / "rfc_annotations/index/rfc7001.txt").unlink()
    assert "has no index" in repo.problems(2)[0]


def test_rule_3_wants_slugs_that_are_catalogued(repo):
    repo.replace(CODE, "(§2)", "(§1 [waits])")
    assert repo.problems(3) == [f"{CODE}:7: rule 3: RFC 7001 §1 [waits] is not catalogued"]


def test_rule_4_wants_code_and_test(repo):
    repo.replace(CODE, " [waits]", "")
    assert repo.problems(4) == [f"{CATALOGUE}:3: rule 4: RFC 7001 §2 [waits]: no code"]
    repo.replace(TEST, " [waits]", "")
    assert repo.problems(4) == [f"{CATALOGUE}:3: rule 4: RFC 7001 §2 [waits]: open"]


@pytest.mark.parametrize("verb", ["Departs from", "Not done:"])
def test_rule_4_accepts_a_refusal_that_says_why(repo, verb):
    repo.replace(CODE, "# §2 [waits]", f"# {verb} RFC 7001 §2 [waits]: the guests are thirsty")
    repo.replace(TEST, " [waits]", "")
    assert repo.problems(4) == [] and repo.problems(1) == []


def test_rule_4_accepts_an_excuse_and_asks_nothing_of_a_may(repo):
    repo.replace(TEST, " [waits]", "")
    repo.replace(CATALOGUE, 'who = "host"', 'excused = ["test"]\nwhy = "Nobody has a clock."')
    assert repo.problems(4) == []
    repo.replace(CODE, " [waits]", "")
    assert len(repo.problems(4)) == 1
    repo.replace(CATALOGUE, '"MUST"', '"MAY"')
    assert repo.problems(4) == []


def evidence(repo, outcome="passed", reached=(CLAIM,)):
    path = repo.root / "evidence.json"
    digests = {file: digest(repo.root / file) for file in (CODE, TEST)}
    save(path, Evidence({f"{TEST}::test_brew": Run(outcome, frozenset(reached))}, digests))
    return path


def test_rules_4_and_11_are_content_with_a_test_that_passed_through_the_claim(repo):
    assert repo.problems(evidence=evidence(repo)) == []


@pytest.mark.parametrize("outcome", ["failed", "skipped"])
def test_rule_4_wants_the_test_to_pass(repo, outcome):
    (problem,) = repo.problems(4, evidence(repo, outcome))
    assert problem.endswith(f"RFC 7001 §2 [waits]: no test of it passed ({outcome})")


def test_rule_4_notices_a_test_that_never_ran(repo):
    path = evidence(repo)
    repo.replace(TEST, "def test_brew", "def test_brewing")
    assert "(not run)" in repo.problems(4, path)[0]


def test_rule_5_forbids_claims_on_what_was_replaced(repo):
    new = '[[requirement]]\nsection = "1"\nslug = "warm"\nlevel = "MAY"\nsummary = "Warm it."\n'
    mark = fingerprint("The host MUST warm the pot before any")
    text = (repo.root / CATALOGUE).read_text() + 'replaced-by = "RFC 7001 §1 [warm]"\n'
    repo.write(CATALOGUE, text)
    assert "is not catalogued" in repo.problems(5)[0]
    repo.write(CATALOGUE, f'{text}\n{new}mark = "{mark}"\n')
    assert [p.split(": ")[0] for p in repo.problems(5)] == [f"{CODE}:10", f"{TEST}:7"]
    repo.replace(CODE, " [waits]", "")
    repo.replace(TEST, " [waits]", "")
    assert repo.problems(5) == [] and repo.problems(4) == []


def test_rule_6_looks_for_the_sentence_in_its_section(repo):
    repo.replace(CATALOGUE, 'section = "2"', 'section = "1"')
    (problem,) = repo.problems(6)
    assert problem.startswith(f"{CATALOGUE}:3: rule 6: RFC 7001 §1 [waits]: no sentence")


def test_rule_6_reads_across_a_page_break(repo):
    sentence = "water of a rolling boil is poured on the leaves that were measured out"
    other = f'who = "host"\nalso = ["{fingerprint(sentence)}"]'
    repo.replace(CATALOGUE, 'section = "2"', 'section = "1"')
    repo.replace(CATALOGUE, 'who = "host"', other)
    assert len(repo.problems(6)) == 1  # the first mark; the other one is found


def test_without_copies_marks_are_unverified_and_nothing_fails(without_specs):
    assert without_specs.problems(specs=False) == []


def test_rule_7_wants_public_names_to_cite(repo):
    extra = '\n\nclass Cup:\n    """A cup."""\n\n    def drink(self):\n        """Drink."""\n'
    repo.write(CODE, (repo.root / CODE).read_text() + extra)
    assert [p.split(" ")[3] for p in repo.problems(7)] == ["Cup", "Cup.drink"]
    repo.replace(CODE, '"""A cup."""', '"""A cup.  Own design: no spec says how to drink."""')
    repo.replace(CODE, "Drink.", "Drink after §2.")
    assert repo.problems(7) == []


def test_rule_7_takes_an_own_design_with_all_that_it_contains(repo):
    extra = '\n\nclass Cup:\n    """Own design: a cup."""\n\n    def drink(self):\n        pass\n'
    repo.write(CODE, (repo.root / CODE).read_text() + extra)
    assert repo.problems(7) == []
    repo.write("src/tea/cups.py", '"""Own design: cups."""\n\n\ndef wash():\n    pass\n')
    assert repo.problems(7) == []


def test_rule_7_asks_nothing_of_private_names_and_other_folders(repo):
    repo.write("src/tea/spoon.py", "def _stir():\n    pass\n")
    repo.write("src/kitchen.py", "def cook():\n    pass\n")
    assert repo.problems(7) == []


QUOTE = "the pot before any water of a rolling boil is poured on the leaves"


def test_rule_8_forbids_twelve_words_in_prose(repo):
    repo.write(README, f"# Tea\n\nWell:\nwarm {QUOTE.replace(' of ', chr(10) + 'of ')}\n")
    assert repo.problems(8) == [
        "README.md:4: rule 8: repeats 15 words of a spec in a row; say it in your own"
    ]
    repo.write(README, "# Tea\n\nThe pot before any water of a rolling boil is full.\n")
    assert repo.problems(8) == []


def test_rule_8_reads_docstrings_and_comments_over_line_breaks(repo):
    first, second = QUOTE[:30], QUOTE[30:]
    repo.write("tests/test_a.py", f'"""A test.\n\n{first}\n    {second}\n"""\n')
    repo.write("src/b.py", f"x = 1\n# {first}\n# {second}\n")
    assert [p.split(": ")[0] for p in repo.problems(8)] == ["src/b.py:2", "tests/test_a.py:3"]


def test_rule_8_lets_a_literal_quote_on_a_line_that_cites(repo):
    repo.write("src/b.py", f'QUOTE = "{QUOTE}"\n')
    assert len(repo.problems(8)) == 1
    repo.write("src/b.py", f'# Source: RFC 7001 §1\nQUOTE = "{QUOTE}"\n')
    assert repo.problems(8) == []
    long = " ".join(["leaf", *(f"w{n}" for n in range(60))])
    repo.write("specs/rfc7001.txt", f"1 Pouring\n\n   {long}\n")
    repo.write("src/b.py", f'QUOTE = "{long}"  # RFC 7001 §1\n')
    assert "repeats 61 words" in repo.problems(8)[0]


def test_rule_9_wants_a_fresh_snapshot(repo):
    repo.replace(TEST, " [waits]", "")
    (problem,) = repo.problems(9)
    assert problem.startswith("rfc_annotations/coverage.txt:1: rule 9: stale")
    repo.update()
    assert repo.problems(9) == []


def test_rule_9_wants_the_figures_of_the_readme_to_be_those_of_today(repo):
    text = "requirements have code and tests, 0 a reason why not, and"
    repo.replace("README.md", "RFC 7001 §2", f"7 {text} 0 of 1 binding sentences; RFC 7001 §2")
    assert repo.problems(9) == [
        "README.md:3: rule 9: stale figures; run `python -m rfc_annotations coverage --write`"
    ]
    main(["check", "--root", str(repo.root), "--specs", str(repo.root / "specs"), "--update"])
    assert f"1 {text} 1 of 2 binding sentences" in (repo.root / "README.md").read_text()
    assert repo.problems(9) == []
    repo.replace("README.md", "binding sentences", "binding sentences, of 7 in the whole texts,")
    assert [problem.partition(" rule 9")[0] for problem in repo.problems(9)] == ["README.md:3:"]
    main(["check", "--root", str(repo.root), "--specs", str(repo.root / "specs"), "--update"])
    assert "sentences, of 3 in the whole texts," in (repo.root / "README.md").read_text()
    assert repo.problems(9) == []


def test_rule_9_does_not_mind_where_a_claim_stands(repo):
    repo.replace(CODE, "\n\n\n", "\n\n# A remark.\n\n\n")
    assert repo.problems(9) == []


SPECS = "rfc_annotations/specs.toml"


def declare(repo, *sections):
    repo.replace(SPECS, 'title = "Tea"', f'title = "Tea"\ncomplete = {list(sections)}')


def test_rule_10_asks_nothing_of_sections_that_are_not_declared(repo):
    assert repo.problems(10) == []
    declare(repo, "2")
    assert repo.problems(10) == []


def test_rule_10_wants_every_binding_sentence_of_a_complete_section_marked(repo):
    declare(repo, "1.1")
    mark = fingerprint("Milk SHOULD come last.")
    assert repo.problems(10) == [
        f"{SPECS}:1: rule 10: RFC 7001 §1.1 is declared complete, and lacks {mark}: "
        "Milk SHOULD come last...."
    ]
    entry = f'[[not-ours]]\nsection = "1.1"\nmarks = ["{mark}"]\nwhy = "We take none."\n'
    text = (repo.root / CATALOGUE).read_text()
    repo.write(CATALOGUE, f"{text}\n{entry}")
    assert repo.problems() == []


def test_rule_10_takes_an_asterisk_for_all_below(repo):
    declare(repo, "1.*", "2.*")
    lacking = repo.problems(10)
    assert ["The host MUST" in lacking[0], "Milk SHOULD" in lacking[1]] == [True, True]


def test_rule_10_takes_an_asterisk_alone_for_everything(repo):
    declare(repo, "*")
    assert len(repo.problems(10)) == 2


def test_rule_10_hears_small_letters_where_a_spec_has_no_others(repo):
    repo.replace("specs/rfc7001.txt", "milk came first.", "milk should not come first.")
    declare(repo, "1.1")
    assert len(repo.problems(10)) == 1
    repo.replace(SPECS, 'title = "Tea"', 'title = "Tea"\nplain = true')
    assert "In former days" in repo.problems(10)[1]


def test_rule_10_counts_a_keyword_outside_of_its_mark(repo):
    repo.replace("specs/rfc7001.txt", "four minutes.", "four minutes; she MAY talk.")
    repo.replace(CATALOGUE, fingerprint("The host MUST wait four minutes."), "26:" + "0" * 12)
    mark = fingerprint("The host MUST wait four minutes;")
    repo.replace(CATALOGUE, "26:" + "0" * 12, mark)
    declare(repo, "2")
    assert len(repo.problems(10)) == 1 and repo.problems(6) == []
    repo.replace(CATALOGUE, mark, fingerprint("The host MUST wait four minutes; she MAY talk."))
    assert repo.problems(10) == []


def test_rule_10_knows_its_sections_and_is_silent_without_a_copy(repo):
    declare(repo, "1.*", "9")
    assert repo.problems(10, specs=False) == [
        f"{SPECS}:1: rule 10: complete: there is no RFC 7001 §9"
    ]


def test_what_is_not_ours_is_checked_like_the_rest_and_says_why(repo):
    text = (repo.root / CATALOGUE).read_text()
    repo.write(CATALOGUE, text + '[[not-ours]]\nsection = "1.1"\nmarks = ["1:000000000000"]\n')
    assert [p.partition(": ")[2] for p in repo.problems()] == [
        "rule 6: not-ours of RFC 7001 §1.1: no sentence 1:000000000000 in the local copy; "
        "wrong section or edition?",
        "rule 11: not-ours of RFC 7001 §1.1 without a why",
    ]
    repo.write(CATALOGUE, text + '[[not-ours]]\nsection = "1.2"\nmarks = ["x"]\nwhy = "No."\n')
    assert [p.partition(": ")[2] for p in repo.problems(1) + repo.problems(2)] == [
        "rule 1: not-ours of RFC 7001 §1.2: 'x' is no mark",
        "rule 2: there is no RFC 7001 §1.2",
    ]


def test_rule_11_wants_excuses_to_say_why(repo):
    repo.replace(CATALOGUE, 'who = "host"', 'excused = ["test"]')
    assert repo.problems(11)[0].endswith("RFC 7001 §2 [waits] is excused without a why")
    repo.replace(CATALOGUE, 'excused = ["test"]', 'excused = ["test"]\nwhy = "No clock."')
    assert repo.problems(11) == []


def test_rule_11_wants_a_covering_test_to_run_what_it_covers(repo):
    problems = repo.problems(11, evidence(repo, reached=()))
    assert problems == [
        f"{CODE}:10: rule 11: no passing test that covers RFC 7001 §2 [waits] runs this",
        f"{TEST}:7: rule 11: passed without running the code of RFC 7001 §2 [waits]",
    ]


def test_rule_11_wants_every_place_that_claims_to_be_run(repo):
    repo.replace(CODE, 'return "water"', 'return "water"  # §2 [waits]')
    assert [p.split(": ")[0] for p in repo.problems(11, evidence(repo))] == [f"{CODE}:9"]


def test_rule_11_does_not_take_evidence_about_another_text(repo):
    path = evidence(repo)
    repo.replace(CODE, '"water"', '"brew"')
    assert repo.problems(11, path) == [
        f"{CODE}:1: rule 11: changed since the evidence was taken; run the tests again"
    ]


def test_the_built_documentation_is_not_read(repo):
    repo.write("docs/_build/_sources/tea.md", "# Tea\n\nRFC 7001 §two\n")
    assert repo.problems() == []


# How many requirements may be claimed in one place: rules 16 and 17.


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
    repo.replace(TEST, SLUG, f"{slugs(count - 1)} and\n    §1.1 [slug-0].")
    text = f"{TEST}:7: rule 17: test_brew claims 9 requirements, and is no table; 0 such tests may"
    assert repo.problems(17) == ([text] if count > 8 else [])


def test_a_requirement_that_is_claimed_twice_counts_once(repo):
    repo.replace(TEST, SLUG, f"{slugs(8)}.\n\n    Covers RFC 7001 §2 {slugs(8)}.")
    assert repo.problems(17) == []


@pytest.mark.parametrize("place", ["function", "class", "method"])
def test_a_table_may_claim_more(repo, place):
    table = '@pytest.mark.parametrize("minutes", [4, 5])\n'
    text = (repo.root / TEST).read_text().replace(SLUG, f"{slugs(9)}.")
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
    repo.replace(TEST, SLUG, f"{slugs(9)}.")
    assert len(repo.problems(17)) == 1
    write = ["coverage", "--write", "--root", str(repo.root), "--specs", str(repo.root / "specs")]
    assert main(write) == 0
    assert len(repo.problems(17)) == 1, "writing raises nothing"
    path = repo.root / RATCHET
    ratchet.save(path, ratchet.load(repo.project()), tests=1)
    assert repo.problems(17) == [] and ratchet.load_tests(repo.project()) == 1
    repo.write(TEST, good)
    stale = "stale; run `python -m rfc_annotations coverage --write`"
    assert repo.problems(17) == [f"{RATCHET}:1: rule 17: {stale}"]
    assert main(write) == 0 and repo.problems(17) == []
    assert ratchet.load_tests(repo.project()) == 0
