"""Promises that a change adds or drops: the difference between two coverage.txt.

Own design: a promise is a requirement of the catalogue with its state, and the files and tests
that claim it, as `report.snapshot` writes them down.
"""

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rfc_annotations.project import Project
from rfc_annotations.settings import SettingsError

HEAD: Final = re.compile(r"(?P<name>\S.* \[[a-z0-9-]+\])  (?P<level>[A-Z ]+)  (?P<state>\S.*)")
KEPT: Final = "met"  # the state of a requirement that code and tests claim


@dataclass(slots=True)
class Promise:
    """One requirement of a snapshot, and the lines below it."""

    level: str
    state: str
    claims: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Change:
    """The difference, as lines for a reader, and how many promises came, went and changed."""

    lines: list[str] = field(default_factory=list)
    added: int = 0
    dropped: int = 0
    changed: int = 0

    def __str__(self) -> str:
        return f"{self.added} promises added, {self.dropped} dropped, {self.changed} changed"


def read(snapshot: str) -> dict[str, Promise]:
    """Read the promises of a coverage.txt; the figures above them are left out."""
    found: dict[str, Promise] = {}
    current: Promise | None = None
    for line in snapshot.splitlines():
        if match := HEAD.fullmatch(line):
            current = found[match["name"]] = Promise(match["level"], match["state"])
        elif current and line.startswith("  "):
            current.claims.append(line.strip())
    return found


def compare(before: Mapping[str, Promise], now: Mapping[str, Promise]) -> Change:
    """Compare two states of all promises; a met promise that is not met any more is dropped.

    >>> old, new = Promise("MUST", "met", ["test x"]), Promise("MUST", "no test")
    >>> print(compare({"waits": old}, {"waits": new}))
    0 promises added, 1 dropped, 0 changed
    """
    change = Change()
    for name in dict.fromkeys((*before, *now)):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        was, is_ = bool(old and old.state == KEPT), bool(new and new.state == KEPT)
        change.added += is_ and not was
        change.dropped += was and not is_
        change.changed += was == is_
        change.lines += _told(name, old, new)
    return change


def _told(name: str, old: Promise | None, new: Promise | None) -> Iterator[str]:
    shown = new or old
    assert shown
    sign = "~" if old and new else "+" if new else "-"
    moved = f"{old.state} -> {new.state}" if old and new and old.state != new.state else shown.state
    yield f"{sign} {name}  {shown.level}  {moved}"
    claims, claimed = new.claims if new else [], old.claims if old else []
    yield from (f"    + {claim}" for claim in claims if claim not in claimed)
    yield from (f"    - {claim}" for claim in claimed if claim not in claims)


def at(project: Project, name: str) -> str:
    """Give the coverage.txt that `name` means: a file, or a revision of the repository."""
    if Path(name).is_file():
        return Path(name).read_text()
    file = project.data(project.snapshot.name)
    words = ["git", "-C", str(project.root), "show", f"{name}:./{file}"]
    try:
        done = subprocess.run(words, capture_output=True, text=True)
    except OSError as error:
        raise SettingsError(f"{name} is no file, and git: {error.strerror}") from None
    if done.returncode:
        said = done.stderr.strip().partition("\n")[0]
        raise SettingsError(f"{name} is neither a file nor a revision with {file}: {said}")
    return done.stdout
