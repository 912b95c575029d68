"""Many processes under one course: each has a share of the clients, and reports once a second.

Own design: a worker is this program again, with `--worker K/N`.  It reads the number of clients to
have from standard input, a line each time, until that ends; it writes a line of JSON for each look
at its clients.  Without workers the clients are in this process, and look the same to the course.
"""

import json
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

import gevent
from gevent import subprocess
from gevent.event import Event
from gevent.fileobject import FileObject

from rtclab.load.crew import Crew
from rtclab.load.figures.health import Health
from rtclab.load.figures.tally import Tally

START: Final = 60.0  # s for a worker to be there
REPORT: Final = 1.0  # s between two lines of a worker
FAREWELL: Final = 10.0  # s for a worker to end


class Clients(Protocol):
    """Clients here or elsewhere."""

    @property
    def tallies(self) -> Sequence[Tally]:
        """What each has seen."""

    def aim(self, count: int) -> None:
        """Have so many."""

    def health(self) -> Health:
        """How the generator did since the last call."""

    def stop(self) -> None:
        """End all."""


class Workers:
    """Clients in `count` processes of this program, which has these arguments."""

    def __init__(self, count: int, arguments: Sequence[str]) -> None:
        self._children = [
            _Child([*arguments, "--worker", f"{number}/{count}"]) for number in range(count)
        ]
        for each in self._children:
            each.is_there.wait(START)

    @property
    def tallies(self) -> Sequence[Tally]:
        """The last report of each worker, together."""
        return [tally for each in self._children for tally in each.tallies]

    def aim(self, count: int) -> None:
        """Tell all workers."""
        for each in self._children:
            each.say(count)

    def health(self) -> Health:
        """The worst since the last call."""
        return Health.worst([each.health() for each in self._children])

    def stop(self) -> None:
        """End all workers, and take their last reports."""
        for each in self._children:
            each.stop()


class _Child:
    def __init__(self, arguments: Sequence[str]) -> None:
        self.tallies: list[Tally] = []
        self._health = Health()
        self._aim = -1
        self.is_there = Event()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rtclab", "load", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._reader = gevent.spawn(self._read)

    def say(self, count: int) -> None:
        if count != self._aim:
            self._aim = count
            with suppress(OSError):
                self._input.write(b"%d\n" % count)
                self._input.flush()

    def health(self) -> Health:
        found, self._health = self._health, Health()
        return found

    def stop(self) -> None:
        with suppress(OSError):
            self._input.close()
        self._reader.join(FAREWELL)
        self._process.kill()
        self._process.wait()

    def _read(self) -> None:
        """Take reports until the worker ends, which sets `is_there` at the latest."""
        for line in self._output:
            found: dict[str, Any] = json.loads(line)
            self.tallies = [Tally.parse(each) for each in found["tallies"]]
            self._health = self._health.worse(Health.parse(found["health"]))
            self.is_there.set()
        self.is_there.set()


def serve(crew: Crew) -> None:
    """Be a worker: obey standard input until it ends, and report on standard output."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # the terminal sends it to all; the parent stops us
    orders = gevent.spawn(_obey, crew)
    _report(crew)
    while not orders.ready():
        orders.join(REPORT)
        _report(crew)
    crew.stop()
    _report(crew)


def _obey(crew: Crew) -> None:
    for line in FileObject(0, "rb", closefd=False):
        crew.aim(int(line))


def _report(crew: Crew) -> None:
    found = {
        "tallies": [each.as_json() for each in crew.tallies],
        "health": crew.health().as_json(),
    }
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
