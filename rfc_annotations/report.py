"""Reports: the committed snapshot, the table of sections, and the sentences behind one citation."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from rfc_annotations import counts, ratchet
from rfc_annotations.catalogue import Key, Requirement
from rfc_annotations.claims import OPEN, REASONED, Claims
from rfc_annotations.fingerprint import locate
from rfc_annotations.grammar import spell
from rfc_annotations.project import Project
from rfc_annotations.scan import Cited
from rfc_annotations.specs import section_order

HEADER = (
    "# How much of the specs is accounted for, by spec and section; then\n"
    "# the state of every catalogued requirement: who meets it, and which tests would notice.\n"
    "# Written by `python -m rfc_annotations coverage --write`; reviewed like code.\n"
)


def snapshot(project: Project, claims: Mapping[Key, Claims]) -> str:
    """Write all requirements and their claims; no line numbers, so that edits do not churn it."""
    committed = ratchet.load(project)
    figures = counts.count(project, claims, committed)
    lines = [f"# {counts.COLUMNS}", *counts.by_section(figures, committed)]
    blocks = [HEADER, "\n".join([*lines, counts.headline(figures, committed)]) + "\n"]
    ordered = sorted(project.catalogue.requirements.values(), key=_order)
    for item in ordered:
        found = claims.get(item.key, Claims())
        lines = [f"{item}  {item.level}  {found.state(item)}"]
        lines += [f"  code {file}" for file in sorted({c.file for c in found.code})]
        lines += [f"  {c.verb.rstrip(':').lower()} {c.file}" for c in found.declined]
        lines += [f"  test {name}" for name in sorted({_test(c) for c in found.tests})]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


# The figures of a page such as README.md, in the sentence where they stand; one may be left out.
FIGURES: Final = re.compile(
    r"\d+ requirements have code and tests, \d+ a reason why not, and \d+ of \d+ binding sentences"
)
WHOLE: Final = re.compile(r"\d+ in the whole texts")


def restated(project: Project, claims: Mapping[Key, Claims], text: str) -> str:
    """Write the figures of today, from the committed numbers, into the text of such a page."""
    items = project.catalogue.requirements.values()
    states = Counter(claims.get(item.key, Claims()).state(item) for item in items)
    committed = ratchet.load(project)
    rows = counts.count(project, claims, committed)
    sum_ = counts.total(row for sections in rows.values() for row in sections.values())
    figures = (
        f"{states['met']} requirements have code and tests,"
        f" {sum(states[each] for each in REASONED)} a reason why not, and"
        f" {sum_.uncatalogued} of {sum_.sentences} binding sentences"
    )
    whole = f"{counts.whole(rows, committed)} in the whole texts"
    return WHOLE.sub(whole, FIGURES.sub(figures, text))


def pages(project: Project) -> Iterator[Path]:
    """Yield the pages that may state the figures."""
    listed = (project.root / file for file in project.settings.figures)
    return (path for path in listed if path.is_file())


def _order(item: Requirement) -> tuple[str, list[tuple[int, str]], str]:
    return item.spec, section_order(item.section), item.slug


def _test(cited: Cited) -> str:
    return f"{cited.file}::{cited.owner}" if cited.owner else cited.file


def table(project: Project, claims: Mapping[Key, Claims]) -> Iterator[str]:
    """Yield one line per section: requirements by state, and sentences not catalogued."""
    figures = counts.count(project, claims, ratchet.load(project))
    for spec, section in ((spec, section) for spec, rows in figures.items() for section in rows):
        items = list(project.catalogue.of(spec, section))
        states = Counter(claims.get(item.key, Claims()).state(item) for item in items)
        title = project.index.get(spec, {}).get(section, "")
        told = [f"{count} {state}" for state, count in sorted(states.items())]
        row = figures[spec][section]
        if row.uncatalogued:
            told.append(f"{row.uncatalogued} of {row.sentences} sentences not catalogued")
        yield f"{spell(spec, section):24} {title[:40]:40} {', '.join(told)}".rstrip()


def totals(project: Project, claims: Mapping[Key, Claims]) -> str:
    """Sum up the table in a line."""
    items = project.catalogue.requirements.values()
    states = [claims.get(item.key, Claims()).state(item) for item in items]
    lacking = sum(state in OPEN for state in states)
    pointers = len(project.cited)
    return f"{len(states)} requirements, {lacking} of them open; {pointers} citations"


def show(project: Project, claims: Mapping[Key, Claims], spec: str, section: str) -> Iterator[str]:
    """Yield a section's title, its requirements with their claims, and its text if at hand."""
    yield f"{spell(spec, section)}  {project.index.get(spec, {}).get(section, '')}"
    yield ratchet.describe(project, spec, section)
    for item in project.catalogue.of(spec, section):
        yield from _requirement(project, claims, item)
    here = [c for c in project.cited if (c.spec, c.section) == (spec, section)]
    yield f"cited {len(here)} times" + "".join(f"\n  {c.file}:{c.line}" for c in here)
    sections = project.library.sections(spec)
    if sections and section in sections:
        yield f"\n{sections[section][1].strip()}"


def explain(
    project: Project, claims: Mapping[Key, Claims], file: str, line: int | None
) -> Iterator[str]:
    """Yield the requirement or section that each citation of a file, or of one line, refers to."""
    for cited in project.cited:
        if cited.file != file or line not in (None, cited.line):
            continue
        title = project.index.get(cited.spec, {}).get(cited.section, "")
        yield f"{file}:{cited.line}: {spell(cited.spec, cited.section)}  {title}"
        for slug in cited.slugs:
            item = project.catalogue.requirements.get((cited.spec, cited.section, slug))
            if item:
                yield from _requirement(project, claims, item)


def _requirement(
    project: Project, claims: Mapping[Key, Claims], item: Requirement
) -> Iterator[str]:
    found = claims.get(item.key, Claims())
    yield f"  [{item.slug}] {item.level}, {item.who}: {item.summary}  ({found.state(item)})"
    sections = project.library.sections(item.spec)
    for mark in item.marks if sections else ():
        sentence = locate((sections or {}).get(item.section, ("", ""))[1], mark)
        yield f"    spec: {sentence or 'not in the local copy'}"
    for kind, places in (("code", found.code), ("test", found.tests)):
        yield from (f"    {kind}: {c.file}:{c.line} {c.owner}".rstrip() for c in places)
