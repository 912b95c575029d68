"""The table of settings in pyproject.toml: what it may say, and what is told of a mistake."""

import shutil

import pytest

from rfc_annotations.__main__ import main
from rfc_annotations.processes import import_roots
from rfc_annotations.settings import Settings, SettingsError, find_root, load

TABLE = "[tool.rfc_annotations]"


def table(repo, text):
    repo.write("pyproject.toml", f"{TABLE}\n{text}\n")


def test_an_empty_table_means_the_usual_folders(repo):
    table(repo, "")
    assert load(repo.root) == Settings()
    assert repo.problems() == [], "the toy has its files where most projects have them"
    assert repo.project().kind("src/tea/pot.py") == "code"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("coed = []", "[tool.rfc_annotations] has no setting 'coed'; there is folder, specs, code"),
        ('code = "src"', "code in [tool.rfc_annotations] is to be a list of strings"),
        ("code = [1]", "code in [tool.rfc_annotations] is to be a list of strings"),
        ("folder = true", "folder in [tool.rfc_annotations] is to be a string"),
        ('tools = ["scripts"]', "tools in [tool.rfc_annotations] names scripts, which is not"),
        ('need_not_cite = ["src/x"]', "need_not_cite in [tool.rfc_annotations] names src/x, which"),
        ('folder = "../data"', "folder in [tool.rfc_annotations] names ../data, outside of"),
        ('folder = "data"', "data/specs.toml: No such file or directory; list the specs"),
        ("code = ", "Invalid value"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(repo, capsys, text, message):
    table(repo, text)
    assert main(["show", "7001", "2", "--root", str(repo.root)]) == 2
    out, err = capsys.readouterr()
    assert message in err and err.startswith("rfc_annotations: ") and err.count("\n") == 1
    assert "pyproject.toml: " in err or "specs.toml" in err
    assert not out


def test_the_table_is_to_be_one(repo):
    repo.write("pyproject.toml", "[tool]\nrfc_annotations = 3\n")
    with pytest.raises(SettingsError, match="is to be a table"):
        load(repo.root)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"rfc7001.txt"', '"rfc7001.txt"\nstyle = "odd"'),
        ('"rfc7001.txt"', '"rfc7001.txt"\nfurniture = "("'),
        ('"rfc7001.txt"', '"rfc7001.txt"\ntilte = "Tea"'),
        ("[[spec]]", "[[specs]]"),
        ("title", "title ="),
    ],
)
def test_a_mistake_in_the_list_of_specs_is_one_line_too(repo, capsys, old, new):
    repo.replace("rfc_annotations/specs.toml", old, new)
    assert main(["index", "--root", str(repo.root)]) == 2
    err = capsys.readouterr().err
    assert "rfc_annotations/specs.toml: " in err and err.count("\n") == 1


def test_the_repository_is_the_nearest_folder_with_the_table(repo):
    repo.write("src/pyproject.toml", "[project]\nname = 'tea'\n")
    assert find_root(repo.root / "src" / "tea") == repo.root
    repo.write("src/pyproject.toml", f"{TABLE}\n")
    assert find_root(repo.root / "src" / "tea") == repo.root / "src"


def test_every_folder_may_have_another_name(repo):
    for old, new in (("src/tea", "tea"), ("tests", "checks"), ("rfc_annotations", "doc/specs")):
        shutil.move(repo.root / old, repo.root / new)
    (repo.root / "src").rmdir()
    table(repo, 'folder = "doc/specs/"\ncode = ["./tea"]\ntests = ["checks"]\nmust_cite = ["tea"]')
    assert repo.problems() == [
        "doc/specs/coverage.txt:1: rule 9: stale; run `python -m rfc_annotations coverage --write`"
    ]
    repo.replace("tea/pot.py", "(§2)", "")
    repo.replace("tea/pot.py", "  # §2 [waits]", "")
    assert [p.partition(": ")[0] for p in repo.problems(4)] == [
        "doc/specs/requirements/rfc7001.toml:3"
    ]
    assert repo.problems(7) == [
        "tea/pot.py:6: rule 7: brew neither cites nor says `Own design: reason`"
    ]


def test_code_may_be_all_that_is_neither_test_nor_tool(repo):
    repo.write("setup.py", "X = 1\n")
    repo.write("tools/make.py", "X = 1\n")
    table(repo, 'code = ["."]\ntools = ["tools"]')
    kinds = {one.file: one.kind for one in repo.project().scanned}
    assert kinds == {
        "README.md": "doc",
        "rfc_annotations/index/field.md": "doc",
        "setup.py": "code",
        "src/tea/pot.py": "code",
        "tests/test_pot.py": "test",
        "tools/make.py": "tool",
    }


def test_what_is_not_the_projects_own_text_is_not_read(repo):
    wrong = "RFC 7001 §two\n"
    repo.write("venv/pyvenv.cfg", "")
    for folder in ("venv/lib", "third/party", "specs"):
        repo.write(f"{folder}/README.md", wrong)
    table(repo, 'ignore = ["third"]')
    assert repo.problems() == []
    table(repo, 'markdown = ["README.md", "third"]')
    assert [p.partition(":")[0] for p in repo.problems(1)] == ["third/party/README.md"]


def test_figures_may_stand_on_another_page(repo):
    text = "7 requirements have code and tests, 0 a reason why not, and 0 of 1 binding sentences"
    repo.write("doc/state.md", f"# State\n\n{text}\n")
    assert repo.problems(9) == []
    table(repo, 'figures = ["doc/state.md"]')
    assert "doc/state.md:3: rule 9: stale figures" in repo.problems(9)[0]


def test_code_is_imported_from_where_its_packages_stand(repo):
    assert import_roots(repo.root) == [str(repo.root / "src")]
    repo.write("cup/__init__.py", "")
    repo.write("cup/handle/__init__.py", "")
    repo.write("tool.py", "")
    table(repo, 'code = ["src", "cup/handle", "tool"]')
    assert import_roots(repo.root) == [str(repo.root / "src"), str(repo.root)]
