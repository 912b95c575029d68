"""The command `coverage`: what is accounted for, and the promises that a change adds or drops."""

import subprocess

import pytest

from rfc_annotations.__main__ import main
from rfc_annotations.evidence import Evidence, Run, save

CODE, TEST = "src/tea/pot.py", "tests/test_pot.py"
SNAPSHOT = "rfc_annotations/coverage.txt"


@pytest.fixture
def run(repo, capsys):
    def run(*arguments):
        options = ["--root", str(repo.root), "--specs", str(repo.root / "specs")]
        code = main(["coverage", *arguments, *options])
        return code, capsys.readouterr().out.splitlines()

    return run


def test_one_line_a_spec_or_one_a_section(run):
    code, (_, line, last) = run()
    assert code == 0
    assert line == "RFC 7001     2 = 1 + 1; 1: 1 claimed, 1 tested, 0 excused (whole text: 3)"
    assert last.startswith("1 of 2 normative sentences in 2 cited sections are not catalogued")
    code, (_, whole, *sections, _) = run("7001")
    assert (code, whole) == (0, line)
    assert sections == [
        "  RFC 7001 §1  1 = 0 + 1; 0: 0 claimed, 0 tested, 0 excused",
        "  RFC 7001 §2  1 = 1 + 0; 1: 1 claimed, 1 tested, 0 excused",
    ]
    assert run("9999")[0] == 2


def test_with_evidence_only_what_passed_is_tested(run, repo):
    path = repo.root / "evidence.json"
    save(path, Evidence({f"{TEST}::test_brew": Run("failed", frozenset())}, {}))
    assert "1 claimed, 0 tested" in run("--evidence", str(path))[1][1]


def test_write_brings_the_committed_files_up_to_date(run, repo):
    text = (repo.root / SNAPSHOT).read_text()
    repo.write(SNAPSHOT, "")
    (repo.root / "rfc_annotations/ratchet.toml").unlink()
    assert run("--write")[0] == 0
    assert (repo.root / SNAPSHOT).read_text() == text and repo.problems() == []


def test_a_dropped_promise_is_told_against_a_file(run, repo):
    before = repo.root / "before.txt"
    before.write_text((repo.root / SNAPSHOT).read_text())
    assert run("--against", str(before)) == (0, ["0 promises added, 0 dropped, 0 changed"])
    repo.replace(TEST, " [waits]", "")
    code, lines = run("--against", str(before))
    assert code == 1
    assert lines == [
        "~ RFC 7001 §2 [waits]  MUST  met -> no test",
        "    - test tests/test_pot.py::test_brew",
        "0 promises added, 1 dropped, 0 changed",
    ]


def test_promises_added_and_changed_are_no_fault(run, repo):
    repo.write("before.txt", "# Nothing is promised.\n")
    code, lines = run("--against", str(repo.root / "before.txt"))
    assert (code, lines[0]) == (0, "+ RFC 7001 §2 [waits]  MUST  met")
    assert lines[-1] == "1 promises added, 0 dropped, 0 changed"
    repo.replace(TEST, "test_brew", "test_of_tea")
    code, lines = run("--against", str(repo.root / SNAPSHOT))
    assert code == 0 and lines[1:] == [
        "    + test tests/test_pot.py::test_of_tea",
        "    - test tests/test_pot.py::test_brew",
        "0 promises added, 0 dropped, 1 changed",
    ]


def test_a_requirement_that_is_gone_is_a_promise_dropped(run, repo):
    repo.write("rfc_annotations/requirements/rfc7001.toml", 'spec = "RFC 7001"\n')
    code, lines = run("--against", str(repo.root / SNAPSHOT))
    assert (code, lines[0]) == (1, "- RFC 7001 §2 [waits]  MUST  met")


def test_a_revision_of_the_repository_will_do(run, repo):
    def git(*words):
        who = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        subprocess.run(["git", "-C", str(repo.root), *who, *words], check=True, timeout=60)

    assert run("--against", "HEAD")[0] == 2  # no repository of git's yet
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "Tea")
    repo.replace(CODE, "  # §2 [waits]", "")
    code, lines = run("--against", "HEAD")
    assert code == 1 and lines[0] == "~ RFC 7001 §2 [waits]  MUST  met -> no code"
    assert run("--against", "no-such-tag")[0] == 2
