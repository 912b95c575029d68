"""The requirement catalogue: the demands of each spec, in our own words, with their sections."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from rfc_annotations.fingerprint import MARK
from rfc_annotations.grammar import spell

# Source: RFC 2119 §1, §2, §3, §4 and §5; FACT is our own, for layouts and constants.
LEVELS: Final = (
    *("MUST", "MUST NOT", "REQUIRED", "SHALL", "SHALL NOT"),
    *("SHOULD", "SHOULD NOT", "RECOMMENDED", "NOT RECOMMENDED"),
    *("MAY", "OPTIONAL", "FACT"),
)
PERMISSIONS: Final = ("MAY", "OPTIONAL")  # nobody has to claim these
TARGET: Final = re.compile(r"(?P<spec>.+?) §(?P<section>\S+|\"[^\"]+\") \[(?P<slug>[a-z0-9-]+)\]")
Key = tuple[str, str, str]  # spec, section, slug


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement; `marks` name its sentences, `line` is where its file defines it."""

    spec: str
    section: str
    slug: str
    level: str
    who: str
    summary: str
    marks: tuple[str, ...]
    excused: tuple[str, ...] = ()
    why: str = ""
    replaced_by: str = ""
    as_one: str = ""  # why it may stand for several commands of one sentence
    file: str = ""
    line: int = 0

    @property
    def key(self) -> Key:
        """The name by which a claim refers to it."""
        return self.spec, self.section, self.slug

    @property
    def target(self) -> Key | None:
        """The requirement that took this one's place."""
        match = TARGET.fullmatch(self.replaced_by)
        return (match["spec"], match["section"].strip('"'), match["slug"]) if match else None

    @property
    def binding(self) -> bool:
        """Whether it needs a code claim and a test claim."""
        return self.level not in PERMISSIONS and not self.replaced_by

    def __str__(self) -> str:
        return spell(*self.key)


@dataclass(frozen=True, slots=True)
class NotOurs:
    """Sentences of a section that sound binding and that no requirement is made of, and `why`."""

    spec: str
    section: str
    marks: tuple[str, ...]
    why: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"not-ours of {spell(self.spec, self.section)}"


@dataclass(frozen=True)
class Catalogue:
    """All requirements by key, and the faults of the files: (file, line, message)."""

    requirements: Mapping[Key, Requirement]
    faults: tuple[tuple[str, int, str], ...] = ()
    not_ours: tuple[NotOurs, ...] = ()

    @property
    def entries(self) -> Iterator[Requirement | NotOurs]:
        """All entries that mark a sentence: requirements, and sentences that are declined."""
        yield from self.requirements.values()
        yield from self.not_ours

    def of(self, spec: str, section: str) -> Iterator[Requirement]:
        """Give the requirements of one section."""
        return (e for e in self._by_section.get((spec, section), ()) if isinstance(e, Requirement))

    def marks(self, spec: str, section: str) -> Iterator[str]:
        """List the marks of one section, of its requirements and of its declined sentences."""
        for entry in self._by_section.get((spec, section), ()):
            yield from entry.marks

    @cached_property
    def _by_section(self) -> Mapping[tuple[str, str], list[Requirement | NotOurs]]:
        found: dict[tuple[str, str], list[Requirement | NotOurs]] = {}
        for entry in self.entries:
            found.setdefault((entry.spec, entry.section), []).append(entry)
        return found


@dataclass(slots=True)
class _Builder:
    requirements: dict[Key, Requirement] = field(default_factory=dict)
    faults: list[tuple[str, int, str]] = field(default_factory=list)
    not_ours: list[NotOurs] = field(default_factory=list)

    def read(self, path: Path, shown: str) -> None:
        text = path.read_text()
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            self.faults.append((shown, 1, str(error)))
            return
        spec = str(document.get("spec", ""))
        for table, add in (("requirement", self._require), ("not-ours", self._decline)):
            entries = document.get(table, ())
            heads = [n for n, line in enumerate(text.splitlines(), 1) if line == f"[[{table}]]"]
            if len(heads) != len(entries):
                self.faults.append((shown, 1, f"write [[{table}]] on lines of their own"))
            for line, entry in zip(heads, entries, strict=False):
                try:
                    add(spec, entry, shown, line)
                except (KeyError, TypeError, ValueError) as error:
                    self.faults.append((shown, line, f"cannot read this {table}: {error}"))

    def _decline(self, spec: str, entry: Mapping[str, Any], file: str, line: int) -> None:
        marks = tuple(entry["marks"])
        new = NotOurs(spec, entry["section"], marks, entry.get("why", ""), file, line)
        self.faults += [(file, line, f"{new}: {text}") for text in _no_marks(marks)]
        self.not_ours.append(new)

    def _require(self, spec: str, entry: Mapping[str, Any], file: str, line: int) -> None:
        new = _requirement(spec, entry, file, line)
        complaints = list(_complaints(new))
        if new.key in self.requirements:
            complaints.append("defined twice")
        self.faults += [(new.file, new.line, f"{new}: {text}") for text in complaints]
        self.requirements[new.key] = new


def _requirement(spec: str, entry: Mapping[str, Any], file: str, line: int) -> Requirement:
    return Requirement(
        spec=spec,
        section=entry["section"],
        slug=entry["slug"],
        level=entry["level"],
        who=entry.get("who", ""),
        summary=entry["summary"],
        marks=(entry["mark"], *entry.get("also", ())),
        excused=tuple(entry.get("excused", ())),
        why=entry.get("why", ""),
        replaced_by=entry.get("replaced-by", ""),
        as_one=entry.get("as-one", ""),
        file=file,
        line=line,
    )


def _complaints(new: Requirement) -> Iterator[str]:
    if new.level not in LEVELS:
        yield f"unknown level {new.level!r}"
    if not re.fullmatch(r"[a-z0-9-]+", new.slug):
        yield "a slug has lower-case letters, digits and hyphens only"
    yield from _no_marks(new.marks)
    yield from (f"cannot excuse {x!r}" for x in new.excused if x not in ("code", "test"))
    if new.replaced_by and new.target is None:
        yield f"cannot read replaced-by = {new.replaced_by!r}"


def _no_marks(marks: tuple[str, ...]) -> Iterator[str]:
    return (f"{mark!r} is no mark" for mark in marks if not MARK.fullmatch(mark))


def _is_of(path: Path, spec: str) -> bool:
    return (
        re.search(rf'^spec\s*=\s*"{re.escape(spec)}"', path.read_text(), re.MULTILINE) is not None
    )


def load(folder: Path, root: Path, only: str | None = None) -> Catalogue:
    """Read every TOML file of `folder`, or those of one spec; report paths relative to `root`."""
    builder = _Builder()
    for path in sorted(folder.glob("*.toml")):
        if only is None or _is_of(path, only):
            builder.read(path, path.relative_to(root).as_posix())
    return Catalogue(builder.requirements, tuple(builder.faults), tuple(builder.not_ours))
