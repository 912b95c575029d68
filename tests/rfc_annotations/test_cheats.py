"""Ways around the rules, each of them shut."""

import pytest

from rfc_annotations.fingerprint import fingerprint
from rfc_annotations.settings import SettingsError

CODE, TEST, README = "src/tea/pot.py", "tests/test_pot.py", "README.md"
CATALOGUE = "rfc_annotations/requirements/rfc7001.toml"
SETTINGS = "pyproject.toml"
SPEC, INDEX = "specs/rfc7001.txt", "rfc_annotations/index/rfc7001.txt"


@pytest.mark.parametrize(
    "text",
    [
        "§1.9x",  # not section 1
        "§2[waits]",
        "§2 [Waits]",
        "§2 [waits_long]",
        "§2 [waits], [stirs]",
        "§2 [waits] and [stirs]",
        "RFC 7001, §99",
        "RFC 7001: §99",
        "rfc 7001 §2",
        "RFC 7001§2",
        "RFC 7001, section 99",
        "RFC 7001 (Section 2)",
        "section 99 of RFC 7001",
        "Appendix B in RFC7001",
    ],
)
def test_rule_1_hears_of_what_was_meant_as_a_citation(repo, text):
    repo.replace(CODE, "(§2)", f"({text})")
    (problem,) = repo.problems(1)
    assert problem.startswith(f"{CODE}:7: rule 1: ")


@pytest.mark.parametrize("text", ["§2 [a link](x.md)", "§2 [waits](x.md)", "§2 [a link][x]", "§2."])
def test_rule_1_knows_a_link_from_a_claim(repo, text):
    repo.write(README, f"# Tea\n\nRFC 7001 {text} and section 2\n")
    assert repo.problems(1) == []


def test_rule_1_counts_the_requirements_of_a_file(repo):
    text = (repo.root / CATALOGUE).read_text()
    second = text.partition("\n\n")[2].replace("waits", "stirs")
    repo.write(CATALOGUE, text + second.replace("]]", "]]  # and so on"))
    (problem,) = repo.problems(1)
    assert problem.startswith(f"{CATALOGUE}:1: rule 1: ") and "[[requirement]]" in problem


def test_rules_2_and_3_read_the_docstring_of_a_constant(repo):
    repo.replace(
        CODE, "MINUTES = 4\n", 'MINUTES = 4\n"""As RFC 7001 §9 and §2 [stirs] want it."""\n'
    )
    assert repo.problems(2) == [f"{CODE}:4: rule 2: there is no RFC 7001 §9"]
    assert repo.problems(3) == [f"{CODE}:4: rule 3: RFC 7001 §2 [stirs] is not catalogued"]


def test_rule_5_wants_a_replacement_that_stands(repo):
    text = (repo.root / CATALOGUE).read_text()
    repo.replace(CODE, " [waits]", "")
    repo.replace(TEST, " [waits]", "")
    repo.write(CATALOGUE, text + 'replaced-by = "RFC 7001 §2 [waits]"\n')
    (problem,) = repo.problems(5)
    assert problem.startswith(f"{CATALOGUE}:3: rule 5: ") and "was replaced too" in problem


def test_rule_6_does_not_take_a_must_for_a_may(repo):
    repo.replace(CATALOGUE, '"MUST"', '"MAY"')
    repo.replace(SPEC, "four minutes.", "four minutes; she MAY talk.")
    said = fingerprint("The host MUST wait four minutes; she MAY talk.")
    repo.replace(CATALOGUE, fingerprint("The host MUST wait four minutes."), said)
    assert repo.problems(6) == [f"{CATALOGUE}:3: rule 6: RFC 7001 §2 [waits]: the spec says MUST"]
    text = (repo.root / CATALOGUE).read_text().partition("\n\n")[2]
    binding = text.replace("waits", "waits-indeed").replace("MAY", "MUST")
    repo.write(CATALOGUE, f'spec = "RFC 7001"\n\n{text}\n{binding}')
    assert repo.problems(6) == []  # the sentence is held to by the other one


def test_rule_6_wants_a_permission_to_be_given(repo):
    told = fingerprint("In former days, milk came first.")
    repo.replace(CATALOGUE, 'section = "2"', 'section = "1.1"')
    repo.replace(CATALOGUE, fingerprint("The host MUST wait four minutes."), told)
    repo.replace(CATALOGUE, '"MUST"', '"MAY"')
    assert repo.problems(6) == [
        f"{CATALOGUE}:3: rule 6: RFC 7001 §1.1 [waits]: the spec says neither MAY nor OPTIONAL"
    ]


