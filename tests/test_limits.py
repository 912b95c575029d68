"""A time-out fails its test and nothing else; a test's clock stands still while it has no core."""

import os
import re
import subprocess
import sys
from pathlib import Path

import gevent
import pytest
from support import limits
from support.limits import Clock, patience, summary

TESTS = Path(__file__).parent
LATE = """
import time
from concurrent.futures import ThreadPoolExecutor
import gevent, pytest
from hypothesis import given, settings, strategies as st

def spin():
    while True:
        pass

@pytest.fixture
def first():
    yield
    print("the first ended")

@pytest.fixture
def unending(first):
    yield
    gevent.sleep(1000)

def test_before(): pass
def test_computes(): spin()
def test_sleeps(): time.sleep(1000)
def test_waits(): gevent.sleep(1000)
def test_waits_for_what_computes(): gevent.spawn(spin).join()
def test_swallows():
    while True:
        try:
            spin()
        except Exception:
            pass
@settings(deadline=None)
@given(st.integers())
def test_draws(number): spin()
def test_waits_for_a_pool():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(time.sleep, 4).result()
def test_ends_badly(unending): assert False
"""
AFTER = """
import signal

def test_after(): pass
def test_is_deaf():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    while True:
        pass
def test_machinery(): pass
def test_later(): pass
"""
MACHINERY = """
import support.limits

support.limits.DEATH_SECONDS = 0

def pytest_runtest_protocol(item):
    if item.name == "test_machinery":
        raise RuntimeError("a fault of the machinery")
"""


def run(folder, *options, limit, **files):
    """How each test of `files` ended, and what pytest printed."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "pytest.ini").write_text(f"[pytest]\ntimeout = {limit}\n")
    words = [sys.executable, "-m", "pytest", "-rA", "-p", "support.limits", *options, folder]
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    ends = re.findall(r"^(PASSED|FAILED|ERROR) \S+::test_(\w+)", done.stdout, re.MULTILINE)
    return {name: end for end, name in ends}, done.stdout


def test_a_time_out_fails_its_test_and_nothing_else(tmp_path):
    ends, output = run(tmp_path, "-k", "not deaf", limit=0.2, test_a=LATE, test_b=AFTER)
    passed = {name for name, end in ends.items() if end == "PASSED"}
    assert passed == {"before", "after", "machinery", "later"} and len(ends) == 12
    assert "8 slow: their time ran out\n  test_a.py::test_computes\n" in output
    assert "the first ended" in output


def test_a_worker_that_dies_is_replaced(tmp_path):
    ends, output = run(tmp_path, "-n", "2", limit=0.1, test_b=AFTER, conftest=MACHINERY)
    wanted = {"after": "PASSED", "is_deaf": "FAILED", "machinery": "FAILED", "later": "PASSED"}
    assert ends == wanted, output


def test_the_clock_stands_still_while_a_thread_waits_for_a_core(monkeypatch):
    now, queued = [100.0], {"1": 3.0}
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(limits, "core_waits", lambda pid: dict(queued))
    monkeypatch.setattr(Clock, "_latest", Clock._latest)
    clock = Clock()
    now[0], queued["1"] = 110.0, 4.0
    assert clock.own() == 9.0
    now[0], queued["2"] = 120.0, 6.0  # a child that waits longer, and began meanwhile
    assert clock.own() == 13.0
    now[0], queued["1"] = 130.0, 40.0
    assert clock.own() == 14.0 and clock.wall == 30.0  # a tenth at least: every test ends


def test_clocks_of_a_moment_begin_with_one_reading(monkeypatch):
    now, queued, readings = [100.0], {"1": 3.0}, []
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(limits, "core_waits", lambda pid: readings.append(pid) or dict(queued))
    monkeypatch.setattr(Clock, "_latest", (-1.0, {}))
    first = Clock()
    now[0], queued["1"] = 100.4, 3.3
    second = Clock()
    assert len(readings) == 1
    now[0], queued["1"] = 110.0, 5.0
    third = Clock()
    assert len(readings) == 2
    now[0] = 120.0
    assert (first.own(), third.own()) == (18.0, 10.0)
    assert abs(second.own() - 17.6) < 1e-9  # it forgives no more than the moment before it


def test_linux_counts_how_long_each_descendant_waits_for_a_core():
    with subprocess.Popen(["sleep", "100"]) as child:
        waits = limits.core_waits(os.getpid())
        child.kill()
    assert {str(os.getpid()), str(child.pid)} <= set(waits) and min(waits.values()) >= 0


def test_a_greenlet_that_waits_in_vain_fails(monkeypatch):
    """Not for as long as its clock stands still, and never once it is out of the block."""
    own = [0.0]
    monkeypatch.setattr(Clock, "own", lambda clock: own[0])
    looks = []

    def looked():
        looks.append(len(looks))
        own[0] = 0.0 if len(looks) < 30 else 1.0
        gevent.sleep(0.002)

    with pytest.raises(pytest.fail.Exception, match="in vain"), patience(0.02):
        while True:
            looked()
    assert len(looks) >= 30
    with patience(0.02):
        pass
    gevent.sleep(0.05)


def test_the_summary_tells_the_slow_from_the_failed():
    failures = [
        ("a", {limits.PROPERTY: [True, 120.0, 600.0, 9.0]}),
        ("b", {limits.PROPERTY: [False, 2.0, 9.0, 1.0]}),
        ("c", {limits.PROPERTY: [False, 5.0, 6.0, 1.0]}),
        ("d", {}),  # its worker died
        ("e", {limits.PROPERTY: [False, 40.0, 60.0, 7.4]}),
        ("f", {limits.PROPERTY: [False, 0.1, 0.4, 7.4]}),
    ]
    assert list(summary(failures)) == [
        "1 slow: their time ran out",
        "  a",
        "2 failed on a starved machine: run them alone",
        "  b (had a core for 2 of 9 s)",
        "  e (was one of 7 at each core for 60 s)",
        "3 failed for other reasons",
    ]
    assert list(summary(failures[2:4])) == []
