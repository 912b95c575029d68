"""Claims in C: which lines a run executed, told by gcov itself and by documents of LLVM."""

import gzip
import json
import subprocess

import pytest

from rfc_annotations import executed
from rfc_annotations.__main__ import main
from rfc_annotations.check import Check
from rfc_annotations.executed import Executed
from rfc_annotations.record import Book

CODE, TEST = "src/pot.c", "tests/test_pot.c"
POT = """\
/* Tea.  Implements RFC 7001 §1. */
int brew(int minutes)
{
    if (minutes < 4)
        return 0;
    return 1; // §2 [waits]
}
"""
TRIAL = """\
int brew(int minutes);
/* Covers RFC 7001 §2 [waits]. */
static int waits(void)
{
    return brew(MINUTES);
}
int main(int argc, char **argv) { return argc > 1 ? waits() : 0; }
"""


@pytest.fixture
def tea(repo):
    """The repository of tea, in C."""
    for file in ("src/tea/pot.py", "tests/test_pot.py"):
        (repo.root / file).unlink()
    repo.replace("pyproject.toml", 'must_cite = ["src/tea"]\n', "")
    repo.write(CODE, POT)
    repo.write(TEST, TRIAL)
    repo.update()
    return repo


def checked(repo, capsys, *files):
    words = ["check", "--root", str(repo.root), "--specs", str(repo.root / "specs")]
    code = main([*words, *(["--coverage", *map(str, files)] if files else [])])
    return code, capsys.readouterr().out.splitlines()


def gcov(repo, minutes, *arguments):
    """Compile the code and its test, run it, and give what gcov wrote."""
    out = repo.root / "build"
    out.mkdir()
    files = [str(repo.root / file) for file in (CODE, TEST)]
    flags = ["-O0", "--coverage", f"-DMINUTES={minutes}", "-o", "trial"]
    subprocess.run(["gcc", *flags, *files], cwd=out, check=True)
    subprocess.run(["./trial", *arguments], cwd=out, check=False)
    subprocess.run(["gcov", "--json-format", *out.glob("*.gcda")], cwd=out, check=True)
    found = sorted(out.glob("*.gcov.json.gz"))
    assert len(found) == 2
    return found


def test_a_claim_in_c_counts_and_is_taken_at_its_word_without_coverage(tea, capsys):
    code, lines = checked(tea, capsys)
    assert code == 0
    assert lines[-1].startswith("1 requirements, 0 of them open; 4 citations")
    assert any(line.endswith(f"at their word: {CODE} {TEST}") for line in lines)
    assert f"  code {CODE}\n  test {TEST}\n" in tea.project().snapshot.read_text()


def test_a_claim_in_c_is_held_to_the_rules_of_citations(tea):
    tea.replace(CODE, "§2 [waits]", "§2 [hurries]")
    assert tea.problems(3) == [f"{CODE}:6: rule 3: RFC 7001 §2 [hurries] is not catalogued"]
    tea.replace(CODE, "§2 [hurries]", "§3")
    assert tea.problems(2) == [f"{CODE}:6: rule 2: there is no RFC 7001 §3"]
    words = "The host MUST warm the pot before any water of a rolling boil is poured on it"
    tea.write("src/rs/lid.rs", f"//! {words}.\n")
    [problem] = tea.problems(8)
    assert problem.startswith("src/rs/lid.rs:1: rule 8: repeats 16 words")


@pytest.mark.needs("gcc", "gcov")
def test_gcov_shows_that_the_line_of_a_claim_ran(tea, capsys):
    code, lines = checked(tea, capsys, *gcov(tea, 4, "test"))
    assert (code, [line for line in lines if ": rule" in line or "word:" in line]) == (0, [])


@pytest.mark.needs("gcc", "gcov")
def test_gcov_shows_that_the_line_of_a_claim_did_not_run(tea, capsys):
    code, lines = checked(tea, capsys, *gcov(tea, 3, "test"))
    text = "the run that was counted executed no line of this for RFC 7001 §2 [waits]"
    assert (code, lines[0]) == (1, f"{CODE}:6: rule 11: {text}")


@pytest.mark.needs("gcc", "gcov")
def test_a_test_in_c_that_did_not_run_covers_nothing(tea, capsys):
    code, lines = checked(tea, capsys, *gcov(tea, 4))
    assert code == 1
    assert any("rule 4" in line and line.endswith("(not run)") for line in lines)


def llvm(root, count):
    """What `llvm-cov export` tells of the code, with the last line run `count` times."""
    segments = [
        [3, 1, 2, True, True, False],
        [4, 9, 2, True, True, False],
        [4, 20, 2, True, False, False],
        [4, 21, 1, True, True, True],
        [5, 9, 1, True, True, False],
        [5, 17, count, True, False, False],
        [6, 5, count, True, True, False],
        [7, 2, 0, False, False, False],
    ]
    files = [{"filename": str(root / CODE), "segments": segments}]
    return {"data": [{"files": files}], "type": "llvm.coverage.json.export", "version": "2.0.1"}


@pytest.mark.parametrize("count", [0, 1])
def test_llvm_shows_whether_the_line_of_a_claim_ran(tea, capsys, count):
    tea.write("cov.json", json.dumps(llvm(tea.root, count)))
    code, lines = checked(tea, capsys, tea.root / "cov.json")
    assert any(line.endswith(f"at their word: {TEST}") for line in lines)
    assert (code, [line[:20] for line in lines if ": rule" in line]) == (
        (0, []) if count else (1, ["src/pot.c:6: rule 11"])
    )


def test_files_of_coverage_add_up(tmp_path):
    line = {"line_number": 7, "count": 1}
    one = {"files": [{"file": "a.c", "lines": [line]}], "current_working_directory": "/else"}
    two = {**one, "current_working_directory": str(tmp_path)}
    (tmp_path / "one.json").write_text(f"{json.dumps(one)}\n{json.dumps(two)}\n")
    (tmp_path / "two.json.gz").write_bytes(gzip.compress(json.dumps(two).encode()))
    found = executed.load([tmp_path / "one.json", tmp_path / "two.json.gz"], tmp_path)
    assert found == Executed({"/else/a.c": {7: 1}, "a.c": {7: 2}})


@pytest.mark.parametrize("text", ["", "x", "[]", '{"files": 7}', '{"data": [{}]}'])
def test_a_file_that_is_no_coverage_is_told_in_a_line(repo, capsys, text):
    repo.write("cov.json", text)
    words = ["check", "--root", str(repo.root), "--coverage"]
    assert main([*words, str(repo.root / "cov.json")]) == 2
    assert "is not what `gcov" in capsys.readouterr().err
    assert main([*words, str(repo.root / "none.json")]) == 2
    assert "none.json: No such file" in capsys.readouterr().err


def test_a_claim_in_c_has_lines_to_show(tea):
    [part] = Book(tea.project()).parts
    [rule] = part.rules
    assert [spot.lines for spot in rule.code] == [range(6, 7)]
    assert [spot.lines for spot in rule.tests] == [range(2, 7)]


def test_tests_that_stand_beside_the_code_are_tests(tea):
    project = Check(tea.project()).project
    beside = ("src/pot_test.go", "src/pot.test.ts", "src/pot.spec.mjs", "src/test.go")
    assert [project.kind(file) for file in beside] == ["test", "test", "test", "code"]
