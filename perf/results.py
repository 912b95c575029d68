"""Rows of a measurement: printed as they come, kept as JSON, drawn on request.

A row is void when frames were lost or came too late: a server that does less work is not fast.
`python perf/results.py FILE.json... [--plot OUT.png]` prints kept results, and draws them where
matplotlib is installed.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, ClassVar

from cpu import Usage, machine
from load import Tally

FOLDER = Path(__file__).resolve().parent / "results"
LATENCY_LIMIT_MS = 10.0  # p99 above the merge window


class Line:
    """A line of some table: a dataclass that is in `KINDS`."""

    HEADER: ClassVar[str]

    if TYPE_CHECKING:  # what dataclasses and asdict want to know
        __dataclass_fields__: ClassVar[dict[str, Any]]

        def __init__(self, **fields: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Row(Line):
    """One line of a table: the medians of several runs of the same thing."""

    HEADER: ClassVar[str] = (
        f"{'subject':10} {'load':12} {'count':>5} {'arrivals':8} {'MHz each':>8} {'(runs)':16}"
        f" {'ratio':>6} {'MHz':>8} {'share':>7} {'p99 ms':>7} {'lost':>5} {'waiting':>7}"
    )

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


@dataclass(frozen=True, slots=True)
class AudienceRow(Line):
    """A large audience for long: medians of several runs, but losses of all of them.

    `memory` is the server's in MB, about once a second of the last run.
    """

    HEADER: ClassVar[str] = (
        f"{'load':10} {'players':>7} {'seconds':>7} {'MHz':>8} {'share':>7} {'waiting':>7}"
        f" {'messages':>10} {'lost':>6} {'worst':>5} {'p50 ms':>7} {'p99 ms':>7} {'max ms':>7}"
        f" {'without':>7} {'gone s':>7} {'MB':>7} {'grows':>6}"
    )

    load: str
    players: int
    seconds: float
    share: float  # of one core, 0 to 1
    mhz: float
    waiting: float
    messages: int  # that arrived
    lost: int
    worst: int  # the most that one player lost
    p50_ms: float
    p99_ms: float
    max_ms: float
    p99_ms_without: float | None  # of the run beside it in which all read
    gone: float | None  # seconds until the stopped player was given up
    memory: tuple[float, ...]

    @property
    def growth(self) -> float:
        """MB from the first tenth of the window to the last, each by its median."""
        tenth = max(1, len(self.memory) // 10)
        return median(self.memory[-tenth:]) - median(self.memory[:tenth])

    @property
    def void(self) -> bool:
        """Whether the server did less than it was asked for."""
        return self.lost != 0 or self.p99_ms > LATENCY_LIMIT_MS

    def __str__(self) -> str:
        """One line of the table."""
        without = "" if self.p99_ms_without is None else f"{self.p99_ms_without:.2f}"
        gone = "" if self.gone is None else f"{self.gone:.0f}"
        return (
            f"{self.load:10} {self.players:7} {self.seconds:7.0f} {self.mhz:8.1f} {self.share:7.1%}"
            f" {self.waiting:7.1%} {self.messages:10} {self.lost:6} {self.worst:5}"
            f" {self.p50_ms:7.2f} {self.p99_ms:7.2f} {self.max_ms:7.2f} {without:>7} {gone:>7}"
            f" {median(self.memory):7.1f} {self.growth:+6.2f}{'  VOID' if self.void else ''}"
        )


@dataclass(frozen=True, slots=True)
class ThroughputRow(Line):
    """One flow from one process to another: medians of several runs."""

    HEADER: ClassVar[str] = (
        f"{'load':10} {'bytes':>7} {'sender':>9} {'receiver':>9}  MB per second of CPU;"
        f" {'MB/s':>6} {'shares':>13} {'messages':>9} {'wrong':>5} {'waiting':>7}"
    )

    load: str
    size: int  # of a message
    sender: float  # MB per second of its CPU
    receiver: float
    rate: float  # MB per second
    sender_share: float  # of one core, 0 to 1
    receiver_share: float
    messages: int  # of all runs
    wrong: int  # that were not the next one
    waiting: float  # of the one that waited more

    def __str__(self) -> str:
        """One line of the table."""
        return (
            f"{self.load:10} {self.size:7} {self.sender:9.1f} {self.receiver:9.1f} {'':22}"
            f" {self.rate:6.1f} {self.sender_share:6.1%} {self.receiver_share:6.1%}"
            f" {self.messages:9} {self.wrong:5} {self.waiting:7.1%}"
            f"{'  VOID' if self.wrong else ''}"
        )


ATTACK_LIMIT_MS = 50.0  # what honest peers may be late under a flood


@dataclass(frozen=True, slots=True)
class AttackRow(Line):
    """What honest peers noticed of one kind of flood: one run.

    `memory` is the server's in MB: before the flood, at both ends of the window, after it.
    """

    HEADER: ClassVar[str] = (
        f"{'attack':10} {'sent':>7} {'answered':>8} {'calls':>5} {'frames':>7} {'lost':>7}"
        f" {'p50 ms':>7} {'p99 ms':>7} {'max ms':>7} {'pair':>6} {'lost':>5} {'p99 ms':>7}"
        f" {'share':>6} {'waiting':>7} {'MB':>6} {'grows':>6}"
    )

    attack: str
    rate: float  # asked for, a second
    sent: int
    answered: int
    calls: int
    frames: int  # of the calls, both directions
    lost: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    pair_packets: int  # of sound and picture that the ffmpeg pair took
    pair_lost: int
    pair_p99_ms: float  # against the earliest
    share: float  # of one core, 0 to 1
    waiting: float
    memory: tuple[float, ...]

    @property
    def void(self) -> bool:
        """Whether honest peers had to suffer."""
        late = max(self.p99_ms, self.pair_p99_ms) > ATTACK_LIMIT_MS
        return self.lost != 0 or self.pair_lost != 0 or late

    def __str__(self) -> str:
        """One line of the table."""
        lost = f"{self.lost / max(self.frames, 1):.2%}"
        return (
            f"{self.attack:10} {self.sent:7} {self.answered:8} {self.calls:5} {self.frames:7}"
            f" {lost:>7} {self.p50_ms:7.1f} {self.p99_ms:7.1f} {self.max_ms:7.1f}"
            f" {self.pair_packets:6} {self.pair_lost:5} {self.pair_p99_ms:7.1f} {self.share:6.1%}"
            f" {self.waiting:7.1%} {self.memory[-1]:6.1f} {self.memory[-1] - self.memory[0]:+6.1f}"
            f"{'  MISSED' if self.void else ''}"
        )


@dataclass(frozen=True, slots=True)
class SipRow(Line):
    """Calls that are answered and hung up at once, at one rate."""

    HEADER: ClassVar[str] = (
        f"{'subject':10} {'calls/s':>7} {'calls':>7} {'failed':>6} {'repeated':>8}"
        f" {'answer ms':>9} {'share':>7}"
    )

    subject: str
    rate: int  # calls a second
    calls: int
    failed: int
    repeated: int  # messages that the caller sent twice
    answer_ms: float  # from INVITE to 200, the mean
    share: float | None  # of one core, 0 to 1; of a reference with several processes unknown

    @property
    def void(self) -> bool:
        """Whether the rate was too high."""
        return self.failed != 0 or self.repeated != 0

    def __str__(self) -> str:
        """One line of the table."""
        share = "" if self.share is None else f"{self.share:.1%}"
        return (
            f"{self.subject:10} {self.rate:7} {self.calls:7} {self.failed:6} {self.repeated:8}"
            f" {self.answer_ms:9.2f} {share:>7}{'  VOID' if self.void else ''}"
        )


WORKERS_LIMIT_MS = 30.0  # of frames of a worker that is held to a part of a core


@dataclass(frozen=True, slots=True)
class WorkersRow(Line):
    """The largest number of calls or players that some workers serve: one run."""

    HEADER: ClassVar[str] = (
        f"{'load':12} {'workers':>7} {'hold':>5} {'count':>6} {'lost':>5} {'p99 ms':>7} {'gain':>5}"
        "  used by each of its share"
    )

    load: str
    workers: int
    hold: float  # the share of a core that each may have
    count: int  # calls or players
    lost: int  # frames
    p99_ms: float
    used: tuple[float, ...]  # of what each was held to, 0 to 1
    gain: float | None = None  # by the number that one worker serves

    @property
    def void(self) -> bool:
        """Whether that was too many."""
        return self.lost != 0 or self.p99_ms > WORKERS_LIMIT_MS

    def beside(self, alone: "WorkersRow") -> "WorkersRow":
        """This row with its gain over that of one worker."""
        return replace(self, gain=self.count / alone.count)

    def __str__(self) -> str:
        """One line of the table."""
        gain = "" if self.gain is None else f"{self.gain:.2f}"
        used = " ".join(f"{each:.0%}" for each in self.used)
        return (
            f"{self.load:12} {self.workers:7} {self.hold:5.2f} {self.count:6} {self.lost:5}"
            f" {self.p99_ms:7.1f} {gain:>5}  {used}{'  VOID' if self.void else ''}"
        )


@dataclass(frozen=True, slots=True)
class GuardRow(Line):
    """The time of one work in this tree, to that in another one."""

    HEADER: ClassVar[str] = f"{'work':10} {'pairs':>5} {'ratio':>6} {'from':>6} {'to':>6}"

    work: str
    pairs: int
    ratio: float  # the median; 1.1 is a tenth slower
    low: float  # where the median lies in 90 draws of 100
    high: float
    worse: bool  # than noise explains

    def __str__(self) -> str:
        """One line of the table."""
        return (
            f"{self.work:10} {self.pairs:5} {self.ratio:6.3f} {self.low:6.3f} {self.high:6.3f}"
            f"{'  SLOWER' if self.worse else ''}"
        )


@dataclass(frozen=True, slots=True)
class Figures(Line):
    """A line of a table that repeats an article's: figures by name, those of references too."""

    subject: str  # what was measured, such as "siprtmp"
    load: str
    count: int
    figures: dict[str, float | None]  # all lines of a table have the same names
    void: bool = False

    @property
    def HEADER(self) -> str:  # noqa: N802
        """The names of the figures."""
        names = " ".join(f"{name:>{_width(name)}}" for name in self.figures)
        return f"{'subject':14} {'load':24} {'count':>6} {names}"

    def __str__(self) -> str:
        """One line of the table."""
        cells = " ".join(f"{brief(value):>{_width(name)}}" for name, value in self.figures.items())
        note = "  VOID" if self.void else ""
        return f"{self.subject:14} {self.load:24} {self.count:6} {cells}{note}"


def brief(value: float | None) -> str:
    """A figure in three digits, or none."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:.3g}"


def _width(name: str) -> int:
    return max(len(name), 7)


KINDS: dict[str, type[Line]] = {
    kind.__name__: kind
    for kind in (Row, AudienceRow, ThroughputRow, AttackRow, SipRow, WorkersRow, GuardRow, Figures)
}


def save(name: str, rows: Sequence[Line], *, small: bool = False) -> Path:
    """Keep the rows of measurement `name` with where, when and in which form they were taken."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.json"
    content = {
        "measurement": name,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "form": "small" if small else "full",
        "kind": type(rows[0]).__name__,
        "rows": [asdict(row) for row in rows],
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def read(path: Path) -> list[Line]:
    """The rows of a kept measurement."""
    content = json.loads(path.read_text())
    kind = KINDS[content.get("kind", Row.__name__)]
    return [kind(**{key: _frozen(value) for key, value in row.items()}) for row in content["rows"]]


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


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
    for header, table in groupby(rows, key=lambda row: row.HEADER):
        print(header, *table, sep="\n")
    if options.plot:
        plot([row for row in rows if isinstance(row, Row)], options.plot)


if __name__ == "__main__":
    main()
