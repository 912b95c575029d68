"""Where things are: the repository, its files by kind, the specs, the index and the catalogue."""

import gc
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from rfc_annotations import braces, catalogue, settings, specs
from rfc_annotations.grammar import Grammar
from rfc_annotations.scan import Cited, Kind, Scanned, scan, uncollected
from rfc_annotations.settings import Settings

SKIPPED: Final = {"build", "_build", "dist", "node_modules", "__pycache__"}
BESIDE: Final = re.compile(
    r"(?:_test\.go|\.(?:test|spec)\.[cm]?[jt]sx?)\Z"
)  # tests beside the code


@dataclass
class Project:
    """A repository whose pyproject.toml has a table of settings.

    `specs_folder` holds the local copies; None means that there are none, and that what needs
    them stays unverified.
    """

    root: Path
    specs_folder: Path | None = None
    settings: Settings = field(init=False)
    _about: tuple[str, str] | None = field(init=False, default=None)
    _kinds: dict[str, Kind] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.settings = settings.load(self.root)

    def narrow(self, spec: str, section: str) -> None:
        """Read from now on only the files that can mention this section, which is much faster."""
        self._about = (spec, section)

    @property
    def folder(self) -> Path:
        """The data: specs.toml, the index, the catalogue and what is committed of them."""
        return self.root / self.settings.folder

    @property
    def snapshot(self) -> Path:
        """The committed state of all requirements."""
        return self.folder / "coverage.txt"

    def data(self, name: str) -> str:
        """Name a file of the data as reports do, by its path in the repository."""
        return (self.folder / name).relative_to(self.root).as_posix()

    @cached_property
    def library(self) -> specs.Library:
        """The local copies of the specs in specs.toml."""
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
            found = [
                scan(self.root / file, file, kind, grammar)
                for file, kind in self._files()
                if self._about is None or _may_cite((self.root / file).read_text(), *self._about)
            ]
            gc.freeze()  # to look for garbage in all these trees takes as long as to read a third
        return found

    @cached_property
    def cited(self) -> list[Cited]:
        """Every citation in every file."""
        return [cited for scanned in self.scanned for cited in scanned.cited]

    @cached_property
    def ledgers(self) -> dict[str, str]:
        """The project's own ledgers: specs whose text is a file of the index, and that file."""
        of_specs = {name: f"index/{spec.slug}.md" for name, spec in self.library.specs.items()}
        return {
            n: self.data(file) for n, file in of_specs.items() if (self.folder / file).is_file()
        }

    def kind(self, file: str) -> Kind:
        """Say whether a file's claims count as code, as tests or not at all."""
        if file not in self._kinds:
            self._kinds[file] = self._kind(file)
        return self._kinds[file]

    def _kind(self, file: str) -> Kind:
        if file.endswith(".md"):
            return "doc"
        if _below(file, self.settings.tests) or BESIDE.search(file):
            return "test"
        if _below(file, self.settings.tools):
            return "tool"
        return "code" if _below(file, self.settings.code) else "tool"

    def must_cite(self, file: str) -> bool:
        """Whether rule 7 holds in this file."""
        edge = self.settings.need_not_cite
        return _below(file, self.settings.must_cite) and not _below(file, edge)

    def tables(self) -> Iterator[tuple[str, str]]:
        """Every TOML file and its text, the catalogue above all; less the titles of the specs."""
        for path in sorted(self._walk(".", ".toml")):
            if path != self.folder / "specs.toml":
                yield path.relative_to(self.root).as_posix(), path.read_text()

    def is_skipped(self, folder: Path) -> bool:
        """Whether nothing below is the project's own text: built, installed, ignored, a spec."""
        name = folder.name
        return (
            name in SKIPPED
            or name.startswith(".")
            or name.endswith(".egg-info")
            or folder.relative_to(self.root).as_posix() in self.settings.ignore
            or folder == self.specs_folder
            or folder == self.root / self.settings.specs
            or (folder / "pyvenv.cfg").is_file()
        )

    def _files(self) -> Iterator[tuple[str, Kind]]:
        own = self.settings
        found = {
            path
            for top in (*own.code, *own.tests, *own.tools)
            for path in self._walk(top, ".py", *braces.SUFFIXES)
        }
        found |= {path for top in own.markdown for path in self._walk(top, ".md")}
        for path in sorted(found):
            file = path.relative_to(self.root).as_posix()
            yield file, self.kind(file)

    def _walk(self, top: str, *suffixes: str) -> Iterator[Path]:
        module = self.root / top
        for path in (module, module.with_name(f"{module.name}.py")):
            if path.is_file() and path.suffix in suffixes:
                yield path
        for folder, below, files in os.walk(module):
            below[:] = sorted(name for name in below if not self.is_skipped(Path(folder, name)))
            yield from (Path(folder, name) for name in files if name.endswith(suffixes))


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


def _below(file: str, tops: Iterable[str]) -> bool:
    return any(
        top == "." or file in (top, f"{top}.py") or file.startswith(f"{top}/") for top in tops
    )
