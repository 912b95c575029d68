"""What other programs do with each case of `siprtmp conform`, as last recorded, in a matrix.

```{peer-matrix}
"""

import functools
import json
from collections.abc import Iterator
from typing import Any

from book import anchor, parts
from definitions import REPO
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from rfc_annotations.specs import section_order
from siprtmp.conform.case import ConformCase
from siprtmp.conform.sip import SUITE

DATA = REPO / "docs/6-conformance/sip-peers.json"
OURS = "p2psip"
MET, UNMET = "met", "not met"


@functools.cache
def recorded() -> dict[str, dict[str, Any]]:
    """The programs, their versions and the cases that they do not meet."""
    found: dict[str, dict[str, Any]] = json.loads(DATA.read_text(encoding="utf-8"))
    return found


def unmet_in(spec: str, section: str) -> Iterator[tuple[nodes.Node, list[str]]]:
    """The cases of a section that some program does not meet, and the programs."""
    for case in SUITE.cases:
        if (case.spec, case.section.strip('"')) == (spec, section):
            programs = [name for name, data in recorded().items() if case.name in data["unmet"]]
            if programs:
                yield nodes.Text(case.title), programs


class PeerMatrix(Directive):
    """A row for each case of a user agent, a column for each program."""

    def run(self) -> list[nodes.Node]:
        """The table; what is said of our own program is tested elsewhere."""
        heads = ["requirement", "level", OURS, *recorded()]
        cells = "".join(f"<th>{head}</th>" for head in heads)
        ordered = sorted(SUITE.cases, key=lambda case: (case.spec, section_order(case.section)))
        rows = "".join(row(case) for case in ordered if case.role == "uas")
        table = f"<thead><tr>{cells}</tr></thead><tbody>{rows}</tbody>"
        return [nodes.raw("", f'<table class="docutils matrix">{table}</table>', format="html")]


def row(case: ConformCase) -> str:
    """One case: its section leads to the page of the spec."""
    section = case.section.strip('"')
    slug = case.slug if case.slug in _slugs(case.spec, section) else ""
    page = parts()[case.spec].slug if case.spec in parts() else ""
    link = f'<a href="specs/{page}.html#{anchor(section, slug)}">{case.citation}</a>'
    marks = [MET, *(UNMET if case.name in p["unmet"] else MET for p in recorded().values())]
    cells = "".join(f'<td class="{m.replace(" ", "-")}">{m}</td>' for m in marks)
    words = f"{link if page else case.citation}<br>{case.title}"
    return f"<tr><td>{words}</td><td>{case.level}</td>{cells}</tr>"


def _slugs(spec: str, section: str) -> set[str]:
    chapters = parts()[spec].chapters if spec in parts() else ()
    return {r.item.slug for c in chapters if c.number == section for r in c.rules}


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_directive("peer-matrix", PeerMatrix)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
