"""The lines of a file to show beside a requirement: those that a claim or a citation speaks of."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from rfc_annotations import braces
from rfc_annotations.anchors import DEFINITIONS, Anchors, Definition, own_lines
from rfc_annotations.scan import parsed

LONGEST: Final = 16  # lines that are shown of one place
ABOVE: Final = 2  # of them above the line that cites, where not all can be shown


@dataclass
class Excerpts:
    """What to show of the files below `root`; each is read once."""

    root: Path
    _files: dict[str, "_File | _Braces"] = field(init=False, default_factory=dict)

    def of(self, file: str, line: int) -> range:
        """Give the lines of a file to show for a citation that stands on `line`."""
        return self._read(file).around(line)

    def text(self, file: str, lines: range) -> list[str]:
        """Give the text of lines."""
        return self._read(file).lines[lines.start - 1 : lines.stop - 1]

    def _read(self, file: str) -> "_File | _Braces":
        if file not in self._files:
            text = (self.root / file).read_text()
            suffix = Path(file).suffix
            self._files[file] = _Braces(text, suffix) if braces.reads(file) else _File(text)
        return self._files[file]


class _Braces:
    def __init__(self, text: str, suffix: str) -> None:
        self.lines = text.splitlines()
        self._source = braces.Source(text, suffix)

    def around(self, line: int) -> range:
        return shortened(self._source.shown(line), line)


class _File:
    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self._anchors = Anchors(parsed(text))

    def around(self, line: int) -> range:
        told = next((lines for lines, within in self._docstrings if line in within), None)
        return shortened(told or self._of_comment(line), line)

    @cached_property
    def _docstrings(self) -> list[tuple[range, range]]:
        """What to show for each docstring, and the lines on which it stands."""
        found = []
        for node in (self._anchors.tree, *self._anchors.statements):
            if not isinstance(node, (ast.Module, *DEFINITIONS)):
                continue
            if ast.get_docstring(node, clean=False) is not None:
                text = node.body[0]
                within = range(text.lineno, (text.end_lineno or text.lineno) + 1)
                shown = _whole(node) if isinstance(node, DEFINITIONS) else within
                found.append((shown, within))
        return found

    def _of_comment(self, line: int) -> range:
        """Comments above a statement and the statement, or what begins a block and its first."""
        bare = self.lines[line - 1].lstrip()
        column = len(self.lines[line - 1]) - len(bare) if bare.startswith("#") else 0
        last = max(self._comments(line, 1), default=line) if column else line
        statement, lines = self._anchors.statement_of(last, column)
        if statement is None or isinstance(statement, DEFINITIONS):
            lines = _whole(statement) if isinstance(statement, DEFINITIONS) else range(line, line)
        elif body := getattr(statement, "body", None) or getattr(statement, "cases", None):
            first = body[0].body[0] if isinstance(body[0], ast.match_case) else body[0]
            lines = range(lines.start, max(own_lines(first).stop, lines.stop))
        start = min(self._comments(min(line, lines.start), -1), default=line)
        return range(min(start, line, lines.start), max(last + 1, lines.stop))

    def _comments(self, line: int, step: int) -> Iterator[int]:
        """Yield the lines next to `line` that are comments alone, in one direction."""
        line += step
        while 0 < line <= len(self.lines) and self.lines[line - 1].lstrip().startswith("#"):
            yield line
            line += step


def _whole(node: Definition) -> range:
    first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
    return range(first, (node.end_lineno or node.lineno) + 1)


def shortened(lines: range, line: int) -> range:
    """Take the part around `line` of what is too long to show.

    >>> shortened(range(1, 10), 5), shortened(range(1, 100), 9), shortened(range(1, 100), 99)
    (range(1, 10), range(1, 17), range(84, 100))
    >>> shortened(range(1, 100), 40)
    range(38, 54)
    """
    if len(lines) <= LONGEST or line < lines.start + LONGEST - ABOVE:
        return lines[:LONGEST]
    start = min(line - ABOVE, lines.stop - LONGEST)
    return range(start, start + LONGEST)
