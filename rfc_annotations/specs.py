"""The specs: a closed list, their local copies cut into sections, and the committed index.

Only section numbers and titles are kept in the repository (`index/`), so that a citation can be
checked without any copy; the copies themselves are read from a folder that the user names.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final

from rfc_annotations.settings import SettingsError

HEADING: Final = re.compile(r"(?:Appendix |Annex )?((?:[A-Z]|\d+)(?:\.\d+)*)[.:]?\s+(\S.*)")
MARKDOWN: Final = re.compile(r"#{1,6}\s+(.+?)\s*#*\s*")
FURNITURE: Final = re.compile(r"RFC \d+ .*\d{4}\s*|.*\[Page \d+\]\s*")  # headers and footers
TITLE_WORDS: Final = 11  # an index entry is shorter than what counts as a quotation
Sections = Mapping[str, tuple[str, str]]  # number: (title, text)


@dataclass(frozen=True, slots=True)
class Spec:
    """One entry of specs.toml; `style` says how its copy, `file`, is cut into sections.

    `numbered` headings start in column 0 where nothing else does, except that one whose number is
    missing there may be indented; `sequence` is for texts that are all in column 0, whose headings
    are told by counting on; `headings` have no numbers, and `markdown` headings begin with `#`.
    `plain` means that words like "must" bind in small letters.
    """

    name: str
    title: str
    file: str = ""
    style: str = "numbered"
    furniture: str = ""
    complete: tuple[str, ...] = ()
    plain: bool = False

    @property
    def slug(self) -> str:
        """The name of its index file, less the suffix."""
        return self.name.lower().replace(" ", "")


def load(path: Path) -> dict[str, Spec]:
    """Read specs.toml; raise SettingsError, with a message of one line, where that fails."""
    try:
        entries = tomllib.loads(path.read_text())["spec"]
        specs = [
            Spec(**{**entry, "complete": tuple(entry.get("complete", ()))}) for entry in entries
        ]
        for spec in specs:
            if spec.style not in _HEADINGS:
                raise ValueError(f"unknown style {spec.style!r}")
            re.compile(spec.furniture)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}; list the specs to cite there") from None
    except (ValueError, LookupError, TypeError, AttributeError, re.error) as error:
        raise SettingsError(f"{path}: {type(error).__name__}: {error}") from None
    if len({spec.name for spec in specs}) < len(specs):
        raise SettingsError(f"{path}: two specs of one name")
    return {spec.name: spec for spec in specs}


def below(entry: str, sections: Iterable[str]) -> list[str]:
    """Expand an entry of a `complete` list into sections: `17.1`, all of `17.*`, or all: `*`.

    >>> [below(entry, ["1", "17", "17.1", "17.1.2", "171"]) for entry in ("17.1", "17.*")]
    [['17.1'], ['17', '17.1', '17.1.2']]
    >>> below("*", ["1", "17"])
    ['1', '17']
    """
    if entry == "*":
        return list(sections)
    top = entry.removesuffix(".*")
    return [s for s in sections if s == top or (top != entry and s.startswith(f"{top}."))]


def section_order(section: str) -> list[tuple[int, str]]:
    """Sort sections as a spec has them: numbers by value, appendices and headings by name.

    >>> sorted(["A.1", "10.2", "9", "10"], key=section_order)
    ['A.1', '9', '10', '10.2']
    """
    return [(int(p), "") if p.isdigit() else (0, p) for p in section.split(".")]


def cut(spec: Spec, text: str) -> Sections:
    """Cut the text of a spec into its sections, page furniture removed."""
    extra = re.compile(spec.furniture) if spec.furniture else None
    lines = [
        line
        for line in text.replace("\f", "").replace("\ufeff", "").splitlines()
        if not FURNITURE.fullmatch(line) and not (extra and extra.fullmatch(line))
    ]
    current: list[str] = []
    found: dict[str, tuple[str, list[str]]] = {"": ("", current)}  # what precedes all headings
    for line, heading in _HEADINGS[spec.style](lines):
        if heading:
            number, title = heading
            # The same number again: the first was the table of contents, or a line of a list.
            current = found[number][1] if number in found else []
            found[number] = (title, current)
        current.append(line)
    return {number: (title, "\n".join(body)) for number, (title, body) in found.items()}


Cut = Iterator[tuple[str, tuple[str, str] | None]]


def _numbered(lines: list[str]) -> Cut:
    matches = (HEADING.fullmatch(line) for line in lines)
    found = {at: (match[1], match[2]) for at, match in enumerate(matches) if match}
    tops = [(at, int(number)) for at, (number, _) in found.items() if number.isdigit()]
    for (first, number), (then, after) in pairwise(tops):
        if after == number + 2:  # RFC 1071 §2 is indented, §1 and §3 are not
            found |= _indented(str(number + 1), lines, range(first + 1, then))
    for at, line in enumerate(lines):
        yield line, found.get(at)


def _indented(number: str, lines: list[str], within: range) -> dict[int, tuple[str, str]]:
    """Find the indented heading `number`, a paragraph of its own: where, and what it says."""
    for at in within:
        match = HEADING.fullmatch(lines[at].strip())
        if match and match[1] == number and not (lines[at - 1] + lines[at + 1]).strip():
            return {at: (match[1], match[2])}
    return {}


def _sequence(lines: list[str]) -> Cut:
    last = ""
    for line in lines:
        match = HEADING.fullmatch(line)
        bare = line[:1].isalpha() and line[1:2] == " "  # "A tag is", not "Annex A. Tags"
        if match and not bare and _follows(last, match[1]):
            last = match[1]
            yield line, (match[1], re.sub(r"[\s-]{2,}\w*\s*\Z", "", match[2]))
        else:
            yield line, None


def _headings(lines: list[str]) -> Cut:
    for line in lines:
        title = line.strip()
        plain = title and line[0] not in " \t" and "   " not in title
        yield line, (title, title) if plain else None


def _markdown(lines: list[str]) -> Cut:
    fenced = False
    for line in lines:
        fenced ^= line.lstrip().startswith("```")
        match = None if fenced else MARKDOWN.fullmatch(line)
        yield line, (match[1], match[1]) if match else None


_HEADINGS: Final = {
    "numbered": _numbered,
    "sequence": _sequence,
    "headings": _headings,
    "markdown": _markdown,
}


def _follows(last: str, number: str) -> bool:
    """Does a heading `number` come next after `last`?  A text may also begin again.

    >>> [_follows("2.3.1", n) for n in ("2.3.2", "2.3.1.1", "2.4", "3", "A", "1")]
    [True, True, True, True, True, True]
    >>> [_follows("2.3.1", n) for n in ("2.0", "2.5", "4", "48", "B")]
    [False, False, False, False, False]
    """
    if number in ("1", "A") or number == f"{last}.1":
        return True
    parts = last.split(".")
    return any(
        number == ".".join([*parts[:depth], _next(parts[depth])]) for depth in range(len(parts))
    )


def _next(part: str) -> str:
    return str(int(part) + 1) if part.isdigit() else chr(ord(part[:1] or "@") + 1)


class Library:
    """The local copies of the specs, read when first asked for; `folder` None means none."""

    def __init__(self, specs: Mapping[str, Spec], folder: Path | None) -> None:
        self.specs = specs
        self.folder = folder
        self._read: dict[str, Sections] = {}

    def sections(self, name: str) -> Sections | None:
        """Give the sections of a spec, or None without a copy of it."""
        spec = self.specs[name]
        path = self.folder / spec.file if self.folder and spec.file else None
        if path is None or not path.is_file():
            return None
        if name not in self._read:
            self._read[name] = cut(spec, path.read_text(errors="replace"))
        return self._read[name]

    @cached_property
    def present(self) -> tuple[str, ...]:
        """The specs of which there is a copy."""
        there = self.folder
        return tuple(
            name for name, spec in self.specs.items() if there and (there / spec.file).is_file()
        )


def write_index(library: Library, folder: Path) -> list[Path]:
    """Write `index/<spec>.txt` for every spec with a copy: a number and a short title a line."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in library.present:
        path = folder / f"{library.specs[name].slug}.txt"
        rows = (library.sections(name) or {}).items()
        path.write_text(
            "".join(f"{number}\t{_short(title)}\n" for number, (title, _) in rows if number)
        )
        written.append(path)
    return written


def _short(title: str) -> str:
    return " ".join(title.split()[:TITLE_WORDS])


def read_index(specs: Mapping[str, Spec], folder: Path) -> dict[str, dict[str, str]]:
    """Read the index: for each indexed spec, the title of each section.

    A ledger of the project's own is its own index: the headings of `index/<spec>.md`.
    """
    index: dict[str, dict[str, str]] = {}
    for name, spec in specs.items():
        own = folder / f"{spec.slug}.md"
        path = folder / f"{spec.slug}.txt"
        if own.is_file():
            index[name] = {key: key for key in cut(spec, own.read_text()) if key}
        elif path.is_file():
            rows = (line.partition("\t") for line in path.read_text().splitlines())
            index[name] = {number: title for number, _, title in rows}
    return index
