"""Entries of the catalogue that are none by their form: rule 13."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from rfc_annotations import sentences
from rfc_annotations.catalogue import NotOurs, Requirement
from rfc_annotations.fingerprint import fingerprint
from rfc_annotations.grammar import spell
from rfc_annotations.project import Project

REASON_WORDS: Final = 3  # fewer say nothing
WORD: Final = re.compile(r"[a-z0-9]{3,}")
COMMON: Final = frozenset(["and", "are", "for", "from", "has", "its", "not", "that", "the", "with"])
# Source: RFC 2119 §1, §2, §3, §4 and §5: words of one strength
WEAK: Final = {"SHOULD", "SHOULD NOT", "RECOMMENDED", "NOT RECOMMENDED"}
STRONG: Final = {"MUST", "MUST NOT", "REQUIRED", "SHALL", "SHALL NOT"}
OF_PROSE: Final = ("numbered", "sequence")  # styles whose sentences can be told from tables
SHOWN: Final = 40  # characters that a message shows
Finding = tuple[str, int, str]  # file, line, message


def findings(project: Project) -> Iterator[Finding]:
    """Yield the faults of entries and of the list of specs: empty reasons, false levels."""
    for entry in project.catalogue.entries:
        as_one = entry.as_one if isinstance(entry, Requirement) else ""
        for reason in (entry.why, as_one):
            if reason and len(reason.split()) < REASON_WORDS:
                yield entry.file, entry.line, f"{entry}: {reason!r} is no reason"
    for item in project.catalogue.requirements.values():
        if text := _unrelated(project, item):
            yield item.file, item.line, text
        if text := _weakened(project, item):
            yield item.file, item.line, text
    yield from _plain(project)
    yield from _declined(project)
    yield from _cut_short(project)


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
            yield project.data("specs.toml"), 1, line


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


def _cut_short(project: Project) -> Iterator[Finding]:
    """Tell a mark of half a sentence, and one requirement that stands for two commands."""
    of_marks: dict[tuple[str, str], dict[str, list[Requirement | NotOurs]]] = {}
    for entry in project.catalogue.entries:
        marks = of_marks.setdefault((entry.spec, entry.section), defaultdict(list))
        for mark in entry.marks:
            marks[mark].append(entry)
    for (name, _), marks in of_marks.items():
        spec = project.library.specs.get(name)
        text = _text(project, next(iter(marks.values()))[0])
        if spec and spec.style in OF_PROSE:
            for cover in sentences.covers(text, marks, spec.plain):
                holders = [
                    {id(entry): entry for mark in held for entry in marks[mark]}
                    for held in cover.holders
                ]
                yield from _judge(cover, holders)


def _judge(
    cover: sentences.Cover, holders: list[dict[int, Requirement | NotOurs]]
) -> Iterator[Finding]:
    """Say what is wrong with a sentence; `holders` are the entries of each of its commands."""
    every = {name: entry for held in holders for name, entry in held.items()}
    ours = [e for e in every.values() if isinstance(e, Requirement) and not e.replaced_by]
    if not ours:
        return
    item, mark = ours[0], fingerprint(cover.text)
    if sum(map(str.isalnum, cover.left_out)) >= sentences.BESIDE:
        told = f"its mark leaves out {cover.left_out[:SHOWN]!r} of the sentence {mark}"
        yield item.file, item.line, f"{item}: {told}"
    if len(every) < len(holders) and not any(entry.as_one for entry in ours):
        told = f"stands for {len(holders)} commands of {mark}"
        yield item.file, item.line, f"{item}: {told}; split it, or say why with as-one"
