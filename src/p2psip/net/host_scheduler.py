"""Shares the time of the event loop among the hosts that send to us.

Own design: audio is read once in a turn of the loop, so a turn must be short however much others
send.  What they have sent waits here, and has a `SLICE` of each turn, in processor time of this
thread.  To read that is a system call, so it is read once, and where the clock says that it is
time.  In a slice the hosts follow each other with one piece of work each; every other piece is one
of a host that had nothing waiting before.
"""

import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from gevent import get_hub

from p2psip.net.clock import monotonic

SLICE: Final = 0.002  # s of such work in one turn of the loop, in which audio waits
BEFORE_SENDING: Final = 1  # a watcher's priority: what sends at the end of a turn has less

Work: TypeAlias = Callable[[], bool]  # does one piece; whether there is more of it

busy_seconds = time.thread_time
log: Final = logging.getLogger(__name__)


class HostScheduler:
    """Work that waits for the next slice, by the host that makes it."""

    def __init__(self) -> None:
        # The next host first; in `_fresh` are those that have not been served since they wait.
        self._fresh: OrderedDict[str, deque[Work]] = OrderedDict()
        self._waiting: OrderedDict[str, deque[Work]] = OrderedDict()
        self._closed = self._was_fresh = False
        loop = get_hub().loop
        # before the loop sleeps, only while there is work: each packet of audio would pay for it
        self._server: Any = loop.prepare(ref=False, priority=BEFORE_SENDING)
        self._waker: Any = loop.idle(ref=False)  # the loop sleeps only when nothing waits

    def add(self, host: str, work: Work) -> None:
        """Have `work` done in this turn of the loop, or soon, and again while it returns true."""
        if not self._waiting and not self._fresh:
            self._server.start(self.serve)
            self._waker.start(_stay_awake)
        works = self._waiting.get(host)
        (self._fresh.setdefault(host, deque()) if works is None else works).append(work)

    def close(self) -> None:
        self._closed = True
        self._waiting.clear()
        self._fresh.clear()
        for watcher in (self._server, self._waker):
            watcher.stop()
            watcher.close()

    def serve(self) -> None:
        """Do what waits, for a slice at most; timers call it, so that input comes first."""
        if not self._waiting and not self._fresh:
            return
        begun, busy = monotonic(), busy_seconds()
        while self._waiting or self._fresh:
            self._was_fresh = bool(self._fresh) and not (self._was_fresh and self._waiting)
            hosts = self._fresh if self._was_fresh else self._waiting
            host, works = hosts.popitem(last=False)
            work = works.popleft()
            is_unfinished = _done_in_part(work)
            if self._closed:
                return
            if is_unfinished:
                works.append(work)
            if works:  # behind what the work itself may have added
                works.extend(self._fresh.pop(host, ()))
                self._waiting[host] = works
            is_over = monotonic() - begun >= SLICE and busy_seconds() - busy >= SLICE
            if is_over and (self._waiting or self._fresh):
                return
        self._server.stop()
        self._waker.stop()


def _done_in_part(work: Work) -> bool:
    """Do a piece of work; a fault in it is logged and ends that work alone."""
    try:
        return work()
    except Exception:
        log.exception("a fault of ours")
        return False


def _stay_awake() -> None:
    """Do nothing: the loop does not sleep while there is such a watcher."""
