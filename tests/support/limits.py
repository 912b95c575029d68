"""Limit of a test's time, that counts only time in which the machine let it run.

120 seconds of wall are an hour's work on an idle machine and nothing beside twenty busy ones.  So a
test's time stands still while it and what it started want a core and get none: what computes is
counted by its CPU, what waits in vain by the wall.  Its last seconds come all the same, after ten
times as much of the wall.

A time-out is raised inside the test, its set-up or its tear-down, and nowhere else: it fails this
test alone.  Where Python never gets to raise it, the worker dies, and xdist starts another.  pytest
prints at the end which failures are of the slow, and which had hardly a core or met a crowd: the
waits of a peer that has ended are in no list, but the system's load tells of them.

This takes the place of pytest-timeout's alarm; its option, marker and setting are read as before.
"""

import contextlib
import faulthandler
import math
import os
import signal
import time
from collections.abc import Iterable, Iterator
from typing import ClassVar

import gevent
import greenlet
import pytest
import pytest_timeout

TICK_SECONDS = 5.0  # between two looks at the clock, once a test takes that long
LEAST_SHARE = 0.1  # of the wall that the clock counts, however starved the machine is
DEATH_SECONDS = 60.0  # for Python to raise the time-out, after all of that wall
STARVED = 0.5  # of the wall: below it, a failure may be the machine's
CROWD = 4.0  # programs for each core: above it as well
AT_ONCE = 3.0  # seconds of the wall, in which nothing fails for want of a core
FRESH_SECONDS = 0.5  # for which a reading of the waits is good enough for a clock to begin with
PROPERTY = "limits"  # of a failed test's report: slow or not, its clock, the wall, and the crowd

LIMIT = pytest.StashKey[float]()
CLOCK = pytest.StashKey["Clock"]()
STDERR = pytest.StashKey[int]()  # which no test captures


class Slow(BaseException):
    """A test ran out of time; no `except Exception`, nor Hypothesis, takes it for its own."""


class SlowTearDown(Slow, pytest.fail.Exception):
    """The same in a tear-down, where pytest goes on with the next step after its own kind alone."""


class Clock:
    """Seconds since its making in which this process and its descendants could run.

    Linux counts how long each thread stood in the queue for a core.  The thread that stood longest
    stands for all: the others waited for it, or beside it.  Elsewhere it is the wall.

    A reading takes as long as many a test, so clocks made within half a second begin with the same
    one: a clock may forgive what was waited for in the half second before its making.
    """

    _latest: ClassVar[tuple[float, dict[str, float]]] = -math.inf, {}  # when, and the waits

    def __init__(self) -> None:
        self._wall = self._read = time.monotonic()
        if not 0 <= self._wall - Clock._latest[0] < FRESH_SECONDS:
            Clock._latest = self._wall, core_waits(os.getpid())
        self._queued = Clock._latest[1]
        self._own = 0.0

    @property
    def wall(self) -> float:
        """Seconds since its making."""
        return time.monotonic() - self._wall

    def own(self) -> float:
        """Read it: each reading counts from the last one, so a few in a long time are exact."""
        now, queued = time.monotonic(), core_waits(os.getpid())
        waited = max((queued[each] - self._queued.get(each, 0.0) for each in queued), default=0.0)
        passed = now - self._read
        self._own += max(passed - waited, passed * LEAST_SHARE)
        self._read, self._queued = now, queued
        return self._own

    def over(self, seconds: float) -> bool:
        """Whether so many have passed; as long as the wall says no, nothing is read."""
        return self.wall > seconds and self.own() > seconds


def core_waits(pid: int) -> dict[str, float]:
    """Seconds for which each thread of this process and its descendants waited for a core."""
    queued = {}
    for thread in _listed(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):  # it ended meanwhile, or the system counts nothing
            queued[thread] = int(_words(f"/proc/{pid}/task/{thread}/schedstat")[1]) / 1e9
            for child in _words(f"/proc/{pid}/task/{thread}/children"):
                queued |= core_waits(int(child))
    return queued


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _words(path: str) -> list[bytes]:
    with open(path, "rb", buffering=0) as file:
        return file.read().split()


@contextlib.contextmanager
def patience(seconds: float = 20.0) -> Iterator[None]:
    """Fail, in a block in which a greenlet waits, after so many seconds of the clock."""
    waiting, clocks, step = greenlet.getcurrent(), list[Clock](), seconds / 10

    def look() -> None:
        if not clocks:
            clocks.append(Clock())  # which costs something: most waits have ended by now
        elif clocks[0].own() > seconds - step:
            timer.stop()
            waiting.throw(pytest.fail.Exception(f"waited {seconds:g} s in vain"))

    timer = gevent.get_hub().loop.timer(step, step, ref=False)
    timer.start(look)
    try:
        yield
    finally:
        timer.stop()
        timer.close()


