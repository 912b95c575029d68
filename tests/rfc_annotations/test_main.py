"""The command line: what it prints, and what it exits with."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rfc_annotations.__main__ import main
from rfc_annotations.check import Check

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
        (["chek"], "; did you mean check?"),
        (["check", "--fly"], "--fly"),
        (["check", "--evidance", "x"], "--evidance x; did you mean --evidence?"),
        (["check", "--evidance=x"], "--evidance=x; did you mean --evidence?"),
        (["catalogue", "/nonexistent"], "/nonexistent: No such file"),
        (["catalogue", "rfc7001"], "there is no local copy of RFC 7001; give --specs"),
        (["check", "--evidence", "/absent"], "/absent: No such file"),
        (["check", "--evidence", __file__], "is not what `pytest --annotations` wrote"),
        (["show", "tea"], "cannot read 'tea'"),
        (["explain", "src/tea/nope.py"], "there is no file src/tea/nope.py"),
        (["explain", "nope.py:3"], "there is no file nope.py"),
        (["mark", "RFC 7001 §2", "The host"], "no local copy of RFC 7001"),
        (["check", "--root", "/"], "no pyproject.toml with [tool.rfc_annotations] in /"),
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


def test_an_interrupted_command_says_nothing(repo, capsys, monkeypatch):
    def interrupted(check):
        raise KeyboardInterrupt

    monkeypatch.setattr(Check, "run", interrupted)
    assert main(["check", "--root", str(repo.root)]) == 130
    assert capsys.readouterr() == ("", "")


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
    assert run("coverage", "--write")[0] == 0
    assert (repo.root / "rfc_annotations/coverage.txt").read_text() == text


def test_report_lists_the_sections(run):
    lacking, met, counted, _ = run("report")[1]
    assert counted.endswith("; the whole texts have 3")
    assert lacking.split(maxsplit=4)[3:] == ["Pouring", "1 of 1 sentences not catalogued"]
    assert met.split() == ["RFC", "7001", "§2", "Waiting", "1", "met"]


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


@pytest.mark.parametrize(
    "words",
    [["RFC 7001 §2"], ["rfc7001", "2"], ["7001", "2"], ["7001", "waiting"], ["RFC", "7001", "§2"]],
)
def test_show_takes_a_section_as_people_type_it(run, words):
    assert run("show", *words)[1][0] == "RFC 7001 §2  Waiting"


def test_show_takes_the_name_of_a_requirement(run, repo):
    toml = "rfc_annotations/requirements/rfc7001.toml"
    repo.replace(toml, 'slug = "waits"', 'slug = "waits-long"')
    for typed in ("waits-long", "[waits-long]", "RFC 7001 [waits-long]"):
        assert run("show", typed)[1][0] == "RFC 7001 §2  Waiting"


def test_a_name_that_does_not_exist_is_answered_with_what_is_near(repo, capsys):
    toml = "rfc_annotations/requirements/rfc7001.toml"
    repo.replace(toml, 'slug = "waits"', 'slug = "waits-long"')
    answers = {
        "waits-lnog": "there is no requirement waits-lnog; there is waits-long",
        "pours-slowly": "there is no requirement pours-slowly",
        "rfc9999 1": "there is no spec RFC 9999 in rfc_annotations/specs.toml",
    }
    for typed, answer in answers.items():
        assert main(["show", "--root", str(repo.root), typed]) == 1
        assert capsys.readouterr().err == f"{answer}\n"
    repo.replace(toml, 'slug = "waits-long"', 'slug = "waits-long-enough"')
    assert main(["show", "--root", str(repo.root), "waits-long"]) == 1
    assert capsys.readouterr().err.endswith("; there is waits-long-enough\n")


def test_report_writes_a_page_and_a_document(run, repo):
    html, document = repo.root / "report.html", repo.root / "report.json"
    assert run("report", "--html", str(html), "--json", str(document))[0] == 0
    [spec] = json.loads(document.read_text())["specs"]
    assert spec["name"] == "RFC 7001"
    text = html.read_text()
    assert "Four minutes, by the clock." in text and "src/tea/pot.py:10" in text
    assert "return &quot;tea&quot;" in text and "<svg" in text
    assert run("report", "--json", str(repo.root / "no" / "such"))[0] == 2


def test_catalogue_drafts_what_is_missing(run, repo):
    code, lines = run("catalogue", str(repo.root / "specs/rfc7001.txt"))
    assert code == 0 and lines[0] == 'spec = "RFC 7001"'
    assert lines.count("[[requirement]]") == 2
    assert run("catalogue", "rfc7001") == (code, lines)
    assert run("catalogue", str(repo.root / "README.md"))[0] == 2
    assert run("catalogue", str(repo.root / "notes.txt"))[0] == 2
    assert run("catalogue", str(repo.root / "rfc1.txt"))[0] == 2


def test_the_commands_that_people_type_start_without_pytest():
    """It would take longer to import than the command itself."""
    words = "import sys; import rfc_annotations.__main__; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", words], cwd=TOP).returncode == 0


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
