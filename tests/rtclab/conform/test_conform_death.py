"""A target that dies of a case: the case is named, and those behind it are undecided."""

import json
import subprocess
import sys
from contextlib import nullcontext
from xml.etree import ElementTree

import gevent
import pytest

from rtclab.conform import runner
from rtclab.conform.case import Cases, Suite, Unmet, Unreachable
from rtclab.conform.report import as_junit, text_lines
from rtclab.conform.runner import Outcome, run

# Answers whatever comes with 200, and ends without a word at a length below zero.
MORTAL = """
import socket
from p2psip.sip.build import response_to
from p2psip.sip.message import parse_message
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind(("127.0.0.1", 0))
print(end.getsockname()[1], flush=True)
while True:
    data, source = end.recvfrom(65535)
    if b"Content-Length: -" in data:
        break
    try:
        end.sendto(bytes(response_to(parse_message(data), 200, to_tag="1")), source)
    except Exception:
        pass
"""


class Mortal:
    """A target in this process, with its cases; `deadly` ends it."""

    def __init__(self):
        self.is_there, self.looks, self.cases = True, 0, Cases()
        self.add("harmless", lambda: None)
        self.add("refused", self.refuse)
        self.add("deadly", self.die, level="MAY")
        self.add("silent", lambda: None)
        self.add("late", self.refuse)
        self.suite = Suite(
            tuple(self.cases.all), lambda target: nullcontext(self), self.reach, "a place", 8
        )

    def add(self, name, action, level="MUST"):
        def case(peer):
            """It is a case."""
            action()

        case.__name__ = name
        self.cases.case("RFC 3261 §7", level=level, role="uas")(case)

    def refuse(self):
        raise Unmet("200", "400")

    def die(self):
        self.is_there = False

    def reach(self, target):
        self.looks += 1
        if not self.is_there:
            raise Unreachable("connection refused")


@pytest.fixture(autouse=True)
def _without_a_pause(monkeypatch):
    monkeypatch.setattr(runner, "PAUSE", 0)


def outcomes(results):
    return {each.case.name: each.outcome for each in results}


def test_one_at_a_time_names_the_case_and_leaves_the_rest_undecided():
    mortal = Mortal()
    results = run(mortal.suite, "here", mortal.suite.cases, 5, at_once=1)
    assert outcomes(results) == {
        "harmless": Outcome.PASSED,
        "refused": Outcome.UNMET,
        "deadly": Outcome.DIED,
        "silent": Outcome.UNDECIDED,
        "late": Outcome.UNDECIDED,
    }
    assert list(text_lines(results))[-1] == "the target died of deadly"
    assert [each.case.name for each in results if each.fails(False)] == ["refused", "deadly"]


def test_whatever_ran_beside_is_suspected_too():
    mortal = Mortal()
    started = []

    def beside():
        started.append(True)
        while mortal.is_there:
            gevent.sleep(0)
        raise Unmet("a reply", "connection refused")

    mortal.cases.all.insert(0, None)
    mortal.add("beside", beside)
    cases = [mortal.cases.all[-1], *mortal.suite.cases[2:]]
    results = run(mortal.suite, "here", cases, 5, at_once=2)
    assert outcomes(results)["beside"] == outcomes(results)["deadly"] == Outcome.DIED
    assert outcomes(results)["late"] == Outcome.UNDECIDED
    line = "the target died of one of beside, deadly; --at-once 1 finds out which"
    assert list(text_lines(results))[-1] == line
    assert started


def test_a_target_that_is_away_for_a_moment_is_not_dead():
    mortal = Mortal()
    real = mortal.suite.reach

    def shy(target):
        real(target)
        if mortal.looks % runner.LOOKS:
            raise Unreachable("not now")

    suite = Suite(mortal.suite.cases[:2], mortal.suite.connect, shy, "a place")
    results = run(suite, "here", suite.cases, 5, at_once=1)
    assert set(outcomes(results).values()) == {Outcome.PASSED, Outcome.UNMET}


def test_junit_counts_the_death_as_a_failure_and_the_undecided_as_skipped():
    mortal = Mortal()
    results = run(mortal.suite, "here", mortal.suite.cases, 5, at_once=1)
    suite = ElementTree.fromstring(as_junit(results, "sip", strict=False))
    assert (suite.get("failures"), suite.get("skipped")) == ("2", "2")


def test_the_command_names_what_a_process_died_of(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", MORTAL], stdout=subprocess.PIPE, text=True
    ) as target:
        port = target.stdout.readline().strip()
        words = ["sip", f"sip:bob@127.0.0.1:{port}", "--section", "3.1.2", "--at-once", "1"]
        found = subprocess.run(
            [sys.executable, "-m", "rtclab", "conform", *words, "--json", tmp_path / "json"],
            capture_output=True,
            text=True,
        )
        target.kill()
    assert found.returncode == 1, found.stderr
    assert found.stdout.splitlines()[-1] == "the target died of negative_length_has_400"
    cases = json.loads((tmp_path / "json").read_text())["cases"]
    names = [each["name"] for each in cases]
    behind = cases[names.index("negative_length_has_400") + 1 :]
    assert {each["outcome"] for each in behind} == {"undecided"}
    assert "connection refused" not in found.stdout.lower().replace("gone: connection refused", "")
