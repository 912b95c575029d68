"""The report of `make reach` names each branch that no input takes, and nothing else.

Own design: in a process of its own, since it measures with the library that may measure this test.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[3]
PARSER = """\
from p2psip.errors import LocalError, RemoteError


def parse(text):
    if text == "never":
        raise RemoteError("never drawn")
    if not text:
        raise LocalError("a caller's bug")
    try:
        return _number(text)
    except ValueError:
        return None


def _number(text):
    number = int(text)
    for _ in range(number):
        if number > 5:
            break
    return number


def write(number):
    return str(number) if number else "none"


def parse_other(text):
    return text
"""
READINGS = """\
import toy_parser
from hypothesis import strategies as st
from support.reach.reading import Family, Reading

FAMILY = Family(
    [toy_parser], [Reading("numbers", {inputs}, toy_parser.parse) {more}], {excused}
)
"""
NEVER = 'toy_parser parse: if text == "never": -> raise RemoteError("never drawn")'
OTHER = "toy_parser parse_other: def parse_other(text):"
EXCEPT = "toy_parser parse: except ValueError:"


@pytest.fixture
def report(tmp_path):
    """Run the report of a family; give its exit code, the names that it prints, and all of it."""

    def run(inputs, excused="{}", more=""):
        (tmp_path / "toy_parser.py").write_text(PARSER)
        text = READINGS.format(inputs=inputs, excused=excused, more=more)
        (tmp_path / "toy_readings.py").write_text(text)
        path = os.pathsep.join(map(str, (tmp_path, REPO / "src", REPO / "tests")))
        done = subprocess.run(
            [sys.executable, "-m", "support.reach", "toy_readings", "--count", "30"],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
        )
        assert not done.stderr
        lines = done.stdout.splitlines()
        return done.returncode, {line[4:] for line in lines if line[:4] == "    "}, done.stdout

    return run


def test_branches_and_lines_and_parsers_that_nothing_reaches_are_told(report):
    code, names, text = report("st.sampled_from(['2', '7'])")
    assert code == 1
    assert names == {NEVER, OTHER, EXCEPT}
    assert "toy_parser.py:5 -> 6\n" in text and "toy_parser.py:11\n" in text
    assert "toy_readings: 3 unreached;" in text


def test_a_loop_that_always_ends_in_one_way_is_told(report):
    code, names, _ = report("st.sampled_from(['7', 'x', 'never'])")
    assert code == 1
    assert names == {
        OTHER,
        "toy_parser _number: for _ in range(number): -> return number",
        "toy_parser _number: if number > 5: -> for _ in range(number):",
    }


def test_all_that_is_reached_or_excused_is_exit_code_0(report):
    more = ", Reading('others', st.just('x'), toy_parser.parse_other)"
    inputs = "st.sampled_from(['2', '7', 'x'])"
    code, names, text = report(inputs, repr({NEVER: "a reason"}), more)
    assert (code, names) == (0, set()), text
    assert "toy_readings: 0 unreached, 1 excused;" in text


def test_an_excuse_for_what_is_reached_is_told(report):
    more = ", Reading('others', st.just('x'), toy_parser.parse_other)"
    excuses = {NEVER: "a reason", "toy_parser parse: gone": "a reason"}
    code, names, text = report("st.sampled_from(['2', '7', 'x', 'never'])", repr(excuses), more)
    assert (code, names) == (1, set())
    assert text.count("excused, and reached or gone: ") == 2
