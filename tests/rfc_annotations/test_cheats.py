"""Ways around the rules, each of them shut."""

from textwrap import indent

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


def of_a_test(repo, body, above=""):
    """What rule 12 says of a test with another body, and something before it."""
    repo.replace(TEST, '    assert brew(4) == "tea"\n', indent(body, "    ") + "\n")
    repo.replace(TEST, "def test_brew", f"{above}def test_brew")
    return "".join(problem.partition(": rule 12: ")[2] for problem in repo.problems(12))


GOOD = 'assert brew(4) == "tea"'
DOUBTFUL = "test_brew asserts nothing but "
LOOP, CALLBACK = f"{DOUBTFUL}in a loop that may", f"{DOUBTFUL}in a function that somebody"
CALM = f"with calm():\n    {GOOD}"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("tea = brew(4)\nassert tea[0] == tea[0]", "always true: assert tea[0]"),
        ("assert len(brew(4)) >= 0", "always true"),
        ("assert -1 < len(brew(4))", "always true"),
        ("tea = brew(4)\nassert tea or not tea", "always true"),
        ("assert (tea for tea in brew(4))", "always true"),
        ("assert test_brew", "always true"),
        ("assert re.match('.*', brew(4))", "always true"),
        ("self.assertTrue(brew or True)", "always true"),
        ("with pytest.raises(TypeError, match='.*'):\n    brew()", "a pattern that matches any"),
        ("with pytest.raises(Exception):\n    brew()", f"{DOUBTFUL}that anything at all"),
        ("assert isinstance(brew(4), str)", f"{DOUBTFUL}a type"),
        ("assert brew(4) is not None", f"{DOUBTFUL}that there is something"),
        ("assert brew(4) == brew(4)", f"{DOUBTFUL}that the tested code gives what it gives"),
        ("tea = brew(4)\nassert brew(4) == tea", f"{DOUBTFUL}that the tested code gives"),
        ("assert all(cup == 'tea' for cup in brew(4).split())", f"{DOUBTFUL}what may be of noth"),
        (f"if brew(4) == 'milk':\n    {GOOD}", f"{DOUBTFUL}under a condition"),
        (f"match brew(4):\n    case 'milk':\n        {GOOD}", f"{DOUBTFUL}under a condition"),
        (f"for cup in []:\n    {GOOD}", LOOP),
        (f"cups = brew(4).split()\nfor cup in cups:\n    {GOOD}", LOOP),
        (f"while brew(4) == 'milk':\n    {GOOD}", LOOP),
        (f"return\n{GOOD}", "an assertion that nothing reaches"),
        (f"if brew(4) != 'tea':\n    return\n{GOOD}", f"{DOUBTFUL}behind a way out"),
        (f"try:\n    brew(4)\nexcept ValueError:\n    return\n{GOOD}", f"{DOUBTFUL}behind a way"),
        (f"try:\n    {GOOD}\nexcept ValueError:\n    pass", f"{DOUBTFUL}in a try whose except"),
        (f"try:\n    {GOOD}\nexcept* AssertionError:\n    pass", "swallowed by except"),
        (f"try:\n    {GOOD}\nfinally:\n    return", "swallowed by finally"),
        (f"def check():\n    {GOOD}", CALLBACK),
        (f"def check():\n    {GOOD}\nThread(target=check).start()", CALLBACK),
        (f"async def check():\n    {GOOD}\ncheck()", CALLBACK),
        (f"class Server:\n    def on_tea(self):\n        {GOOD}", CALLBACK),
        (f"stack.enter_context(suppress(AssertionError))\n{GOOD}", "a context that takes"),
    ],
)
def test_rule_12_refuses_a_test_that_may_notice_nothing(repo, body, said):
    assert said in of_a_test(repo, body)


@pytest.mark.parametrize(
    "body",
    [
        "tea = brew(4)\nassert isinstance(tea, str)\nassert tea == 'tea'",
        "tea = brew(4)\nassert brew(5) == tea",
        "assert len(brew(4)) >= 3 and brew(4) in ('tea', 'milk')",
        "assert re.match('tea$', brew(4))",
        "with pytest.raises(TypeError, match='minutes'):\n    brew()",
        "assert all(brew(minutes) == 'tea' for minutes in range(4, 9))",
        f"for minutes in (4, 5):\n    {GOOD}",
        f"cups = ['red', 'blue']\nfor at, cup in enumerate(cups):\n    {GOOD}",
        f"if brew(4) == 'milk':\n    assert brew(3) == 'milk'\nelse:\n    {GOOD}",
        "if brew(4) != 'tea':\n    pytest.fail('no tea')",
        f"if brew(4) != 'tea':\n    assert brew(3) == 'milk'\n    return\n{GOOD}",
        f"for cup in (1, 2):\n    if cup > 1:\n        break\n{GOOD}",
        "try:\n    brew()\nexcept TypeError as error:\n    assert 'minutes' in str(error)\n"
        "else:\n    pytest.fail('it took that')",
        f"try:\n    {GOOD}\nfinally:\n    brew(3)",
        f"def check():\n    {GOOD}\ncheck()",
        f"def check():\n    {GOOD}\npool.submit(check).result()",
        f"async def check():\n    {GOOD}\nasyncio.run(check())",
        f"match brew(4):\n    case 'milk':\n        pytest.fail('')\n    case _:\n        {GOOD}",
    ],
)
def test_rule_12_takes_a_test_that_would_notice(repo, body):
    assert of_a_test(repo, body) == ""


