"""Counts the normative sentences per section and per spec, and those that are catalogued.

Sentences are those of the spec with a word that binds; the ratchet says how many are catalogued (as
a requirement, or as one that does not concern us, with a reason).  Requirements are the catalogue's
entries: one may take several sentences, and a FACT stands in a sentence that has no such word.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

from rfc_annotations.catalogue import Key, Requirement
from rfc_annotations.claims import REASONED, Claims
from rfc_annotations.evidence import Evidence
from rfc_annotations.grammar import spell
from rfc_annotations.project import Project
from rfc_annotations.ratchet import Ratchet
from rfc_annotations.specs import section_order

Killed = Mapping[Key, bool]  # requirements whose lines were mutated: was every change noticed?
COLUMNS = (
    "sentences = catalogued + uncatalogued; requirements: claimed by code, tested, mutants killed"
    " (of those tried), excused"
)


@dataclass(frozen=True, slots=True)
class Count:
    """The figures of one section, or of several together."""

    sentences: int = 0
    uncatalogued: int = 0
    requirements: int = 0
    claimed: int = 0
    tested: int = 0
    excused: int = 0
    killed: int = 0
    mutated: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def catalogued(self) -> int:
        """The sentences that a requirement or a `not-ours` entry marks."""
        return self.sentences - self.uncatalogued

    def __str__(self) -> str:
        killed = f"{self.killed}/{self.mutated} killed, " if self.mutated else ""
        return (
            f"{self.sentences} = {self.catalogued} + {self.uncatalogued};"
            f" {self.requirements}: {self.claimed} claimed, {self.tested} tested,"
            f" {killed}{self.excused} excused"
        )


Counts = Mapping[str, Mapping[str, Count]]  # by spec and section


def count(
    project: Project,
    claims: Mapping[Key, Claims],
    ratchet: Ratchet,
    proof: Evidence | None = None,
    killed: Killed | None = None,
) -> Counts:
    """Count every section that the ratchet or the catalogue knows.

    With `proof` of a test run, only requirements whose test passed count as tested.
    """
    found: dict[str, dict[str, Count]] = defaultdict(lambda: defaultdict(Count))
    for name, numbers in ratchet.items():
        for section, (normative, lacking) in numbers.sections.items():
            found[name][section] += Count(normative, lacking)
    for key, item in project.catalogue.requirements.items():
        known = claims.get(key, Claims())
        found[item.spec][item.section] += _of(item, known, proof, (killed or {}).get(key))
    return {
        name: dict(sorted(rows.items(), key=lambda row: section_order(row[0])))
        for name, rows in sorted(found.items())
    }


def _of(item: Requirement, claims: Claims, proof: Evidence | None, killed: bool | None) -> Count:
    tests = claims.tests
    tested = any(proof.of(test).outcome == "passed" for test in tests) if proof else bool(tests)
    return Count(
        requirements=1,
        claimed=bool(claims.code),
        tested=tested,
        excused=claims.state(item) in REASONED,
        killed=bool(killed),
        mutated=killed is not None,
    )


def total(counts: Iterable[Count]) -> Count:
    """Add up."""
    return sum(counts, Count())


def by_spec(counts: Counts, ratchet: Ratchet, unverified: Iterable[str] = ()) -> Iterator[str]:
    """Yield one line per spec; `unverified` are those whose numbers are taken from the file."""
    for name, rows in counts.items():
        whole = ratchet[name].text if name in ratchet else 0
        note = ", unverified" if name in unverified else ""
        yield f"{name:12} {total(rows.values())} (whole text: {whole}{note})"


def by_section(counts: Counts, ratchet: Ratchet, unverified: Iterable[str] = ()) -> Iterator[str]:
    """Yield the line of each spec and, below it, one per section."""
    lines = by_spec(counts, ratchet, unverified)
    for line, (name, rows) in zip(lines, counts.items(), strict=True):
        yield line
        yield from (f"  {spell(name, section)}  {row}" for section, row in rows.items())


def headline(counts: Counts, ratchet: Ratchet) -> str:
    """One line on how many of the specs' sentences are catalogued."""
    rows = [row for sections in counts.values() for row in sections.values()]
    rows = [row for row in rows if row.sentences]
    sum_ = total(rows)
    without = sum(1 for row in rows if row.uncatalogued and not row.catalogued)
    return (
        f"{sum_.uncatalogued} of {sum_.sentences} normative sentences in {len(rows)} cited sections"
        f" are not catalogued ({without} sections have none catalogued);"
        f" the whole texts have {whole(counts, ratchet)}"
    )


def whole(counts: Iterable[str], ratchet: Ratchet) -> int:
    """How many normative sentences the specs of `counts` have, in cited sections or not."""
    return sum(ratchet[name].text for name in counts if name in ratchet)
