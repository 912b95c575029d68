"""What the runs of the mutants found: `mutants.txt`, a committed file with a line for each claim.

A line has a fingerprint of the code that the claim speaks of, so that a score lasts as long as that
code and no longer.  Runs add up: each writes the claims that it tried and leaves the others.  What
mutants.toml accepts is left out.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rfc_annotations.catalogue import Key
from rfc_annotations.grammar import DEPARTS, NOT_DONE, spell
from rfc_annotations.mutate import Mutator
from rfc_annotations.project import Project
from rfc_annotations.scan import Cited, is_python

if TYPE_CHECKING:
    from rfc_annotations.mutants import Trial  # which takes pytest, and time to start

NAME: Final = "mutants.txt"
HEADER: Final = (
    "# How many changes of the lines that make a claim the claim's tests noticed, by file: the\n"
    "# fingerprint of the lines, mutants killed of those tried and of those possible, day, claim.\n"
    "# Written by `make mutants`, run after run.\n"
)
LINE: Final = re.compile(r"  ([0-9a-f]{12})  (\d+)/(\d+)/(\d+)  (\d{4}-\d\d-\d\d)  (.+)")
Name = tuple[str, str, str]  # file, fingerprint of the lines, the citation as it is spelt


@dataclass(frozen=True, slots=True)
class Score:
    """The mutants of one claim: killed, tried, possible; and the day when they were tried.

    >>> print(Score(2, 3, 9, "2025-01-31"))
    2 of 3 mutants killed, of 9 possible, on 2025-01-31
    """

    killed: int
    tried: int
    possible: int
    day: str

    @property
    def survived(self) -> int:
        """The mutants that no test noticed."""
        return self.tried - self.killed

    def __str__(self) -> str:
        more = f", of {self.possible} possible" if self.tried < self.possible else ""
        return f"{self.killed} of {self.tried} mutants killed{more}, on {self.day}"


Scores = Mapping[Cited, Score]


def save(path: Path, trial: "Trial", project: Project) -> None:
    """Add what was tried to the file, and drop the lines of claims that changed or are gone."""
    killed, tried = set(trial.killed), {*trial.killed, *trial.survivors}
    spared = {(each.file, each.was, each.now) for each in trial.accepted}
    known = _read(path) if path.is_file() else {}
    touched = {mutant.file for mutant in tried}
    kept: dict[Name, Score] = {}
    for cited, name, mutator in _claims(project, touched | {file for file, _, _ in known}):
        if name in known:
            kept[name] = known[name]
        if cited.file not in touched:
            continue
        every = {m for m in mutator.of_claim(cited.line) if (m.file, m.was, m.now) not in spared}
        if mine := every & tried:
            score = Score(len(mine & killed), len(mine), len(every), date.today().isoformat())
            kept[name] = _better(kept.get(name, score), score)
    path.write_text("".join(_written(kept)), encoding="utf-8")


def load(path: Path, project: Project) -> dict[Cited, Score]:
    """Give the score of each claim whose lines are still those that were tried."""
    known = _read(path)
    found = _claims(project, {file for file, _, _ in known})
    return {cited: known[name] for cited, name, _ in found if name in known}


def without_a_kill(path: Path, project: Project) -> int:
    """Count the claims of the code of whose lines no mutant is known to have been killed."""
    guarded = {cited for cited, score in load(path, project).items() if score.killed}
    return sum(1 for cited in project.cited if claims(project, cited) and cited not in guarded)


def claims(project: Project, cited: Cited) -> bool:
    """Does a citation say that code in Python meets a requirement?"""
    declined = cited.verb in (DEPARTS, NOT_DONE)
    in_code = project.kind(cited.file) == "code" and is_python(cited.file)
    return bool(cited.slugs) and not declined and in_code


def by_requirement(scores: Scores) -> dict[Key, bool]:
    """Say of each requirement that has a score: was every mutant killed that was tried?"""
    found: dict[Key, bool] = {}
    for cited, score in scores.items():
        for slug in cited.slugs:
            key = (cited.spec, cited.section, slug)
            found[key] = found.get(key, True) and not score.survived
    return found


def _better(old: Score, new: Score) -> Score:
    """The new one, unless a smaller sample says nothing that was not known."""
    return old if new.tried < old.tried and new.survived <= old.survived else new


def _claims(project: Project, files: set[str]) -> Iterator[tuple[Cited, Name, Mutator]]:
    """Give the claims of some files, and the names that their lines have in `mutants.txt`."""
    mutators: dict[str, Mutator] = {}
    for cited in project.cited:
        declined = cited.verb in (DEPARTS, NOT_DONE)
        if cited.file not in files or not cited.slugs or declined:
            continue
        if cited.file not in mutators:
            source = (project.root / cited.file).read_text(encoding="utf-8")
            mutators[cited.file] = Mutator(cited.file, source)
        mutator = mutators[cited.file]
        slugs = " ".join(f"[{slug}]" for slug in cited.slugs)
        words = f"{spell(cited.spec, cited.section)} {slugs}"
        yield cited, (cited.file, _fingerprint(mutator.text_of_claim(cited.line)), words), mutator


def _fingerprint(lines: Iterable[str]) -> str:
    """Tell one text of a claim's lines from another, however they are spaced."""
    bare = "\n".join(" ".join(line.split()) for line in lines)
    return hashlib.sha256(bare.encode()).hexdigest()[:12]


def _read(path: Path) -> dict[Name, Score]:
    found: dict[Name, Score] = {}
    file = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith(" "):
            file = line
        elif entry := LINE.fullmatch(line):
            mark, killed, tried, possible, day, words = entry.groups()
            found[file, mark, words] = Score(int(killed), int(tried), int(possible), day)
        else:
            raise ValueError(line)
    return found


def _written(scores: Mapping[Name, Score]) -> Iterator[str]:
    yield HEADER
    last = ""
    ordered = sorted(scores.items(), key=lambda each: (each[0][0], each[0][2], each[0][1]))
    for (file, mark, words), score in ordered:
        if file != last:
            yield f"\n{file}\n"
        figures = f"{score.killed}/{score.tried}/{score.possible}"
        yield f"  {mark}  {figures}  {score.day}  {words}\n"
        last = file
