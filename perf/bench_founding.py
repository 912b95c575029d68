"""The founding article's tables again: what a call, a publisher and a player take, in MHz.

The article had one call, and 0 to 3 players; here the rows go on to 1,600 players. Beside each row
stand the article's figure, where it has one, and a reference of the same run: the relay in C for
calls, nginx-rtmp for players. What one player takes is the slope of a line through the rows, so
that the cost of waking up, which the first player has to pay, is not counted for each.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from statistics import fmean

import bench_players
from bench_calls import LOADS, measure_gateway, measure_relay
from cpu import Usage
from gateway import Gateway
from load import Tally
from nginx import Nginx
from options import Options
from results import Figures, Row

CLOCK = 2130.0  # MHz of each core of the article's laptop
CALLS = {"speex 8 kHz": 3.15, "speex 16 kHz": 4.05}  # per cent of a core, by gevent
PLAYERS = {"audio": (1.3, 1.8, 2.1, 2.5), "audio+video": (1.55, 2.1, 2.7, 3.1)}  # 0 to 3 of them
FEW = (0, 1, 2, 3)
CROWDS, SMALL_CROWDS = (10, 50, 100, 400, 1600), (10, 100)
MOST_PICTURES = 400  # players of pictures that the load generator can serve

Runs = Sequence[tuple[Usage, Tally]]


def article(load: str, count: int) -> float | None:
    """The MHz that the article's gateway or server took, if it was measured there."""
    if load in CALLS:
        return CALLS[load] / 100 * CLOCK if count == 1 else None
    shares = PLAYERS[load]
    return shares[count] / 100 * CLOCK if count < len(shares) else None


def slope(points: Sequence[tuple[float, float]]) -> float:
    """How much the second number grows with the first, by least squares."""
    x, y = (fmean(column) for column in zip(*points, strict=True))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def compared(load: str, count: int, references: Runs, ours: Runs) -> Figures:
    """The row of these runs, which took turns."""
    reference = Row.of("reference", load, count, "bunched", references)
    row = Row.of("siprtmp", load, count, "bunched", ours, reference=reference)
    figures = _figures(row.mhz, reference.mhz, article(load, count))
    quality = {"p99 ms": row.p99_ms, "lost": float(row.lost), "waiting": row.waiting}
    return Figures("siprtmp", load, count, figures | quality, void=row.void)


def slopes(load: str, rows: Sequence[Figures]) -> Iterator[Figures]:
    """A publisher, and a player of few and of many: of us, the reference and the article."""
    few = [row for row in rows if row.count <= FEW[-1]]
    many = [row for row in rows if row.count > FEW[-1]]
    nobody = few[0].figures
    nothing: dict[str, float | None] = {"p99 ms": None, "lost": None, "waiting": None}
    alone = _figures(nobody["MHz"] or 0.0, nobody["reference"] or 0.0, nobody["article"])
    yield Figures("siprtmp", f"{load}, publisher", 1, alone | nothing)
    for group in (few, many):
        ours, reference, old = (
            _column(group, name, load) for name in ("MHz", "reference", "article")
        )
        if ours is None or reference is None:
            continue
        figures = _figures(ours, reference, old) | nothing
        name = f"{load}, player of {group[-1].count}"
        yield Figures("siprtmp", name, 1, figures, void=any(row.void for row in group))


def rows(options: Options) -> Iterator[Figures]:
    """Calls, then players with their slopes; reference and gateway take turns."""
    for load, frame in LOADS.items():
        for count in (1,) if options.small else options.calls:
            what = partial(_pair, count, frame, options)
            references, ours = zip(*(what() for _ in range(options.runs)), strict=True)
            yield compared(load, count, references, ours)
    for load, crowds in _audiences(options).items():
        taken = list[Figures]()
        with Nginx(options.server_core) as nginx, Gateway(options.server_core) as gateway:
            for count in crowds:
                pairs = [
                    [
                        bench_players.measure(
                            server, count, load != "audio", options.seconds, f"bench-{count}-{run}"
                        )
                        for server in (nginx, gateway)
                    ]
                    for run in range(options.runs)
                ]
                references, ours = zip(*pairs, strict=True)
                taken.append(compared(load, count, references, ours))
                yield taken[-1]
        yield from slopes(load, taken)


def _pair(count: int, frame: bytes, options: Options) -> tuple[tuple[Usage, Tally], ...]:
    what = (count, frame, "bunched", options)
    return measure_relay(*what), measure_gateway(*what)


def _audiences(options: Options) -> dict[str, tuple[int, ...]]:
    crowds = SMALL_CROWDS if options.small else CROWDS
    pictures = () if options.small else tuple(n for n in crowds if n <= MOST_PICTURES)
    return {"audio": FEW + crowds, "audio+video": FEW + pictures}


def _column(rows: Sequence[Figures], name: str, load: str) -> float | None:
    points = [(row.count, row.figures[name]) for row in rows]
    known = [(float(count), value) for count, value in points if value is not None]
    return slope(known) if len(known) > 1 else None


def _figures(ours: float, reference: float, old: float | None) -> dict[str, float | None]:
    ratio = ours / reference if reference else None
    by = old / ours if old and ours else None
    return {"MHz": ours, "reference": reference, "ratio": ratio, "article": old, "by": by}
