"""A plot of each table that repeats an article's: an SVG in docs, from the kept JSON.

`python perf/plots.py` draws all again. The text stays text, so that a file has some kilobytes, and
equal figures make equal files.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from results import FOLDER, Figures, read

OUT = FOLDER.parent.parent / "docs" / "_static" / "perf"


def founding(rows: Sequence[Figures], axes: Any) -> None:
    """MHz of all players of sound together, of us, nginx and the article."""
    shown = [row for row in rows if row.load == "audio" and row.count]
    for name, label in (("MHz", "siprtmp"), ("reference", "nginx-rtmp"), ("article", "2011")):
        points = [(row.count, row.figures[name]) for row in shown if row.figures[name]]
        axes.plot(*zip(*points, strict=True), "o-", label=label)
    axes.set(xscale="log", yscale="log", xlabel="players of sound", ylabel="MHz, publisher too")


def merging(rows: Sequence[Figures], axes: Any) -> None:
    """Sends for each message against the delay."""
    for load in dict.fromkeys(row.load for row in rows):
        ours = [row for row in rows if row.load == load and row.subject.startswith("siprtmp")]
        points = [(row.figures["p99 ms"], row.figures["sends"]) for row in ours]
        if all(sends for _, sends in points):
            axes.plot(*zip(*points, strict=True), "o-", label=f"siprtmp, {load}")
    for row in rows:
        if row.subject == "nginx-rtmp" and row.figures["sends"]:
            axes.plot(
                row.figures["p99 ms"], row.figures["sends"], "s", label=f"nginx-rtmp, {row.load}"
            )
    axes.set(xscale="log", yscale="log", xlabel="delay, p99 ms")
    axes.set(ylabel="system calls for a message and player")


def codecs(rows: Sequence[Figures], axes: Any) -> None:
    """The ratio of each operation, on an axis where a half is as far from one as two."""
    names = [f"{row.load}: {row.subject}" for row in reversed(rows)]
    ratios = [row.figures["ratio"] for row in reversed(rows)]
    axes.plot(ratios, names, "o", label="our time by the library's")
    axes.axvline(1, color="gray")
    axes.set(xscale="log")


def strategies(rows: Sequence[Figures], axes: Any) -> None:
    """The ratio of each way to the plain loop, where each track has work to be done."""
    load = "Python, 50 us and send"
    for name in dict.fromkeys(row.subject for row in rows if row.load == load):
        mine = [row for row in rows if (row.load, row.subject) == (load, name)]
        points = [(row.count, row.figures["ratio"]) for row in mine]
        axes.plot(*zip(*points, strict=True), "o-", label=name)
    axes.set(xscale="log", yscale="log", xlabel="tracks, 50 us of work for each")
    axes.set(ylabel="time by that of the loop")


def memory(rows: Sequence[Figures], axes: Any) -> None:
    """What the server holds while calls come and go."""
    ended = [row for row in rows if row.load == "calls that have ended"]
    axes.plot([row.count for row in ended], [row.figures["MB"] for row in ended], "o-", label="MB")
    axes.set(xlabel="calls that have ended", ylabel="resident MB", ylim=(0, None))


def signalling(rows: Sequence[Figures], axes: Any) -> None:
    """The CPU time of each, by that of the first implementation of its kind."""
    loads = list(dict.fromkeys(row.load for row in reversed(rows)))
    for name in dict.fromkeys(row.subject for row in rows):
        mine = {row.load: row.figures["ratio"] for row in rows if row.subject == name}
        shown = [load for load in loads if load in mine]
        axes.plot([mine[load] for load in shown], shown, "o", label=name)
    axes.axvline(1, color="gray")
    axes.set(xscale="log", xlabel="CPU time of one by that of the reference")


def limits(rows: Sequence[Figures], axes: Any) -> None:
    """The part of a core that each kind takes, up to the number that was too many."""
    for name in dict.fromkeys((row.subject, row.load) for row in rows if ":" not in row.load):
        mine = [row for row in rows if (row.subject, row.load) == name]
        points = [(row.count, row.figures["share %"]) for row in mine]
        axes.plot(*zip(*points, strict=True), "o-", label=", ".join(name))
    axes.set(xscale="log", yscale="log", xlabel="calls or players", ylabel="% of a core")


DRAWN: dict[str, Callable[[Sequence[Figures], Any], None]] = {
    "founding": founding,
    "merging": merging,
    "codecs": codecs,
    "strategies": strategies,
    "memory": memory,
    "signalling": signalling,
    "limits": limits,
}


def draw(name: str) -> str:
    """Draw table `name`; tells where it is, or why it is not."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        return "no plot without matplotlib: .venv/bin/pip install '.[load]'"
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": name, "font.size": 9}
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    DRAWN[name](cast(list[Figures], read(FOLDER / f"{name}.json")), axes)
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)
    OUT.mkdir(exist_ok=True)
    path: Path = OUT / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None})
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")
    return f"drawn in {path}"


if __name__ == "__main__":
    for each in DRAWN:
        if (FOLDER / f"{each}.json").exists():
            print(draw(each))