def test_rule_6_wants_an_index_of_sections_that_are_there(repo):
    repo.write(INDEX, (repo.root / INDEX).read_text() + "9\tSugar\n")
    repo.replace(CODE, "(§2)", "(§9)")
    assert repo.problems(2) == []
    found = "the local copy has no RFC 7001 §9; run `python -m rfc_annotations index`"
    assert repo.problems(6) == [f"{INDEX}:1: rule 6: {found}"]


def test_rule_7_looks_into_branches_and_for_missing_folders(repo):
    cup = "def cup():\n        pass\n"
    repo.write("src/tea/cups.py", f"try:\n    {cup}except ImportError:\n    {cup}")
    assert [p.split(" ")[0] for p in repo.problems(7)] == [
        "src/tea/cups.py:2:",
        "src/tea/cups.py:5:",
    ]
    (repo.root / "src/tea/cups.py").unlink()
    repo.replace(SETTINGS, '"src/tea"', '"src/tea", "src/milk"')
    with pytest.raises(SettingsError, match="names src/milk, which is not there"):
        repo.problems(7)


def test_rule_7_holds_in_new_places_and_spares_those_that_are_named(repo):
    repo.write("src/kitchen/sink.py", "def wash():\n    pass\n")
    repo.replace(SETTINGS, '"src/tea"', '"src"')
    assert [p.split(":")[0] for p in repo.problems(7)] == ["src/kitchen/sink.py"]
    repo.replace(SETTINGS, "must_cite", 'need_not_cite = ["src/kitchen"]\nmust_cite')
    assert repo.problems(7) == []


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [("Four minutes, by the clock.", "{}", 8), ('"MUST"', '"MUST"  # {}', 6)],
)
def test_rule_8_reads_the_catalogue(repo, old, new, line):
    quote = "the pot before any water of a rolling boil is poured on the leaves"
    repo.replace(CATALOGUE, old, new.format(quote))
    assert repo.problems(8) == [
        f"{CATALOGUE}:{line}: rule 8: repeats 14 words of a spec in a row; say it in your own"
    ]


def test_rule_10_is_not_content_with_the_mark_of_a_mere_word(repo):
    repo.replace("rfc_annotations/specs.toml", 'title = "Tea"', 'title = "Tea"\ncomplete = ["1.1"]')
    text = (repo.root / CATALOGUE).read_text()
    more = f'[[not-ours]]\nsection = "1.1"\nmarks = ["{fingerprint("SHOULD")}"]\nwhy = "No."\n'
    repo.write(CATALOGUE, text + more)
    (problem,) = repo.problems(10)
    assert "Milk SHOULD come last." in problem


def test_rule_12_refuses_a_test_without_an_assertion(repo):
    repo.replace(TEST, 'assert brew(4) == "tea"', "brew(4)")
    assert repo.problems(12) == [f"{TEST}:7: rule 12: test_brew asserts nothing"]


def test_rule_12_takes_a_helper_that_asserts_and_what_pytest_expects(repo):
    repo.replace(TEST, 'assert brew(4) == "tea"', "drinkable(brew(4))")
    helper = '\n\ndef drinkable(tea):\n    assert tea == "tea"\n'
    repo.write(TEST, (repo.root / TEST).read_text() + helper)
    assert repo.problems(12) == []
    repo.replace(TEST, "drinkable(brew(4))", "with pytest.raises(TypeError):\n        brew()")
    assert repo.problems(12) == []


@pytest.mark.parametrize(
    "test",
    ["x or True", "not 0", '(x, "why")', "x == x", "True"],
)
def test_rule_12_refuses_an_assertion_that_is_always_true(repo, test):
    repo.replace(TEST, 'assert brew(4) == "tea"', f"x = brew(4)\n    assert {test}")
    first, second = repo.problems(12)
    assert first == f"{TEST}:7: rule 12: test_brew asserts nothing"
    assert second.startswith(f"{TEST}:9: rule 12: always true: assert ")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("try:", "except AssertionError:\n        pass"),
        ("try:", "except Exception:\n        pass"),
        ("try:", "except:\n        pass"),
        ("with suppress(AssertionError):", ""),
        ("with contextlib.suppress(Exception):", ""),
        ("with pytest.raises(AssertionError):", ""),
    ],
)
def test_rule_12_refuses_an_assertion_that_is_swallowed(repo, before, after):
    old = '    assert brew(4) == "tea"'
    repo.replace(TEST, old, f"    {before}\n    {old}\n    {after}")
    assert f"{TEST}:9: rule 12: an assertion whose failure is " in "".join(repo.problems(12))


