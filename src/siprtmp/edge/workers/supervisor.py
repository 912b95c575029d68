"""Starts the workers of `--workers`, starts one again that has died, and passes signals on.

Own design: the supervisor is the process that the operator has started.  It opens the listening
sockets, forks, and then only waits, so that nothing of a client's can make it fail; a worker is a
fork of it, which has no event loop before, and costs neither an import nor the memory for one.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from rtmplite.net.last_resort import SECONDS
from rtmplite.net.sighup import has_terminal
from siprtmp.edge.workers.place import WorkerPlace, close_places, open_places
from siprtmp.operation.logs import Log
from siprtmp.settings.table import ListenerSettings

FIRST: Final = 0.2  # s until a worker that has died is started again ...
MOST: Final = 30.0  # ... doubled up to this, for one that dies again ...
STEADY: Final = 10.0  # ... within so many seconds
TAIL: Final = 1.0  # s more than a worker allows itself for its end
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)

# Runs one worker: with its place, a function to call with the words of its ready line, and a
# descriptor that ends with the supervisor.  Gives its exit code.
Run = Callable[[WorkerPlace, Callable[[Sequence[str]], None], int], int]


@dataclass(slots=True)
class _Worker:
    place: WorkerPlace
    pid: int = 0
    ready: int = -1  # the end of a pipe on which it says that it serves
    words: tuple[str, ...] | None = None  # what it said
    since: float = 0.0
    wait: float = FIRST
    again_at: float | None = None


class Supervisor:
    """Runs `count` workers until a signal ends them.

    `drain` is how long clients may take to leave, in s.  Raises ConfigError for an address that
    can't be had.
    """

    def __init__(self, at: ListenerSettings, count: int, drain: float, run: Run) -> None:
        self._run, self._log, self._drain = run, Log("siprtmp"), drain
        self._places = open_places(at, count)
        self._workers = [_Worker(place) for place in self._places]
        self._life, self._held = os.pipe()  # its end tells workers that we have ended
        self._woken, self._waking = os.pipe()
        self._stopping_at: float | None = None
        self._code: int | None = None
        self._is_ready = False
        self._before: dict[int, object] = {}
        self._ends_by_hangup = False

    def run(self) -> int:
        """Serve until the end; the exit code, also that of a worker in the process of one."""
        self._hear()
        try:
            for worker in self._workers:
                if (code := self._start(worker)) is not None:
                    return code
            while any(each.pid or each.again_at is not None for each in self._workers):
                if (code := self._turn()) is not None:
                    return code
        finally:
            if os.getpid() == self._pid:
                close_places(self._places)
        return self._code or 0

    # -- processes --------------------------------------------------------------------------

    def _start(self, worker: _Worker) -> int | None:
        """Fork a worker; None in the supervisor, its exit code in the worker."""
        sys.stdout.flush()
        waiting = signal.pthread_sigmask(signal.SIG_BLOCK, (*SIGNALS, signal.SIGCHLD))
        worker.since, worker.again_at = time.monotonic(), None
        try:
            worker.pid, reading, writing = _forked()
        except OSError as error:  # too many processes or descriptors, for the moment
            signal.pthread_sigmask(signal.SIG_SETMASK, waiting)
            if not self._is_ready:
                raise
            self._ended(worker, error.errno or 1)
            return None
        if worker.pid:
            signal.pthread_sigmask(signal.SIG_SETMASK, waiting)
            os.close(writing)
            os.set_blocking(reading, False)
            worker.ready, worker.words = reading, None
            return None
        self._become_worker(reading)
        signal.pthread_sigmask(signal.SIG_SETMASK, waiting)
        for place in self._places:
            if place is not worker.place:
                place.close()

        def say(words: Sequence[str]) -> None:
            os.write(writing, "\n".join(words).encode() + b"\n")
            os.close(writing)

        return self._run(worker.place, say, self._life)

    def _become_worker(self, reading: int) -> None:
        """Undo what is the supervisor's."""
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        others = [each.ready for each in self._workers if each.ready >= 0]
        for each in (reading, self._held, self._woken, self._waking, *others):
            os.close(each)

    def _turn(self) -> int | None:
        """Wait for something to happen, and act; an exit code in a worker that was started."""
        self._wait()
        self._reap()
        for worker in self._workers:
            self._read_ready(worker)
            due = worker.again_at is not None and time.monotonic() >= worker.again_at
            if due and self._stopping_at is None and (code := self._start(worker)) is not None:
                return code
        if not self._is_ready and all(each.words is not None for each in self._workers):
            self._is_ready = True
            print("ready", *(self._workers[0].words or ()), flush=True)
        if self._stopping_at is not None and time.monotonic() >= self._stopping_at:
            self._pass_on(signal.SIGKILL)
        return None

    def _wait(self) -> None:
        ends = [each.again_at for each in self._workers] + [self._stopping_at]
        nearest = min((at for at in ends if at is not None), default=None)
        timeout = None if nearest is None else max(0.0, nearest - time.monotonic())
        pipes = [each.ready for each in self._workers if each.ready >= 0]
        readable, _, _ = select.select([self._woken, *pipes], [], [], timeout)
        if self._woken in readable:
            for number in os.read(self._woken, 64):
                self._heard(number)

    def _reap(self) -> None:
        for worker in self._workers:
            pid, status = os.waitpid(worker.pid, os.WNOHANG) if worker.pid else (0, 0)
            if pid:
                self._ended(worker, os.waitstatus_to_exitcode(status))

    def _ended(self, worker: _Worker, code: int) -> None:
        """Start it again later, unless it should end, or the first start has failed."""
        self._read_ready(worker)
        if worker.ready >= 0:
            os.close(worker.ready)
        worker.pid, worker.ready = 0, -1
        if self._stopping_at is not None:
            is_by_us = self._is_ready and -code in (signal.SIGTERM, signal.SIGINT)
            self._code = self._code or (0 if is_by_us else abs(code))
        elif not self._is_ready:
            self._code = code or 1
            self._stop(signal.SIGTERM)
        else:
            worker.place.counts.clear(worker.place.index)
            moment = time.monotonic()
            worker.wait = FIRST if moment - worker.since >= STEADY else min(2 * worker.wait, MOST)
            worker.again_at = moment + worker.wait
            self._log.warning(
                "worker-died", worker=worker.place.index, code=code, again=round(worker.wait, 1)
            )

    def _read_ready(self, worker: _Worker) -> None:
        """Hear what a worker says when it serves."""
        if worker.ready < 0:
            return
        with suppress(BlockingIOError):
            if said := os.read(worker.ready, 4096):
                worker.words = tuple(said.decode().split())
            os.close(worker.ready)
            worker.ready = -1

    # -- signals ----------------------------------------------------------------------------

    def _hear(self) -> None:
        self._pid = os.getpid()
        hangs_up = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and has_terminal()
        self._ends_by_hangup = hangs_up
        for end in (self._woken, self._waking):
            os.set_blocking(end, False)
        for number in (*SIGNALS, signal.SIGCHLD):
            self._before[number] = signal.signal(number, lambda number, frame: None)
        signal.set_wakeup_fd(self._waking)

    def _heard(self, number: int) -> None:
        if number in (signal.SIGTERM, signal.SIGINT) or (
            number == signal.SIGHUP and self._ends_by_hangup
        ):
            self._stop(number)
        elif number == signal.SIGUSR1:
            self._pass_on(number, self._workers[:1])  # it asks the others
        elif number == signal.SIGHUP:
            self._pass_on(number)

    def _stop(self, number: int) -> None:
        """End all workers; one that takes too long is killed."""
        if self._stopping_at is None:
            self._stopping_at = time.monotonic() + SECONDS + self._drain + TAIL
            for place in self._places:
                place.close()
            for worker in self._workers:
                worker.again_at = None
        self._pass_on(number)

    def _pass_on(self, number: int, workers: Sequence[_Worker] | None = None) -> None:
        for worker in self._workers if workers is None else workers:
            if worker.pid:
                with suppress(ProcessLookupError):
                    os.kill(worker.pid, number)


def _forked() -> tuple[int, int, int]:
    """Fork, with a pipe between both: the process, 0 in the new one, and the ends of the pipe."""
    reading, writing = os.pipe()
    try:
        return os.fork(), reading, writing
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
