"""Results as text for a terminal, as JUnit XML, and as JSON.

Own design: the text stands by specification and section, and what is not met has what was expected
and what came; the other two are for machines.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from xml.etree import ElementTree

from p2psip.sip import strict_json
from rtclab import __version__
from rtclab.conform.case import ConformCase
from rtclab.conform.runner import Outcome, Result

_MARKS = {
    Outcome.PASSED: "ok",
    Outcome.UNMET: "UNMET",
    Outcome.SKIPPED: "--",
    Outcome.ERROR: "BUG",
    Outcome.DIED: "DIED",
    Outcome.UNDECIDED: "?",
}


def section_key(case: ConformCase) -> tuple[str, list[tuple[int, str]]]:
    """Sort 8.2 before 8.10, and specifications by name."""
    parts = case.section.split(".")
    return case.spec, [(int(part), "") if part.isdigit() else (0, part) for part in parts]


def text_lines(results: Sequence[Result]) -> Iterator[str]:
    """Describe a run, by section."""
    ordered = sorted(results, key=lambda each: section_key(each.case))
    for citation, group in groupby(ordered, key=lambda each: each.case.citation):
        yield citation
        for result in group:
            case = result.case
            yield f"  {_MARKS[result.outcome]:5}  {case.level:6}  {case.name} ({case.role})"
            if result.expected:
                yield f"           expected: {result.expected}"
                yield f"           got:      {result.got}"
            elif result.got:
                yield f"           {result.got}"
    yield summary(results)
    yield from _obituary(results)


def _obituary(results: Sequence[Result]) -> Iterator[str]:
    """Say which case the target did not survive, or which ones are suspected."""
    died = [each.case.name for each in results if each.outcome is Outcome.DIED]
    if len(died) == 1:
        yield f"the target died of {died[0]}"
    elif died:
        yield f"the target died of one of {', '.join(died)}; --at-once 1 finds out which"


def case_lines(cases: Sequence[ConformCase]) -> Iterator[str]:
    """List cases without running them, one a line."""
    for case in sorted(cases, key=section_key):
        yield f"{case.citation:18} {case.level:6} {case.role:9} {case.name}: {case.summary}"


def summary(results: Sequence[Result]) -> str:
    """Count the outcomes."""
    counts = {outcome: sum(each.outcome is outcome for each in results) for outcome in Outcome}
    said = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    return f"{len(results)} cases: {said or 'none'}"


def as_json(results: Sequence[Result], protocol: str, target: str) -> str:
    """Write a run as one JSON object."""
    cases = [
        {
            "name": each.case.name,
            "citation": each.case.citation,
            "requirement": each.case.slug,
            "level": each.case.level,
            "role": each.case.role,
            "summary": each.case.summary,
            "outcome": each.outcome.value,
            "expected": each.expected,
            "got": each.got,
            "seconds": round(each.seconds, 3),
        }
        for each in results
    ]
    about = {"siprtmp": __version__, "protocol": protocol, "target": target}
    return strict_json.dumps(about | {"cases": cases}, indent=1)


def as_junit(results: Sequence[Result], protocol: str, strict: bool) -> bytes:
    """Write a run as JUnit XML; a SHOULD that is not met is skipped there unless `strict`."""
    suite = ElementTree.Element("testsuite", name=f"conform {protocol}", tests=str(len(results)))
    for each in results:
        name = f"{each.case.citation} {each.case.title}"
        element = ElementTree.SubElement(
            suite, "testcase", classname=each.case.role, name=name, time=f"{each.seconds:.3f}"
        )
        said = f"expected {each.expected}, got {each.got}" if each.expected else each.got
        if each.fails(strict):
            ElementTree.SubElement(element, "failure", message=_printable(said))
        elif each.outcome is Outcome.ERROR:
            ElementTree.SubElement(element, "error", message=_printable(said))
        elif each.outcome is not Outcome.PASSED:
            ElementTree.SubElement(element, "skipped", message=_printable(said))
    for kind in ("failure", "error", "skipped"):
        count = len(suite.findall(f"testcase/{kind}"))
        suite.set({"failure": "failures", "error": "errors"}.get(kind, kind), str(count))
    written: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return written


def _printable(text: str) -> str:
    """XML has no way to write control characters, and a target may send any."""
    return "".join(char if char.isprintable() else "?" for char in text)
