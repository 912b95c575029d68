"""Citations as text: find them, and notice those that almost are.

A citation is a spec, a section, and any number of claims in square brackets; README.md has the
whole grammar.  Nothing here knows a file or a line: offsets into the text go in and out.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

SECTION: Final = r"""(?:(?:[A-Z]|\d+)(?:\.\d+)*(?!\.?\w)|"[^"]{1,120}")"""
SLUGS: Final = re.compile(r"\[([a-z0-9-]+)\]")
DEPARTS: Final = "Departs from"
NOT_DONE: Final = "Not done:"
VERB: Final = re.compile(r"(Implements|Covers|Source:|Departs from|Not done:)\s+\Z")
REASON: Final = re.compile(r"\s*:\s*\w(?:[^\s.]*\s+){2}\S")  # three words at least
OWN_DESIGN: Final = re.compile(r"\bOwn\s+design:\s+\S")
# A § that means something: a word, a heading or, one space too far, a number follows.  Or the
# word for it, beside an RFC.
MEANT: Final = re.compile(
    r"""§(?=[\w"]|\s+\d)
    |\bRFC\s*\d+,?\s+\(?(?i:section|appendix)\s+(?:\d|[A-Z]\b)
    |\b(?i:section|appendix)\s+[A-Z\d][\d.]*\s+(?:of|in)\s+RFC\s*\d""",
    re.VERBOSE,
)
# A bracket that a citation leaves over: what wants to be a claim, and is no link.
STRAY: Final = re.compile(r"(?:,|;|/|,?\s+(?:and|or))?\s*\[[\w-]+\](?![(\[])")
CHAIN: Final = re.compile(r"\s*(?:[,/]|,?\s+(?:and|or|to))?\s+")  # between sections of one spec
BODIES: Final = ("RFC", "ISO", "ITU", "IEEE")  # they publish specs: what follows one names one
ASTRAY: Final = re.compile(r"\b(?P<name>(?i:rfc)\s*\d+)[,:]?\s*\Z")  # not as the list spells it


@dataclass(frozen=True, slots=True)
class Citation:
    """One citation: `start` is its offset; `spec` is None when it leaves that to the default.

    `chained` is the spec of the citation that this one continues: `RFC 3261 §9, §15`.
    """

    start: int
    spec: str | None
    section: str
    slugs: tuple[str, ...]
    verb: str
    chained: str | None = None


@dataclass(frozen=True, slots=True)
class Mistake:
    """Something at offset `start` that looks like a citation and is none."""

    start: int
    message: str


class Grammar:
    """The citations that a closed list of spec names allows."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)
        spelled = sorted(self.names, key=len, reverse=True)
        specs = "|".join(re.escape(name).replace(r"\ ", r"\s+") for name in spelled)
        self._citation = re.compile(
            rf"(?:\b(?P<spec>{specs})\s+)?§(?P<section>{SECTION})"
            rf"(?P<slugs>(?:\s+\[[a-z0-9-]+\])*)"
        )
        self._implements = re.compile(rf"\bImplements\s+(?P<spec>{specs})\b")
        self._stranger = _stranger(self.names)

    def parse(self, text: str) -> Iterator[Citation | Mistake]:
        """Yield the citations in `text`, in order, and the faulty ones."""
        if "§" not in text and "RFC" not in text:  # as in most texts; all patterns need one
            return
        done = 0
        last: str | None = None
        for match in self._citation.finditer(text):
            yield from _meant(text, done, match.start())
            chained = last if CHAIN.fullmatch(text, done, match.start()) else None
            item = _citation(text, match, chained, self._stranger)
            yield item
            done = match.end()
            last = (item.spec or chained) if isinstance(item, Citation) else None
        yield from _meant(text, done, len(text))

    def default(self, text: str) -> str | None:
        """Give the spec that `text` says it implements, whole or by section: the first one."""
        match = self._implements.search(text)
        return " ".join(match["spec"].split()) if match else None


def _meant(text: str, start: int, end: int) -> Iterator[Mistake]:
    for match in MEANT.finditer(text, start, end):
        yield Mistake(match.start(), f"cannot read the section in {_excerpt(text, match.start())}")


def _stranger(names: Iterable[str]) -> re.Pattern[str]:
    """Match what stands before a section and wants to be a spec; only the closed list may be one.

    >>> [bool(_stranger(["AMF0", "FLV 10.1"]).search(f"{n} ")) for n in ("AMF", "FLV 9", "BYE")]
    [True, True, False]
    """
    families = {match[0] for name in names if (match := re.match(r"[^\W\d]+(?:-[^\W\d]+)*", name))}
    listed = "|".join(map(re.escape, sorted(families.union(BODIES), key=len, reverse=True)))
    return re.compile(rf"\b(?P<name>(?:{listed})(?:[ -]?v?\d[\w.-]*)?)\s+\Z")


def _citation(
    text: str, match: re.Match[str], chained: str | None, known: re.Pattern[str]
) -> Citation | Mistake:
    before = text[max(0, match.start() - 40) : match.start()]
    verb = VERB.search(before)
    if match["spec"] is None and (stranger := known.search(before)):
        return Mistake(match.start(), f"unknown spec {stranger['name']!r}")
    if match["spec"] is None and (astray := ASTRAY.search(before)):
        return Mistake(match.start(), f"{astray['name']!r} is not spelled right before its section")
    if stray := STRAY.match(text, match.end()):
        return Mistake(match.start(), f"cannot read the claim in {match[0] + stray[0]!r}")
    if verb and verb[1] in (DEPARTS, NOT_DONE) and not REASON.match(text, match.end()):
        return Mistake(match.start(), f"{verb[1].rstrip(':')!r} gives no reason after a colon")
    return Citation(
        start=match.start(),
        spec=" ".join(match["spec"].split()) if match["spec"] else None,
        section=" ".join(match["section"].strip('"').split()),
        slugs=tuple(SLUGS.findall(match["slugs"])),
        verb=verb[1] if verb else "",
        chained=chained,
    )


def _excerpt(text: str, start: int) -> str:
    return repr(" ".join(text[start : start + 24].split()))


def spell(spec: str, section: str, slug: str = "") -> str:
    """Write a citation in its canonical form.

    >>> spell("RFC 3261", "17.1.3", "match-branch")
    'RFC 3261 §17.1.3 [match-branch]'
    >>> spell("E-RTMP v2", "Enhanced Video")
    'E-RTMP v2 §"Enhanced Video"'
    """
    plain = re.fullmatch(SECTION, section) is not None
    return f"{spec} §{section if plain else chr(34) + section + chr(34)}{slug and f' [{slug}]'}"
