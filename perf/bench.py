"""Run measurements: `python perf/bench.py [NAME...]`, each NAME a file perf/bench_NAME.py.

Such a file has a function `rows(options) -> Iterator[Line]`. Rows are printed as they come and
kept in perf/results/NAME.json. See perf/README.md for the method.
"""

import argparse
import importlib
import os
import sys
from pathlib import Path

import plots
from cpu import raise_file_limit, two_cores
from options import Options
from results import GuardRow, Line, save

NAMES = sorted(
    file.stem.removeprefix("bench_") for file in Path(__file__).parent.glob("bench_*.py")
)


def numbers(text: str) -> tuple[int, ...]:
    """1,20,100"""
    return tuple(int(word) for word in text.split(","))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description="measure what calls and players cost")
    made.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all")
    made.add_argument("--seconds", type=float, default=5.0, help="length of a window (%(default)s)")
    made.add_argument("--runs", type=int, default=3, help="the median of so many (%(default)s)")
    made.add_argument("--calls", type=numbers, default=(1, 20, 100), metavar="N,N,...")
    made.add_argument("--players", type=numbers, default=(0, 1, 2, 3, 50, 200), metavar="N,N,...")
    made.add_argument("--audience", type=numbers, default=(500,), metavar="N,N,...")
    made.add_argument("--arrivals", choices=["bunched", "spread"], help="one of the two; both")
    made.add_argument("--only", default="", metavar="KIND,...", help="of attacks or workers; all")
    made.add_argument("--hold", type=float, default=0.25, help="of a core for each worker; 0.25")
    made.add_argument("--profile", default="", metavar="FILE", help="run the gateway in cProfile")
    made.add_argument("--small", action="store_true", help="one short window of the smaller counts")
    return made


def main() -> None:
    """Measure and keep."""
    given = parser().parse_args()
    if unknown := set(given.names) - set(NAMES):
        sys.exit(f"no measurement {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    server_core, load_core = two_cores()
    if server_core == load_core:
        print("only one core: server and load disturb each other, the figures are rough")
    raise_file_limit()
    os.sched_setaffinity(0, {load_core})
    options = Options(
        seconds=min(given.seconds, 1.0) if given.small else given.seconds,
        runs=1 if given.small else given.runs,
        calls=given.calls,
        players=given.players,
        audience=given.audience,
        arrivals=(given.arrivals,) if given.arrivals else ("bunched", "spread"),
        server_core=server_core,
        load_core=load_core,
        profile=given.profile,
        only=tuple(filter(None, given.only.split(","))),
        hold=given.hold,
        small=given.small,
    )
    for name in given.names or NAMES:
        print(f"\n{name}")
        rows: list[Line] = []
        for row in importlib.import_module(f"bench_{name}").rows(options):
            if not rows:
                print(row.HEADER)
            print(row, flush=True)
            rows.append(row)
        print(f"kept in {save(name, rows, small=given.small)}")
        if name in plots.DRAWN:
            print(plots.draw(name))
        if slower := [row.work for row in rows if isinstance(row, GuardRow) and row.worse]:
            sys.exit(f"slower than the commit before: {', '.join(slower)}")


if __name__ == "__main__":
    main()
