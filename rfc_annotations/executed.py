"""Which lines a run has executed, as the JSON of gcov and of llvm-cov tells it.

`gcov --json-format` (compressed or not; gcovr's JSON is alike) counts lines; `llvm-cov export`
counts regions, out of which lines are made as LLVM does.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rfc_annotations.scan import Cited

GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Executed:
    """How often each line ran, by file of the repository; lines without code have no number."""

    counts: Mapping[str, Mapping[int, int]]

    def knows(self, file: str) -> bool:
        """Whether the file was compiled to be counted."""
        return file in self.counts

    def ran(self, claim: Cited) -> bool:
        """Whether one of the lines that a claim stands for ran, or there is none to run."""
        counts = self.counts.get(claim.file, {})
        return not claim.anchor or any(counts.get(line, 0) for line in claim.anchor)


def load(paths: Iterable[Path], root: Path) -> Executed:
    """Read and add up; raises OSError, or ValueError or the like where it is something else."""
    found: dict[str, dict[int, int]] = {}
    for path in paths:
        data = path.read_bytes()
        text = gzip.decompress(data) if data.startswith(GZIP) else data
        for line in _documents(text.decode()):
            for name, counts in _files(line):
                file = _below(Path(name), root)
                known = found.setdefault(file, {})
                for number, count in counts:
                    known[number] = known.get(number, 0) + count
    return Executed(found)


def _documents(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the documents of a file: one, or one after the other, as `gcov --stdout` prints."""
    decoder, text = json.JSONDecoder(), text.strip()
    while True:
        document, at = decoder.raw_decode(text)
        yield document
        text = text[at:].lstrip()
        if not text:
            return


def _files(document: Mapping[str, Any]) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    if "data" in document:  # of LLVM
        for export in document["data"]:
            for file in export["files"]:
                yield file["filename"], list(_of_segments(file["segments"]))
        return
    folder = document.get("current_working_directory", "")
    for file in document["files"]:
        lines = [(line["line_number"], line["count"]) for line in file["lines"]]
        yield str(Path(folder, file["file"])), lines


def _of_segments(segments: Iterable[list[Any]]) -> Iterator[tuple[int, int]]:
    """Count lines by segments: [line, column, count, has a count, begins a region, is a gap].

    A line has the count of what goes on from above, or that of a region which begins on it.

    >>> list(_of_segments([[1, 9, 2, True, True], [2, 5, 0, True, True], [4, 2, 0, False, False]]))
    [(1, 2), (2, 2), (3, 0), (4, 0)]
    """
    by_line: dict[int, list[list[Any]]] = {}
    for segment in segments:
        by_line.setdefault(segment[0], []).append(segment)
    above: list[Any] | None = None
    for line in range(min(by_line, default=0), max(by_line, default=-1) + 1):
        here = by_line.get(line, [])
        begun = [s[2] for s in here if s[3] and s[4] and not (len(s) > 5 and s[5])]
        skipped = bool(here) and not here[0][3] and here[0][4]
        counted = above is not None and above[3]
        if not skipped and (begun or counted):
            yield line, max([*begun, above[2] if above and counted else 0])
        above = here[-1] if here else above


def _below(path: Path, root: Path) -> str:
    """Name a file as reports do, by its path in the repository."""
    full = (root / path).resolve()
    return full.relative_to(root).as_posix() if full.is_relative_to(root) else full.as_posix()
