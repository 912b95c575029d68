"""The documents keep their promises: commands exist, links lead somewhere, examples run."""

import doctest
import functools
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from definitions import definitions
from support.gateway.gateway import Gateway
from support.pages import FENCE, blocks, commands
from support.settings_rows import ROWS

REPO = Path(__file__).resolve().parent.parent
SOURCES = (
    "*.md",
    "newsfragments/*.md",
    "docs/**/*.md",
    "perf/*.md",
    "rfc_annotations/*.md",
    "tests/**/*.md",
)
PAGES = sorted(
    page
    for pattern in SOURCES
    for page in REPO.glob(pattern)
    if not {"node_modules", "_build", "specs"}.intersection(page.parts)
)
EVENT = re.compile(
    r'\b_?log\.(?:event|report|warning|unsuitable)\(\s*"([a-z-]+)"'
    r'|\bself\.(?:event|warning|unsuitable)\(\s*"([a-z-]+)"'  # of a log itself
)
TABLE = re.compile(r"^([A-Z_0-9]+): Final\[Mapping\[State, Mapping\[Event", re.MULTILINE)
OTHER_PYTHON = {  # and why
    "cite-in-your-project.md": "the environment of that project",
    "command-line.md": "the titles that --help has",
    "systemd.md": "that of /opt/siprtmp",
}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")

by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPO)))


def make_words() -> set[str]:
    """The targets that the Makefile declares as commands."""
    declared = re.search(r"^\.PHONY: (.*)$", (REPO / "Makefile").read_text(), re.MULTILINE)
    assert declared
    return set(declared[1].split())


def test_readme_opens_with_the_two_commands_of_a_fresh_machine():
    assert FENCE.findall((REPO / "README.md").read_text())[0] == ("sh", "make demo\nmake test\n")


def test_news_have_a_kind_that_a_release_gathers():
    settings = tomllib.loads((REPO / "pyproject.toml").read_text())["tool"]["towncrier"]
    kinds = {kind["directory"] for kind in settings["type"]}
    news = [page for page in PAGES if page.parent.name == settings["directory"]]
    names = [page.name.split(".") for page in news if page.name not in settings["ignore"]]
    assert all(len(name) == 3 and name[1] in kinds for name in names), names


@by_page
def test_make_words_in_code_exist(page):
    text = page.read_text()
    spans = re.findall(r"`(make [^`]+)`", text) + commands(page)
    words = [word for span in spans for word in re.findall(r"^make (?:\w+=\S+ )*([a-z]+)", span)]
    assert set(words) <= make_words()


def test_every_make_word_has_a_recipe_and_a_line_of_help():
    assert {line.split()[0] for line in make("help").splitlines()} == make_words()
    for word in make_words():
        assert make("--dry-run", word)


