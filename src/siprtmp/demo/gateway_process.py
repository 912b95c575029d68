"""The gateway of the demo, as a process of its own, and the CPU time that it takes.

Own design: it has a session of its own, so that Ctrl-C reaches only the demo, which then stops it
in order.  On Linux the kernel kills it if the demo itself is killed.
"""

import contextlib
import ctypes
import json
import select
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self

ANY_PORT: Final = "127.0.0.1:0"
LISTENERS: Final = "--rtmp", ANY_PORT, "--sip", ANY_PORT, "--http", ANY_PORT, "--rtmfp", "off"
STOP_SECONDS: Final = 3.0  # for a proper end, before SIGKILL
PARENT_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG of prctl(2)
CPUINFO: Final = Path("/proc/cpuinfo")


class GatewayProcess:
    """A gateway on free ports, as a context manager that stops it; `listeners` are by name.

    `more` are options beside those of the ports.
    """

    def __init__(self, *more: str, verbose: bool = False) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-u", "-m", "siprtmp", *LISTENERS, *more],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if verbose else subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_die_with_parent(),
        )
        self.pid = self._popen.pid
        self.ready_line = ""
        self.listeners: dict[str, str] = {}

    def is_ready(self) -> bool:
        """Whether the gateway has printed its ready line, which names the listeners."""
        assert self._popen.stdout is not None
        readable, _, _ = select.select([self._popen.stdout], [], [], 0)
        if readable and (line := self._popen.stdout.readline().decode().strip()):
            self.ready_line = line
            self.listeners = dict(word.split("=", 1) for word in line.split()[1:])
        return bool(self.ready_line)

    def fate(self, seconds: float = 0.0) -> str:
        """How it has ended, in words; empty if it lives on for so many seconds."""
        try:
            code = self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return ""
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"

    def status(self) -> dict[str, Any]:
        """The figures of its page.  Raises OSError, and ValueError for another page."""
        url = f"http://{self.listeners['http']}/status"
        with urllib.request.urlopen(url, timeout=5) as answer:
            figures: dict[str, Any] = json.load(answer)
            return figures

    def stop(self) -> int:
        """End it by SIGTERM, then SIGKILL; the exit code, negative for a signal."""
        self._popen.terminate()
        if not self.fate(STOP_SECONDS):
            self._popen.kill()
        return self._popen.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


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
