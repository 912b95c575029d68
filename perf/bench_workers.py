"""How many calls and players two workers serve, by one: each is held to the same part of a core.

Own design: the number that is served is searched for, as a gateway's operator would see it: all
frames arrive, and in time.  A row tells what part of its share the busiest worker has used, which
is near 1 unless the load generator was the first to be full.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from cpu import cpu_clock
from gateway import Gateway
from held import Held
from load import SPEEX_8K, Leg, Reader, drive
from options import Options
from results import WorkersRow
from rtmp_load import Player, Publisher

WORKERS = (1, 2)
STARTS = {"calls": 24, "one stream": 60, "many streams": 60}
PLAYERS_OF_ONE = 20  # of each of many streams
UP, NEAR = 1.3, 1.04  # by which the number grows, and to which it is found out
MANY = ("--max-connections", "100000", "--max-per-address", "100000", "--log-level", "error")

Legs = tuple[list[Leg], list[Reader] | None]


class Clocks:
    """The CPU clocks of some processes over a window."""

    def __init__(self, pids: list[int]) -> None:
        self._clocks = [cpu_clock(pid) for pid in pids]
        self.seconds: list[float] = []

    def window(self, begins: bool) -> None:
        """Note the clocks at the begin, and take the differences at the end."""
        now = [time.clock_gettime(clock) for clock in self._clocks]
        if begins:
            self.seconds = now
        else:
            self.seconds = [end - begin for begin, end in zip(self.seconds, now, strict=True)]


def processes(gateway: Gateway, workers: int) -> list[int]:
    """The processes that serve: the gateway's own, or its children."""
    pid = gateway.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid] if workers == 1 else [int(each) for each in children]


def legs_of(gateway: Gateway, load: str, count: int) -> Legs:
    """So many calls, or so many players with their publishers of sound and pictures."""
    if load == "calls":
        return gateway.call_legs(count, SPEEX_8K), None
    streams = 1 if load == "one stream" else max(count // PLAYERS_OF_ONE, 1)
    url = f"rtmp://{gateway.rtmp}/live"
    publishers: list[Leg] = [Publisher(url, f"bench{each}", video=True) for each in range(streams)]
    return publishers, [Player(url, f"bench{each % streams}") for each in range(count)]


def window(load: str, count: int, workers: int, options: Options) -> WorkersRow:
    """One run: each worker is held to its share, and the load has the other core."""
    with ExitStack() as stack:
        held = stack.enter_context(Held())
        held.hold(os.getpid())
        given = ("--workers", str(workers), *MANY)
        if load != "calls":
            given = ("--sip", "off", *given)
        gateway = stack.enter_context(Gateway(options.server_core, *given))
        pids = processes(gateway, workers)
        for each in pids:
            held.hold(each, options.hold)
        clocks = Clocks(pids)
        legs, audience = legs_of(gateway, load, count)
        tally = drive(legs, options.seconds, "spread", clocks.window, audience)
        for leg in (*legs, *(audience or ())):
            leg.close()
    used = tuple(seconds / options.seconds / options.hold for seconds in clocks.seconds)
    # `drive` counts the frames of each publisher for all players, those of other streams as well.
    sent = tally.sent // len(legs) if audience is not None else tally.sent
    p99 = tally.percentile_ms(99)
    return WorkersRow(load, workers, options.hold, count, sent - tally.received, p99, used)


def most(serve: Callable[[int], WorkersRow], start: int) -> WorkersRow:
    """The row of the largest number that is served; the first one if even that is not."""
    best, low, high = serve(start), start, 0
    if best.void:
        return best
    while not high or high > NEAR * low:
        count = (low + high) // 2 if high else int(UP * low)
        if count == low:
            break
        row = serve(count)
        if row.void:
            high = count
        else:
            best, low = row, count
    return best


def rows(options: Options) -> Iterator[WorkersRow]:
    """A row for each load and number of workers; a number is served if it is in one of the runs."""
    for load, start in STARTS.items():
        if options.only and load not in options.only:
            continue
        alone = None
        for workers in WORKERS:

            def serve(count: int, load: str = load, workers: int = workers) -> WorkersRow:
                row = window(load, count, workers, options)
                for _ in range(1, options.runs):
                    if not row.void:
                        break
                    row = window(load, count, workers, options)
                return row

            found = most(serve, start if alone is None else alone.count)
            alone = alone or found
            yield found.beside(alone)
