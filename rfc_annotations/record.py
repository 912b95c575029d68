"""All that is known of each requirement, put together for the reports and the documentation.

Catalogue, claims, lines of code, the last test run, the mutants and the ledgers meet here: a `Book`
has a `Part` for each spec; a part has a `Chapter` for each section; a chapter has its `Rule`s.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Final

from rfc_annotations import ratchet
from rfc_annotations.catalogue import Requirement
from rfc_annotations.claims import Claims, collect
from rfc_annotations.evidence import Evidence
from rfc_annotations.excerpts import Excerpts
from rfc_annotations.grammar import spell
from rfc_annotations.mutants_accepted import Accepted, accepted
from rfc_annotations.project import Project
from rfc_annotations.results import Score, Scores
from rfc_annotations.scan import Cited

# What a reader is told of each state, in the order of the plots; `claims.Claims.state` has them.
STATUS: Final[Mapping[str, str]] = {
    "met": "held and tested",
    "not passed": "held, not shown by the last test run",
    "departs": "departs",
    "not done": "not done",
    "excused": "excused",
    "permitted": "permitted, not used",
    "replaced": "replaced",
    "no test": "held, no test",
    "no code": "tested, no code",
    "open": "open",
}


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a file: the line that cites, and the lines to show.

    A test has its name and last outcome; code has the score of its mutants, if any were tried.
    """

    file: str
    line: int
    lines: range
    name: str = ""
    outcome: str = ""
    score: Score | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One requirement; `alive` are the mutants of its lines that may live."""

    item: Requirement
    state: str
    code: tuple[Spot, ...]
    tests: tuple[Spot, ...]
    alive: tuple[Accepted, ...] = ()

    @property
    def status(self) -> str:
        """The state, in words for a reader."""
        return STATUS[self.state]


@dataclass(frozen=True, slots=True)
class Chapter:
    """One section; `sentences` are (normative, not catalogued) where that was counted."""

    spec: str
    number: str
    title: str
    rules: tuple[Rule, ...] = ()
    cited: tuple[Spot, ...] = ()  # code that points here without a claim
    quirks: tuple[tuple[str, str], ...] = ()  # entries of ledgers that mention the section
    sentences: tuple[int, int] | None = None
    declined: tuple[str, ...] = ()  # why sentences of it are no requirement of ours


@dataclass(frozen=True, slots=True)
class Part:
    """One spec and its sections, in order."""

    name: str
    title: str
    slug: str
    chapters: tuple[Chapter, ...]
    text: int = 0  # normative sentences of the whole of it

    @property
    def rules(self) -> Iterator[Rule]:
        """All its requirements."""
        return (rule for chapter in self.chapters for rule in chapter.rules)

    @property
    def states(self) -> Counter[str]:
        """How many requirements are in each state."""
        return Counter(rule.state for rule in self.rules)

    @property
    def sentences(self) -> tuple[int, int]:
        """Normative sentences of the sections that count, and those not catalogued."""
        told = [chapter.sentences for chapter in self.chapters if chapter.sentences]
        return sum(all_ for all_, _ in told), sum(lacking for _, lacking in told)


@dataclass
class Book:
    """The whole; `proof` and `scores` are what the last runs of tests and mutants told."""

    project: Project
    proof: Evidence | None = None
    scores: Scores = field(default_factory=dict)

    @cached_property
    def parts(self) -> list[Part]:
        """The specs that the catalogue or the code knows, in the order of `specs.toml`."""
        known = {key[0] for key in self.project.catalogue.requirements}
        known |= {c.spec for c in self.project.cited if self.project.kind(c.file) == "code"}
        listed = self.project.library.specs.items()
        return [self._part(name, spec.title, spec.slug) for name, spec in listed if name in known]

    @cached_property
    def excerpts(self) -> Excerpts:
        """The lines of the files."""
        return Excerpts(self.project.root)

    def _part(self, name: str, title: str, slug: str) -> Part:
        sections = self.project.index.get(name, {})
        numbers = self._ratchet.get(name, ratchet.Numbers())
        chapters = (
            Chapter(
                name,
                section,
                title,
                tuple(self._rule(item) for item in self.project.catalogue.of(name, section)),
                tuple(self._pointers.get((name, section), ())),
                tuple(self._quirks.get((name, section), ())),
                numbers.sections.get(section),
                tuple(dict.fromkeys(self._declined.get((name, section), ()))),
            )
            for section, title in sections.items()
        )
        return Part(name, title, slug, tuple(chapters), numbers.text)

    def _rule(self, item: Requirement) -> Rule:
        claims = self._claims.get(item.key, Claims())
        code = [*claims.declined, *claims.code]
        tests = [self._spot(c, self._outcome(c)) for c in claims.tests]
        state = claims.state(item)
        if state == "met" and self.proof and not any(t.outcome.startswith("passed") for t in tests):
            state = "not passed"
        spots = tuple(self._spot(c) for c in code)
        alive = tuple(dict.fromkeys(a for c in code for a in self._alive(c)))
        return Rule(item, state, spots, tuple(tests), alive)

    def _outcome(self, test: Cited) -> str:
        if self.proof is None:
            return ""
        outcome = self.proof.of(test).outcome
        stale = outcome != "not run" and self.proof.stale(self.project.root, test.file)
        return f"{outcome}, before the last change" if stale else outcome

    def _spot(self, cited: Cited, outcome: str = "") -> Spot:
        lines = self.excerpts.of(cited.file, cited.line)
        score = self.scores.get(cited)
        return Spot(cited.file, cited.line, lines, cited.owner, outcome, score)

    def _alive(self, cited: Cited) -> Iterator[Accepted]:
        """Yield the accepted survivors among the mutants of a claim's lines."""
        for entry in self._accepted.get(cited.file, ()):
            lines = range(cited.line, cited.line + 1)
            lines = range(min(cited.anchor | set(lines)), max(cited.anchor | set(lines)) + 1)
            if any(text.strip() == entry.was for text in self.excerpts.text(cited.file, lines)):
                yield entry

    @cached_property
    def _accepted(self) -> Mapping[str, list[Accepted]]:
        found: dict[str, list[Accepted]] = defaultdict(list)
        for entry in accepted(self.project.folder / "mutants.toml"):
            found[entry.file].append(entry)
        return found

    @cached_property
    def _declined(self) -> Mapping[tuple[str, str], list[str]]:
        found: dict[tuple[str, str], list[str]] = defaultdict(list)
        for entry in self.project.catalogue.not_ours:
            found[entry.spec, entry.section].append(entry.why)
        return found

    @cached_property
    def _claims(self) -> Mapping[tuple[str, str, str], Claims]:
        return collect(self.project)

    @cached_property
    def _ratchet(self) -> ratchet.Ratchet:
        return ratchet.load(self.project)

    @cached_property
    def _pointers(self) -> Mapping[tuple[str, str], list[Spot]]:
        found: dict[tuple[str, str], list[Spot]] = defaultdict(list)
        for cited in self.project.cited:
            if self.project.kind(cited.file) == "code" and not cited.slugs:
                found[cited.spec, cited.section].append(self._spot(cited))
        return found

    @cached_property
    def _quirks(self) -> Mapping[tuple[str, str], list[tuple[str, str]]]:
        """The entries of the ledgers, each a name and a heading, below which a section is cited."""
        names = {file: name for name, file in self.project.ledgers.items()}
        lines = {file: (self.project.root / file).read_text().splitlines() for file in names}
        found: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for cited in self.project.cited:
            if cited.file in names:
                above = reversed(lines[cited.file][: cited.line])
                heading = next((x for x in above if x.startswith("## ")), "")
                entry = (names[cited.file], heading.removeprefix("## ").strip())
                if heading and entry not in found[cited.spec, cited.section]:
                    found[cited.spec, cited.section].append(entry)
        return found

    def document(self) -> dict[str, Any]:
        """Give everything as plain values, for JSON."""
        return {"specs": [part_document(part) for part in self.parts]}