def test_rule_12_lets_an_assertion_be_told_in_other_words(repo):
    old = '    assert brew(4) == "tea"'
    told = "except AssertionError as error:\n        raise ValueError from error"
    repo.replace(TEST, old, f"    try:\n    {old}\n    {told}")
    assert repo.problems(12) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def test_brew", "@pytest.mark.xfail\ndef test_brew"),
        ("def test_brew", "pytestmark = pytest.mark.xfail\n\n\ndef test_brew"),
        ("    assert", "    pytest.xfail()\n    assert"),
    ],
)
def test_rule_12_refuses_a_test_that_is_expected_to_fail(repo, old, new):
    repo.replace(TEST, old, new)
    (problem,) = repo.problems(12)
    assert problem.endswith("rule 12: test_brew is expected to fail, and proves nothing")


def test_rule_12_refuses_a_claim_in_the_docstring_of_a_module_of_tests(repo):
    repo.replace(TEST, "Tea is tea.", "Tea is tea, RFC 7001 §2 [waits].")
    assert repo.problems(12) == [
        f"{TEST}:1: rule 12: no test makes this claim: it stands outside of all of them"
    ]


def test_rule_12_refuses_a_claim_in_a_strategy(repo):
    strategy = "@st.composite\ndef minutes(draw):\n    return draw(st.integers())"
    repo.write("tests/strategies.py", f"{strategy}  # RFC 7001 §2 [waits]\n")
    (problem,) = repo.problems(12)
    assert problem.startswith("tests/strategies.py:3: rule 12: no test makes this claim")


@pytest.mark.parametrize(
    "statement", ["pass", "import time", 'log.info("tea")', "self._log.debug('tea')"]
)
def test_rule_12_refuses_a_claim_on_an_irrelevant_statement(repo, statement):
    repo.replace(CODE, '    return "tea"', f'    {statement}  # §2 [waits]\n    return "tea"')
    (problem,) = repo.problems(12)
    assert problem.startswith(f"{CODE}:10: rule 12: a claim on a ")


def test_rule_12_refuses_a_claim_of_a_function_that_does_nothing(repo):
    more = '\n\ndef wait():\n    """Wait: §2 [waits]."""\n'
    repo.write(CODE, (repo.root / CODE).read_text() + more)
    assert repo.problems(12) == [
        f"{CODE}:14: rule 12: a claim of a function that does nothing: wait"
    ]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('    return "tea"', '    return "tea"\n    return "milk"', "nothing gets here"),
        ('    return "tea"', '    if False:\n        return "tea"', "its condition is never true"),
    ],
)
def test_rule_12_refuses_a_claim_in_dead_code(repo, old, new, why):
    repo.replace(CODE, old, new)
    (problem,) = repo.problems(12)
    assert problem.endswith(f"rule 12: a claim in dead code: {why}")


def test_rule_13_refuses_a_reason_that_is_none(repo):
    repo.replace(CATALOGUE, 'who = "host"', 'excused = ["test"]\nwhy = "x"')
    assert repo.problems(13) == [f"{CATALOGUE}:3: rule 13: RFC 7001 §2 [waits]: 'x' is no reason"]


@pytest.mark.parametrize("reason", ["no", "no.", "the same. And so on, and so on"])
def test_rule_1_refuses_a_departure_without_a_reason(repo, reason):
    repo.replace(CODE, "# §2 [waits]", f"# Departs from RFC 7001 §2 [waits]: {reason}")
    (problem,) = repo.problems(1)
    assert problem.endswith("rule 1: 'Departs from' gives no reason after a colon")


def test_rule_13_refuses_an_unrelated_replacement(repo):
    new = '[[requirement]]\nsection = "1"\nslug = "warm"\nlevel = "MUST"\nsummary = "Warm the pot."'
    mark = fingerprint(
        "The host MUST warm the pot before any water of a rolling boil is poured on the leaves"
        " that were measured out for the guests in the room."
    )
    replaced = 'replaced-by = "RFC 7001 §1 [warm]"'
    text = (repo.root / CATALOGUE).read_text()
    repo.write(CATALOGUE, f'{text}{replaced}\n\n{new}\nmark = "{mark}"\n')
    assert repo.problems(13) == [
        f"{CATALOGUE}:3: rule 13: RFC 7001 §2 [waits]: its replacement RFC 7001 §1 [warm]"
        " shares no word with it"
    ]
    repo.replace(CATALOGUE, "Warm the pot.", "Four minutes warm.")
    assert repo.problems(13) == []


