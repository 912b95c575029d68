"""The system calls of a process that is not ours to change, counted by strace.

strace stops the process at each call, which makes it slow: a window in which calls are counted says
nothing of time, and its load has to be light.
"""

import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Self

SENDS = ("send", "sendto", "sendmsg", "sendmmsg", "write", "writev")


class Counted:
    """Counts what all threads of process `pid` call while the context lasts; then see `calls`.

    strace shares the core of the process: elsewhere each call would wait for the load generator.
    """

    def __init__(self, pid: int, core: int) -> None:
        self._pid, self._core = pid, core
        self.calls = Counter[str]()

    def __enter__(self) -> Self:
        """Attach, and wait until that is done."""
        self._folder = tempfile.TemporaryDirectory()
        self._table = Path(self._folder.name) / "calls"
        words = [
            "taskset",
            "-c",
            str(self._core),
            "strace",
            "-c",
            "-f",
            "-p",
            str(self._pid),
            "-o",
            str(self._table),
        ]
        self._process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        if "attached" not in line:
            raise RuntimeError(f"strace: {line.strip()}")
        return self

    def __exit__(self, *_: object) -> None:
        """Detach, and read the table."""
        self._process.send_signal(signal.SIGINT)
        self._process.communicate()
        self.calls = counts(self._table.read_text())
        self._folder.cleanup()

    @property
    def sends(self) -> int:
        """Those that may send."""
        return sum(self.calls[name] for name in SENDS)


def is_there() -> bool:
    """Whether system calls can be counted."""
    return shutil.which("strace") is not None


def counts(table: str) -> Counter[str]:
    """The calls by name, from what `strace -c` writes; errors are a column that may be empty."""
    found = Counter[str]()
    for line in table.splitlines():
        words = line.split()
        if len(words) in (5, 6) and words[3].isdigit() and words[-1] != "total":
            found[words[-1]] += int(words[3])
    return found
