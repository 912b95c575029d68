"""A comparison says how far it is, and reports what it has found when it is ended early."""

import os
import signal
import subprocess
import sys

import pytest

from p2psip.strategies import sip
from rtclab.oracle import catalogue, p2psip_cases
from rtclab.oracle.codec import Case
from rtclab.oracle.compare import Answer, Comparison
from rtclab.oracle.report import Progress, lines
from rtclab.oracle.search import draws

# Reads everything as one packet, and after 40 answers tells the test, and answers no more.
SLOW = """
import sys
for count, line in enumerate(sys.stdin):
    if count == 40:
        print("enough", file=sys.stderr, flush=True)
        sys.stdin.read()
    print('value {"sequence": 65536}', flush=True)
"""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_comparison_that_is_ended_reports_what_it_has(ending):
    words = ["oracle", "compare", "rtp", "--timeout", "600", "--", sys.executable, "-c", SLOW]
    with subprocess.Popen(
        [sys.executable, "-m", "rtclab", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stderr.readline() == "enough\n"
        os.kill(command.pid, ending)
        out, err = command.communicate()
    assert command.returncode == 130, err
    first, *rest = out.splitlines()
    assert first.endswith("of 40 cases (seed 0); interrupted, so there may be more")
    assert any("valid input is read otherwise: sequence" in line for line in rest)
    assert err == ""


def test_an_interrupted_search_keeps_the_findings_of_before():
    codec = catalogue.find("rtp")

    def ask(line):
        return Answer("value", {"sequence": 65536})

    def tell(line):
        if "a smaller one" in line:
            raise KeyboardInterrupt

    comparison = Comparison(codec, ask, lambda: 0.0, tell=tell)
    report = comparison.run(catalogue.cases_of(codec), ["valid", "odd"], 20, seed=0)
    assert report.interrupted
    assert [finding.what for finding in report.findings] == ["is read otherwise: sequence"]
    assert "interrupted" in next(lines(codec, report, 0))


class Stream:
    """What a terminal or a log has been told."""

    def __init__(self, is_terminal):
        self.isatty, self.text = lambda: is_terminal, ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass


@pytest.mark.parametrize(
    ("is_terminal", "told"),
    [(True, "\r\x1b[K1\r\x1b[K2\r\x1b[K10\r\x1b[K"), (False, "10\n")],
)
def test_a_terminal_hears_each_second_and_a_log_each_ten(is_terminal, told):
    now, stream = [0.0], Stream(is_terminal)
    progress = Progress(stream, lambda: now[0])
    for now[0] in (0.5, 1.0, 1.5, 2.0, 10.0):
        progress.tell(f"{now[0]:g}")
    progress.end()
    assert stream.text == told


def test_a_comparison_counts_its_cases_and_disagreements():
    codec, told = catalogue.find("rtp"), []
    comparison = Comparison(
        codec, lambda line: Answer("error", "no"), lambda: 0.0, tell=told.append
    )
    comparison.run(catalogue.cases_of(codec), ["valid"], 3, seed=0)
    assert told[2:] == [
        "3 of 3 valid cases, 1 disagreements",
        "valid cases: a smaller one of disagreement 1 of 1",
    ]


def test_line_breaks_before_a_datagram_may_be_refused():
    """RFC 3261 §7.5 is about streams."""
    codec = catalogue.find("sip")
    cases = draws(p2psip_cases.CASES["sip"](codec)["odd"], 40, 0)
    led = [case for case in cases if case.octets.startswith(b"\r\n")]
    assert led
    assert {(case.clause, case.allowed) for case in led} == {("RFC 3261 §7.5", ("error",))}
    assert any(not case.allowed for case in cases)


@pytest.mark.parametrize(
    ("name", "is_open"),
    [
        ("Via of another protocol", True),  # RFC 3261 §25.1: protocol-name may be any token
        ("status below 100", True),  # extension-code is any three digits
        ("status above 699", True),
        ("version 7.0", True),  # an element has 505, a reader may read it
        ("unknown scheme", True),  # 416, RFC 3261 §8.2.2.1
        ("status of four digits", False),
        ("Via without transport", False),
        ("no Via", False),
    ],
)
def test_what_the_grammar_has_may_be_read(name, is_open):
    (fault,) = [each for each in (*sip.FAULTS, *sip.RESPONSE_FAULTS) if each.name == name]
    case = Case("broken", fault.clause, b"", fault=name, status=getattr(fault, "status", None))
    assert p2psip_cases.for_a_reader(case).allowed == (("value",) if is_open else ())
