"""The report of a comparison as lines of text, for a terminal.

Own design: findings stand below their clause, each with the line that was asked, so that it can be
asked again by hand, and with the fields of its octets.
"""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from siprtmp.oracle import pieces
from siprtmp.oracle.codec import Codec
from siprtmp.oracle.compare import Finding, Report
from siprtmp.oracle.neutral import Json

_LONGEST: Final = 600  # characters of one line


def lines(codec: Codec, report: Report, seed: int) -> Iterator[str]:
    """Write a summary, the findings by clause, and what could not be compared."""
    count, cases = len(report.findings), f"{report.cases} case{'s' * (report.cases != 1)}"
    verdict = f"{count} disagreement{'s' * (count != 1)}, in {report.failed} of {cases}"
    yield f"{codec.name}: {verdict if count else f'no disagreement in {cases}'} (seed {seed})"
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