A_CONTEXT = "@contextmanager\ndef calm():\n    "
A_DECORATOR = "def calm(test):\n    def run():\n        {}\n    return run\n\n\n@calm"


@pytest.mark.parametrize(
    ("above", "body"),
    [
        ("class calm:\n    def __exit__(self, *error):\n        return True", CALM),
        (f"{A_CONTEXT}try:\n        yield\n    except Exception:\n        pass", CALM),
        (f"{A_CONTEXT}with suppress(Exception):\n        yield", CALM),
        (
            A_DECORATOR.format("try:\n            test()\n        finally:\n            return"),
            GOOD,
        ),
        ("shaky = pytest.mark.xfail\n\n\n@shaky", GOOD),
        ("@pytest.mark.parametrize('x', [])", GOOD),
        ("def test_brew():\n    brew(3)\n\n", GOOD),
    ],
)
def test_rule_12_refuses_what_takes_a_failure_away(repo, above, body):
    assert of_a_test(repo, body, f"{above}\n")


@pytest.mark.parametrize(
    ("above", "body"),
    [
        ("class calm:\n    def __exit__(self, *error):\n        self.close()", CALM),
        (f"{A_CONTEXT}try:\n        yield\n    finally:\n        brew(3)", CALM),
        (A_DECORATOR.format("return test()"), GOOD),
        ("@pytest.mark.parametrize('x', [1])", GOOD),
    ],
)
def test_rule_12_takes_what_leaves_a_failure_alone(repo, above, body):
    assert of_a_test(repo, body, f"{above}\n") == ""


def test_rule_12_does_not_take_the_tested_code_for_a_helper_of_its_name(repo):
    repo.write("tests/other.py", "def brew():\n    assert 1 == 2\n")
    repo.replace(TEST, 'assert brew(4) == "tea"', "brew(4)")
    assert f"{TEST}:7: rule 12: test_brew asserts nothing" in repo.problems(12)
    repo.replace(TEST, "from tea.pot", "from other")
    assert repo.problems(12) == []


def of_a_line(repo, lines, below=""):
    """What rule 12 says of other lines at the end of `brew`, and something below it."""
    repo.replace(CODE, '    return "tea"  # §2 [waits]\n', indent(lines, "    ") + "\n" + below)
    return "".join(problem.partition(": rule 12: ")[2] for problem in repo.problems(12))


CLAIM, TEA = "# §2 [waits]", 'return "tea"'
UNREAD, UNCALLED = "on a value that no code reads", "of a function that no code calls"
EMPTY = "a claim of a function that does nothing: wait"
WAIT = '\n\ndef wait():\n    """Wait: §2 [waits]."""\n    '


@pytest.mark.parametrize(
    ("lines", "below", "said"),
    [
        (f"if TYPE_CHECKING:\n    {TEA}  {CLAIM}\n{TEA}", "", "its condition is never true"),
        (f"if DEBUG:\n    minutes += 4  {CLAIM}\n{TEA}", "\n\nDEBUG = False", "never true"),
        (f"if True:\n    {TEA}\nelse:\n    {TEA}  {CLAIM}", "", "its condition is never false"),
        (f"for cup in ():\n    minutes += 1  {CLAIM}\n{TEA}", "", "the loop has no turn"),
        (f'return "tea" if True else "milk"  {CLAIM}', "", "a choice that is always the same"),
        (f"return minutes > 4 and False and 1  {CLAIM}", "", "a choice that is always the same"),
        (f"gap = 4 * minutes  {CLAIM}\n{TEA}", "", f"{UNREAD}: gap"),
        (f"gap = lambda: minutes  {CLAIM}\n{TEA}", "", f"{UNREAD}: gap"),
        (TEA, f"\n\nGAP = 4  {CLAIM}", f"{UNREAD}: GAP"),
        (f"def wait():\n    return 4  {CLAIM}\n{TEA}", "", f"{UNCALLED}: wait"),
        (TEA, f"\n\ndef _wait():\n    return 4  {CLAIM}", f"{UNCALLED}: _wait"),
        (f"try:\n    minutes += 1  {CLAIM}\nexcept Exception:\n    pass\n{TEA}", "", "any failure"),
        (f"with suppress(Exception):\n    minutes += 1  {CLAIM}\n{TEA}", "", "any failure"),
        (f"minutes >= 4  {CLAIM}\n{TEA}", "", "a statement that does nothing"),
        (f"minutes = minutes  {CLAIM}\n{TEA}", "", "that does nothing"),
        (f"{CLAIM}\npass\n{TEA}", "", "a statement that does nothing"),
        (TEA, f"{WAIT}return", EMPTY),
        (TEA, f"{WAIT}raise NotImplementedError", EMPTY),
    ],
)
def test_rule_12_refuses_a_claim_on_a_line_without_effect(repo, lines, below, said):
    assert said in of_a_line(repo, lines, below)


