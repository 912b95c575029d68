"""The rules.  Each is a generator of problems; README.md explains their purposes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from rfc_annotations import (
    cheats,
    cheats_catalogue,
    crowded,
    quotes,
    ratchet,
    report,
    results,
    sentences,
    specs,
)
from rfc_annotations.catalogue import PERMISSIONS, Key, Requirement
from rfc_annotations.claims import OPEN, Claims, collect
from rfc_annotations.evidence import Evidence
from rfc_annotations.executed import Executed
from rfc_annotations.fingerprint import fingerprint, locate
from rfc_annotations.grammar import spell
from rfc_annotations.project import Project
from rfc_annotations.scan import Cited, Prose, is_python, uncollected

INDEX: Final = "run `python -m rfc_annotations index`"
WRITE: Final = "run `python -m rfc_annotations coverage --write`"
TRY: Final = "`mutants --only FILE --results`"
QUOTED: Final = 60  # characters of a sentence that a problem shows
STRICT: Final = {"MUST", "MUST NOT", "REQUIRED", "SHALL", "SHALL NOT", "SHOULD", "SHOULD NOT"}


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One violation; as text, one line of the report."""

    file: str
    line: int
    rule: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: rule {self.rule}: {self.message}"


@dataclass
class Check:
    """One look at the project, with or without the evidence of a test run.

    `executed` are the lines that ran of files which are not in Python.
    """

    project: Project
    evidence: Evidence | None = None
    executed: Executed | None = None
    _problems: list[Problem] = field(init=False, default_factory=list)

    def run(self, rules: Iterable["Rule"] | None = None) -> list[Problem]:
        """Apply every rule, or only `rules`, and sort the problems found."""
        with uncollected():
            return sorted({problem for rule in rules or RULES for problem in rule(self)})

    @cached_property
    def claims(self) -> Mapping[Key, Claims]:
        """The claims of code and tests, by requirement."""
        return collect(self.project)

    @cached_property
    def committed(self) -> ratchet.Ratchet:
        """The numbers that may only fall."""
        return ratchet.load(self.project)

    @cached_property
    def measured(self) -> ratchet.Ratchet:
        """The same numbers as the local copies have them now."""
        return ratchet.measure(self.project, self.committed)

    @property
    def requirements(self) -> Mapping[Key, Requirement]:
        """All catalogue entries."""
        return self.project.catalogue.requirements

    def outcome(self, test: Cited) -> str:
        """Say how a test ended; what nothing was recorded of is taken at its word."""
        if is_python(test.file):
            return self.evidence.of(test).outcome if self.evidence else "passed"
        if self.executed is None or not self.executed.knows(test.file):
            return "passed"
        return "passed" if self.executed.ran(test) else "not run"

    @property
    def uncounted(self) -> tuple[str, ...]:
        """The files with claims of whose lines neither pytest nor a coverage tells anything."""
        claimed = {c.file for found in self.claims.values() for c in (*found.code, *found.tests)}
        known = self.executed.counts if self.executed else {}
        return tuple(sorted(f for f in claimed if not is_python(f) and f not in known))

    @property
    def unverified(self) -> tuple[str, ...]:
        """The catalogued specs whose marks cannot be looked up, for want of a copy."""
        present = set(self.project.library.present)
        return tuple(sorted({key[0] for key in self.requirements} - present))


def parses(check: Check) -> Iterator[Problem]:
    """Rule 1: every citation parses and names a known spec; so does the catalogue."""
    for scanned in check.project.scanned:
        for line, message in scanned.mistakes:
            yield Problem(scanned.file, line, 1, message)
    for file, line, message in check.project.catalogue.faults:
        yield Problem(file, line, 1, message)
    for item in check.project.catalogue.entries:
        if item.spec not in check.project.library.specs:
            yield Problem(item.file, item.line, 1, f"unknown spec {item.spec!r}")


