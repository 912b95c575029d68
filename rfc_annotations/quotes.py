"""Rule 8: prose that repeats a spec, found by comparing runs of twelve words.

Our own text is cut into runs first; the specs, which are much longer, only stream past them.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from rfc_annotations.scan import Prose

RUN: Final = 12  # words in a row that nobody writes twice by chance
LITERAL_RUN: Final = 60  # what a string or table may repeat on a line that cites its source
WORD: Final = re.compile(r"\w+")
Run = tuple[str, ...]


def runs(text: str) -> Iterator[Run]:
    """Yield every twelve words in a row, case and punctuation dropped.

    >>> len(list(runs("one " * 13)))
    2
    """
    words = WORD.findall(text.lower())
    return zip(*(words[start:] for start in range(RUN)), strict=False)


def _telling(run: Run) -> bool:
    """Leave out the rulers of bit diagrams and the like, which are no prose."""
    return sum(not word.isdigit() for word in run) > RUN // 4


def repeated(ours: Iterable[Prose], texts: Iterable[str]) -> set[Run]:
    """Give the runs of our text that stand in one of `texts` too."""
    mine = {run for prose in ours for run in runs(prose.text)}
    found: set[Run] = set()
    for text in texts:
        found |= mine.intersection(runs(text))
    return set(filter(_telling, found))


def quotations(prose: Prose, known: set[Run]) -> Iterator[tuple[int, int]]:
    """Yield (line, words) for each stretch of `prose` that repeats more than it may."""
    limit = LITERAL_RUN if prose.literal and prose.cites else RUN
    if known.isdisjoint(runs(prose.text)):
        return
    length = 0
    start = 0
    for at, run in enumerate([*runs(prose.text), None]):
        if run in known:
            start = start if length else at
            length += 1
            continue
        if length and length + RUN - 1 >= limit:
            yield prose.line + _lines_before(prose.text, start), length + RUN - 1
        length = 0


def _lines_before(text: str, word: int) -> int:
    """Count the line breaks in `text` before its word number `word`."""
    for at, match in enumerate(WORD.finditer(text)):
        if at == word:
            return text.count("\n", 0, match.start())
    return 0
