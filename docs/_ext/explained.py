"""Sphinx directives that show steps of stories (see `story`), taken from a run while building.

```{explained} STORY STEP       the fields of what was sent, with their octets and sections
:only: names of fields          these alone
:unlike: STEP                   those alone that another step has not, and all octets folded
:of: name                       the fields within the first one of this name
:depth: 2                       how many levels are shown
```{chart} STORY                who sent what when, optionally :first: STEP and :last: STEP
```{facts} STORY NAME           a table of what else the run has shown
```{bits} STORY STEP            a header as RFCs draw it; :of: as above, :only: too
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import ClassVar

import from_code
from definitions import REPO, definitions
from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx import addnodes
from sphinx.application import Sphinx
from story import Step, story
from story_drawing import bits, chart
from story_rows import TEXT, Row, chosen, written

from rtclab.explain.fields.source import Source

CODE = re.compile(r" \([^()]*`[^()]*\)")  # in a docstring, for readers of the code


def table(found: list[Row], is_text: bool) -> nodes.container:
    """Rows as a table that fits a narrow screen too: octets, meaning, place in the code."""
    box = nodes.container(classes=["fields", "text" if is_text else "binary"])
    last: Source | None = None
    for row in map(of_value, found) if is_text else found:
        line = nodes.container(classes=["row", f"deep{min(row.depth, 6)}"])
        octets = written(row, is_text)
        line += nodes.paragraph("", "", *([nodes.literal(octets, octets)] if octets else []))
        is_new = row.field.source is None or row.field.source != last
        is_said = is_new or row.is_opened or not is_text
        line += meaning(row, is_text) if is_said else nodes.paragraph()
        place = nodes.paragraph(classes=["place"])
        if row.field.source is not None and is_new:
            last = row.field.source
            place += cited(last)
        line += place
        box += line
    return box


def meaning(row: Row, is_text: bool) -> nodes.paragraph:
    """Name and value of a field, and what it means; text has the first two in it."""
    field, out = row.field, nodes.paragraph()
    if not is_text or row.is_opened:
        out += nodes.strong("", field.name)
        out += nodes.Text(f" = {field.value} " if field.value and not is_text else " ")
    if field.meaning:
        out += nodes.emphasis("", CODE.sub("", field.meaning).replace("`", ""))
    return out


def of_value(row: Row) -> Row:
    """A line of text with what is known of its value, if that is more."""
    inner = [each for each in row.field.children if each.name == "value" and each.source]
    if row.is_opened or not inner:
        return row
    return row._replace(field=replace(row.field, meaning=inner[0].meaning, source=inner[0].source))


def cited(source: Source) -> Iterator[nodes.Node]:
    """The section, and a link to the class that follows it."""
    yield nodes.Text(f"{source.citation} ")
    module, qualified = source.name, ""
    while not (file := REPO / "src" / f"{module.replace('.', '/')}.py").is_file():
        module, _, last = module.rpartition(".")
        qualified = f"{last}.{qualified}".rstrip(".")
    path = str(Path(file).relative_to(REPO))
    anchor = f"#{qualified}" if qualified in definitions(path) else ""
    text = nodes.literal(qualified, qualified)
    yield nodes.reference("", "", text, refuri=f"source:{path}{anchor}", internal=True)


class Explained(Directive):
    """The fields of one step."""

    required_arguments = 2
    option_spec: ClassVar = {
        name: directives.unchanged for name in ("only", "unlike", "of", "depth")
    }

    def run(self) -> list[nodes.Node]:
        """A table, and the whole message folded where the table is a part."""
        told = story(self.arguments[0])
        step = told.step(self.arguments[1])
        is_text = TEXT.fullmatch(step.octets) is not None
        found: list[nodes.Node] = [table(chosen(told, step, self.options), is_text)]
        if is_text and "unlike" in self.options:
            found.append(folded(step))
        return found


def folded(step: Step) -> nodes.raw:
    """All of a message, to be opened."""
    text = escape(step.octets.decode().replace("\r\n", "\n"))
    head = f"<summary>All {len(step.octets)} bytes</summary>"
    return nodes.raw("", f"<details>{head}<pre>{text}</pre></details>", format="html")


class Chart(Directive):
    """The steps of a story, as a sequence chart."""

    required_arguments = 1
    option_spec: ClassVar = {name: directives.unchanged for name in ("first", "last")}

    def run(self) -> list[nodes.Node]:
        """A drawing for browsers, a list for everything else."""
        told = story(self.arguments[0])
        steps = told.between(self.options.get("first", ""), self.options.get("last", ""))
        plain = nodes.bullet_list()
        for each in steps:
            text = f"{each.at * 1000:.0f} ms, {each.source} to {each.destination}: {each.label}"
            plain += nodes.list_item("", nodes.paragraph("", text))
        return drawn(chart(steps, told.lanes, self.arguments[0]), plain)


class Bits(Directive):
    """The fields of a header, as boxes."""

    required_arguments = 2
    option_spec: ClassVar = {name: directives.unchanged for name in ("only", "of")}

    def run(self) -> list[nodes.Node]:
        """A drawing for browsers, a list for everything else."""
        told = story(self.arguments[0])
        step = told.step(self.arguments[1])
        found = [row.field for row in chosen(told, step, {**self.options, "depth": "1"})]
        plain = nodes.bullet_list()
        for each in found:
            width = each.span[1] - each.span[0]
            text = f"{each.name}, {width} bits: {each.value}"
            plain += nodes.list_item("", nodes.paragraph("", text))
        return drawn(bits(found, f"{self.arguments[1]}: bits"), plain)


class Facts(Directive):
    """What a run has shown, as a table: heads and rows by a name of the story's facts."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        """One row for each row."""
        heads, lines = story(self.arguments[0]).facts[self.arguments[1]]
        return [from_code.table(list(heads), lines)]


def drawn(svg: str, plain: nodes.Element) -> list[nodes.Node]:
    """A drawing, and words where there are no drawings."""
    elsewhere = addnodes.only(expr="not html")
    elsewhere += plain
    return [nodes.raw("", svg, format="html"), elsewhere]


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_directive("explained", Explained)
    app.add_directive("chart", Chart)
    app.add_directive("bits", Bits)
    app.add_directive("facts", Facts)
    app.add_css_file("stories.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
