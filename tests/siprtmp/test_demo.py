"""The demo as its users run it: real processes, the exit code, the verdict, nothing left behind."""

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from support.limits import Clock

from siprtmp import __main__

MARK = "SIPRTMP_DEMO_TEST"  # an environment variable that all of a demo's processes inherit


class Demo:
    """A running demo; `said` collects its lines."""

    def __init__(self, *options):
        self.mark = uuid.uuid4().hex
        self.said = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "siprtmp", "demo", *options],
            env={**os.environ, MARK: self.mark},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def read_until(self, beginning):
        for line in self.process.stdout:
            self.said.append(line)
            if line.startswith(beginning):
                return line
        pytest.fail(f"no line {beginning!r} in {self.said}")

    def end(self):
        """The exit code and the last line, once all processes are gone."""
        self.said += self.process.stdout.readlines()
        code = self.process.wait(300)
        clock = Clock()
        while left := self.processes():
            assert not clock.over(20), f"left behind: {left}"
            time.sleep(0.02)
        return code, self.said[-1]

    def processes(self):
        """The pids of all that came from this demo and live."""
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if f"{MARK}={self.mark}".encode() in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
            except OSError:
                continue  # it has just ended, or is another user's
        return found


@pytest.fixture
def start():
    demos = []

    def run(*options):
        demos.append(Demo(*options))
        return demos[-1]

    yield run
    for demo in demos:
        demo.process.kill()
        demo.process.wait()


def test_a_call_holds(start):
    demo = start("--seconds", "2")
    code, verdict = demo.end()
    text = "".join(demo.said)
    assert (code, verdict.startswith("verdict  the call held")) == (0, True), text
    assert re.search(r"client -> phone  440 Hz in 20 of 20 windows, 100 of 100 frames", text)
    assert re.search(r"phone -> client  660 Hz in 20 of 20 windows, 100 of 100 frames", text)
    assert re.search(r"latency \d+\.\d ms, \d+\.\d at most", text)
    assert re.search(r"gateway took (\d+ MHz per call|\d+\.\d% of a core)", text)
    assert re.search(r"^\[#+-*\] +\d\.\d s  phone heard \d+ .* client heard \d+ ", text, re.M)
    assert "\r" not in text


def test_a_muted_direction_fails(start):
    deaf = {muted: start("--seconds", "1", "--mute", muted) for muted in ("phone", "client")}
    for muted, other in (("phone", "client"), ("client", "phone")):
        verdict = f"verdict  FAILED: the {other} heard nothing of 50 frames\n"
        assert deaf[muted].end() == (1, verdict)


def test_a_killed_gateway_fails(start):
    demo = start("--seconds", "5")
    pid = int(re.search(r"pid (\d+) ", demo.read_until("gateway"))[1])
    demo.read_until("[")
    os.kill(pid, signal.SIGKILL)
    code, verdict = demo.end()
    assert code == 1
    assert verdict.startswith("verdict  FAILED: the gateway was ended by SIGKILL")


@pytest.mark.parametrize(("moment", "number"), [("[", signal.SIGINT), ("gateway", signal.SIGTERM)])
def test_an_interrupted_demo_leaves_nothing_behind(start, moment, number):
    demo = start("--seconds", "5")
    demo.read_until(moment)
    assert len(demo.processes()) >= 2
    demo.process.send_signal(number)
    assert demo.end() == (1, "verdict  FAILED: interrupted\n")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of a parent's death")
def test_a_killed_demo_leaves_nothing_behind(start):
    demo = start("--seconds", "5")
    demo.read_until("[")
    demo.process.kill()
    assert demo.end()[0] == -signal.SIGKILL


@pytest.mark.parametrize("options", [["--seconds", "0"], ["--seconds", "x"], ["--mute", "all"]])
def test_bad_options(options, capsys):
    assert __main__.main(["demo", *options]) == 2
    out, line = capsys.readouterr()
    assert not out and line.startswith("siprtmp: argument --") and line.count("\n") == 1
