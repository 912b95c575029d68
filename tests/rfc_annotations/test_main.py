"""The command line: what it prints, and what it exits with."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rfc_annotations.__main__ import main

TOP = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(repo, capsys):
    def run(command, *arguments):
        options = ["--root", str(repo.root), "--specs", str(repo.root / "specs")]
        code = main([command, *options, *arguments])
        return code, capsys.readouterr().out.splitlines()

    return run


def test_check_is_quiet_about_a_sound_repository(run):
    code, lines = run("check")
    assert code == 0
    assert lines[-1] == "1 requirements, 0 of them open; 5 citations, 0 problems"
    assert "taken at their word" in lines[0]


def test_check_prints_one_line_per_problem(run, repo):
    repo.replace("src/tea/pot.py", "(§2)", "(§3)")
    code, lines = run("check")
    assert code == 1
    assert lines[0] == "src/tea/pot.py:7: rule 2: there is no RFC 7001 §3"


def test_check_says_what_it_could_not_verify(repo, capsys, monkeypatch):
    monkeypatch.delenv("RFC_SPECS", raising=False)
    assert main(["check", "--root", str(repo.root)]) == 0
    assert "unverified for want of local copies: RFC 7001" in capsys.readouterr().out


def test_a_wrong_folder_of_specs_is_not_taken_for_none(repo, monkeypatch):
    monkeypatch.setenv("RFC_SPECS", str(repo.root / "nowhere"))
    assert main(["check", "--root", str(repo.root)]) == 2


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["fly"], "invalid choice: 'fly'"),
        (["check", "--fly"], "--fly"),
        (["check", "--evidence", "/absent"], "/absent: No such file"),
        (["check", "--evidence", __file__], "is not what `pytest --annotations` wrote"),
        (["show", "tea"], "cannot read 'tea'"),
        (["explain", "src/tea/nope.py"], "there is no file src/tea/nope.py"),
        (["explain", "nope.py:3"], "there is no file nope.py"),
        (["mark", "RFC 7001 §2", "The host"], "no local copy of RFC 7001"),
        (["check", "--root", "/"], "no rfc_annotations folder"),
    ],
)
def test_what_is_asked_for_wrongly_is_one_line_and_exit_code_2(
    words, what, repo, capsys, monkeypatch
):
    monkeypatch.delenv("RFC_SPECS", raising=False)
    monkeypatch.chdir(repo.root)
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert what in err and err.startswith("rfc_annotations: ") and err.count("\n") == 1 and not out


def test_update_writes_the_snapshot(run, repo):
    (repo.root / "rfc_annotations/coverage.txt").unlink()
    assert run("check")[0] == 1
    assert run("check", "--update")[0] == 0
    text = (repo.root / "rfc_annotations/coverage.txt").read_text()
    assert text.splitlines()[-3:] == [
        "RFC 7001 §2 [waits]  MUST  met",
        "  code src/tea/pot.py",
        "  test tests/test_pot.py::test_brew",
    ]
    (repo.root / "rfc_annotations/coverage.txt").unlink()
    lacking, met, *_ = run("report", "--write")[1]
    assert lacking.split(maxsplit=4)[3:] == ["Pouring", "1 of 1 sentences not catalogued"]
    assert met.split() == ["RFC", "7001", "§2", "Waiting", "1", "met"]
    assert (repo.root / "rfc_annotations/coverage.txt").read_text() == text


def test_show_and_explain_bring_code_tests_and_spec_together(run, repo):
    code, lines = run("show", "RFC 7001 2")
    assert code == 0
    assert lines[0] == "RFC 7001 §2  Waiting"
    assert "    spec: The host MUST wait four minutes." in lines
    assert "    test: tests/test_pot.py:7 test_brew" in lines
    code, lines = run("explain", f"{repo.root}/src/tea/pot.py:10")
    assert code == 0 and lines[0] == "src/tea/pot.py:10: RFC 7001 §2  Waiting"
    assert run("explain", f"{repo.root}/src/tea/pot.py:4")[0] == 1
    assert run("show", "RFC 7001 §9")[0] == 1


def test_mark_makes_the_mark_that_check_looks_for(run, repo):
    code, lines = run("mark", "RFC 7001 §2", "The host", "minutes.")
    assert code == 0
    mark = lines[0].partition("  #")[0]
    assert mark in (repo.root / "rfc_annotations/requirements/rfc7001.toml").read_text()
    assert run("mark", "RFC 7001 §2", "The guest")[0] == 1


def test_index_is_rebuilt_from_the_copies(run, repo):
    repo.write("rfc_annotations/index/rfc7001.txt", "")
    assert run("check")[0] == 1
    assert run("index") == (0, ["1 files written"])
    assert run("check")[0] == 0


def test_it_runs_as_a_module_from_anywhere_in_the_checkout():
    env = {**os.environ, "PYTHONPATH": str(TOP)}
    command = [sys.executable, "-m", "rfc_annotations", "show", "RFC 3261 §17.1.3"]
    done = subprocess.run(command, cwd=TOP / "tests", env=env, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("RFC 3261 §17.1.3  Matching Responses to Client Transactions")
