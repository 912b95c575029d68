"""Runs cases against a target, a few at the same time.

Own design: what the target does is judged, and nothing else.  So a bug of a case is told apart from
a requirement that is not met, and the next case runs all the same.  After each case the target must
still be there.  If it is not, the cases that ran last are named, and the others say nothing.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import gevent
from gevent.lock import BoundedSemaphore

from rtclab.conform.case import ConformCase, NotApplicable, Suite, Unmet, Unreachable

LOOKS: Final = 3  # at a target that seems to be gone, before that is believed
PAUSE: Final = 1.0  # s between them


class Outcome(StrEnum):
    """What became of a case."""

    PASSED = "passed"
    UNMET = "unmet"
    SKIPPED = "skipped"  # not applicable
    ERROR = "error"  # the case itself is broken
    DIED = "died"  # the target was there before this case, and not after it
    UNDECIDED = "undecided"  # the target was gone before


@dataclass(frozen=True, slots=True)
class Result:
    """A case that ran."""

    case: ConformCase
    outcome: Outcome
    expected: str = ""
    got: str = ""  # or the reason
    seconds: float = 0.0

    def fails(self, strict: bool) -> bool:
        """Tell whether to blame the target: for a SHOULD only if `strict`, for a MAY never.

        To die is a failure at any level.
        """
        if self.outcome is Outcome.DIED:
            return True
        blamed = ("MUST", "SHOULD") if strict else ("MUST",)
        return self.outcome is Outcome.UNMET and self.case.level in blamed


def run(
    suite: Suite,
    target: str,
    cases: Sequence[ConformCase],
    timeout: float,
    at_once: int | None = None,
) -> list[Result]:
    """Run cases, each for `timeout` seconds at most; results stand in the order of the cases.

    No more than `at_once` run at the same time, or what the suite allows.  Those that are to be
    `alone` run one after another, beside the others unless `at_once` is 1.  No case begins once
    the target is gone.
    """
    places = {False: BoundedSemaphore(at_once or suite.at_once), True: BoundedSemaphore(1)}
    if at_once == 1:
        places[True] = places[False]
    watch = _Watch(suite, target)
    hub = gevent.get_hub()
    hub.NOT_ERROR = (*type(hub).NOT_ERROR, KeyboardInterrupt)  # no traceback before it is raised

    def wait_and_run(case: ConformCase) -> Result:
        with places[case.alone]:
            if watch.gone:
                return Result(case, Outcome.UNDECIDED, got=f"the target was gone: {watch.gone}")
            watch.begin(case)
            result = run_case(suite, target, case, timeout)
            watch.end(case)
            return result

    jobs = [gevent.spawn(wait_and_run, case) for case in cases]
    try:
        return [watch.judged(result) for result in [job.get() for job in jobs]]
    finally:
        suite.leave(target, cases)


class _Watch:
    """Looks after each case whether the target is still there, and knows which ran last.

    Own design: a case that passes proves nothing, for silence is what some of them ask for.
    """

    def __init__(self, suite: Suite, target: str) -> None:
        self.gone = ""  # why it is believed
        self._suite, self._target = suite, target
        self._ends: dict[ConformCase, float] = {}  # of cases that no look has cleared
        self._seen = -math.inf  # when the last look that found the target began
        self._turn = BoundedSemaphore(1)

    def begin(self, case: ConformCase) -> None:
        """Suspect a case from now on."""
        self._ends[case] = math.inf

    def end(self, case: ConformCase) -> None:
        """Look for the target behind a case; cases that end meanwhile share the next look."""
        self._ends[case] = ended = time.monotonic()
        with self._turn:
            if self.gone or self._seen > ended:
                return
            began = time.monotonic()
            for looks in range(LOOKS):
                gevent.sleep(PAUSE if looks else 0)
                try:
                    self._suite.look(self._target)
                except Unreachable as reason:
                    why = str(reason)
                else:
                    self._seen = began
                    self._ends = {case: end for case, end in self._ends.items() if end > began}
                    return
            self.gone = why

    def judged(self, result: Result) -> Result:
        """A result as it is, or that of a case that was running when the target died."""
        if not self.gone or result.case not in self._ends:
            return result
        others = [each.name for each in self._ends if each is not result.case]
        beside = f"; beside it ran {', '.join(others)}" if others else ""
        return replace(
            result,
            outcome=Outcome.DIED,
            expected="a target that lives on",
            got=f"nobody answers any more ({self.gone}){beside}",
        )


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