def section_exists(check: Check) -> Iterator[Problem]:
    """Rule 2: every cited section exists."""
    wanted = [(c.file, c.line, c.spec, c.section) for c in check.project.cited]
    wanted += [(r.file, r.line, r.spec, r.section) for r in check.project.catalogue.entries]
    for file, line, spec, section in wanted:
        if spec not in check.project.library.specs:
            continue  # rule 1 has said so
        known = check.project.index.get(spec)
        if known is None:
            yield Problem(file, line, 2, f"{spec} has no index; {INDEX}")
        elif section not in known:
            yield Problem(file, line, 2, f"there is no {spell(spec, section)}")


def slug_known(check: Check) -> Iterator[Problem]:
    """Rule 3: every claimed requirement is catalogued in that section."""
    for cited in check.project.cited:
        for slug in cited.slugs:
            if (cited.spec, cited.section, slug) not in check.requirements:
                text = f"{spell(cited.spec, cited.section, slug)} is not catalogued"
                yield Problem(cited.file, cited.line, 3, text)


def claimed(check: Check) -> Iterator[Problem]:
    """Rule 4: each requirement has a code claim and a test claim, and that test passes."""
    for key, item in check.requirements.items():
        claims = check.claims.get(key, Claims())
        state = claims.state(item)
        if state in OPEN:
            yield Problem(item.file, item.line, 4, f"{item}: {state}")
        elif state == "met" and "test" not in item.excused:
            outcomes = sorted({check.outcome(test) for test in claims.tests})
            if "passed" not in outcomes:
                text = f"{item}: no test of it passed ({', '.join(outcomes)})"
                yield Problem(item.file, item.line, 4, text)


def not_replaced(check: Check) -> Iterator[Problem]:
    """Rule 5: nobody claims a requirement that another one replaced."""
    for key, item in check.requirements.items():
        if not item.replaced_by:
            continue
        if item.target is None or item.target not in check.requirements:
            text = f"{item}: its replacement {item.replaced_by} is not catalogued"
            yield Problem(item.file, item.line, 5, text)
        elif check.requirements[item.target].replaced_by:
            text = f"{item}: its replacement {item.replaced_by} was replaced too"
            yield Problem(item.file, item.line, 5, text)
        claims = check.claims.get(key, Claims())
        for cited in (*claims.code, *claims.tests, *claims.declined):
            text = f"{item} was replaced by {item.replaced_by}"
            yield Problem(cited.file, cited.line, 5, text)


def mark_found(check: Check) -> Iterator[Problem]:
    """Rule 6: the local copy has the sections, sentences and permissions of the catalogue."""
    for name, listed in check.project.index.items():
        copied = check.project.library.sections(name)
        for section in sorted(set(listed) - set(copied)) if copied else ():
            file = check.project.data(f"index/{check.project.library.specs[name].slug}.txt")
            text = f"the local copy has no {spell(name, section)}; {INDEX}"
            yield Problem(file, 1, 6, text)
    for item in check.project.catalogue.entries:
        known = check.project.library.specs.get(item.spec)
        sections = check.project.library.sections(item.spec) if known else None
        if sections is None:
            continue
        _, text = sections.get(item.section, ("", ""))
        for mark in item.marks:
            if locate(text, mark) is None:
                text_ = f"{item}: no sentence {mark} in the local copy; wrong section or edition?"
                yield Problem(item.file, item.line, 6, text_)
        if isinstance(item, Requirement) and item.level in PERMISSIONS:
            plain = known.plain if known else False
            for text_ in _overruled(check, item, text, plain):
                yield Problem(item.file, item.line, 6, f"{item}: the spec says {text_}")


def _overruled(check: Check, item: Requirement, text: str, plain: bool) -> Iterator[str]:
    """Notice a permission where the spec gives none, or commands and no other entry says so."""
    if not sentences.keywords(text, item.marks, plain).intersection(PERMISSIONS):
        yield "neither MAY nor OPTIONAL"
    others = check.project.catalogue.of(item.spec, item.section)
    obeyed = {mark for other in others if other.binding for mark in other.marks}
    ours = (mark for mark in item.marks if mark not in obeyed)
    yield from sorted(STRICT & sentences.keywords(text, ours, plain))


