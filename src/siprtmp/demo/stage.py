"""Starts the processes of the demo, reads their output, and stops them with the demo.

Own design: each has a session of its own, so that Ctrl-C reaches only the demo, which then stops
them in order.  On Linux the kernel kills them if the demo itself is killed.
"""

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Self

STOP_SECONDS: Final = 3.0  # for a proper end, before SIGKILL
GRACE_SECONDS: Final = 0.2  # between what others notice of a death and the death
READ_SIZE: Final = 65536
PARENT_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG of prctl(2)
CPUINFO: Final = Path("/proc/cpuinfo")


class Process:
    """One child process; `name` is shown to the user."""

    def __init__(self, name: str, arguments: Sequence[str], *, verbose: bool) -> None:
        self.name = name
        self._rest = b""
        self._popen = subprocess.Popen(
            [sys.executable, "-u", "-m", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if verbose else subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_die_with_parent(),
        )
        assert self._popen.stdout is not None
        self.stdout = self._popen.stdout

    @property
    def pid(self) -> int:
        return self._popen.pid

    def read(self) -> list[str] | None:
        """The lines that are complete now; None at the end."""
        data = os.read(self.stdout.fileno(), READ_SIZE)
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [line.decode(errors="replace") for line in whole] if data else None

    def is_gone(self) -> bool:
        """Whether it has ended; a dying process is given a moment."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(GRACE_SECONDS)
        return self._popen.returncode is not None

    def fate(self) -> str:
        """How it ended, in words; waits for that, since its output has ended."""
        try:
            code = self._popen.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            return "closed its output"
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"

    def stop(self) -> int:
        """End it by SIGTERM, then SIGKILL; the exit code, negative for a signal."""
        if self._popen.poll() is None:
            self._popen.terminate()
            try:
                self._popen.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._popen.kill()
        code = self._popen.wait()
        self.stdout.close()
        return code


class ProcessGroup:
    """All processes of one demo, as a context manager that stops them all."""

    def __init__(self, *, verbose: bool = False) -> None:
        self._verbose = verbose
        self._selector = selectors.DefaultSelector()
        self._processes: list[Process] = []

    def start(self, name: str, *arguments: str) -> Process:
        """Run `python -m ARGUMENTS`."""
        process = Process(name, arguments, verbose=self._verbose)
        self._processes.append(process)
        self._selector.register(process.stdout, selectors.EVENT_READ, process)
        return process

    def lines(self, timeout: float) -> Iterator[tuple[Process, str | None]]:
        """The lines that arrive within `timeout` seconds, at once if there are some.

        None stands for the end of a process.
        """
        for key, _ in self._selector.select(timeout):
            process: Process = key.data
            lines = process.read()
            if lines is None:
                self._selector.unregister(process.stdout)
                yield process, None
            for line in lines or ():
                yield process, line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Stop them in reverse order."""
        for process in reversed(self._processes):
            process.stop()
        self._selector.close()


class CpuMeter:
    """The CPU time of a process since `restart`, as the part of one core."""

    def __init__(self, pid: int) -> None:
        self._clock = ~pid << 3 | 2  # what clock_getcpuclockid(3) computes on Linux
        self._wall = self._cpu = self._last = 0.0
        self.restart()

    def restart(self) -> None:
        with contextlib.suppress(OSError):
            self._wall, self._cpu = time.monotonic(), time.clock_gettime(self._clock)

    def share(self) -> float:
        """The part of one core, 0 to 1; the last one known when the process is gone."""
        with contextlib.suppress(OSError):
            used = time.clock_gettime(self._clock) - self._cpu
            self._last = used / max(time.monotonic() - self._wall, 1e-3)
        return self._last


def clock_mhz() -> float | None:
    """The clock of the first core by /proc/cpuinfo, None where that names none."""
    with contextlib.suppress(OSError):
        for line in CPUINFO.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "cpu MHz":
                return float(value)
    return None


def _die_with_parent() -> Callable[[], None] | None:
    """Runs in a child before exec, so that it never outlives the demo."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL) and None
