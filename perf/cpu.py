"""What a process takes: its own CPU clock in nanoseconds, as a share and as MHz.

`MHz = share of one core x that core's clock` lets figures of different machines be compared
roughly, and figures of one machine well. /proc's ticks of 10 ms are too coarse for a call.
"""

import os
import platform
import resource
import subprocess
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Self

CPUINFO = Path("/proc/cpuinfo")
PAGE = resource.getpagesize()


def cpu_clock(pid: int) -> int:
    """The clock of all threads of a process, for time.clock_gettime; its children have their own.

    What the C library's clock_getcpuclockid computes on Linux; Python does not wrap it.
    """
    return ~pid << 3 | 2


def clock_mhz(core: int = 0) -> float:
    """The present clock of `core` in MHz, by /proc/cpuinfo."""
    found = [line.split(":")[1] for line in CPUINFO.read_text().splitlines() if "cpu MHz" in line]
    if not found:
        raise RuntimeError("/proc/cpuinfo names no clock on this machine")
    return float(found[min(core, len(found) - 1)])


def two_cores() -> tuple[int, int]:
    """A core for the server and one for the load; the same one twice where there is only one."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[0], cores[-1]


def raise_file_limit() -> None:
    """As many open sockets as the system lets us have; children inherit it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@dataclass(frozen=True, slots=True)
class Usage:
    """What one process took during one window."""

    seconds: float  # wall clock
    cpu: float  # seconds on the CPU
    mhz: float  # the core's clock
    waited: float = 0.0  # seconds ready to run while something else had the core

    @property
    def share(self) -> float:
        """The part of one core, 0 to 1."""
        return self.cpu / self.seconds

    @property
    def taken(self) -> float:
        """MHz taken."""
        return self.share * self.mhz


class Meter:
    """The CPU clock of a process that is not ours to change: all its threads, user and system."""

    def __init__(self, pid: int, core: int = 0) -> None:
        """`core` is where the process is pinned, for its clock rate."""
        self._clock, self._core = cpu_clock(pid), core
        self._schedstat = Path(f"/proc/{pid}/schedstat")
        self.restart()

    def restart(self) -> None:
        """Begin a new window now."""
        self._wall, self._cpu = time.monotonic(), time.clock_gettime(self._clock)
        self._waited = self._wait()

    def read(self) -> Usage:
        """The window so far."""
        cpu = time.clock_gettime(self._clock) - self._cpu
        waited = self._wait() - self._waited
        return Usage(time.monotonic() - self._wall, cpu, clock_mhz(self._core), waited)

    def _wait(self) -> float:
        """Seconds that the first thread has spent in the queue for a core."""
        return int(self._schedstat.read_text().split()[1]) / 1e9

    def window(self, begins: bool) -> None:
        """What `load.drive` calls at the beginning and the end; `usage` is what lay between."""
        if begins:
            self.restart()
        else:
            self.usage = self.read()


class Server:
    """A server under measurement: pinned to a core, ready when its first line says so."""

    def __init__(self, argv: list[str], core: int, ready: str = "ready ") -> None:
        """Start `argv` and read lines until one begins with `ready`; that line is kept."""
        self.core = core
        self.process = subprocess.Popen(
            ["taskset", "-c", str(core), *argv], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.line = next((line for line in self.process.stdout if line.startswith(ready)), "")
        if not self.line:
            raise RuntimeError(f"{argv[0]} ended with {self.process.wait()} before it was ready")
        # A server whose pipe is full would wait for us.
        threading.Thread(target=deque, args=(self.process.stdout, 0), daemon=True).start()

    def meter(self) -> Meter:
        """A new window on its CPU clock."""
        return Meter(self.process.pid, self.core)

    def resident_mb(self) -> float:
        """The memory it holds, in MB of 2**20 bytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * PAGE / 2**20

    def open_files(self) -> int:
        """How many sockets and files it has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def __enter__(self) -> Self:
        """It runs since it was made."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()


def machine() -> dict[str, str | float | int]:
    """What a reader of a result has to know about where it was measured."""
    from siprtmp.operation.build import build

    text = CPUINFO.read_text()
    models = [line.split(":")[1].strip() for line in text.splitlines() if "model name" in line]
    return {
        "cpu": models[0] if models else platform.processor(),
        "mhz": clock_mhz(),
        "cores": os.cpu_count() or 1,  # also where this process is pinned to one
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],  # of the last minute, the measurement's own as well
        "build": build(),
        "priority": "usual" if os.sched_getscheduler(0) == os.SCHED_OTHER else "real-time",
    }
