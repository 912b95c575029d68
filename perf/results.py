"""Rows of a measurement: printed as they come, kept as JSON, drawn on request.

A row is void when frames were lost or came too late: a server that does less work is not fast.
`python perf/results.py FILE.json... [--plot OUT.png]` prints kept results, and draws them where
matplotlib is installed.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from cpu import Usage, machine
from load import Tally

FOLDER = Path(__file__).resolve().parent / "results"
LATENCY_LIMIT_MS = 10.0  # p99 above the merge window


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: the medians of several runs of the same thing."""

    subject: str  # what served, such as "relay"
    load: str  # what it served, such as "speex 8 kHz"
    count: int  # calls or players
    arrivals: str  # bunched or spread
    mhz_each: float  # MHz per call or player
    mhz: float  # MHz of all together
    ratio: float | None  # to the reference of the same run
    share: float  # of one core, 0 to 1
    p99_ms: float
    lost: int  # frames, in all runs
    void: bool
    runs: tuple[float, ...]  # mhz_each of each run
    waiting: float | None = None  # part of the time the server was ready and had no core

    @classmethod
    def of(
        cls,
        subject: str,
        load: str,
        count: int,
        arrivals: str,
        runs: Iterable[tuple[Usage, Tally]],
        merge_ms: float = 0.0,
        reference: "Row | None" = None,
    ) -> "Row":
        """The row of these runs; `reference` is the row of what stood beside it.

        With a `count` of 0 there is nothing to divide by, and all is as for one.
        """
        usages, tallies = zip(*runs, strict=True)
        each = tuple(usage.taken / max(count, 1) for usage in usages)
        late = median(tally.percentile_ms(99) for tally in tallies)
        lost = sum(tally.lost for tally in tallies)
        return cls(
            subject=subject,
            load=load,
            count=count,
            arrivals=arrivals,
            mhz_each=median(each),
            mhz=median(usage.taken for usage in usages),
            ratio=median(each) / reference.mhz_each if reference else None,
            share=median(usage.share for usage in usages),
            p99_ms=late,
            lost=lost,
            void=lost != 0 or late > merge_ms + LATENCY_LIMIT_MS,
            runs=each,
            waiting=median(usage.waited / usage.seconds for usage in usages),
        )

    def __str__(self) -> str:
        """One line of the table."""
        note = "  VOID" if self.void else ""
        spread = f"({min(self.runs):.2f}-{max(self.runs):.2f})"
        waiting = "" if self.waiting is None else f"{self.waiting:.1%}"
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        return (
            f"{self.subject:10} {self.load:12} {self.count:5} {self.arrivals:8}"
            f" {self.mhz_each:8.2f} {spread:16} {ratio:>6} {self.mhz:8.1f} {self.share:7.1%}"
            f" {self.p99_ms:7.2f} {self.lost:5} {waiting:>7}{note}"
        )


HEADER = (
    f"{'subject':10} {'load':12} {'count':>5} {'arrivals':8}"
    f" {'MHz each':>8} {'(runs)':16} {'ratio':>6} {'MHz':>8} {'share':>7} {'p99 ms':>7} {'lost':>5}"
    f" {'waiting':>7}"
)


def save(name: str, rows: list[Row]) -> Path:
    """Keep the rows of measurement `name` with where and when they were taken."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.json"
    content = {
        "measurement": name,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "rows": [asdict(row) for row in rows],
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def read(path: Path) -> list[Row]:
    """The rows of a kept measurement."""
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"]
    return [Row(**{**row, "runs": tuple(row["runs"])}) for row in rows]


def plot(rows: list[Row], out: Path) -> None:
    """MHz each against the count, a line per subject, load and arrivals."""
    try:
        from matplotlib import pyplot
    except ImportError:
        sys.exit("a plot needs matplotlib: .venv/bin/pip install matplotlib")
    figure, axes = pyplot.subplots()
    series: dict[str, list[Row]] = {}
    for row in rows:
        if not row.void:
            series.setdefault(f"{row.subject}, {row.load}, {row.arrivals}", []).append(row)
    for label, points in series.items():
        points.sort(key=lambda row: row.count)
        axes.plot(
            [row.count for row in points], [row.mhz_each for row in points], "o-", label=label
        )
    axes.set(xscale="log", yscale="log", xlabel="calls or players", ylabel="MHz each")
    axes.legend(fontsize="small")
    figure.savefig(out)


def main() -> None:
    """Print, and draw when asked."""
    parser = argparse.ArgumentParser(description="print kept measurements")
    parser.add_argument("files", nargs="*", type=Path, default=sorted(FOLDER.glob("*.json")))
    parser.add_argument("--plot", type=Path, metavar="OUT.png")
    options = parser.parse_args()
    rows = [row for file in options.files for row in read(file)]
    print(HEADER, *rows, sep="\n")
    if options.plot:
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
