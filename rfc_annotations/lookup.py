"""Finds a section, or a requirement, from abbreviated words on the command line.

A spec may be written without blanks, in small letters, by its number or by its first word alone; a
section with or without the sign, or as words of its heading.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Final

from rfc_annotations.catalogue import Catalogue
from rfc_annotations.grammar import spell
from rfc_annotations.specs import Spec

NOISE: Final = re.compile(
    r"\[[\w-]*\]|[§\"']|\b(?:sections?|sec|appendix|annex)\b\.?", re.IGNORECASE
)
NUMBER: Final = re.compile(r"(?:[A-Z]|\d+)(?:\.\d+)*", re.IGNORECASE)
NAMED: Final = re.compile(r'^slug = "(.+)"', re.MULTILINE)
SLUG: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")
Index = Mapping[str, Mapping[str, str]]
Place = tuple[str, str]  # spec and section


@dataclass(frozen=True, slots=True)
class Found:
    """The sections that typed words may mean; `specs` are the named ones, `rest` the words left."""

    places: tuple[Place, ...]
    specs: tuple[str, ...]
    rest: str


def find_section(text: str, specs: Mapping[str, Spec], index: Index) -> Found:
    """Read the name of a section as it may be typed.

    >>> known = {n: Spec(n, "", "") for n in ("RFC 3261", "RTMP 1.0", "RTMP Errata", "E-RTMP v2")}
    >>> index = {"RFC 3261": {"16.6": "Request Forwarding"}, "RTMP 1.0": {"5.3.1.3": "Extended"},
    ...     "RTMP Errata": {"1": "Notes"}, "E-RTMP v2": {"Enhanced Video": "Enhanced Video"}}
    >>> typed = ("rfc3261 16.6", "3261 section 16.6.", "RTMP 5.3.1.3", "ertmpv2 enhanced video",
    ...     "RFC 3261 forwarding")
    >>> for text in typed:
    ...     print(find_section(text, known, index).places)
    (('RFC 3261', '16.6'),)
    (('RFC 3261', '16.6'),)
    (('RTMP 1.0', '5.3.1.3'),)
    (('E-RTMP v2', 'Enhanced Video'),)
    (('RFC 3261', '16.6'),)
    """
    words = NOISE.sub(" ", text).split()
    read = Found((), (), " ".join(words))
    longest = max((len(name.split()) for name in specs), default=0) + 1  # "E-RTMP v 2" has three
    for taken in range(min(longest, len(words)), 0, -1):
        named = _named(_bare("".join(words[:taken])), specs)
        rest = " ".join(words[taken:]).rstrip(".:,")
        places = tuple(
            (name, section) for name in named for section in _sections(rest, index.get(name, {}))
        )
        if places:
            return Found(_closest(places, rest), tuple(named), rest)
        if named and not read.specs:
            read = Found((), tuple(named), rest)
    return read


def of_slug(text: str, folder: Path) -> tuple[Place, ...]:
    """Give the sections that have a requirement of the name which `text` ends in.

    The catalogue is searched as text, since reading it takes longer than all the rest.
    """
    slug = text.strip("[] ").rpartition(" ")[2].strip("[]")
    if not SLUG.fullmatch(slug):
        return ()
    found: dict[Place, None] = {}
    for path in sorted(folder.glob("*.toml")):
        toml = path.read_text()
        if f'slug = "{slug}"' in toml:
            document = tomllib.loads(toml)
            named = [e["section"] for e in document["requirement"] if e["slug"] == slug]
            found |= dict.fromkeys((document["spec"], section) for section in named)
    return tuple(found)


def near_slugs(slug: str, folder: Path) -> list[str]:
    """List the requirements with longer names than one that does not exist, or else similar."""
    texts = (path.read_text() for path in sorted(folder.glob("*.toml")))
    known = sorted({name for text in texts for name in NAMED.findall(text)})
    longer = [name for name in known if name.startswith(f"{slug}-")]
    return longer or difflib.get_close_matches(slug, known)


def _bare(text: str) -> str:
    return re.sub(r"[\W_]", "", text).lower()


def _named(typed: str, specs: Iterable[str]) -> list[str]:
    """Give the specs that one word, less its punctuation, may name: the exact one, or several."""
    exact = [name for name in specs if typed in (_bare(name), _bare(name).removeprefix("rfc"))]
    return exact or [name for name in specs if typed == _bare(name.partition(" ")[0])]


def _sections(typed: str, known: Mapping[str, str]) -> list[str]:
    """Give the sections that `typed` may mean: by number, by heading, or by words of a title."""
    if not typed:
        return []
    exact = [key for key in known if _bare_number(key) == _bare_number(typed)]
    if exact or NUMBER.fullmatch(typed):
        return exact
    words = typed.lower().split()
    return [key for key, title in known.items() if all(w in title.lower() for w in words)]


def _bare_number(text: str) -> str:
    return text.lower() if NUMBER.fullmatch(text) else _bare(text)


def _closest(places: tuple[Place, ...], typed: str) -> tuple[Place, ...]:
    exact = tuple(place for place in places if _bare_number(place[1]) == _bare_number(typed))
    return exact or places


def near(section: str, known: Iterable[str]) -> list[str]:
    """List sections near one that does not exist: its nearest parent and the sections below that.

    >>> near("17.1.9", ["17", "17.1", "17.1.1", "17.2"])
    ['17.1', '17.1.1']
    """
    listed = list(known)
    while section:
        inside = [s for s in listed if s == section or s.startswith(f"{section}.")]
        if inside:
            return inside
        section = section.rpartition(".")[0]
    return []


def find(words: Iterable[str], catalogue: Catalogue, index: Index) -> Iterator[str]:
    """Yield the requirements, and the sections without any, that have all the words.

    A word may also be the beginning of a longer one, or the name of a spec.  The requirements whose
    names have all the words come first.
    """
    wanted = [_Word(word, index) for word in words]
    titled = {(n, section): title for n, known in index.items() for section, title in known.items()}
    found: list[tuple[bool, str]] = []
    for item in catalogue.requirements.values():
        title = titled.get((item.spec, item.section), "")
        text = f"{item} {title} {item.level} {item.who} {item.summary}"
        if all(word.is_in(text, item.spec) for word in wanted):
            is_named = all(word.is_in(item.slug, item.spec) for word in wanted)
            found.append((not is_named, f"{item}  {item.level}, {item.who}: {item.summary}"))
    yield from (line for _, line in sorted(found, key=itemgetter(0)))
    catalogued = {(item.spec, item.section) for item in catalogue.requirements.values()}
    for place, title in titled.items():
        text = f"{spell(*place)} {title}"
        if place not in catalogued and all(word.is_in(text, place[0]) for word in wanted):
            yield f"{spell(*place)}  {title}  (not catalogued)"


class _Word:
    """A word that is looked for."""

    def __init__(self, typed: str, specs: Iterable[str]) -> None:
        self._pattern = re.compile(rf"(?<!\w){re.escape(typed)}", re.IGNORECASE)
        self._specs = _named(_bare(typed), specs)

    def is_in(self, text: str, spec: str) -> bool:
        return spec in self._specs or self._pattern.search(text) is not None
