"""Entries of the catalogue that are none by their form: rule 13."""

import re
from collections.abc import Iterator
from typing import Final

from rfc_annotations import sentences
from rfc_annotations.catalogue import NotOurs, Requirement
from rfc_annotations.grammar import spell
from rfc_annotations.project import Project

REASON_WORDS: Final = 3  # fewer say nothing
WORD: Final = re.compile(r"[a-z0-9]{3,}")
COMMON: Final = frozenset(["and", "are", "for", "from", "has", "its", "not", "that", "the", "with"])
# Source: RFC 2119 §1, §2, §3, §4 and §5: words of one strength
WEAK: Final = {"SHOULD", "SHOULD NOT", "RECOMMENDED", "NOT RECOMMENDED"}
STRONG: Final = {"MUST", "MUST NOT", "REQUIRED", "SHALL", "SHALL NOT"}
Finding = tuple[str, int, str]  # file, line, message


def findings(project: Project) -> Iterator[Finding]:
    """Yield the faults of entries and of the list of specs: empty reasons, false levels."""
    for entry in project.catalogue.entries:
        if entry.why and len(entry.why.split()) < REASON_WORDS:
            yield entry.file, entry.line, f"{entry}: {entry.why!r} is no reason"
    for item in project.catalogue.requirements.values():
        if text := _unrelated(project, item):
            yield item.file, item.line, text
        if text := _weakened(project, item):
            yield item.file, item.line, text
    yield from _plain(project)
    yield from _declined(project)


def _unrelated(project: Project, item: Requirement) -> str:
    other = project.catalogue.requirements.get(item.target) if item.target else None
    if other is None or _words(item) & _words(other):
        return ""  # without a target rule 5 has said so
    return f"{item}: its replacement {item.replaced_by} shares no word with it"


def _words(item: Requirement) -> set[str]:
    return set(WORD.findall(f"{item.slug} {item.summary}".lower())) - COMMON


def _weakened(project: Project, item: Requirement) -> str:
    """Find the SHOULD entries whose sentence says MUST and that no other entry lists as a MUST."""
    if item.level not in WEAK:
        return ""  # of permissions rule 6 speaks
    spec = project.library.specs.get(item.spec)
    text = _text(project, item)
    others = project.catalogue.of(item.spec, item.section)
    kept = {mark for other in others if other.level in STRONG for mark in other.marks}
    marks = [mark for mark in item.marks if mark not in kept]
    said = sentences.keywords(text, marks, spec.plain if spec else False) & STRONG
    return f"{item}: recorded as {item.level}, and the spec says {min(said)}" if said else ""


def _text(project: Project, entry: Requirement | NotOurs) -> str:
    known = entry.spec in project.library.specs
    found = project.library.sections(entry.spec) if known else None
    return (found or {}).get(entry.section, ("", ""))[1]


def _plain(project: Project) -> Iterator[Finding]:
    """A spec that commands in small letters only has to be read so: RFC 8174 §2 is younger."""
    for name in sorted({key[0] for key in project.catalogue.requirements}):
        spec = project.library.specs.get(name)
        found = project.library.sections(name) if spec and not spec.plain else None
        text = "\n".join(body for _, body in (found or {}).values())
        if sentences.PLAIN.search(text) and not sentences.KEYWORD.search(text):
            line = f"{name} commands in small letters only: declare it plain"
            yield "rfc_annotations/specs.toml", 1, line


def _declined(project: Project) -> Iterator[Finding]:
    """Find sections that the code cites and the catalogue declines to the last sentence."""
    cited = {(c.spec, c.section): c for c in project.cited if project.kind(c.file) == "code"}
    for entry in project.catalogue.not_ours:
        place = cited.get((entry.spec, entry.section))
        text = _text(project, entry)
        plain = project.library.specs[entry.spec].plain if text else False
        if place is None or any(project.catalogue.of(entry.spec, entry.section)):
            continue
        if len(list(sentences.unmarked(text, (), plain))) < 2:
            continue
        if not list(sentences.unmarked(text, entry.marks, plain)):
            section = spell(entry.spec, entry.section)
            told = f"all of {section} is declined, and {place.file}:{place.line} cites it"
            yield entry.file, entry.line, told
