"""The report of a comparison as lines of text, for a terminal.

Own design: findings stand below their clause, each with the line that was asked, so that it can be
asked again by hand, and with the fields of its octets.
"""

import json
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Final, TextIO

from rtclab.oracle import pieces
from rtclab.oracle.codec import Codec
from rtclab.oracle.compare import Finding, Report
from rtclab.oracle.neutral import Json

AT_A_TERMINAL: Final = 1.0  # s between two lines of progress
IN_A_LOG: Final = 10.0
_LONGEST: Final = 600  # characters of one line


def lines(codec: Codec, report: Report, seed: int) -> Iterator[str]:
    """Write a summary, the findings by clause, and what could not be compared."""
    count, cases = len(report.findings), f"{report.cases} case{'s' * (report.cases != 1)}"
    verdict = f"{count} disagreement{'s' * (count != 1)}, in {report.failed} of {cases}"
    verdict = verdict if count else f"no disagreement in {cases}"
    until = "; interrupted, so there may be more" if report.interrupted else ""
    yield f"{codec.name}: {verdict} (seed {seed}){until}"
    for clause, findings in groupby(report.findings, lambda finding: finding.clause):
        yield from ("", clause)
        for finding in findings:
            yield from _finding(codec, finding)
    if report.skipped:
        yield f"skipped by the program: {report.skipped}"
    for what, names in (
        ("left out by the program, and not compared", report.members.missing),
        ("unknown, and not compared", report.members.unknown),
    ):
        if names:
            yield f"{what}: {', '.join(sorted(names))}"


class Progress:
    """Says on a stream how far a comparison is: once a second at a terminal, else rarely.

    Own design: a terminal's line is written over; a log gets a line of its own each time.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        self._stream, self._clock, self._said = stream, clock, clock()
        self._is_terminal = stream.isatty()
        self._every = AT_A_TERMINAL if self._is_terminal else IN_A_LOG

    def tell(self, line: str) -> None:
        """Say this, unless something was said a moment ago."""
        if self._clock() - self._said >= self._every:
            self._said = self._clock()
            ends = ("\r\x1b[K", "") if self._is_terminal else ("", "\n")
            print(f"{ends[0]}{line}", end=ends[1], file=self._stream, flush=True)

    def end(self) -> None:
        """Clear the line of a terminal for the report."""
        if self._is_terminal:
            print("\r\x1b[K", end="", file=self._stream, flush=True)


def _finding(codec: Codec, finding: Finding) -> Iterator[str]:
    yield f"  {finding.case.kind} input {finding.what}"
    yield f"    asked     {_short(finding.asked)}"
    yield f"    expected  {_shown(finding.expected)}"
    yield f"    answered  {_shown(finding.answered)}"
    for line in pieces.lines(codec.name, finding.octets, finding.place):
        yield f"      {line}"


def _shown(value: Json) -> str:
    return _short(value if isinstance(value, str) else json.dumps(value))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
