"""All RTMP cases of conform against our own server, as its users run it."""

import re
import sys

import pytest
from support.peers.nursery import Overheard

from rtclab.conform.rtmp import SUITE
from rtclab.conform.rtmp.peer import reach
from rtclab.conform.runner import Outcome, run


@pytest.fixture
def target():
    """`python -m rtmplite serve`, and the URL of its application."""
    argv = [sys.executable, "-m", "rtmplite", "serve", "--rtmp", "127.0.0.1:0"]
    process = Overheard(argv)
    ready = re.search(r"rtmp=(\S+)", process.stdout.readline())
    yield f"rtmp://{ready[1]}/live"
    process.kill()
    process.communicate()


def test_our_server_meets_all(target):
    results = run(SUITE, target, SUITE.cases, 15)
    assert {
        each.case.name: (each.expected, each.got)
        for each in results
        if each.outcome is not Outcome.PASSED
    } == {}


def test_an_application_that_is_not_there_is_no_target(target):
    reach(target)
    with pytest.raises(ValueError, match=r"InvalidApp"):
        reach(target.replace("/live", "/nosuch"))
