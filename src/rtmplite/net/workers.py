"""Threads for work that may block, such as that of a disk: the hub must not wait for it.

gevent's threadpool makes its caller wait when all threads are busy, and the hub cannot wait; here
jobs wait instead, in the order they came.
"""

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

import gevent
from gevent.threadpool import ThreadPool

from rtmplite.net.clock import now

log = logging.getLogger(__name__)

THREADS: Final = 4

T = TypeVar("T")


class Workers:
    """Runs jobs in threads, and hands their results to callbacks in the hub."""

    def __init__(self, threads: int = THREADS) -> None:
        self._pool = ThreadPool(threads + 1)  # one more than is used: `spawn` never waits
        self._threads = self._free = threads
        self._waiting = deque[tuple[Callable[[], Any], Callable[[Any], None]]]()

    def run(self, job: Callable[[], T], then: Callable[[T], None]) -> None:
        """Call `job` in a thread, `then` in the hub with its result; a job must not raise."""
        self._waiting.append((job, then))
        self._start()

    @property
    def idle(self) -> bool:
        """Whether no job runs or waits."""
        return self._free == self._threads

    def wait(self, seconds: float) -> bool:
        """Wait until all jobs are done, for `seconds` at most; whether they are."""
        end = now() + seconds
        while not self.idle and now() < end:
            gevent.sleep(0.01)
        return self.idle

    def _start(self) -> None:
        while self._free and self._waiting:
            job, then = self._waiting.popleft()
            self._free -= 1
            self._pool.spawn(_guarded, job).rawlink(partial(self._done, then))

    def _done(self, then: Callable[[Any], None], result: Any) -> None:
        self._free += 1
        try:
            error, value = result.value
            if error is not None:
                log.error("a job failed", exc_info=error)
            else:
                then(value)
        except Exception:
            log.exception("after a job")
        self._start()


def _guarded(job: Callable[[], Any]) -> tuple[Exception | None, Any]:
    try:
        return None, job()
    except Exception as error:
        return error, None
