"""The ratchet: numbers that may only fall, and are committed.

`ratchet.toml` holds, for each spec and each section that counts, the number of its normative
sentences and the number of those that neither a requirement nor a `not-ours` entry marks.  The
second number may only fall.  A section counts once the code cites it, and goes on counting while
something in it is uncatalogued, so that nobody lowers the figure by dropping a citation.  Without
a local copy of a spec the committed numbers stand, unverified.

It holds besides, where mutants were tried, how many claims of the code have no mutant that was
killed; and how many tests claim more requirements than a reader can follow.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rfc_annotations import results, sentences
from rfc_annotations.grammar import spell
from rfc_annotations.project import Project
from rfc_annotations.specs import section_order

NAME = "ratchet.toml"
CLAIMS = "claims-without-a-killed-mutant"
TESTS = "tests-of-more-than-eight-claims"
HEADER = """\
# Per spec: the normative sentences of its whole `text`; per section that the code cites:
# [normative sentences, those of them that are not catalogued].  The last number may only fall.
# So may the number of claims of the code of whose lines mutants.txt knows no killed mutant,
# and that of tests that claim more than eight requirements and are not parametrized.
# `python -m rfc_annotations coverage --write` lowers them, and raises them never.
"""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of one spec: of its whole text, and (sentences, uncatalogued) by section."""

    text: int = 0
    sections: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def sentences(self) -> int:
        """How many normative sentences the counted sections have."""
        return sum(all_ for all_, _ in self.sections.values())

    @property
    def uncatalogued(self) -> int:
        """The number of sentences that are not catalogued."""
        return sum(lacking for _, lacking in self.sections.values())


Ratchet = Mapping[str, Numbers]


def load(project: Project) -> dict[str, Numbers]:
    """Read the committed numbers; none without the file."""
    return {
        name: Numbers(entry["text"], {key: (n[0], n[1]) for key, n in entry["sections"].items()})
        for name, entry in _document(project).items()
        if isinstance(entry, dict)
    }


def load_claims(project: Project) -> int | None:
    """Read how many claims may be without a killed mutant; None if that is not held."""
    number = _document(project).get(CLAIMS)
    return number if isinstance(number, int) else None


def load_tests(project: Project) -> int:
    """Read how many tests may claim more than eight requirements; 0 if the file does not say."""
    number = _document(project).get(TESTS)
    return number if isinstance(number, int) else 0


def _document(project: Project) -> dict[str, Any]:
    path = project.folder / NAME
    return tomllib.loads(path.read_text()) if path.is_file() else {}


def measure_claims(project: Project) -> int | None:
    """Count the claims without a killed mutant; None where no mutants were ever tried.

    Without the file of scores no claim has one, once their number has been committed.
    """
    path = project.folder / results.NAME
    if path.is_file():
        return results.without_a_kill(path, project)
    held = load_claims(project) is not None
    return sum(results.claims(project, cited) for cited in project.cited) if held else None


def measure(project: Project, committed: Ratchet) -> dict[str, Numbers]:
    """Count in the local copies; for a spec without a local copy, repeat the committed numbers."""
    counted = _counted(project, committed)
    found: dict[str, Numbers] = {}
    for name in sorted(counted):
        sections = project.library.sections(name) if name in project.library.specs else None
        if sections is None:
            if name in committed:  # a ledger of the project's own has no numbers
                found[name] = committed[name]
            continue
        plain = project.library.specs[name].plain
        whole = sum(_count(text, (), plain) for _, text in sections.values())
        marks = _marks(project, name)
        rows = {}
        for section in sorted(counted[name] & set(sections), key=section_order):
            text = sections[section][1]
            if normative := _count(text, (), plain):
                rows[section] = (normative, _count(text, marks.get(section, ()), plain))
        found[name] = Numbers(whole, rows)
    return found


def _count(text: str, marks: tuple[str, ...], plain: bool) -> int:
    return sum(1 for _ in sentences.unmarked(text, marks, plain))


