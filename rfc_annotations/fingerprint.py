"""Marks: naming a spec's sentence without repeating it.

A mark is `length:digest`, the length of the sentence without any white space and the first 48
bits of its SHA-256.  Line breaks and page breaks change neither.
"""

import hashlib
import re
from functools import cache
from itertools import accumulate
from typing import Final

MARK: Final = re.compile(r"\d{1,5}:[0-9a-f]{12}")


def squeeze(text: str) -> str:
    """Drop all white space.

    >>> squeeze(" 64 * T1")
    '64*T1'
    """
    return "".join(text.split())


def _digest(squeezed: str) -> str:
    return hashlib.sha256(squeezed.encode()).hexdigest()[:12]


def fingerprint(sentence: str) -> str:
    """Make the mark of a sentence.

    >>> fingerprint("Once more, with feeling.") == fingerprint("Once more,   with feeling.")
    True
    """
    squeezed = squeeze(sentence)
    return f"{len(squeezed)}:{_digest(squeezed)}"


@cache
def locate(section: str, mark: str) -> str | None:
    """Find the stretch of `section` that a mark names; it starts at a word.  None if absent."""
    if not MARK.fullmatch(mark):
        return None
    length, _, digest = mark.partition(":")
    text, words, starts, ends = _cut(section)
    wanted = int(length)
    for at_an_end in (True, False):  # most stop where a word does, and a digest takes time
        for at, start in enumerate(starts):
            end = start + wanted
            if (end in ends) is at_an_end and _digest(text[start:end]) == digest:
                return _rebuild(words[at:], wanted)
    return None


@cache
def _cut(section: str) -> tuple[str, list[str], list[int], set[int]]:
    """Give a section without white space, its words, and where they begin and end."""
    words = section.split()
    bounds = list(accumulate(map(len, words), initial=0))
    return "".join(words), words, bounds[:-1], set(bounds)


def _rebuild(words: list[str], length: int) -> str:
    taken: list[str] = []
    for word in words:
        if length <= 0:
            break
        taken.append(word[:length])
        length -= len(word)
    return " ".join(taken)