@pytest.mark.parametrize(
    ("lines", "below"),
    [
        (f"if DEBUG:\n    minutes += 4  {CLAIM}\n{TEA}", "\n\nDEBUG = bool(os.environ)"),
        (f"global DEBUG\nif DEBUG:\n    minutes += 4  {CLAIM}\n{TEA}", "\n\nDEBUG = False"),
        (f'return "tea" if minutes else "milk"  {CLAIM}', ""),
        (f'return minutes or "tea"  {CLAIM}', ""),
        (f"gap = 4 * minutes  {CLAIM}\nreturn gap", ""),
        (f"gap = lambda: minutes  {CLAIM}\nreturn gap()", ""),
        (f"_gap = minutes.pop()  {CLAIM}\n{TEA}", ""),
        ("return GAP", f"\n\nGAP = 4  {CLAIM}"),
        (f"def wait():\n    return 4  {CLAIM}\nreturn wait()", ""),
        ("return _wait()", f"\n\ndef _wait():\n    return 4  {CLAIM}"),
        (f"try:\n    minutes += 1  {CLAIM}\nexcept TypeError:\n    pass\n{TEA}", ""),
        (f"try:\n    minutes += 1  {CLAIM}\nexcept Exception:\n    return 0\n{TEA}", ""),
        (f"await minutes  {CLAIM}\n{TEA}", ""),
        (TEA, f"{WAIT}return None"),
    ],
)
def test_rule_12_takes_a_claim_on_a_line_with_an_effect(repo, lines, below):
    assert of_a_line(repo, lines, below) == ""


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


def test_rule_13_refuses_a_must_that_is_recorded_as_a_fact(repo):
    repo.replace(CATALOGUE, '"MUST"', '"FACT"')
    assert repo.problems(13) == [
        f"{CATALOGUE}:3: rule 13: RFC 7001 §2 [waits]: recorded as FACT, and the spec says MUST"
    ]
    repo.replace(SPEC, "The host MUST wait four minutes.", "To wait takes four minutes.")
    said = fingerprint("To wait takes four minutes.")
    repo.replace(CATALOGUE, fingerprint("The host MUST wait four minutes."), said)
    assert repo.problems(13) == []


def test_rule_13_refuses_a_role_that_nobody_knows(repo):
    repo.replace(CATALOGUE, '"host"', '"butler"')
    assert repo.problems(13) == [
        f"{CATALOGUE}:3: rule 13: RFC 7001 §2 [waits]: RFC 7001 has no 'butler', as who says"
    ]
    for known in ("guests", "guest", "both", ""):
        repo.replace(CATALOGUE, 'who = "', f'who = "{known}"  # ')
        assert repo.problems(13) == []
        repo.replace(CATALOGUE, f'"{known}"  # ', '"')


@pytest.mark.parametrize(
    ("second", "is_refused"),
    [("Guests MUST NOT whistle.", True), ("Four whole minutes MUST be spent.", False)],
)
def test_rule_13_refuses_two_sentences_that_command_different_things(repo, second, is_refused):
    repo.replace(SPEC, "four minutes.", f"four minutes.  {second}")
    text = (repo.root / CATALOGUE).read_text()
    repo.write(CATALOGUE, f'{text}also = ["{fingerprint(second)}"]\n')
    told = "its marks are of sentences that share no words; split it, or say why with as-one"
    refused = [f"{CATALOGUE}:3: rule 13: RFC 7001 §2 [waits]: {told}"]
    assert repo.problems(13) == (refused if is_refused else [])
    repo.write(CATALOGUE, f'{(repo.root / CATALOGUE).read_text()}as-one = "Waiting is silent."\n')
    assert repo.problems(13) == []


def test_rule_13_refuses_the_mark_of_a_lead_in_alone(repo):
    said, item = "The host MUST do two things:", "1. Wait four minutes."
    repo.replace(SPEC, "The host MUST wait four minutes.", f"{said}\n\n   {item}\n\n   2. Pour.")
    repo.replace(CATALOGUE, fingerprint("The host MUST wait four minutes."), fingerprint(said))
    told = f"its mark leads in a list that no mark is of: {item}..."
    assert repo.problems(13) == [f"{CATALOGUE}:3: rule 13: RFC 7001 §2 [waits]: {told}"]
    text = (repo.root / CATALOGUE).read_text()
    repo.write(CATALOGUE, f'{text}also = ["{fingerprint(item)}"]\n')
    assert repo.problems(13) == []