def justified(check: Check) -> Iterator[Problem]:
    """Rule 7: public names in codecs and machines cite, or say `Own design: reason`."""
    for scanned in check.project.scanned:
        if check.project.must_cite(scanned.file):
            for line, name in scanned.uncited:
                text = f"{name} neither cites nor says `Own design: reason`"
                yield Problem(scanned.file, line, 7, text)


def own_words(check: Check) -> Iterator[Problem]:
    """Rule 8: no prose repeats twelve words of a spec, no cited literal sixty."""
    library = check.project.library
    texts = (
        "\n".join(text for _, text in (library.sections(name) or {}).values())
        for name in library.present
    )
    everything = [(one.file, prose) for one in check.project.scanned for prose in one.prose]
    everything += [(file, Prose(1, text)) for file, text in check.project.tables()]
    known = quotes.repeated((prose for _, prose in everything), texts)
    for file, prose in everything:
        for line, words in quotes.quotations(prose, known):
            text = f"repeats {words} words of a spec in a row; say it in your own"
            yield Problem(file, line, 8, text)


def snapshot_fresh(check: Check) -> Iterator[Problem]:
    """Rule 9: coverage.txt shows the claims as they are, and pages state their number."""
    path = check.project.snapshot
    if not path.is_file() or path.read_text() != report.snapshot(check.project, check.claims):
        yield Problem(check.project.data(path.name), 1, 9, f"stale; {WRITE}")
    for page in report.pages(check.project):
        said = page.read_text()
        now = report.restated(check.project, check.claims, said)
        if said != now:
            pairs = zip(said.splitlines(), now.splitlines(), strict=True)
            line = next(number for number, (old, new) in enumerate(pairs, 1) if old != new)
            file = page.relative_to(check.project.root).as_posix()
            yield Problem(file, line, 9, f"stale figures; {WRITE}")


def complete(check: Check) -> Iterator[Problem]:
    """Rule 10: in a section declared complete, every binding sentence is marked or not ours."""
    list_of_specs = check.project.data("specs.toml")
    for name, spec in check.project.library.specs.items():
        sections = check.project.library.sections(name)
        for entry in spec.complete:
            declared = specs.below(entry, check.project.index.get(name, ()))
            if not declared:
                yield Problem(list_of_specs, 1, 10, f"complete: there is no {spell(name, entry)}")
            for section in declared if sections else ():
                _, text = (sections or {}).get(section, ("", ""))
                marks = check.project.catalogue.marks(name, section)
                for sentence in sentences.unmarked(text, marks, spec.plain):
                    said = f"{spell(name, section)} is declared complete, and lacks"
                    shown = f"{said} {fingerprint(sentence)}: {sentence[:QUOTED]}..."
                    yield Problem(list_of_specs, 1, 10, shown)


def driven(check: Check) -> Iterator[Problem]:
    """Rule 11: excuses say why, and a test runs the lines whose promise it covers."""
    for item in check.requirements.values():
        if item.excused and not item.why:
            yield Problem(item.file, item.line, 11, f"{item} is excused without a why")
    for entry in check.project.catalogue.not_ours:
        if not entry.why:
            yield Problem(entry.file, entry.line, 11, f"{entry} without a why")
    if check.executed:
        yield from _unexecuted(check, check.executed)
    if check.evidence is None:
        return
    yield from _stale(check, check.evidence)
    for key, item in check.requirements.items():
        claims = check.claims.get(key, Claims())
        if "test" not in item.excused and not item.replaced_by:
            yield from _undriven(item, claims, check.evidence)


def worth(check: Check) -> Iterator[Problem]:
    """Rule 12: neither the form of a test nor the claimed line makes a claim worthless."""
    for file, line, text in cheats.findings(check.project):
        yield Problem(file, line, 12, text)


def entries(check: Check) -> Iterator[Problem]:
    """Rule 13: an entry of the catalogue says something, and no less than the spec."""
    for file, line, text in cheats_catalogue.findings(check.project):
        yield Problem(file, line, 13, text)


