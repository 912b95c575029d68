"""What other programs do with each case of `rtclab conform`, as last recorded, in a matrix.

```{peer-matrix} sip uas
```
"""

import functools
import json
from collections.abc import Iterable, Iterator
from typing import Any

from book import anchor, parts
from definitions import REPO
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from rfc_annotations.specs import section_order
from rtclab.conform import rtmp, rtp, sip
from rtclab.conform.case import ConformCase

FOLDER = REPO / "docs/6-conformance"
CASES = {"sip": sip.SUITE.cases, "rtp": rtp.SUITE.cases, "rtmp": rtmp.SUITE.cases}
DATA = {"sip": "sip-peers.json", "rtp": "rtp-peers.json", "rtmp": "rtmp-conform.json"}
OURS = {"sip": "p2psip", "rtp": "p2psip", "rtmp": "rtmplite"}
OURS_UNMET = frozenset({"answer_has_a_date"})  # the suite compares the programs with it
MET, UNMET, NOT_ASKED = "met", "not met", "not asked"


@functools.cache
def recorded(suite: str) -> dict[str, dict[str, Any]]:
    """The programs, their versions and the cases that they do not meet."""
    found: dict[str, dict[str, Any]] = json.loads((FOLDER / DATA[suite]).read_text("utf-8"))
    return found


def verdict(case: ConformCase, data: dict[str, Any]) -> str:
    """What a program did with a case."""
    module = case.run.__module__.rpartition(".")[2]
    if case.role not in data.get("roles", [case.role]) or module != data.get("module", module):
        return NOT_ASKED
    return UNMET if case.name in data["unmet"] else MET


def unmet_in(spec: str, section: str) -> Iterator[tuple[nodes.Node, list[str]]]:
    """The cases of a section that some program does not meet, and the programs."""
    for suite, cases in CASES.items():
        for case in cases:
            if (case.spec, case.section) == (spec, section):
                programs = recorded(suite).items()
                if unmet := [name for name, data in programs if verdict(case, data) == UNMET]:
                    yield nodes.Text(case.title), unmet


class PeerMatrix(Directive):
    """A row for each case of a suite about one role, a column for each program that was asked."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        """The table; what is said of our own program is tested elsewhere."""
        suite, role = self.arguments
        cases = [case for case in CASES[suite] if case.role == role]
        assert cases, role
        ordered = sorted(cases, key=lambda case: (case.spec, section_order(case.section)))
        asked = {
            name: data
            for name, data in recorded(suite).items()
            if any(verdict(case, data) != NOT_ASKED for case in cases)
        }
        heads = ["requirement", "level", OURS[suite], *asked]
        cells = "".join(f"<th>{head}</th>" for head in heads)
        rows = "".join(row(case, asked.values()) for case in ordered)
        table = f"<thead><tr>{cells}</tr></thead><tbody>{rows}</tbody>"
        drawn = f'<table class="docutils matrix">{table}</table>'
        return [nodes.raw("", drawn, format="html", classes=["no-search"])]


def row(case: ConformCase, programs: Iterable[dict[str, Any]]) -> str:
    """One case: its section leads to the page of the spec."""
    slug = case.slug if case.slug in _slugs(case.spec, case.section) else ""
    page = parts()[case.spec].slug if case.spec in parts() else ""
    link = f'<a href="specs/{page}.html#{anchor(case.section, slug)}">{case.citation}</a>'
    ours = UNMET if case.name in OURS_UNMET else MET
    marks = [ours, *(verdict(case, data) for data in programs)]
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
