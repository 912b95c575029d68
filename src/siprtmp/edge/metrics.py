"""The page `/metrics`: the figures of the gateway in the text format of Prometheus, version 0.0.4.

Own design: the figures of `/status`, and counters and histograms of the calls that have ended and
of the lag of the loop.  They hold no names, addresses or secrets.  The format is a few lines of
text, so that no library is needed for it.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from p2psip.net.alarm import Alarm
from p2psip.net.clock import monotonic
from siprtmp.calls.call import Call
from siprtmp.calls.quality import scores

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PREFIX: Final = "siprtmp_"
MOS_BOUNDS: Final = (1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.2)
SECONDS_BOUNDS: Final = (1, 10, 60, 300, 1800, 7200)
LAG_BOUNDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)  # s
EVERY: Final = 0.5  # s from one look at the lag to the next
HALF: Final = 30  # s, the span that `worst` looks back at least, and twice it at most
COUNTERS: Final = (  # the figures of `/status` that only grow
    *("sip_malformed", "sip_repeated"),
    *("rtmfp_ignored", "rtmfp_invalid", "rtmfp_evicted"),
    *("recordings_interrupted", "media_unsuitable", "media_left_out", "srtp_refused"),
    *("media_compiled", "media_interpreted"),
    *("media_sent_compiled", "media_sent_interpreted"),
)


class Histogram:
    """Counts of values below some bounds in rising order; a value that equals one counts below it.

    >>> seen = Histogram((1.0, 2.0))
    >>> for value in (0.5, 1.0, 1.5, 9.0):
    ...     seen.add(value)
    >>> list(seen.buckets()), seen.count, seen.total
    ([('1', 2), ('2', 3), ('+Inf', 4)], 4, 12.0)
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    @property
    def count(self) -> int:
        return sum(self._counts)

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def dump(self) -> list[float]:
        """The counts and the total, for `load`."""
        return [*self._counts, self.total]

    def load(self, dumped: Sequence[float]) -> None:
        """Add what another one with the same bounds has counted."""
        *counts, total = dumped
        self._counts = [mine + int(its) for mine, its in zip(self._counts, counts, strict=True)]
        self.total += total

    def buckets(self) -> Iterator[tuple[str, int]]:
        """Each bound, and how many values were not above it."""
        names, sum_ = [f"{each:g}" for each in self._bounds], 0
        for name, count in zip([*names, "+Inf"], self._counts, strict=True):
            sum_ += count
            yield name, sum_


class CallTotals:
    """Counts the calls that have ended, since the start."""

    def __init__(self) -> None:
        self.ended: Counter[tuple[str, str]] = Counter()  # by direction and outcome
        self.left_out = 0  # packets of audio, and frames, that came too late
        self.refused = 0  # packets of SRTP that were not authentic, or came before
        self.seconds = Histogram(SECONDS_BOUNDS)
        self.mos = Histogram(MOS_BOUNDS)

    def dump(self) -> dict[str, Any]:
        """What was counted, for `load`."""
        ended = [[*each, count] for each, count in sorted(self.ended.items())]
        seconds, mos = self.seconds.dump(), self.mos.dump()
        return {"ended": ended, "left_out": self.left_out, "seconds": seconds, "mos": mos}

    def load(self, dumped: Mapping[str, Any]) -> None:
        """Add what another one has counted."""
        for direction, outcome, count in dumped["ended"]:
            self.ended[direction, outcome] += count
        self.left_out += dumped["left_out"]
        self.seconds.load(dumped["seconds"])
        self.mos.load(dumped["mos"])

    def end(self, call: Call, reason: str, now: float) -> None:
        """Count a call that ends, before its media is forgotten."""
        statistics = call.statistics
        self.left_out += statistics.left_out
        self.refused += statistics.refused
        direction = call.origin.direction
        if call.up_at is None:
            self.ended[direction, _outcome(reason)] += 1
            return
        self.ended[direction, "answered"] += 1
        self.seconds.add(now - call.up_at)
        for score in scores([call]):
            self.mos.add(score)


class LoopLag:
    """How late a timer fires: a machine that only sees when it is woken, from `start` to `stop`.

    All calls share one loop, so whatever keeps it busy delays every packet.
    """

    def __init__(self) -> None:
        self.seen = Histogram(LAG_BOUNDS)
        self.deadline: float | None = None
        self._worst = [0.0, 0.0]  # of this half of a minute, and of the one before
        self._halves = 0
        self._alarm = Alarm(self)

    def start(self) -> None:
        self.deadline = monotonic() + EVERY
        self._alarm.set()

    def stop(self) -> None:
        self._alarm.cancel()

    def tick(self, now: float) -> None:
        if self.deadline is not None:
            late = now - self.deadline
            self.seen.add(late)
            if now // HALF != self._halves:
                self._halves, self._worst = int(now // HALF), [0.0, self._worst[0]]
            self._worst[0] = max(self._worst[0], late)
        self.deadline = now + EVERY

    @property
    def worst(self) -> float:
        """The most that it was late within the last half of a minute at least, in seconds."""
        return max(self._worst)


def page(status: Mapping[str, object], totals: CallTotals, lag: Histogram) -> str:
    """All metrics as text; `lag` has how late the loop was, in seconds."""
    lines = [*_figures(status), *_calls(totals)]
    lines += _histogram("call_seconds", "How long answered calls lasted.", totals.seconds)
    lines += _histogram("call_mos", "MOS of answered calls by the E-model, 1 to 4.5.", totals.mos)
    lines += _histogram("loop_lag_seconds", "How late timers of the loop fire.", lag)
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
