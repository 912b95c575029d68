"""Sphinx directives whose content is taken from the code at the time of building.

```{state-machine} p2psip.transaction.invite_client:FIGURE_5
```{module-map} p2psip.sip
```{program-help} siprtmp serve
```{settings}
```{api} p2psip codecs
```{rtmp-conversation}
"""

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import observed
from api import Entry, by_room
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from drawing import draw, label, with_todo
from settings_rows import settings
from sphinx import addnodes
from sphinx.application import Sphinx

OUTSIDE = re.compile(r"\]\(\.\./\.\./(?=[^)]*\.md\))")
REPO = Path(__file__).resolve().parent.parent.parent
ARTICLE = re.compile(r"\bImplements\b(.*?)(?:\.\s|\.$|:\s|$)", re.DOTALL)


def table(heads: list[str], rows: list[list[str]], code: int = -1) -> nodes.table:
    """A table of plain texts; column `code` is set in monospace."""
    group = nodes.tgroup(cols=len(heads))
    group += [nodes.colspec(colwidth=1) for _ in heads]
    head, body = nodes.thead(), nodes.tbody()
    for where, lines in ((head, [heads]), (body, rows)):
        for line in lines:
            row = nodes.row()
            for i, text in enumerate(line):
                plain = where is head or i != code
                inner = nodes.Text(text) if plain else nodes.literal(text, text)
                row += nodes.entry("", nodes.paragraph("", "", inner))
            where += row
    group += [head, body]
    return nodes.table("", group)


class StateMachine(Directive):
    """A machine's table, `module:NAME`, drawn; or the states seen by `observed` or a function."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A drawing for browsers, a list of arrows for everything else."""
        module, _, name = self.arguments[0].partition(":")
        if name:
            found = getattr(importlib.import_module(module), name)
            found = found() if callable(found) else found
        else:
            found = getattr(observed, module)()
        figure = {str(s): {str(e): with_todo(to) for e, to in a.items()} for s, a in found.items()}
        plain = nodes.bullet_list()
        for state, arrows in figure.items():
            for event, (target, todo) in arrows.items():
                text = f"{state} -> {target}: {label(event, todo)}"
                plain += nodes.list_item("", nodes.paragraph("", text))
        drawing = nodes.raw("", draw(figure, self.arguments[0]), format="html")
        elsewhere = addnodes.only(expr="not html")
        elsewhere += plain
        return [drawing, elsewhere]


class ModuleMap(Directive):
    """The modules of a package: the first line of each, and the sections that it implements."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """One row a module, in alphabetical order."""
        folder = Path(importlib.import_module(self.arguments[0]).__path__[0])
        rows = []
        for file in sorted(folder.glob("[!_]*.py")):  # unimported: extras may be missing
            doc = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
            rows.append([file.stem, doc.split("\n")[0], sections(doc)])
        return [table(["module", "what it is", "implements"], rows, code=0)]


class Api(Directive):
    """The public names of one level of a package, in the order of `__all__`, room by room."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        """A section for each room."""
        door = importlib.import_module(self.arguments[0])
        found: list[nodes.Node] = []
        for room, names in by_room(door, self.arguments[1]).items():
            section = nodes.section(ids=[nodes.make_id(room)], names=[room])
            section += nodes.title(room, "", nodes.literal(room, room))
            lines = [f"```{{py:currentmodule}} {door.__name__}", "```", ""]
            lines += [(importlib.import_module(room).__doc__ or "").split("\n")[0], ""]
            for name in names:
                lines += [*Entry(door, name).lines(), ""]
            self.state.nested_parse(StringList(lines, source=__file__), 0, section)
            found.append(section)
        return found


def sections(doc: str) -> str:
    """The first sentence of a module's docstring about the sections that it implements."""
    found = ARTICLE.search(doc)
    return " ".join(found[1].split()) if found and "nothing of its own" not in found[1] else ""


class ProgramHelp(Directive):
    """The output of `python -m PACKAGE [COMMAND] --help`."""

    required_arguments = 1
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Run it, as a user would."""
        words = [sys.executable, "-m", *self.arguments, "--help"]
        environment = {**os.environ, "COLUMNS": "90"}
        shown = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        return [nodes.literal_block(shown.stdout, shown.stdout, language="text")]


class SettingsTable(Directive):
    """Every key of the configuration file, with its default and its meaning."""

    def run(self) -> list[nodes.Node]:
        """One table for each group of options, in the order of `siprtmp serve --help`."""
        out: list[nodes.Node] = []
        for title, rows in settings():
            out.append(nodes.rubric("", title))
            out.append(table(["key", "default", "meaning"], rows, code=0))
        return out


class RtmpConversation(Directive):
    """The messages of our client and our server while one tag is published."""

    def run(self) -> list[nodes.Node]:
        """One row a message."""
        rows = [list(line) for line in observed.Conversation().publish()]
        return [table(["from", "stream", "type", "content"], rows, code=3)]


def offer_outside_pages(app: Sphinx, name: str, source: list[str]) -> None:
    """Markdown beyond docs/ is no page of ours: let it be downloaded, as other files are."""
    source[0] = OUTSIDE.sub("](path:../../", source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_directive("state-machine", StateMachine)
    app.add_directive("module-map", ModuleMap)
    app.add_directive("program-help", ProgramHelp)
    app.add_directive("api", Api)
    app.add_directive("settings", SettingsTable)
    app.add_directive("rtmp-conversation", RtmpConversation)
    app.connect("source-read", offer_outside_pages)
    app.add_css_file("machines.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
