"""The clients of one process, each in a greenlet, and how well the process keeps its time.

Own design: of `workers` processes, worker k has the clients k, k + workers and so on.
"""

import os
import resource
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import gevent
from gevent.event import Event

from rtclab.load.clients.client import Work
from rtclab.load.figures.health import BEHIND, UNREAD, Health
from rtclab.load.figures.tally import Tally
from rtmplite.net.clock import now

LOOK: Final = 0.05  # s between two timers that are measured
GOODBYES: Final = 5.0  # s for all clients together
NETWORK = Path("/proc/self/net")
OWN: Final = "/proc/self/fd"


class Crew:
    """Clients that `make(number)` makes, begun one each `interval` s until there are enough."""

    def __init__(
        self, make: Callable[[int], Work], interval: float, worker: int = 0, workers: int = 1
    ) -> None:
        self.tallies: list[Tally] = []
        self._make, self._interval = make, interval * workers
        self._next, self._workers, self._aim = worker, workers, 0
        self._clients: list[gevent.Greenlet[..., object]] = []
        self._watch = OwnWatch()
        self._more = Event()
        self._helpers = [gevent.spawn(self._begin), gevent.spawn(self._look)]

    def aim(self, count: int) -> None:
        """Have so many clients in all processes together."""
        self._aim = count
        self._more.set()

    def health(self) -> Health:
        """How the process did since the last call."""
        return self._watch.read(sum(each.bytes for each in self.tallies))

    def stop(self) -> None:
        """End all clients; their tallies stay as they are."""
        gevent.killall(self._helpers)
        with suppress(gevent.Timeout):  # a busy server may take longer for goodbyes
            gevent.killall(self._clients, timeout=GOODBYES)
        self._watch.close()

    def _begin(self) -> None:
        while True:
            self._more.wait()
            self._more.clear()
            while self._next < self._aim:
                tally = Tally(f"client_{self._next}")
                self.tallies.append(tally)
                self._clients.append(gevent.spawn(self._make(self._next), tally))
                self._next += self._workers
                gevent.sleep(self._interval)

    def _look(self) -> None:
        while True:
            gevent.sleep(1.0)
            for each in self.tallies:
                each.second(now())


class OwnWatch:
    """Measures this process: its timers, its processor time, its receive queues."""

    def __init__(self) -> None:
        self._health = Health()
        self._began = self._read_at = now()
        self._cpu, self._drops, self._came = _cpu_seconds(), _dropped(), 0
        self._greenlet = gevent.spawn(self._run)

    def read(self, came: int) -> Health:
        """The figures since the last call, if all clients together have had so many bytes."""
        found, self._health = self._health, Health()
        at, cpu, drops = now(), _cpu_seconds(), _dropped()
        passed = max(at - self._read_at, LOOK)
        found.cpu = 100 * (cpu - self._cpu) / passed
        found.unread, found.dropped = _unread(), drops - self._drops
        found.room = max(UNREAD, int(BEHIND * (came - self._came) / passed))
        self._read_at, self._cpu, self._drops, self._came = at, cpu, drops, came
        return found

    def close(self) -> None:
        """Measure no more."""
        self._greenlet.kill()

    def _run(self) -> None:
        while True:
            due = now() + LOOK
            gevent.sleep(LOOK)
            self._health.late.add(1000 * (now() - due))


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _dropped() -> int:
    """Datagrams that this machine has dropped for want of room: Linux's RcvbufErrors."""
    try:
        names, values = [
            line.split()
            for line in (NETWORK / "snmp").read_text().splitlines()
            if line.startswith("Udp:")
        ]
    except (OSError, ValueError):
        return 0
    return int(dict(zip(names, values, strict=True)).get("RcvbufErrors", "0"))


def _unread() -> int:
    """Bytes in the receive queues of this process: rx_queue of Linux's tables of sockets."""
    own, found = set[str](), 0
    for name in os.listdir(OWN) if os.path.isdir(OWN) else ():  # else this is no Linux
        with suppress(OSError):  # one has been closed meanwhile
            own.add(os.readlink(f"{OWN}/{name}"))
    for name in ("tcp", "tcp6", "udp", "udp6"):
        try:
            lines = (NETWORK / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if f"socket:[{words[9]}]" in own:
                found += int(words[4].partition(":")[2], 16)
    return found