def make(*words: str) -> str:
    """What make prints, as if no other make had started us."""
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
    }
    done = subprocess.run(["make", *words], cwd=REPO, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_continuous_integration_uses_existing_words():
    script = (REPO / ".ci" / "run").read_text()
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    assert set(re.findall(r"^make (\w+)", script, re.MULTILINE)) <= make_words()


@by_page
def test_links_lead_to_files_of_the_repository(page):
    """And an anchor to a heading of that file, or to what it defines."""
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if re.match(r"https?://|mailto:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists() and file.is_relative_to(REPO), f"{page.name}: {target}"
        if anchor:
            known = definitions(str(file)) if file.suffix == ".py" else anchors(file)
            assert anchor in known, f"{page.name}: {target}"


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings make."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


@by_page
def test_shell_commands_parse(page):
    for line in commands(page):
        done = subprocess.run(["bash", "-n"], input=line, text=True, capture_output=True)
        assert done.returncode == 0, f"{line}: {done.stderr}"


@by_page
def test_pages_name_the_python_of_the_venv_in_one_way(page):
    """`.venv/bin/python`; `python` alone is another environment's, or a title."""
    if page.name in OTHER_PYTHON:
        return
    assert not re.search(r"(?<!\.venv/bin/)\bpython3? (?:-m (?!venv\b)|perf/)", page.read_text())
    ours = {"siprtmp", "p2psip", "rtmplite", "rtclab", "rfc-annotations", "pytest", "pip", "python"}
    for line in commands(page):
        assert line.split()[0] not in ours, line


@by_page
def test_options_of_our_programs_exist(page):
    """Each `python -m PACKAGE [WORD] --option` of a page is known to that program's --help."""
    for line in commands(page):
        words = shlex.split(line, comments=True)
        if "-m" not in words[:2]:
            continue
        package, *rest = words[words.index("-m") + 1 :]
        rest = rest[: rest.index("--")] if "--" in rest else rest  # another program's
        options = {word.split("=")[0] for word in rest if word.startswith("--")}
        subcommand = [word for word in rest[:1] if not word.startswith("-")]
        if package == "siprtmp" and not subcommand:
            subcommand = ["serve"]
        if options and package in ("p2psip", "rtmplite", "rtclab", "siprtmp", "rfc_annotations"):
            assert options <= options_of(package, *subcommand), line


@functools.cache
def options_of(package: str, *subcommand: str) -> set[str]:
    """The long options that `python -m package subcommand --help` lists."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as shown:
        patch.setattr(sys, "argv", [package, *subcommand, "--help"])
        with pytest.raises(SystemExit) as end:
            runpy.run_module(package, run_name="__main__", alter_sys=True)
    assert not end.value.code
    return set(re.findall(r"--[a-z][a-z-]*", shown.getvalue()))


WITH_EXAMPLES = [p for p in PAGES if any(">>> " in text for text in blocks(p, "python"))]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.stem)
def test_examples_give_what_they_show(page):
    text = "\n".join(blocks(page, "python"))
    found = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    report: list[str] = []
    doctest.DocTestRunner().run(found, out=report.append)
    assert not report, "".join(report)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with Gateway(tmp_path_factory.mktemp("docs") / "gateway") as running:
        yield running


def test_the_tutorial_for_rich_clients_runs(gateway):
    """Its blocks are one program; only the ports of the gateway differ."""
    program = "\n".join(blocks(REPO / "docs/2-tutorials/4-rich-client.md", "python"))
    assert "rtmp://127.0.0.1/" in program
    program = program.replace("rtmp://127.0.0.1/", f"rtmp://{gateway.rtmp}/")
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    gateway.wait_status({"calls": 0, "lines": 0})


def first_column(page: Path) -> set[str]:
    """What is code in the first cells of a page's tables."""
    return set(re.findall(r"^\| `([^`]+)` \|", page.read_text(), re.MULTILINE))


def test_every_figure_of_the_status_is_explained(gateway):
    assert set(gateway.status()) == first_column(REPO / "docs/5-reference/status.md")


def test_every_log_event_is_explained():
    sources = [file.read_text() for file in (REPO / "src" / "siprtmp").rglob("*.py")]
    used = {one or other for text in sources for one, other in EVENT.findall(text)}
    assert "call-start" in used
    assert used <= first_column(REPO / "docs/5-reference/log-events.md")


@pytest.fixture
def extension(monkeypatch):
    monkeypatch.syspath_prepend(str(REPO / "docs" / "_ext"))


def test_every_transaction_and_dialog_table_is_drawn():
    page = (REPO / "docs/4-protocols/sip.md").read_text()
    for folder in ("transaction", "dialog"):
        for file in (REPO / "src" / "p2psip" / folder).glob("*.py"):
            for name in TABLE.findall(file.read_text()):
                assert f"p2psip.{folder}.{file.stem}:{name}" in page
    assert page.count("{state-machine}") == 9


def test_a_drawing_has_a_box_for_each_state_and_a_dot_for_each_arrow(extension):
    from drawing import draw

    figure = {
        "A": {"go <on>": ("B", ("tell",)), "again": ("A", ())},
        "B": {"end": ("C", ())},
        "C": {},
    }
    svg = draw(figure, "three boxes")
    assert svg.count("<rect") == 3 and svg.count("<circle") == 3 and svg.count("<polygon") == 3
    assert "go &lt;on&gt; / tell" in svg and "three boxes" in svg


def test_what_is_observed_of_rtmp_is_a_handshake_and_a_publish(extension):
    import observed

    assert list(observed.server_handshake()) == list(observed.client_handshake())
    lines = observed.Conversation().publish()
    said = [(who, content.split()[0]) for who, _, kind, content in lines if kind == "command"]
    assert said == [
        ("client", "connect"),
        ("server", "_result"),
        ("client", "createStream"),
        ("server", "_result"),
        ("client", "publish"),
        ("server", "onStatus"),
        ("client", "deleteStream"),
    ]
    assert ("client", "1", "audio", "161 bytes") in lines


def test_the_page_of_the_house_has_the_rooms_of_the_code(extension):
    import house

    page = house.PAGE.read_text()
    assert page.count("| codec |") >= 3, "a table is missing"
    assert house.written(page) == page, "run: python docs/_ext/house.py"


def test_the_way_of_a_packet_leads_through_functions_that_exist():
    """The tables of the house's page: a file, and a function in it."""
    page = (REPO / "docs/1-start/house.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("|") and "](../../src/" in line]
    assert len(rows) >= 14
    for row in rows:
        linked = re.findall(r"\(\.\./\.\./(src/[^)#]*)#([\w.]+)\)", row)
        names = re.findall(r"`([\w.]+)`", row.rsplit("|", 2)[1])
        assert [name for _, name in linked] == names, row
        for file, name in linked:
            assert name in definitions(file), (file, name)


def test_the_settings_page_has_a_meaning_for_every_key(extension):
    from settings_rows import settings

    shown = {title: rows for title, rows in settings()}
    assert all(meaning for rows in shown.values() for *_, meaning in rows)
    assert "name" in dict(row[:2] for row in shown.pop("[[trunk]]"))
    assert "match" in dict(row[:2] for row in shown.pop("[[route]]"))
    assert "url" in dict(row[:2] for row in shown.pop("[[webhook]]"))
    assert [key for rows in shown.values() for key, *_ in rows] == [
        row.option for row in ROWS.values()
    ]
    assert ["answer-timeout", "60 s"] in [row[:2] for row in shown["calls"]]
