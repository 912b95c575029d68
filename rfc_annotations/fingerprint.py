"""Marks: naming a spec's sentence without repeating it.

A mark is `length:digest`, the length of the sentence without any white space and the first 48
bits of its SHA-256.  Line breaks and page breaks change neither.
"""

import hashlib
import re
from functools import cache
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
    text, wanted, start = squeeze(section), int(length), 0
    words = section.split()
    for at, word in enumerate(words):
        if _digest(text[start : start + wanted]) == digest:
            return _rebuild(words[at:], wanted)
        start += len(word)
    return None


def _rebuild(words: list[str], length: int) -> str:
    taken: list[str] = []
    for word in words:
        if length <= 0:
            break
        taken.append(word[:length])
        length -= len(word)
    return " ".join(taken)
