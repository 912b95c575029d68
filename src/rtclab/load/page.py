"""A page of HTML that needs nothing else: the verdict, the summary, and plots as SVG.

Own design: SVG within the page needs no library to draw it, and no file beside it.
"""

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Final

from rtclab.load.report import decimal, end_lines, summary_lines
from rtclab.load.run import Point, Record

WIDTH, HEIGHT, MARGIN = 720, 200, 60
STYLE: Final = (
    "body{font:16px sans-serif;max-width:48em;margin:2em auto}pre{background:#eee;padding:1em;"
    "white-space:pre-wrap}svg text{font:12px sans-serif}"
)
PLOTS: Final[dict[str, tuple[Callable[[Point], float], Callable[[float], str]]]] = {
    "Clients that are up": (lambda each: each.up, lambda value: f"{value:.0f}"),
    "Bits a second, all clients": (lambda each: each.bps, lambda value: decimal(value, "bps")),
    "Delay of stamps, p95": (lambda each: each.delay_ms, lambda value: f"{value:.1f} ms"),
    "Lost packets": (lambda each: each.lost, lambda value: f"{value:.0f}"),
}


def as_html(record: Record, url: str) -> bytes:
    """Write the whole page."""
    verdict = "\n".join(end_lines(record))
    summary = "\n".join(summary_lines(record.seconds, record.totals, record.health))
    plots = "\n".join(_plots(record.points))
    return (
        f'<!DOCTYPE html><meta charset="utf-8"><title>Load on {escape(url)}</title>'
        f"<style>{STYLE}</style><h1>Load on {escape(url)}</h1><pre>{escape(verdict)}</pre>"
        f"<pre>{escape(summary)}</pre>{plots}\n"
    ).encode()


def _plots(points: Sequence[Point]) -> Iterator[str]:
    for title, (read, write) in PLOTS.items():
        values = [read(each) for each in points]
        if any(values):
            yield f"<h2>{title}</h2>{_plot([each.seconds for each in points], values, write)}"


def _plot(times: Sequence[float], values: Sequence[float], write: Callable[[float], str]) -> str:
    last, most = max(times), max(values)
    right, low = WIDTH - MARGIN, HEIGHT - 20
    line = " ".join(
        f"{MARGIN + time / last * (right - MARGIN):.1f},{low - value / most * (low - 10):.1f}"
        for time, value in zip(times, values, strict=True)
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
        f'<path d="M{MARGIN} 10V{low}H{right}" fill="none" stroke="#888"/>'
        f'<polyline points="{line}" fill="none" stroke="#06c" stroke-width="2"/>'
        f'<text x="{MARGIN - 4}" y="14" text-anchor="end">{escape(write(most))}</text>'
        f'<text x="{MARGIN - 4}" y="{low}" text-anchor="end">0</text>'
        f'<text x="{right}" y="{HEIGHT - 4}" text-anchor="end">{last:.0f} s</text></svg>'
    )
