"""Summary of a run's skips, in five lines at its end: how many tests, and what is missing.

Without peers some hundred tests are skipped, mostly for a few programs.  `-rs` names each.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest

MAX_ROWS = 4  # below the line with the sum
PROGRAM = re.compile(r"(\S+) is not installed")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it, if anything was left out."""
    skipped = terminalreporter.stats.get("skipped", ())
    for line in summary(Counter(_reason(report) for report in skipped)):
        terminalreporter.write_line(line)


def summary(reasons: Mapping[str, int]) -> Iterator[str]:
    """Yield at most five lines about `reasons` and how many tests each of them kept away."""
    if not reasons:
        return
    rows = Counter[str]()
    programs = {match[1]: count for why, count in reasons.items() if (match := PROGRAM.match(why))}
    if programs:
        rows[f"for programs (make peers): {', '.join(sorted(programs))}"] = sum(programs.values())
    rows.update({why: count for why, count in reasons.items() if not PROGRAM.match(why)})
    yield f"{sum(reasons.values())} tests are skipped; -rs says which:"
    shown = rows.most_common(MAX_ROWS if len(rows) <= MAX_ROWS else MAX_ROWS - 1)
    yield from (f"{count:6} {why}" for why, count in shown)
    if len(shown) < len(rows):
        rest = rows.total() - sum(count for _, count in shown)
        yield f"{rest:6} for {len(rows) - len(shown)} other reasons"


def _reason(report: pytest.TestReport) -> str:
    place = report.longrepr
    return place[2].removeprefix("Skipped: ") if isinstance(place, tuple | list) else str(place)
