"""Mutants are tried on a copy, by the tests that the evidence names, and survivors are told."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.peers.nursery import finished

from rfc_annotations import mutants, ratchet, results
from rfc_annotations.evidence import load

TOP = Path(__file__).resolve().parents[2]
CODE, TEST = "src/tea/pot.py", "tests/test_pot.py"
SURVIVOR = f"{CODE}:10: survived: return \"tea\"  ->  return 'teax'"
ACCEPTED = """\
[[accepted]]
file = "src/tea/pot.py"
was = 'return "tea"'
now = "return 'teax'"
why = "Nobody reads the label."
"""


@pytest.fixture
def env(repo, monkeypatch):
    """The environment and the folder of all programs of a test."""
    monkeypatch.chdir(repo.root)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TOP), str(repo.root / "src")]))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def run(repo, env):
    def module(*arguments):
        return finished([sys.executable, "-m", *arguments], 100)

    def run(*arguments, evidence=True):
        plugin = ["-p", "rfc_annotations.pytest_plugin", "--annotations", "evidence.json"]
        if evidence:
            module("pytest", "-q", "-p", "no:cacheprovider", *plugin)
        before = files(repo.root)
        done = module("rfc_annotations", "mutants", "--evidence", "evidence.json", *arguments)
        assert files(repo.root) == before  # the work tree is left alone
        return done.returncode, done.stdout.splitlines(), done.stderr

    return run


def files(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def summary(killed, accepted, survived, left=0, slow=0):
    return (
        f"{killed + accepted + survived + slow} mutants tried: {killed} killed,"
        f" {accepted} accepted, {survived} survived, {slow} too slow to tell; {left} not tried"
    )


def test_tests_that_look_closely_let_no_mutant_live(run, repo):
    assert run() == (0, [summary(2, 0, 0)], "")
    assert run("--only", "src/kitchen", evidence=False) == (0, [summary(0, 0, 0)], "")
    assert run("--seconds", "-1", evidence=False) == (0, [summary(0, 0, 0, 2)], "")
    repo.write("rfc_annotations/mutants.toml", ACCEPTED)
    code, lines, _ = run("--only", str(repo.root / CODE), evidence=False)
    assert (code, lines[-1]) == (0, summary(2, 0, 0))
    assert lines[0].startswith("accepted, and killed now: src/tea/pot.py: return")


def test_a_survivor_is_told_unless_it_is_accepted_with_a_reason(run, repo):
    repo.replace(TEST, '== "tea"', "is not None")
    assert run() == (1, [SURVIVOR, summary(1, 0, 1)], "")
    repo.write("rfc_annotations/mutants.toml", ACCEPTED)
    assert run(evidence=False) == (0, [summary(1, 1, 0)], "")
    repo.write("rfc_annotations/mutants.toml", ACCEPTED.replace("why =", "because ="))
    code, _, complaint = run(evidence=False)
    assert code == 2 and "accepts without a why" in complaint


def test_a_sample_is_the_same_for_the_same_seed(run, repo):
    claim = "def fill(cups):\n    return cups  # RFC 7001 §2 [waits]\n"
    repo.write("src/tea/cup.py", f'"""Cups."""\n\n\n{claim}')
    code, (last,), _ = run("--sample", "1", "--seed", "3")
    assert (code, last) == (0, summary(1, 0, 0))
    proof = load(repo.root / "evidence.json")

    def draws():
        return {seed: mutants.draw(repo.project(), proof, [], 9, seed) for seed in range(20)}

    drawn = draws()
    assert {mutant.now for planned in drawn.values() for mutant in planned} == {
        "return 'teax'",
        "pass",
    }
    assert {len(planned) for planned in drawn.values()} == {1}  # there is but one claim
    (repo.root / "src/tea/cup.py").unlink()
    assert draws() == drawn  # whatever other claims there are


def test_scores_that_are_kept_lower_the_number_of_claims_without_one(run, repo, env):
    assert run()[0] == 0  # the evidence
    held = repo.root / "rfc_annotations" / ratchet.NAME
    ratchet.save(held, ratchet.load(repo.project()), 3)
    command = [sys.executable, "-m", "rfc_annotations", "mutants", "--evidence", "evidence.json"]
    kept = ["--results", str(held.with_name(results.NAME))]
    assert finished([*command, *kept], 100).returncode == 0
    assert ratchet.load_claims(repo.project()) == 0
    assert repo.problems(15) == []


def test_only_the_tests_that_claim_the_line_are_run(run, repo):
    repo.replace(TEST, '== "tea"', "is not None")
    more = '\n\ndef test_unclaimed():\n    assert brew(4) == "tea"\n'
    repo.write(TEST, (repo.root / TEST).read_text() + more)
    assert run()[1] == [SURVIVOR, summary(1, 0, 1)]


def test_what_no_test_can_run_is_tried_by_those_that_claim_the_same(run, repo):
    members = "    GREEN = 1\n    BLACK = 2\n"
    leaf = f'class Leaf(IntEnum):\n    """RFC 7001 §2 [waits]"""\n\n{members}'
    repo.write("src/tea/leaf.py", f'"""Leaves."""\n\nfrom enum import IntEnum\n\n\n{leaf}')
    body = '    """Covers RFC 7001 §2 [waits]."""\n    assert Leaf.GREEN == 1\n'
    repo.write(
        "tests/test_leaf.py",
        f'"""Leaves."""\n\nfrom tea.leaf import Leaf\n\n\ndef test_leaves():\n{body}',
    )
    survivor = "src/tea/leaf.py:10: survived: BLACK = 2  ->  BLACK = 3"
    told = run("--only", "src/tea/leaf.py")
    assert told == (1, [survivor, summary(1, 0, 1)], "")


def test_a_mutant_that_hangs_is_stopped_and_counted_apart(run, repo):
    repo.replace(CODE, "MINUTES = 4", "from time import sleep\n\nMINUTES = 4")
    loop = "    while minutes < 9:\n        minutes += 1  # §2 [waits]\n        sleep(0.01)\n"
    repo.replace(CODE, "    if minutes", f"{loop}    if minutes")
    survivor = f"{CODE}:11: survived: minutes += 1  ->  minutes += 2"
    slow = f"{CODE}:11: too slow to tell: minutes += 1  ->  pass"
    assert run() == (1, [survivor, slow, summary(2, 0, 1, slow=1)], "")


def test_an_interruption_ends_the_tests_and_says_nothing(run, repo, env, tmp_path):
    began = tmp_path / "began"
    wait = f"    if 'mutants-' in __file__:\n        open({str(began)!r}, 'w')\n        sleep(90)\n"
    repo.replace(TEST, "    assert", f"{wait}    assert")
    repo.replace(TEST, "from tea", "from time import sleep\n\nfrom tea")
    assert run("--seconds", "-1")[0] == 0  # which takes the evidence
    command = [sys.executable, "-m", "rfc_annotations", "mutants", "--evidence", "evidence.json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    end = time.monotonic() + 60
    while not began.exists() and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) == (b"", None)
    assert process.returncode == 130


def test_without_fresh_evidence_nothing_is_said(run, repo):
    assert run(evidence=False)[0] == 2
    run()
    for file in (CODE, TEST):
        text = (repo.root / file).read_text()
        repo.write(file, f"{text}\n")
        code, lines, complaint = run(evidence=False)
        assert (code, lines) == (2, []) and f"{file} changed since" in complaint
        repo.write(file, text)


def test_tests_that_fail_by_themselves_prove_nothing(run, repo):
    repo.replace(TEST, "    assert", "    assert not __file__.count('mutants-')\n    assert")
    assert run()[2] == f"the tests of {CODE} fail without any mutant\n"


def test_tests_that_import_another_copy_prove_nothing(run, repo):
    repo.replace(
        TEST, "from tea", f"import sys\n\nsys.path[:0] = [{str(repo.root)!r} + '/src']\nfrom tea"
    )
    assert run()[2] == f"the tests of {CODE} run another copy of it\n"


@pytest.mark.parametrize("docstring", [False, True])
def test_a_claim_on_what_does_something_else_is_found_out(run, repo, docstring):
    comment, about = ("", ": §2 [waits]") if docstring else ("  # §2 [waits]", "")
    more = f'\n\ndef rinse(cups):\n    """Rinse{about}."""\n    return cups + 1{comment}\n'
    repo.write(CODE, (repo.root / CODE).read_text() + more)
    repo.replace(TEST, "import brew", "import brew, rinse")
    repo.replace(TEST, "    assert", "    rinse(2)\n    assert")
    code, told, _ = run()
    assert code == 1 and f"{CODE}:15: survived: return cups + 1  ->  return (cups - 1)" in told
