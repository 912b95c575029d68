"""Runs cases against a target, a few at the same time.

Own design: what the target does is judged, and nothing else, so that a bug of a case is told apart
from a requirement that is not met, and the next case runs all the same.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import gevent
from gevent.lock import BoundedSemaphore

from siprtmp.conform.case import ConformCase, NotApplicable, Suite, Unmet, Unreachable


class Outcome(StrEnum):
    """What became of a case."""

    PASSED = "passed"
    UNMET = "unmet"
    SKIPPED = "skipped"  # not applicable
    ERROR = "error"  # the case itself is broken


@dataclass(frozen=True, slots=True)
class Result:
    """A case that ran."""

    case: ConformCase
    outcome: Outcome
    expected: str = ""
    got: str = ""  # or the reason
    seconds: float = 0.0

    def fails(self, strict: bool) -> bool:
        """Tell whether to blame the target: for a SHOULD only if `strict`, for a MAY never."""
        blamed = ("MUST", "SHOULD") if strict else ("MUST",)
        return self.outcome is Outcome.UNMET and self.case.level in blamed


def run(suite: Suite, target: str, cases: Sequence[ConformCase], timeout: float) -> list[Result]:
    """Run cases, each for `timeout` seconds at most; results stand in the order of the cases.

    Those that are to be `alone` run one after another, beside the others.
    """
    places = {False: BoundedSemaphore(suite.at_once), True: BoundedSemaphore(1)}

    def wait_and_run(case: ConformCase) -> Result:
        with places[case.alone]:
            return run_case(suite, target, case, timeout)

    jobs = [gevent.spawn(wait_and_run, case) for case in cases]
    try:
        return [job.get() for job in jobs]
    finally:
        suite.leave(target, cases)


def run_case(suite: Suite, target: str, case: ConformCase, timeout: float) -> Result:
    """Run one case with a peer of its own."""
    start = time.monotonic()
    outcome, expected, got = _judge(suite, target, case, timeout)
    return Result(case, outcome, expected, got, time.monotonic() - start)


def _judge(
    suite: Suite, target: str, case: ConformCase, timeout: float
) -> tuple[Outcome, str, str]:
    limit = gevent.Timeout(timeout)
    try:
        with limit, suite.connect(target) as peer:
            case.run(peer)
    except Unmet as unmet:
        return Outcome.UNMET, unmet.expected, unmet.got
    except NotApplicable as reason:
        return Outcome.SKIPPED, "", str(reason)
    except Unreachable as reason:
        return Outcome.UNMET, case.summary, str(reason)
    except gevent.Timeout as late:
        if late is not limit:
            raise
        return Outcome.UNMET, case.summary, f"nothing more within {timeout:g} s"
    except Exception as bug:
        return Outcome.ERROR, "", f"{type(bug).__name__}: {bug}"
    return Outcome.PASSED, "", ""
