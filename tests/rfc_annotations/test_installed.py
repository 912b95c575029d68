"""The tool as a stranger has it: installed from its folder, in an environment of its own.

Two projects use it there: one with a spec and folders of its own, and that of the how-to page,
command by command.  Only pytest is borrowed from here, for the commands that run tests.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
PAGE = REPO / "docs" / "3-howto" / "cite-in-your-project.md"
STEP = re.compile(r"(?:^`([\w./]+)`\n\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = ("curl ", "rfc-annotations mutants ")
GENERATED = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
FOLDERS = {
    "pyproject.toml": """\
[tool.rfc_annotations]
folder = "doc/citations"
specs = "doc/texts"
code = ["kettle"]
tests = ["checks"]
must_cite = ["kettle"]
""",
    "doc/citations/specs.toml": """\
[[spec]]
name = "Kettle Protocol"
title = "How a Kettle is Spoken To"
file = "kettle.txt"
""",
    "doc/texts/kettle.txt": """\
1 Heating

   A kettle MUST refuse to heat while its lid is open.

2 Whistling

   A kettle SHOULD whistle once when its water boils.
""",
    "kettle/__init__.py": '"""A kettle.  Implements Kettle Protocol §1."""\n',
    "kettle/lid.py": '''\
"""The lid.  Implements Kettle Protocol."""


def heat(is_open):
    """Heat, or refuse: §1."""
    if is_open:
        return "refused"  # §1 [lid-is-shut]
    return "hot"


def whistle():
    """Whistle (§3)."""


def pour():
    """Pour."""
''',
    "checks/test_lid.py": '''\
from kettle.lid import heat


def test_an_open_lid():
    """Covers Kettle Protocol §1 [lid-is-shut]."""
    assert heat(True) == "refused"
''',
}
ENTRY = {"slug": "lid-is-shut", "who": "kettle", "summary": "No heat escapes through the top."}


class Shell:
    """Runs commands in a folder, with the programs of an environment."""

    def __init__(self, environment, folder):
        self.folder = folder
        path = os.pathsep.join([str(environment / "bin"), os.environ["PATH"]])
        dropped = ("RFC_SPECS", "PYTHONPATH", "VIRTUAL_ENV")
        self.environ = {k: v for k, v in os.environ.items() if k not in dropped} | {"PATH": path}
        self.borrowed = {"PYTHONPATH": str(Path(pytest.__file__).resolve().parents[1])}

    def write(self, file, text):
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def __call__(self, line):
        env = self.environ | (self.borrowed if re.search("-m pytest|mutants", line) else {})
        words = ["bash", "-c", line]
        done = subprocess.run(
            words, cwd=self.folder, env=env, capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An empty virtual environment with the tool in it."""
    return install(tmp_path_factory.mktemp("installed"))


