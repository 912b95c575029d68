"""Starts of our own programs, for a tenth of their price: one process has imported them all.

Most of what a gateway of a test computes is to import itself.  Each worker keeps one Python that
has done so, and has it fork: the child becomes `python -m MODULE`, with its own session, folder,
environment, log and exit code, and runs the whole of `__main__`.
"""

import atexit
import gc
import importlib
import itertools
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

IMPORTS = {  # what `python -m MODULE` imports; its `__main__` itself runs in the child
    "p2psip": ("p2psip.serve", "p2psip.call_audio"),
    "rtmplite": ("rtmplite.cli.tool",),
    "siprtmp": ("siprtmp.edge.serve_command",),
    "rfc_annotations": ("rfc_annotations.check", "rfc_annotations.mutants", "rfc_annotations.page"),
    "pytest": ("pytest", "coverage"),
}
CLOCK_SECONDS = 0.1  # between two looks at the clock by one that waits for a program's end


class Nursling:
    """A program that was forked for us; what tests use of subprocess.Popen."""

    stdin = stdout = stderr = None

    def __init__(self, argv: Sequence[str], folder: Path, log: Path, errors: Path | None = None):
        """Start `argv`, whose output goes to the end of `log`, and that of errors too."""
        files = [str(log), str(errors or log)]
        order = {"argv": argv, "folder": str(folder), "files": files, "env": dict(os.environ)}
        self.pid: int = _ask(order)
        self.returncode: int | None = None
        self._life = os.pidfd_open(self.pid)  # Linux says by it that the process has ended

    @staticmethod
    def takes(argv: Sequence[str]) -> bool:
        """Whether this is one of our programs, started as a user starts it."""
        module = argv[argv.index("-m") + 1] if "-m" in argv[1:3] else None
        return argv[0] == sys.executable and module in IMPORTS

    def poll(self) -> int | None:
        """The exit code, once there is one."""
        if self.returncode is None and self._ends_within(0.0):
            self.returncode = _ask(self.pid)
            os.close(self._life)
        return self.returncode

    def _ends_within(self, seconds: float) -> bool:
        poller = select.poll()
        poller.register(self._life, select.POLLIN)
        return bool(poller.poll(seconds * 1000))

    def wait(self, timeout: float | None = None) -> int:
        """Wait for it; what nobody had a core for does not count."""
        from support.limits import Clock  # which the nursery itself does without

        clock = Clock()
        while (code := self.poll()) is None:
            if timeout is not None and clock.over(timeout):
                raise subprocess.TimeoutExpired("our program", timeout or 0.0)
            self._ends_within(CLOCK_SECONDS)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, if it lives."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Make it end."""
        self.send_signal(signal.SIGKILL)


class Overheard(Nursling):
    """One of which we hear each word: `stdout` and `stderr` are pipes."""

    def __init__(self, argv: Sequence[str]) -> None:
        """Start `argv` in the current folder."""
        ends = [os.pipe() for _ in range(2)]
        super().__init__(argv, Path.cwd(), *(Path(f"/proc/{os.getpid()}/fd/{w}") for _, w in ends))
        for _, written in ends:
            os.close(written)
        self.stdout, self.stderr = (os.fdopen(read) for read, _ in ends)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end; what it said to the end."""
        pipes, said = (self.stdout, self.stderr), ["", ""]

        def read(number: int) -> None:
            said[number] = pipes[number].read()
            pipes[number].close()

        readers = [
            threading.Thread(target=read, args=(number,), daemon=True)
            for number, pipe in enumerate(pipes)
            if not pipe.closed
        ]
        for each in readers:
            each.start()
        self.wait(timeout)
        for each in readers:
            each.join()
        return said[0], said[1]


def finished(argv: Sequence[str], timeout: float) -> "subprocess.CompletedProcess[str]":
    """What subprocess.run gives of `argv`."""
    child = Overheard(argv)
    try:
        said = child.communicate(timeout)
    finally:
        child.kill()
    return subprocess.CompletedProcess(argv, child.wait(), *said)


_nursery: list["subprocess.Popen[str]"] = []  # of this worker, once it has asked
_numbers, _turn = itertools.count(), threading.Lock()  # several threads may wait for programs


def _started() -> "subprocess.Popen[str]":
    if not _nursery:
        words = [sys.executable, "-P", __file__]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        _nursery.append(subprocess.Popen(words, start_new_session=True, **pipes))
        atexit.register(_nursery[0].communicate)
    return _nursery[0]


def _ask(order: object) -> Any:
    with _turn:
        nursery, number = _started(), next(_numbers)
        assert nursery.stdin is not None and nursery.stdout is not None
        print(json.dumps([number, order], default=str), file=nursery.stdin, flush=True)
        while True:  # one that asked before may have been interrupted
            answered, answer = json.loads(nursery.stdout.readline())
            if answered == number:
                return answer


def main() -> None:
    """Fork for each order, and tell the exit code of the process that a number asks for."""
    for line in sys.stdin:
        number, order = json.loads(line)
        if isinstance(order, dict):
            words = order["argv"][1:]
            while words[0] != "-m":
                words.pop(0)
            for each in IMPORTS[words[1]]:
                importlib.import_module(each)
            gc.freeze()
            files = [os.open(name, os.O_WRONLY | os.O_APPEND) for name in order["files"]]
            answer = os.fork()
            if not answer:
                return _become(words[1:], order, files)
            for each in files:
                os.close(each)
        else:
            pid, status = os.waitpid(order, os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        print(json.dumps([number, answer]), flush=True)


def _become(words: Sequence[str], order: dict[str, Any], files: Sequence[int]) -> None:
    os.setsid()
    os.chdir(order["folder"])
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), *files)):
        os.dup2(file, number)
        os.close(file)
    if "-u" in order["argv"][:2]:
        sys.stdout.reconfigure(write_through=True)
    os.environ.clear()
    os.environ.update(order["env"])
    sys.argv[1:] = words[1:]
    added = os.environ.get("PYTHONPATH", "")
    sys.path[:0] = [order["folder"], *filter(None, added.split(os.pathsep))]
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    gc.unfreeze()
    gc.enable()
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
