"""One run: looks at the clients each second, asks the course, and shows what there is.

Own design: the figures are added up anew at each look, so no client tells anybody anything.
"""

import signal
from copy import deepcopy
from typing import Final, NamedTuple, Protocol

import gevent
from gevent.event import Event

from rtclab.load.figures.course import Course
from rtclab.load.figures.health import Health
from rtclab.load.figures.tally import Tally
from rtclab.load.figures.totals import UP, Totals
from rtclab.load.workers import Clients
from rtmplite.net.clock import now

LOOK: Final = 0.5  # s between two looks
MOST: Final = 2000  # points of a plot


class Point(NamedTuple):
    """What the plots show of a second."""

    seconds: float
    clients: int  # that are to be
    up: int
    bps: float
    delay_ms: float  # of 95 stamped frames in 100
    lost: int


class Screen(Protocol):
    """Where the figures are shown while the load runs."""

    def show(self, seconds: float, aim: int, totals: Totals, health: Health) -> None:
        """Show the figures so far."""

    def close(self) -> None:
        """Leave the terminal as it was."""


def run(clients: Clients, course: Course, screen: Screen, summary: float) -> "Record":
    """Run to the end of the course, or until SIGINT or SIGTERM; `summary` is in s."""
    stopped = Event()
    watchers = [
        gevent.signal_handler(each, stopped.set) for each in (signal.SIGINT, signal.SIGTERM)
    ]
    record, began, due, shown = Record(course), now(), summary, Health()
    try:
        while course.verdict is None and not stopped.is_set():
            health, totals = clients.health(), Totals.of(clients.tallies)
            clients.aim(course.tick(now(), totals, health))
            shown = shown.worse(health)
            record.note(now() - began, course.aim, totals, health)
            if now() - began >= due:
                screen.show(now() - began, course.aim, totals, shown)
                shown, due = Health(), due + summary
            stopped.wait(LOOK)
        record.end(clients, now() - began)
    finally:
        for each in watchers:
            each.cancel()
        clients.stop()
        screen.close()
    return record


class Record:
    """What is kept of a run for its reports: the points of its plots, and the end.

    Own design: there are no more than `MOST` points; a longer run keeps every other, then every
    fourth, and so on.
    """

    def __init__(self, course: Course) -> None:
        self.course = course
        self.seconds = 0.0
        self.totals = Totals()
        self.tallies: list[Tally] = []
        self.health = Health()
        self.points: list[Point] = []
        self._gap = 1.0  # s between points
        self._before = Totals()

    def note(self, seconds: float, aim: int, totals: Totals, health: Health) -> None:
        """Keep the figures of one look as a point, if it is time for one."""
        self.health = self.health.worse(health)
        last = self.points[-1].seconds if self.points else 0.0
        if seconds - last < self._gap:
            return
        window, self._before = totals.since(self._before), totals
        up = sum(totals.states[each] for each in UP)
        rate = 8 * window.bytes / (seconds - last)
        delay = window.media.percentile(95)
        self.points.append(Point(seconds, aim, up, rate, delay, window.lost))
        if len(self.points) >= MOST:
            self.points, self._gap = self.points[1::2], 2 * self._gap

    def end(self, clients: Clients, seconds: float) -> None:
        """Take the last figures, before the clients end."""
        self.tallies, self.seconds = deepcopy([*clients.tallies]), seconds
        self.totals = Totals.of(self.tallies)
        self.course.finish(self.totals)