def install(top, *options):
    """Install the tool in an environment of its own, with the options of pip."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", top / "venv"], check=True)
    copy = shutil.copytree(REPO / "rfc_annotations", top / "rfc_annotations", ignore=GENERATED)
    pip = [sys.executable, "-m", "pip", "--python", str(top / "venv" / "bin" / "python")]
    words = [*pip, "install", "-q", *options, str(copy)]
    done = subprocess.run(words, capture_output=True, text=True)
    if "No matching distribution found for setuptools" in done.stderr:
        message = "pip cannot fetch setuptools, which builds rfc_annotations"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    assert done.returncode == 0, done.stderr
    return top / "venv"


@pytest.fixture
def shell(environment, tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return Shell(environment, folder)


def test_it_stands_alone(shell, environment):
    """The data of siprtmp stay behind, but for the catalogue that drafts are made of."""
    assert shell("rfc-annotations --version")[1][0].startswith("rfc-annotations ")
    assert shell("python -c 'import pytest'")[0] == shell("python -c 'import siprtmp'")[0] == 1
    [installed] = environment.glob("lib/*/site-packages/rfc_annotations")
    data = {path.name for path in installed.iterdir() if path.suffix != ".py"} - {"__pycache__"}
    assert data == {"requirements"}
    code, out, err = shell("rfc-annotations check")
    assert (code, out, err.count("\n")) == (2, [], 1) and "no pyproject.toml with" in err


def test_a_project_with_a_spec_and_folders_of_its_own(shell):
    for file, text in FOLDERS.items():
        shell.write(file, text)
    assert shell("rfc-annotations index") == (0, ["1 files written"], "")
    drafts = "\n".join(shell("rfc-annotations catalogue doc/texts/kettle.txt")[1])
    entry = re.sub(r"# .*\n", "", drafts)
    for name, text in ENTRY.items():
        entry = re.sub(rf'^{name} = ".*"$', f'{name} = "{text}"', entry, count=1, flags=re.M)
    entry, _, milk = entry.rpartition("[[requirement]]")
    shell.write("doc/citations/requirements/kettle.toml", entry)
    assert "SHOULD" in milk and shell("rfc-annotations coverage --write")[0] == 0
    code, lines, _ = shell("rfc-annotations check")
    assert code == 1
    assert lines[:2] == [
        "kettle/lid.py:12: rule 2: there is no Kettle Protocol §3",
        "kettle/lid.py:15: rule 7: pour neither cites nor says `Own design: reason`",
    ]
    assert lines[-1].endswith("0 of them open; 5 citations, 2 problems")
    shell.write("kettle/lid.py", FOLDERS["kettle/lid.py"].partition("\n\n\ndef whistle")[0] + "\n")
    assert shell("python -m pytest -q checks --annotations evidence.json")[0] == 0
    assert shell("python -m rfc_annotations check --evidence evidence.json")[0] == 0
    code, lines, err = shell("rfc-annotations mutants --evidence evidence.json")
    assert (code, lines[-1].partition(",")[0]) == (0, "2 mutants tried: 2 killed"), err


@pytest.mark.parametrize("options", [[], ["--editable"]], ids=["plain", "editable"])
def test_the_folder_of_the_data_hides_nothing_of_the_tool(request, tmp_path, options):
    """`python -m` looks into the current folder first, where the data has the tool's own name."""
    made = install(tmp_path, *options) if options else request.getfixturevalue("environment")
    shell = Shell(made, tmp_path / "project")
    shell.write("pyproject.toml", "[tool.rfc_annotations]\n")
    shell.write("rfc_annotations/specs.toml", FOLDERS["doc/citations/specs.toml"])
    shell.write("src/pot.py", '"""A pot."""\n')
    for command in ("coverage --write", "check", "report"):
        code, lines, err = shell(f"python -m rfc_annotations {command}")
        assert (code, err) == (0, ""), lines
    assert shell("python -m rfc_annotations --version")[1] == shell("rfc-annotations --version")[1]


def test_the_page_says_how_pytest_finds_the_plugin_where_siprtmp_is_installed(tmp_path):
    """An entry point there would have pytest rewrite every module of siprtmp."""
    option = re.search(r"add `-p (\S+)` to pytest", PAGE.read_text())
    command = [sys.executable, "-m", "pytest", "-p", option[1], "--help"]
    env = os.environ | {"PYTHONPATH": str(REPO)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert "--annotations=FILE" in done.stdout, done.stderr


def test_the_page_for_strangers_shows_what_happens(shell, specs):
    """Each block of commands prints the text that follows it.

    What installs is left to the fixture, and mutants, which take long, to the test above.
    """
    printed = []
    for file, language, text in STEP.findall(PAGE.read_text()):
        if file:
            shell.write(file, text)
        elif language == "text":
            assert printed == text.splitlines()
        elif "pip install" not in text:
            lines = [line for line in text.splitlines() if not line.startswith(ELSEWHERE)]
            done = [shell(line) for line in lines]
            printed = [line for _, out, _ in done for line in out]
            assert all(code < 2 for code, _, _ in done), done
            if "mkdir specs" in text:
                shutil.copy(specs / "rfc1071.txt", shell.folder / "specs")
                assert shell(lines[-1])[0] == 0
    assert "0 dropped" in printed[-1]
    assert "[carries-of-carries]" not in str(shell("rfc-annotations check"))