def part_document(part: Part) -> dict[str, Any]:
    normative, lacking = part.sentences
    return {
        "name": part.name,
        "title": part.title,
        "states": dict(part.states),
        "sentences": normative,
        "uncatalogued": lacking,
        "sentences_of_whole_text": part.text,
        "sections": [_chapter(chapter) for chapter in part.chapters],
    }


def _chapter(chapter: Chapter) -> dict[str, Any]:
    normative, lacking = chapter.sentences or (None, None)
    return {
        "section": chapter.number,
        "title": chapter.title,
        "sentences": normative,
        "uncatalogued": lacking,
        "ledgers": [spell(*entry) for entry in chapter.quirks],
        "not_ours": list(chapter.declined),
        "cited": [_spot(spot) for spot in chapter.cited],
        "requirements": [_rule(rule) for rule in chapter.rules],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    item = rule.item
    shown = {
        "name": spell(*item.key),
        "slug": item.slug,
        "level": item.level,
        "who": item.who,
        "summary": item.summary,
        "status": rule.status,
        "why": item.why,
        "replaced_by": item.replaced_by,
        "code": [_spot(spot) for spot in rule.code],
        "tests": [_spot(spot) for spot in rule.tests],
        "mutants_accepted": [{"was": a.was, "now": a.now, "why": a.why} for a in rule.alive],
    }
    return {key: value for key, value in shown.items() if value not in ("", None, [])}


def _spot(spot: Spot) -> dict[str, Any]:
    place = {"file": spot.file, "line": spot.line, "lines": [spot.lines.start, spot.lines.stop - 1]}
    mutants = asdict(spot.score) if spot.score else None
    told = {"test": spot.name, "outcome": spot.outcome, "mutants": mutants}
    return {**place, **{key: value for key, value in told.items() if value}}


def dumped(book: Book) -> str:
    """Write the book as JSON."""
    return json.dumps(book.document(), indent=1, ensure_ascii=False) + "\n"