def _marks(project: Project, spec: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for entry in project.catalogue.entries:
        if entry.spec == spec:
            found[entry.section] = (*found.get(entry.section, ()), *entry.marks)
    return found


def _counted(project: Project, committed: Ratchet) -> dict[str, set[str]]:
    counted: dict[str, set[str]] = {}
    for cited in project.cited:
        if project.kind(cited.file) == "code":
            counted.setdefault(cited.spec, set()).add(cited.section)
    for name, numbers in committed.items():
        lacking = {section for section, (_, lacks) in numbers.sections.items() if lacks}
        counted.setdefault(name, set()).update(lacking)
    return counted


def unverified(project: Project, names: Iterable[str]) -> list[str]:
    """Give those of `names` of which there is no local copy to count in."""
    present = set(project.library.present)
    return [name for name in names if name not in present]


def describe(project: Project, spec: str, section: str) -> str:
    """Say in a line how much of one section is catalogued."""
    sections = project.library.sections(spec)
    if sections is not None:
        plain = project.library.specs[spec].plain
        text = sections.get(section, ("", ""))[1]
        marks = _marks(project, spec).get(section, ())
        normative, lacking = _count(text, (), plain), _count(text, marks, plain)
        note = ""
    else:
        known = load(project).get(spec, Numbers()).sections.get(section)
        if known is None:
            return "no local copy, and no numbers of this section"
        (normative, lacking), note = known, " (unverified: no local copy)"
    if not normative:
        return "no normative sentence here"
    if lacking == normative:
        return f"not catalogued: none of its {normative} normative sentences{note}"
    if lacking:
        return f"not catalogued: {lacking} of its {normative} normative sentences{note}"
    return f"catalogued: all of its {normative} normative sentences{note}"


def rises(committed: Ratchet, now: Ratchet) -> Iterator[tuple[str, str, str]]:
    """Yield spec, section and a message where more sentences lack than are committed."""
    for name, numbers in now.items():
        before = committed.get(name, Numbers()).sections
        for section, (normative, lacking) in numbers.sections.items():
            _, allowed = before.get(section, (0, 0))
            if lacking > allowed:
                text = (
                    f"{spell(name, section)}: {lacking} of {normative} normative sentences are not"
                    f" catalogued, and {NAME} allows {allowed}"
                )
                yield name, section, text


def lowered(committed: Ratchet, now: Ratchet) -> dict[str, Numbers]:
    """Give the numbers to commit: all at first, later those of sections that did not rise."""
    binding = {name: numbers for name, numbers in now.items() if numbers.text}  # as `save` has it
    if not committed:
        return binding
    kept: dict[str, Numbers] = {}
    for name, numbers in binding.items():
        before = committed.get(name, Numbers()).sections
        rows = {}
        for section, row in numbers.sections.items():
            _, allowed = before.get(section, (0, 0))
            if row[1] <= allowed:
                rows[section] = row
            elif section in before:
                rows[section] = before[section]
        kept[name] = Numbers(numbers.text, rows)
    return kept


def save(path: Path, ratchet: Ratchet, claims: int | None = None, tests: int = 0) -> None:
    """Write the numbers, one section a line, so that a review shows which one moved."""
    lines = [HEADER]
    if claims is not None:
        lines.append(f"{CLAIMS} = {claims}\n")
    if tests:
        lines.append(f"{TESTS} = {tests}\n")
    if claims is not None or tests:
        lines.append("\n")
    for name, numbers in sorted(ratchet.items()):
        if not numbers.text:
            continue
        lines.append(f'["{name}"]\ntext = {numbers.text}\n\n["{name}".sections]\n')
        rows = sorted(numbers.sections.items(), key=lambda row: section_order(row[0]))
        lines += [f"{_quoted(key)} = [{all_}, {lacks}]\n" for key, (all_, lacks) in rows]
        lines.append("\n")
    path.write_text("".join(lines).rstrip("\n") + "\n")


def _quoted(key: str) -> str:
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
