"""The page `/metrics`: the figures of the gateway in the text format of Prometheus, version 0.0.4.

Own design: the figures of `/status`, and counters and histograms of the calls that have ended.
They hold no names, addresses or secrets.  The format is a few lines of text, so that no library is
needed for it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from siprtmp.calls.call import Call
from siprtmp.calls.quality import scores
from siprtmp.edge.process.histogram import Histogram
from siprtmp.edge.process.loop_lag import LoopLag

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PREFIX: Final = "siprtmp_"
MOS_BOUNDS: Final = (1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.2)
SECONDS_BOUNDS: Final = (1, 10, 60, 300, 1800, 7200)
COUNTERS: Final = (  # the figures of `/status` that only grow
    *("sip_malformed", "sip_repeated"),
    *("rtmfp_ignored", "rtmfp_invalid", "rtmfp_evicted"),
    *("recordings_interrupted", "media_unsuitable", "media_left_out"),
    *("media_compiled", "media_interpreted"),
)


class CallTotals:
    """Counts the calls that have ended, since the start."""

    def __init__(self) -> None:
        self.ended: Counter[tuple[str, str]] = Counter()  # by direction and outcome
        self.left_out = 0  # packets of audio, and frames, that came too late
        self.seconds = Histogram(SECONDS_BOUNDS)
        self.mos = Histogram(MOS_BOUNDS)

    def end(self, call: Call, reason: str, now: float) -> None:
        """Count a call that ends, before its media is forgotten."""
        self.left_out += call.statistics.left_out
        direction = call.origin.direction if call.origin is not None else "in"
        if call.up_at is None:
            self.ended[direction, _outcome(reason)] += 1
            return
        self.ended[direction, "answered"] += 1
        self.seconds.add(now - call.up_at)
        for score in scores([call]):
            self.mos.add(score)


def page(status: Mapping[str, object], totals: CallTotals, lag: LoopLag) -> str:
    """All metrics as text."""
    lines = [*_figures(status), *_calls(totals)]
    lines += _histogram("call_seconds", "How long answered calls lasted.", totals.seconds)
    lines += _histogram("call_mos", "MOS of answered calls by the E-model, 1 to 4.5.", totals.mos)
    lines += _histogram("loop_lag_seconds", "How late timers of the loop fire.", lag.seen)
    return "\n".join(lines) + "\n"


def _figures(status: Mapping[str, object]) -> Iterator[str]:
    for name, value in status.items():
        if name == "version":
            yield from _head("info", "The version.", "gauge")
            yield f'{PREFIX}info{{version="{value}"}} 1'
        elif isinstance(value, int | float):
            suffix, kind = ("_total", "counter") if name in COUNTERS else ("", "gauge")
            yield from _head(f"{name}{suffix}", "As /status has it.", kind)
            yield f"{PREFIX}{name}{suffix} {value:g}"


def _calls(totals: CallTotals) -> Iterator[str]:
    yield from _head("calls_ended_total", "Calls that have ended.", "counter")
    for (direction, outcome), count in sorted(totals.ended.items()):
        labels = f'direction="{direction}",outcome="{outcome}"'
        yield f"{PREFIX}calls_ended_total{{{labels}}} {count}"


def _histogram(name: str, help_: str, seen: Histogram) -> Iterator[str]:
    yield from _head(name, help_, "histogram")
    for bound, count in seen.buckets():
        yield f'{PREFIX}{name}_bucket{{le="{bound}"}} {count}'
    yield f"{PREFIX}{name}_sum {seen.total:g}"
    yield f"{PREFIX}{name}_count {seen.count}"


def _head(name: str, help_: str, kind: str) -> Iterable[str]:
    return (f"# HELP {PREFIX}{name} {help_}", f"# TYPE {PREFIX}{name} {kind}")


def _outcome(reason: str) -> str:
    """Of a call without an answer: `busy`, `cancelled`, or the class of its status, as `4xx`."""
    code = reason.partition(" ")[0]
    if code in ("486", "600"):
        return "busy"
    if len(code) == 3 and code.isascii() and code.isdigit():
        return f"{code[0]}xx"
    return "cancelled"
