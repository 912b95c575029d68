"""LiveKit's measurement again: how one message is sent to 1 to 500 tracks.

That article compared a loop, a pool of workers with parts given to them before, a goroutine for
each track, and workers that pull. Here are the same in Python, and processes; then the ways of the
kernel to send many datagrams by few system calls, in C. Each is beside the plain loop of the same
round. The last rows tell from which number of tracks on a way wins.
"""

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from statistics import median

from fan_out import Strategy, Tracks, calibrated
from options import Options
from results import Figures

HERE = Path(__file__).resolve().parent
TRACKS, SMALL_TRACKS = (1, 2, 5, 10, 100, 250, 500), (1, 10, 100, 500)
ROUNDS, SMALL_ROUNDS = 60, 15
LOADS = {"send": 0, "50 us and send": 50}  # us of work for each track
RUNS = {"a packet": 1, "a picture": 8}  # packets for each track
WAYS = ("sendto", "sendmmsg", "segment", "io_uring")
ABSENT = 3  # exit code: this kernel does not have it
CLEAR = 0.95  # of the loop's time: what is not noise

Pairs = dict[str, list[float]]  # us of each round, by name; the first is the reference


def rows(options: Options) -> Iterator[Figures]:
    """Python's ways, the kernel's ways, and from where on each wins."""
    os.sched_setaffinity(0, {options.server_core, options.load_core})
    found = list[Figures]()
    for row in chain(in_python(options), in_c(options)):
        found.append(row)
        yield row
    yield from thresholds(found)
    os.sched_setaffinity(0, {options.load_core})


def in_python(options: Options) -> Iterator[Figures]:
    """The wall time of a message; what it takes of all cores is not told by it."""
    counts, rounds = _form(options)
    with Tracks(counts[-1], len({options.server_core, options.load_core})) as tracks:
        text = calibrated()
        for load, work in LOADS.items():
            tracks.work(text if work else b"")
            for count in counts:
                taken = in_turns(tracks, tracks.strategies(), count, rounds)
                yield from lines(taken, f"Python, {load}", count)


def in_turns(tracks: Tracks, ways: dict[str, Strategy], count: int, rounds: int) -> Pairs:
    """The us of each round; the first round warms up."""
    taken: Pairs = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, way in ways.items():
            began = time.perf_counter()
            way(count)
            taken[name].append((time.perf_counter() - began) * 1e6)
            tracks.drain(count)
    return {name: times[1:] for name, times in taken.items()}


def in_c(options: Options) -> Iterator[Figures]:
    """The CPU time of a message, all in the process that sends."""
    program = build()
    counts, rounds = _form(options)
    for load, packets in RUNS.items():
        for count in counts:
            words = [str(count), str(packets), str(rounds)]
            taken: Pairs = {}
            for way in WAYS if packets > 1 else [way for way in WAYS if way != "segment"]:
                done = subprocess.run([program, way, *words], capture_output=True, text=True)
                if done.returncode == ABSENT:
                    continue
                if done.returncode:
                    raise RuntimeError(done.stderr)
                times = [int(line.split()[0]) / 1000 for line in done.stdout.splitlines()]
                taken[way] = times
            yield from lines(taken, f"C, {load}", count)


def lines(taken: Pairs, load: str, count: int) -> Iterator[Figures]:
    """A row for each way: the median of its rounds, and of its ratios to the first way's."""
    reference = next(iter(taken.values()))
    for name, times in taken.items():
        ratios = [mine / other for mine, other in zip(times, reference, strict=True)]
        figures = {
            "us": median(times),
            "per track": median(times) / count,
            "reference": median(reference),
            "ratio": median(ratios),
            "wins from": None,
        }
        yield Figures(name, load, count, figures)


def thresholds(found: Sequence[Figures]) -> Iterator[Figures]:
    """From which number of tracks on, to the largest one, each way takes clearly less."""
    for load in dict.fromkeys(row.load for row in found):
        for name in dict.fromkeys(row.subject for row in found if row.load == load):
            mine = [row for row in found if (row.load, row.subject) == (load, name)]
            least = None
            for row in sorted(mine, key=lambda row: -row.count):
                if (row.figures["ratio"] or 1.0) > CLEAR:
                    break
                least = float(row.count)
            figures = dict.fromkeys(mine[0].figures, None) | {"wins from": least}
            if mine[0].figures["ratio"] != 1.0 or least is not None:
                yield Figures(name, f"{load}, threshold", 0, figures)


def build() -> Path:
    """Compile the program when its source is newer."""
    source, program = HERE / "fan_out.c", HERE / "build" / "fan_out"
    if not program.is_file() or program.stat().st_mtime < source.stat().st_mtime:
        program.parent.mkdir(exist_ok=True)
        subprocess.run(["cc", "-O2", "-Wall", "-o", program, source], check=True)
    return program


def _form(options: Options) -> tuple[tuple[int, ...], int]:
    return (SMALL_TRACKS, SMALL_ROUNDS) if options.small else (TRACKS, ROUNDS)
