"""Running the cases of conform in tests: outcomes as dictionaries of names."""

import gevent

from rtclab.conform.runner import Outcome, run


def judged(suite, targets, *groups, timeout):
    """Judge as many targets of a kind as there are groups of cases, at the same time."""
    jobs = [
        gevent.spawn(run, suite, target, group, timeout)
        for target, group in zip(targets, groups, strict=True)
    ]
    return [result for job in jobs for result in job.get()]


def unmet(results):
    """What is not met, broken or not judged, and what came."""
    bad = (Outcome.UNMET, Outcome.ERROR, Outcome.DIED, Outcome.UNDECIDED)
    return {each.case.name: each.got for each in results if each.outcome in bad}


def skipped(results):
    """The cases that do not apply."""
    return {each.case.name for each in results if each.outcome is Outcome.SKIPPED}
