"""What a large audience costs for long, and what one player that stops reading does to the others.

One publisher of sound and pictures, `--audience` players, for `--seconds` (half a minute at least,
in which the stopped one is given up; ten minutes show whether memory stays flat). Every message of
every player is accounted for.
"""

from collections.abc import Iterator
from statistics import median

from audience import Attendance, Stopped, attend
from cpu import Usage
from gateway import Gateway
from options import Options
from results import AudienceRow
from rtmp_load import Player, Publisher

STREAM = "bench"
LEAST_SECONDS = 30.0
QUIET = "--log-level", "error"  # that a player was given up is no news


class Watch:
    """Looks at the server about once a second: its memory, and whether the stopped one is gone."""

    def __init__(self, server: Gateway, stopped: Stopped | None) -> None:
        self._server, self._files = server, server.open_files() if stopped else 0
        self.memory = list[float]()  # MB
        self.gone: float | None = None  # seconds from the beginning of the window

    def look(self, second: float) -> None:
        """`second` of the window has come."""
        self.memory.append(self._server.resident_mb())
        if self.gone is None and self._files and self._server.open_files() < self._files:
            self.gone, self._files = second, 0


def measure(
    server: Gateway, players: int, seconds: float, *, stop: bool
) -> tuple[Usage, Attendance, Watch]:
    """One run; if `stop`, one more player is there, and has stopped before the first frame."""
    url = server.url(STREAM).rpartition("/")[0]
    publisher = Publisher(url, STREAM, video=True)
    audience = [Player(url, STREAM) for _ in range(players)]
    stopped = Stopped(url, STREAM) if stop else None
    meter, watch = server.meter(), Watch(server, stopped)
    attendance = attend(publisher, audience, seconds, meter.window, watch.look)
    for leg in (publisher, *audience, *([stopped] if stopped else ())):
        leg.close()
    return meter.usage, attendance, watch


def summary(
    load: str, players: int, runs: list[tuple[Usage, Attendance, Watch]], without: float | None
) -> AudienceRow:
    """The row of these runs."""
    usages, attendances, watches = zip(*runs, strict=True)
    gone = [watch.gone for watch in watches if watch.gone is not None]
    return AudienceRow(
        load=load,
        players=players,
        seconds=median(usage.seconds for usage in usages),
        share=median(usage.share for usage in usages),
        mhz=median(usage.taken for usage in usages),
        waiting=median(usage.waited / usage.seconds for usage in usages),
        messages=sum(sum(attendance.counts) for attendance in attendances),
        lost=sum(attendance.lost for attendance in attendances),
        worst=max(attendance.worst for attendance in attendances),
        p50_ms=median(attendance.percentile_ms(50) for attendance in attendances),
        p99_ms=median(attendance.percentile_ms(99) for attendance in attendances),
        max_ms=max(attendance.percentile_ms(100) for attendance in attendances),
        p99_ms_without=without,
        gone=median(gone) if gone else None,
        memory=tuple(watches[-1].memory),
    )


def rows(options: Options) -> Iterator[AudienceRow]:
    """A row without and one with the player that has stopped; their runs take turns."""
    seconds = max(options.seconds, LEAST_SECONDS)
    for players in options.audience:
        runs: dict[bool, list[tuple[Usage, Attendance, Watch]]] = {False: [], True: []}
        for _ in range(options.runs):
            for stop, made in runs.items():
                with Gateway(options.server_core, *QUIET, profile=options.profile) as gateway:
                    made.append(measure(gateway, players, seconds, stop=stop))
        without = summary("all read", players, runs[False], None)
        yield without
        yield summary("one stops", players, runs[True], without.p99_ms)