@pytest.mark.parametrize("level", ["RECOMMENDED", "SHOULD"])
def test_rule_13_refuses_a_must_that_is_recorded_as_less(repo, level):
    repo.replace(CATALOGUE, '"MUST"', f'"{level}"')
    assert repo.problems(13) == [
        f"{CATALOGUE}:3: rule 13: RFC 7001 §2 [waits]: recorded as {level}, and the spec says MUST"
    ]


def test_rule_13_wants_a_spec_in_small_letters_to_be_read_so(repo):
    text = (repo.root / SPEC).read_text()
    repo.write(SPEC, text.replace("MUST", "must").replace("SHOULD", "should"))
    repo.replace(
        CATALOGUE,
        fingerprint("The host MUST wait four minutes."),
        fingerprint("The host must wait four minutes."),
    )
    specs = "rfc_annotations/specs.toml"
    assert repo.problems(13) == [
        f"{specs}:1: rule 13: RFC 7001 commands in small letters only: declare it plain"
    ]
    repo.replace(specs, 'title = "Tea"', 'title = "Tea"\nplain = true')
    assert repo.problems(13) == []


def test_rule_13_refuses_to_decline_all_of_a_section_that_the_code_cites(repo):
    repo.replace(SPEC, "come last.", "come last.  It MUST be fresh.")
    marks = [fingerprint("Milk SHOULD come last."), fingerprint("It MUST be fresh.")]
    listed = ", ".join(f'"{mark}"' for mark in marks)
    more = f'[[not-ours]]\nsection = "1.1"\nmarks = [{listed}]\nwhy = "Nobody here takes milk."\n'
    repo.write(CATALOGUE, (repo.root / CATALOGUE).read_text() + more)
    assert repo.problems(13) == []
    repo.replace(CODE, "(§2)", "(§1.1)")
    assert repo.problems(13) == [
        f"{CATALOGUE}:10: rule 13: all of RFC 7001 §1.1 is declined, and {CODE}:7 cites it"
    ]


def two_commands(repo):
    """Let the sentence of [waits] give a second command; return the mark of the whole."""
    said = "The host MUST wait four minutes, and MUST NOT talk."
    repo.replace(SPEC, "The host MUST wait four minutes.", said)
    repo.replace(CATALOGUE, fingerprint("The host MUST wait four minutes."), fingerprint(said))
    return fingerprint(said)


def test_rule_13_refuses_one_slug_for_two_commands(repo):
    mark = two_commands(repo)
    assert repo.problems(13) == [
        f"{CATALOGUE}:3: rule 13: RFC 7001 §2 [waits]: stands for 2 commands of {mark};"
        " split it, or say why with as-one"
    ]
    text = (repo.root / CATALOGUE).read_text()
    repo.write(CATALOGUE, f'{text}as-one = "Nobody talks alone."\n')
    assert repo.problems(13) == []
    repo.write(CATALOGUE, f'{text}as-one = "x"\n')
    assert repo.problems(13) == [f"{CATALOGUE}:3: rule 13: RFC 7001 §2 [waits]: 'x' is no reason"]
    second = text.partition("\n\n")[2].replace("waits", "is-silent")
    repo.write(CATALOGUE, f"{text}\n{second}")
    assert repo.problems(13) == []


def test_rule_13_does_not_count_a_permission_as_a_command(repo):
    mark = two_commands(repo)
    repo.replace(SPEC, "MUST NOT talk", "MAY talk")
    said = fingerprint("The host MUST wait four minutes, and MAY talk.")
    repo.replace(CATALOGUE, mark, said)
    assert repo.problems(13) == []


@pytest.mark.parametrize(
    ("sentence", "half", "left_out"),
    [
        ("The host MUST wait, unless it rains.", "The host MUST wait,", "unless it rains."),
        ("If it rains, the host MUST wait.", "the host MUST wait.", "If it rains,"),
    ],
)
def test_rule_13_refuses_a_mark_of_half_a_sentence(repo, sentence, half, left_out):
    repo.replace(SPEC, "The host MUST wait four minutes.", sentence)
    repo.replace(CATALOGUE, fingerprint("The host MUST wait four minutes."), fingerprint(half))
    assert repo.problems(6) == []
    assert repo.problems(13) == [
        f"{CATALOGUE}:3: rule 13: RFC 7001 §2 [waits]: its mark leaves out {left_out!r}"
        f" of the sentence {fingerprint(sentence)}"
    ]
    repo.replace(CATALOGUE, fingerprint(half), fingerprint(sentence))
    assert repo.problems(13) == []
