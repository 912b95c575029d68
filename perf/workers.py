"""How players scale with `--workers`: the CPU time of each process, in the same load.

    .venv/bin/python perf/workers.py --workers 1,2 --players 100 --seconds 8

One publisher of sound and pictures with all players, then as many publishers as `--streams`, each
with its part of them.  A server is full when its busiest process is, so the gain of several is the
CPU time of the one process of `--workers 1` by that of the busiest one here.  CPU time is what the
processes took themselves: other programs and a shared core lengthen a run, and change it little.
"""

import argparse
import time
from pathlib import Path

from cpu import cpu_clock, raise_file_limit, two_cores
from gateway import Gateway
from load import Tally, drive
from rtmp_load import Player, Publisher


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


def measure(workers: int, streams: int, players: int, seconds: float) -> tuple[Clocks, Tally]:
    """One run on the server's core, whatever the number of processes."""
    core, _ = two_cores()
    with Gateway(core, "--sip", "off", "--workers", str(workers)) as gateway:
        url = f"rtmp://{gateway.rtmp}/live"
        publishers = [Publisher(url, f"bench{each}", video=True) for each in range(streams)]
        audience = [Player(url, f"bench{each % streams}") for each in range(players)]
        clocks = Clocks(processes(gateway, workers))
        tally = drive(publishers, seconds, "spread", clocks.window, audience)
        for leg in (*publishers, *audience):
            leg.close()
    return clocks, tally


def numbers(text: str) -> tuple[int, ...]:
    """Read numbers between commas."""
    return tuple(map(int, text.split(",")))


def main() -> None:
    """Print a row for each load and number of workers."""
    made = argparse.ArgumentParser(description="measure how players scale with --workers")
    made.add_argument("--workers", type=numbers, default=(1, 2), metavar="N,N,...")
    made.add_argument("--players", type=int, default=100)
    made.add_argument("--streams", type=int, default=10)
    made.add_argument("--seconds", type=float, default=8.0)
    made.add_argument("--runs", type=int, default=1)
    given = made.parse_args()
    raise_file_limit()
    print("streams workers  players  CPU s of each process  all    gain   frames received")
    for streams in (1, given.streams):
        alone = 0.0
        for workers in given.workers:
            for _ in range(given.runs):
                clocks, tally = measure(workers, streams, given.players, given.seconds)
                busiest = max(clocks.seconds)
                alone = alone or busiest
                each = " ".join(f"{seconds:.2f}" for seconds in clocks.seconds)
                print(
                    f"{streams:7} {workers:7} {given.players:8}  {each:21}  "
                    f"{sum(clocks.seconds):5.2f}  {alone / busiest:5.2f}  {tally.received}"
                )


if __name__ == "__main__":
    main()
