"""Cutting a spec's text into sentences, and finding those that use the words of RFC 2119.

Specs are set for pages: a sentence may run over a page break, which leaves blank lines in its
midst, and may stop without a full stop, before a list or at the end of a table's row.  So text is
cut into blocks first, and blocks into sentences.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from rfc_annotations.fingerprint import locate, squeeze

# Source: RFC 2119 §1, §2, §3, §4 and §5; in capitals only, as RFC 8174 §2 has it.
KEYWORD: Final = re.compile(
    r"\b(?:MUST(?:\s+NOT)?|SHALL(?:\s+NOT)?|SHOULD(?:\s+NOT)?|REQUIRED"
    r"|(?:NOT\s+)?RECOMMENDED|MAY|OPTIONAL)\b"
)
# For specs older than that habit.  Their "may" says what can be, more often than what is allowed.
PLAIN: Final = re.compile(r"\b(?:must|shall|should|required|recommended)\b", re.IGNORECASE)
ITEM: Final = re.compile(r"\s*(?:[o*•+-]|\(?(?:\d{1,2}|[a-z])[.)])\s+\S")  # begins a list's item
NUMBER: Final = re.compile(r"\(?(?:\d{1,2}|[a-z])[.)]")  # of an item, cut off like a sentence
RULED: Final = re.compile(r"\s*[|+].*[|+]\s*|\s*[-=+|_]{4,}\s*")  # a line of a table or figure
STOPPED: Final = re.compile(r"[.:;!?][\"')\]]*\Z")
PERMITTING: Final = ("MAY", "OPTIONAL")
BESIDE: Final = 4  # letters of a mark: fewer beside a keyword are no sentence around it
PAGE_BREAK: Final = 2  # blank lines in a row that part pages rather than paragraphs
ENDS: Final = re.compile(r"[.!?][\"')\]]*\s+(?=[\"'(\[<]*[A-Z0-9])")
SHORT: Final = re.compile(r"(?:\b(?:e\.g|i\.e|cf|vs|Fig|Sec|Sect|No|approx|resp|ca)|\b[A-Z])\.\Z")


@cache
def sentences(text: str) -> tuple[str, ...]:
    """Give the sentences of a section in order, white space made even.

    >>> text = "A host MUST wait (e.g. The\\n\\n\\n\\nTimes).  Then:\\n o  Milk.\\n o  Tea"
    >>> list(sentences(text))
    ['A host MUST wait (e.g. The Times).', 'Then:', 'o Milk.', 'o Tea']
    """
    return tuple(_sentences(text))


def _sentences(text: str) -> Iterator[str]:
    for block in _blocks(text):
        start = 0
        for match in ENDS.finditer(block):
            if not SHORT.search(block, start, match.start() + 1):
                yield block[start : match.end()].strip()
                start = match.end()
        if block[start:]:
            yield block[start:]


def unmarked(text: str, marks: Iterable[str], plain: bool = False) -> Iterator[str]:
    """Yield the sentences of a section with a keyword that no mark covers.

    With `plain` the words bind in small letters too.

    >>> text = "Milk MAY come last. It must be fresh. You MUST\\nNOT spill it."
    >>> list(unmarked(text, ()))
    ['Milk MAY come last.', 'You MUST NOT spill it.']
    >>> from rfc_annotations.fingerprint import fingerprint
    >>> list(unmarked(text, [fingerprint("Milk MAY"), fingerprint("must be fresh.")]))
    ['You MUST NOT spill it.']
    >>> list(unmarked(text, (), plain=True))[0]
    'It must be fresh.'
    """
    words = PLAIN if plain else KEYWORD
    if not words.search(text):
        return
    squeezed = squeeze(text)
    marked: set[int] = set()
    for mark in marks:
        named = locate(text, mark) or ""
        stretch = squeeze(named)
        if len(squeeze(words.sub("", named))) < BESIDE:
            continue
        start = squeezed.find(stretch)
        marked.update(range(start, start + len(stretch)))
    begin = 0
    for sentence in sentences(text):
        begin = squeezed.index(squeeze(sentence), begin)
        for keyword in words.finditer(sentence):
            if begin + len(squeeze(sentence[: keyword.start()])) not in marked:
                yield sentence
                break
        begin += len(squeeze(sentence))


def keywords(text: str, marks: Iterable[str], plain: bool = False) -> set[str]:
    """Collect the words of RFC 2119 in the sentences that a section's marks name.

    >>> from rfc_annotations.fingerprint import fingerprint
    >>> sorted(keywords("It MUST NOT. It SHOULD.", [fingerprint("It MUST NOT.")]))
    ['MUST NOT']
    """
    pattern = re.compile(KEYWORD.pattern, re.IGNORECASE) if plain else KEYWORD
    named = " ".join(locate(text, mark) or "" for mark in marks)
    return {" ".join(match[0].upper().split()) for match in pattern.finditer(named)}


@dataclass(frozen=True, slots=True)
class Cover:
    """A sentence that commands: which marks hold each command, and the words outside of all."""

    text: str
    holders: tuple[frozenset[str], ...]  # one set of marks per word that binds
    left_out: str


def covers(text: str, marks: Iterable[str], plain: bool = False) -> Iterator[Cover]:
    """Yield the sentences of a section of which a mark holds a command; permissions are none.

    >>> from rfc_annotations.fingerprint import fingerprint
    >>> text = "A host MAY wait. Unless it rains, a host MUST go, and SHOULD NOT wait."
    >>> (cover,) = covers(text, [fingerprint("a host MUST go,")])
    >>> [len(held) for held in cover.holders], cover.left_out
    ([1, 0], 'Unless it rains, and SHOULD NOT wait.')
    """
    words = re.compile(KEYWORD.pattern, re.IGNORECASE) if plain else KEYWORD
    squeezed = squeeze(text)
    spans: dict[str, range] = {}
    for mark in marks:
        if stretch := squeeze(locate(text, mark) or ""):
            start = squeezed.find(stretch)
            spans[mark] = range(start, start + len(stretch))
    begin = 0
    for sentence in sentences(text):
        begin = squeezed.index(squeeze(sentence), begin)
        held = tuple(
            frozenset(mark for mark, span in spans.items() if at in span)
            for at in _commands(words, sentence, begin)
        )
        if any(held):
            yield Cover(sentence, held, _left_out(sentence, begin, spans.values()))
        begin += len(squeeze(sentence))


def items_after(text: str, lead_in: str) -> list[str]:
    """Give the items of the list that a sentence of a section leads in; none if there is none.

    >>> text = "A host MUST:\\n 1. Wait.  Long.\\n 2. Pour.\\n\\nMilk is no item."
    >>> items_after(text, "A host MUST:")
    ['1. Wait.', '2. Pour.']
    """
    found: list[str] = []
    every = sentences(text)
    end = squeeze(lead_in)
    ends = (at for at, sentence in enumerate(every, 1) if squeeze(sentence).endswith(end))
    begun = ""
    for sentence in every[next(ends, len(every)) :]:
        if NUMBER.fullmatch(sentence):
            begun = sentence
        elif begun or ITEM.match(sentence):
            found.append(f"{begun} {sentence}".strip())
            begun = ""
        elif not found:
            break
    return found


def _commands(words: re.Pattern[str], sentence: str, begin: int) -> Iterator[int]:
    """Yield where in the squeezed text the words stand that bind."""
    for match in words.finditer(sentence):
        if match[0].upper() not in PERMITTING:
            yield begin + len(squeeze(sentence[: match.start()]))


def _left_out(sentence: str, begin: int, spans: Iterable[range]) -> str:
    inside = set().union(*spans)
    left: list[str] = []
    for word in sentence.split():
        if not inside.issuperset(range(begin, begin + len(word))):
            left.append(word)
        begin += len(word)
    return " ".join(left)


def _blocks(text: str) -> Iterator[str]:
    """Yield paragraphs, items of lists, and lines of tables, each as one line."""
    words: list[str] = []
    blank = 0
    for line in text.splitlines():
        if not line.strip():
            blank += 1
            continue
        if words and (ITEM.match(line) or RULED.fullmatch(line) or _parted(words, line, blank)):
            yield " ".join(words)
            words = []
        words += line.split()
        if RULED.fullmatch(line):
            yield " ".join(words)
            words = []
        blank = 0
    if words:
        yield " ".join(words)


def _parted(words: list[str], line: str, blank: int) -> bool:
    """Whether blank lines before `line` end the sentence before it."""
    if not blank:
        return False
    stopped = STOPPED.search(words[-1]) is not None
    return stopped or (blank < PAGE_BREAK and not line.lstrip()[:1].islower())