def _stale(check: Check, evidence: Evidence) -> Iterator[Problem]:
    files = {c.file for claims in check.claims.values() for c in (*claims.code, *claims.tests)}
    for file in sorted(files):
        if evidence.stale(check.project.root, file):
            yield Problem(file, 1, 11, "changed since the evidence was taken; run the tests again")


def _unexecuted(check: Check, executed: Executed) -> Iterator[Problem]:
    for key, item in check.requirements.items():
        for cited in check.claims.get(key, Claims()).code:
            if executed.knows(cited.file) and not executed.ran(cited):
                text = f"the run that was counted executed no line of this for {item}"
                yield Problem(cited.file, cited.line, 11, text)


def _undriven(item: Requirement, claims: Claims, evidence: Evidence) -> Iterator[Problem]:
    lines = {(c.file, c.line) for c in claims.code if c.is_traced}
    traceable = bool(lines) and all(c.is_traced for c in claims.code)
    runs = [(test, evidence.of(test)) for test in claims.tests if is_python(test.file)]
    passed = [(test, run) for test, run in runs if run.outcome == "passed"]
    for test, run in passed if traceable else ():
        if lines.isdisjoint(run.reached):
            yield Problem(test.file, test.line, 11, f"passed without running the code of {item}")
    if passed:  # otherwise rule 4 has said enough
        for file, line in sorted(lines.difference(*(run.reached for _, run in passed))):
            yield Problem(file, line, 11, f"no passing test that covers {item} runs this")


def only_falls(check: Check) -> Iterator[Problem]:
    """Rule 14: a section's uncatalogued sentences only fall, and a lower number is committed."""
    file = check.project.data(ratchet.NAME)
    known = check.project.library.specs
    declared = {
        name: {s for entry in known[name].complete for s in specs.below(entry, numbers.sections)}
        for name, numbers in check.measured.items()
    }
    for name, section, text in ratchet.rises(check.committed, check.measured):
        if section not in declared[name]:  # where rule 10 names each sentence
            yield Problem(file, 1, 14, text)
    if ratchet.lowered(check.committed, check.measured) != check.committed:
        yield Problem(file, 1, 14, f"stale; {WRITE}")


def guarded(check: Check) -> Iterator[Problem]:
    """Rule 15: the claims without a killed mutant only fall, and a lower number is committed."""
    file = check.project.data(ratchet.NAME)
    now, allowed = ratchet.measure_claims(check.project), ratchet.load_claims(check.project)
    if now is None or now == allowed:
        return
    if allowed is None or now < allowed:
        yield Problem(file, 1, 15, f"stale; {WRITE}")
    else:
        text = f"{now} claims have no killed mutant in {results.NAME}, and {allowed} may"
        yield Problem(file, 1, 15, f"{text}; try those that you added or changed: {TRY}")


def legible(check: Check) -> Iterator[Problem]:
    """Rule 16: a line of code claims three requirements at most."""
    for file, line, count in crowded.lines(check.project):
        text = f"claims {count} requirements; put each beside the line that meets it"
        yield Problem(file, line, 16, text)


def focused(check: Check) -> Iterator[Problem]:
    """Rule 17: tests that claim more than eight requirements only become fewer."""
    found = list(crowded.tests(check.project))
    allowed = ratchet.load_tests(check.project)
    if len(found) < allowed:
        yield Problem(check.project.data(ratchet.NAME), 1, 17, f"stale; {WRITE}")
    for file, line, owner, count in found if len(found) > allowed else ():
        text = f"{owner} claims {count} requirements, and is no table; {allowed} such tests may"
        yield Problem(file, line, 17, text)


Rule = Callable[[Check], Iterator[Problem]]
RULES: Final[tuple[Rule, ...]] = (
    parses,
    section_exists,
    slug_known,
    claimed,
    not_replaced,
    mark_found,
    justified,
    own_words,
    snapshot_fresh,
    complete,
    driven,
    worth,
    entries,
    only_falls,
    guarded,
    legible,
    focused,
)
