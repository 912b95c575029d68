"""The plugin sees what tests did, and the checker believes nothing else."""

import builtins
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rfc_annotations.probes import FLAGS, Probes
from rfc_annotations.pytest_plugin import Watch

TOP = Path(__file__).resolve().parents[2]
EVIDENCE = "evidence.json"
POT = '''\
"""Tea.  Implements RFC 7001 §2."""

TABLE = {"tea": 4}  # §2 [waits]


def brew(minutes):
    """Brew."""
    match minutes:
        case 0:  # §2 [waits]
            return "water"
        case _:
            return "tea"


class Kettle:
    """A kettle, §2 [waits]."""

    def boil(self):
        """Boil, as §2 says."""
        return [brew(0)]
'''
TESTS = '''\
import threading

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, rule

from tea.pot import Kettle, brew


def test_all():
    """Covers RFC 7001 §2 [waits]."""
    assert Kettle().boil() == ["water"]


@pytest.mark.parametrize("minutes", [0, 4])
def test_some(minutes):
    """Covers RFC 7001 §2 [waits]."""
    assert brew(minutes)


def test_nothing():
    """Covers RFC 7001 §2 [waits]."""


def test_silent():
    assert brew(0)


def test_thread():
    """Covers RFC 7001 §2 [waits]."""
    thread = threading.Thread(target=brew, args=(0,))
    thread.start()
    thread.join()


@pytest.fixture
def broken():
    raise RuntimeError


def test_broken(broken):
    """Covers RFC 7001 §2 [waits]."""


def test_skipped():
    """Covers RFC 7001 §2 [waits]."""
    pytest.skip("no water")


class Machine(RuleBasedStateMachine):
    @rule()
    def step(self):
        """Covers RFC 7001 §2 [waits]."""
        assert brew(4)


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=1, stateful_step_count=1)
'''


@pytest.fixture
def session(repo):
    repo.write("src/tea/pot.py", POT)
    repo.write("tests/test_pot.py", TESTS)
    repo.write("tests/conftest.py", "")
    repo.write("tests/more/conftest.py", "")
    repo.write("tests/more/test_more.py", "def test_more():\n    pass\n")
    repo.update()
    run_tests(repo.root)
    return repo


def run_tests(root):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "rfc_annotations.pytest_plugin", "--annotations", EVIDENCE]
    paths = os.pathsep.join([str(TOP), str(TOP / "src")])
    env = {**os.environ, "PYTHONPATH": paths}
    subprocess.run(command, cwd=root, env=env, check=False, timeout=60)


def test_outcomes_and_lines_are_taken_down_test_by_test(session):
    document = json.loads((session.root / "evidence.json").read_text())
    tests = {
        name.partition("::")[2]: (entry["outcome"], [place[-2:] for place in entry["reached"]])
        for name, entry in document["tests"].items()
    }
    table, case, kettle = ":3", ":9", "16"
    assert tests == {
        "test_all": ("passed", [table, case, kettle]),
        "test_some[0]": ("passed", [table, case]),
        "test_some[4]": ("passed", [table]),  # it passed by the case, and did not take it
        "test_nothing": ("passed", []),
        "test_silent": ("passed", []),  # makes no claim, so nobody looks
        "test_thread": ("passed", [table, case]),
        "test_broken": ("failed", []),
        "test_skipped": ("skipped", []),
        "TestMachine::runTest": ("passed", [table]),
        "test_more": ("passed", []),
    }
    problems = session.problems(11, session.root / "evidence.json")
    assert problems == [
        "tests/test_pot.py:22: rule 11: passed without running the code of RFC 7001 §2 [waits]"
    ]


def test_a_claim_without_lines_to_run_is_not_taken_for_a_changed_file(repo, session):
    repo.write("src/tea/cup.py", "SIZE = 3  # RFC 7001 §2 [waits]\n")
    session.update()
    run_tests(session.root)
    assert "changed since" not in "".join(session.problems(evidence=session.root / EVIDENCE))
    repo.write("src/tea/cup.py", "SIZE = 4  # RFC 7001 §2 [waits]\n")
    assert "changed since" in "".join(session.problems(evidence=session.root / EVIDENCE))


def test_a_test_that_passed_against_expectation_proves_nothing(repo, session):
    body = '    """Covers RFC 7001 §2 [waits]."""\n    assert brew(0)\n'
    text = (
        f"import pytest\n\nfrom tea.pot import brew\n\n\n@pytest.mark.xfail\ndef test_x():\n{body}"
    )
    repo.write("tests/test_pot.py", text)
    session.update()
    run_tests(session.root)
    assert "no test of it passed (xpassed)" in session.problems(4, session.root / EVIDENCE)[0]


def test_what_one_worker_has_compiled_tells_the_next_what_it_reaches(repo, tmp_path, monkeypatch):
    monkeypatch.setattr(builtins, FLAGS, bytearray(), raising=False)  # those of this run
    path, project = repo.root / "src/tea/pot.py", repo.project()
    places = {(each.file, each.line): None for each in Watch.of(project).claimed}
    one, other = (Probes(project.root, Watch.of(project).claimed, tmp_path) for _ in range(2))
    one.code(path.read_bytes(), str(path))
    monkeypatch.setattr(Probes, "_compiled", None)
    exec(other.code(path.read_bytes(), str(path)), module := {})
    module["brew"](3)
    assert list(other.reached(places)) == []
    module["brew"](4)
    assert list(other.reached(places)) == list(places) != []