class Alarm:
    """Looks at a test's clock from time to time, and interrupts the test when its time is over."""

    def __init__(self, clock: Clock, limit: float, late: type[Slow]) -> None:
        self._clock, self._limit, self._late = clock, limit, late
        self._test = greenlet.getcurrent()
        self._armed = False

    @contextlib.contextmanager
    def set(self) -> Iterator[None]:
        """Look for the length of the block, which alone is interrupted."""
        before = signal.signal(signal.SIGALRM, self._look)
        tick = min(TICK_SECONDS, self._limit / 10)
        signal.setitimer(signal.ITIMER_REAL, tick, tick)
        self._armed = True
        try:
            yield
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _look(self, *_: object) -> None:
        """Raise in the test's greenlet, though another one runs, or gevent's hub waits."""
        if not self._armed or self._clock.own() < self._limit or pytest_timeout.is_debugging():
            return
        late = self._late(f"{self._limit:g} s are over, in {self._clock.wall:.0f} s of the wall")
        self._limit += max(self._limit / 10, 1.0)  # again, if its end hangs too: of a pool, say
        if greenlet.getcurrent() is self._test:
            raise late
        self._test.throw(late)


def pytest_configure(config: pytest.Config) -> None:
    """Keep the standard error that the run began with."""
    config.stash[STDERR] = os.dup(2)
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Worker(config.stash[STDERR]))


class Worker:
    """A worker of xdist whose own machinery fails dies of it; told of it, xdist ends the run."""

    def __init__(self, stderr: int) -> None:
        self._stderr = stderr

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self, excrepr: object) -> None:
        """Say why, and let xdist report the test at hand and start another worker."""
        os.write(self._stderr, f"{excrepr}\n".encode())
        os._exit(3)


@pytest.hookimpl(tryfirst=True, optionalhook=True)  # without pytest-timeout there is no limit
def pytest_timeout_set_timer(item: pytest.Item, settings: pytest_timeout.Settings) -> bool:
    """Start the test's clock, and no alarm of pytest-timeout, which could ring between tests."""
    item.stash[CLOCK], item.stash[LIMIT] = Clock(), settings.timeout
    end = settings.timeout / LEAST_SHARE + DEATH_SECONDS
    faulthandler.dump_traceback_later(end, exit=True, file=item.config.stash[STDERR])
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """A worker lives on after its test."""
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _limited(item: pytest.Item, late: type[Slow] = Slow) -> Iterator[None]:
    if LIMIT not in item.stash:
        return (yield)
    with Alarm(item.stash[CLOCK], item.stash[LIMIT], late).set():
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Within the limit."""
    return (yield from _limited(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Within what set-up left."""
    return (yield from _limited(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Within a limit of its own: it has to end what a test left that was interrupted."""
    if CLOCK in item.stash:
        item.stash[CLOCK] = Clock()
    return (yield from _limited(item, SlowTearDown))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Note of a failure how long it took, and whether that was too long."""
    report = yield
    if report.failed and CLOCK in item.stash:
        clock = item.stash[CLOCK]
        slow = isinstance(call.excinfo and call.excinfo.value, Slow)
        crowd = os.getloadavg()[0] / (os.cpu_count() or 1)
        report.user_properties.append((PROPERTY, [slow, clock.own(), clock.wall, crowd]))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell the slow from the failed, if there are any."""
    stats = terminalreporter.stats
    failures = [*stats.get("failed", ()), *stats.get("error", ())]
    known = ((each.nodeid, dict(getattr(each, "user_properties", ()))) for each in failures)
    for line in summary(known):  # a file that cannot be imported has no properties
        terminalreporter.write_line(line)


def summary(failures: Iterable[tuple[str, dict[str, object]]]) -> Iterator[str]:
    """Yield a line for each kind of failure, and below it the tests that may pass elsewhere."""
    slow, starved, count = [], [], 0
    for name, properties in failures:
        late, own, wall, crowd = properties.get(PROPERTY, (False, 1.0, 1.0, 0.0))
        if late:
            slow.append(f"  {name}")
        elif wall < AT_ONCE:
            count += 1
        elif own < wall * STARVED:
            starved.append(f"  {name} (had a core for {own:.0f} of {wall:.0f} s)")
        elif crowd > CROWD:
            starved.append(f"  {name} (was one of {crowd:.0f} at each core for {wall:.0f} s)")
        else:
            count += 1
    if slow:
        yield from (f"{len(slow)} slow: their time ran out", *slow)
    if starved:
        yield from (f"{len(starved)} failed on a starved machine: run them alone", *starved)
    if slow or starved:
        yield f"{count} failed for other reasons"
