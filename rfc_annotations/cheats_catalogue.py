"""Entries of the catalogue that are none by their form: rule 13."""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Final

from rfc_annotations import sentences
from rfc_annotations.catalogue import NotOurs, Requirement
from rfc_annotations.fingerprint import fingerprint, locate, squeeze
from rfc_annotations.grammar import spell
from rfc_annotations.project import Project
from rfc_annotations.specs import Library

REASON_WORDS: Final = 3  # fewer say nothing
WORD: Final = re.compile(r"[a-z0-9]{3,}")
COMMON: Final = frozenset(["and", "are", "for", "from", "has", "its", "not", "that", "the", "with"])
# Source: RFC 2119 §1, §2, §3, §4 and §5: words of one strength
WEAK: Final = {"SHOULD", "SHOULD NOT", "RECOMMENDED", "NOT RECOMMENDED"}
STRONG: Final = {"MUST", "MUST NOT", "REQUIRED", "SHALL", "SHALL NOT"}
OF_PROSE: Final = ("numbered", "sequence")  # styles whose sentences can be told from tables
FACT: Final = "FACT"
# Who may be bound, by any spec; others must be known to the spec.
ROLES: Final = (
    *("both", "any", "client", "server", "sender", "receiver", "publisher", "player", "listener"),
    *("writer", "reader", "parser", "offerer", "answerer"),
)
LONG: Final = re.compile(r"[a-z0-9]{4,}")
STEM, ALIKE = 5, 2  # letters that are compared of a word; words in common of sentences that agree
# Beginnings of words that any sentence of a spec may have.
ANYWHERE: Final = re.compile(
    "must|shall|shoul|requi|recom|optio|this|that|with|which|when|from|have|been|will|then|such|also"
    "|only|other|their|there|these|those|into|than|does|each|some|very|over|used|uses|using|case"
    "|being|messa|reque|respo|field|heade|value"
)
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
        for judge in (_weakened, _of_nobody, _two_at_once, _without_items):
            if text := judge(project, item):
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
    """Find the SHOULD entries whose sentence says MUST and that no other entry lists as a MUST.

    A FACT is for what no word of RFC 2119 binds; where small letters do, "required" may describe.
    """
    if item.level not in WEAK and item.level != FACT:
        return ""  # of permissions rule 6 speaks
    stronger = STRONG if item.level in WEAK else STRONG | WEAK
    spec = project.library.specs.get(item.spec)
    plain = spec.plain if spec else False
    others = project.catalogue.of(item.spec, item.section)
    kept = {mark for other in others if other.level in stronger for mark in other.marks}
    marks = [mark for mark in item.marks if mark not in kept]
    said = sentences.keywords(_text(project, item), marks, plain) & stronger
    if plain and item.level == FACT:
        said -= {"REQUIRED", "RECOMMENDED"}
    return f"{item}: recorded as {item.level}, and the spec says {min(said)}" if said else ""


def _of_nobody(project: Project, item: Requirement) -> str:
    """Refuse a role that neither the spec nor this trade knows."""
    if item.who in ROLES or item.spec not in project.library.present:
        return ""
    known = _vocabulary(project.library, item.spec)
    strange = [word for word in item.who.split() if word.lower() not in known]
    return f"{item}: {item.spec} has no {strange[0]!r}, as who says" if strange else ""


@cache
def _vocabulary(library: Library, spec: str) -> set[str]:
    """The words of a spec, and those of its plurals."""
    text = "\n".join(map(" ".join, (library.sections(spec) or {}).values()))
    words = set(re.findall(r"\w+", text.lower()))
    return words | {word.removesuffix("s") for word in words}


def _two_at_once(project: Project, item: Requirement) -> str:
    """Refuse sentences below one entry that command different things, by their words."""
    if item.as_one or len(item.marks) < 2 or not item.binding:
        return ""
    spec = project.library.specs.get(item.spec)
    plain, text = (spec.plain if spec else False), _text(project, item)
    binding = [
        _stems(locate(text, mark) or "")
        for mark in item.marks
        if sentences.keywords(text, [mark], plain) & (STRONG | WEAK)
    ]
    for at, stems in enumerate(binding):
        others = [*binding[:at], *binding[at + 1 :]]
        if others and max(len(stems & other) for other in others) < ALIKE:
            told = "its marks are of sentences that share no words"
            return f"{item}: {told}; split it, or say why with as-one"
    return ""


def _stems(sentence: str) -> set[str]:
    """The beginnings of the longer words, without those that any sentence of a spec may have."""
    stems = {word[:STEM] for word in LONG.findall(sentence.lower())}
    return {stem for stem in stems if not ANYWHERE.fullmatch(stem)}


def _without_items(project: Project, item: Requirement) -> str:
    """Refuse the mark of a list's lead-in where no entry marks anything of the list."""
    if item.replaced_by:
        return ""
    text = _text(project, item)
    for mark in item.marks:
        said = locate(text, mark) or ""
        items = sentences.items_after(text, said) if said.endswith(":") else []
        if items and not _marked(project, item, text, items):
            return f"{item}: its mark leads in a list that no mark is of: {items[0][:SHOWN]}..."
    return ""


def _marked(project: Project, item: Requirement, text: str, items: list[str]) -> bool:
    marks = project.catalogue.marks(item.spec, item.section)
    named = [squeeze(locate(text, mark) or "") for mark in marks]
    return any(
        squeezed in one or (one and one in squeezed)
        for squeezed in map(squeeze, items)
        for one in named
    )


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
