"""Running the cases of conform in tests: outcomes as dictionaries of names."""

import gevent
from support.peers.process import PATIENCE

from rtclab.conform.runner import Outcome, run


def judged(suite, targets, *groups, timeout):
    """Judge as many targets of a kind as there are groups of cases, at the same time."""
    jobs = [
        gevent.spawn(run, suite, target, group, timeout)
        for target, group in zip(targets, groups, strict=True)
    ]
    return [result for job in jobs for result in job.get()]


def patiently(suite, target, cases, timeout, known):
    """Results in `timeout` seconds; what a target is known to meet has PATIENCE, if it is late.

    `known` are the names of the cases that it does not meet, most of which wait to the end.
    """
    results = run(suite, target, cases, timeout)
    late = {each.case for each in results if each.outcome is Outcome.UNMET} - {
        each for each in cases if each.name in known
    }
    again = run(suite, target, [each for each in cases if each in late], PATIENCE)
    return [*(each for each in results if each.case not in late), *again]


def unmet(results):
    """What is not met, broken or not judged, and what came."""
    bad = (Outcome.UNMET, Outcome.ERROR, Outcome.DIED, Outcome.UNDECIDED)
    return {each.case.name: each.got for each in results if each.outcome in bad}


def skipped(results):
    """The cases that do not apply."""
    return {each.case.name for each in results if each.outcome is Outcome.SKIPPED}
