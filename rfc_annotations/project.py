"""Where things are: the repository, its files by kind, the specs, the index and the catalogue."""

import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from rfc_annotations import catalogue, specs
from rfc_annotations.grammar import Grammar
from rfc_annotations.scan import Cited, Kind, Scanned, scan, uncollected

SKIPPED: Final = {"build", "_build", "dist", "node_modules", "__pycache__"}
TOOL: Final = "rfc_annotations"


@dataclass
class Project:
    """A repository with an `rfc_annotations` folder at its top.

    `specs_folder` holds the local copies; None means that there are none, and that what needs
    them stays unverified.
    """

    root: Path
    specs_folder: Path | None = None
    _settings: dict[str, Any] = field(init=False)
    _about: tuple[str, str] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._settings = tomllib.loads((self.folder / "project.toml").read_text())

    def narrow(self, spec: str, section: str) -> None:
        """Read from now on only the files that can mention this section, which is much faster."""
        self._about = (spec, section)

    @property
    def folder(self) -> Path:
        """The tool's own data."""
        return self.root / TOOL

    @property
    def snapshot(self) -> Path:
        """The committed state of all requirements."""
        return self.folder / "coverage.txt"

    @cached_property
    def library(self) -> specs.Library:
        """The local copies of the closed list of specs."""
        return specs.Library(specs.load(self.folder / "specs.toml"), self.specs_folder)

    @cached_property
    def index(self) -> dict[str, dict[str, str]]:
        """The titles of the sections that may be cited."""
        return specs.read_index(self.library.specs, self.folder / "index")

    @cached_property
    def catalogue(self) -> catalogue.Catalogue:
        """The requirements."""
        only = self._about[0] if self._about else None
        return catalogue.load(self.folder / "requirements", self.root, only)

    @cached_property
    def scanned(self) -> list[Scanned]:
        """Every file, read."""
        grammar = Grammar(self.library.specs)
        with uncollected():
            return [
                scan(self.root / file, file, kind, grammar)
                for file, kind in self._files()
                if self._about is None or _may_cite((self.root / file).read_text(), *self._about)
            ]

    @cached_property
    def cited(self) -> list[Cited]:
        """Every citation in every file."""
        return [cited for scanned in self.scanned for cited in scanned.cited]

    def kind(self, file: str) -> Kind:
        """Say whether a file's claims count as code, as tests or not at all."""
        if file.endswith(".md"):
            return "doc"
        if _below(file, self._settings["tests"]):
            return "test"
        return "code" if _below(file, self._settings["code"]) else "tool"

    def must_cite(self, file: str) -> bool:
        """Whether rule 7 holds in this file."""
        edge: list[str] = self._settings["need_not_cite"]
        return _below(file, self._settings["must_cite"]) and not _below(file, edge)

    def tables(self) -> Iterator[tuple[str, str]]:
        """Every TOML file and its text, the catalogue above all; less the titles of the specs."""
        for path in sorted(_walk(self.root, ".toml")):
            if path != self.folder / "specs.toml":
                yield path.relative_to(self.root).as_posix(), path.read_text()

    def astray(self) -> list[str]:
        """List the places of rule 7's settings that do not exist."""
        named = [*self._settings["must_cite"], *self._settings["need_not_cite"]]
        return [top for top in named if not _exists(self.root / top)]

    def _files(self) -> Iterator[tuple[str, Kind]]:
        settings = self._settings
        python = (*settings["code"], *settings["tests"], *settings["tools"])
        found = {path for top in python for path in _walk(self.root / top, ".py")}
        found |= {path for top in settings["markdown"] for path in _walk(self.root / top, ".md")}
        for path in sorted(found):
            file = path.relative_to(self.root).as_posix()
            yield file, self.kind(file)


def _may_cite(text: str, spec: str, section: str) -> bool:
    """Can `text` cite this section?  Then it has the sign, the section and the spec's words.

    >>> [_may_cite(f"RFC\\n3261 §{tail}", "RFC 3261", "16.6") for tail in ("16.6.", "16.66", "16")]
    [True, False, False]
    >>> _may_cite("Field §%s" % '"Digest\\nhandshake"', "Field", "Digest handshake")
    True
    """
    words = section.split()
    if "§" not in text or not all(word in text for word in (*spec.split(), *words)):
        return False
    return re.search(rf'§"?\s*{re.escape(words[0])}(?!\.?\w)', text) is not None


def _exists(top: Path) -> bool:
    return top.is_dir() or top.with_name(f"{top.name}.py").is_file()


def _below(file: str, tops: list[str]) -> bool:
    return any(file in (top, f"{top}.py") or file.startswith(f"{top}/") for top in tops)


def _walk(top: Path, suffix: str) -> Iterator[Path]:
    for folder, below, files in os.walk(top):
        below[:] = sorted(
            name
            for name in below
            if name not in SKIPPED and not name.startswith(".") and not name.endswith(".egg-info")
        )
        yield from (Path(folder, name) for name in files if name.endswith(suffix))
