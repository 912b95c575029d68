"""The figures and rows of all workers as those of one gateway.

Own design: any worker may be asked, over HTTP or the operator's socket, and asks the others over
the bus.  One that does not answer within a second is counted as silent and named in the log, and
its figures are missing, but for what it has counted; nobody waits longer for it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from p2psip.errors import LocalError
from siprtmp.calls.trunks import OFF
from siprtmp.edge.metrics import COUNTERS, LAG_BOUNDS, CallTotals, Histogram, LoopLag
from siprtmp.edge.overview import Overview, Row, only
from siprtmp.edge.workers.bus import Message
from siprtmp.edge.workers.team import Team
from siprtmp.operation.logs import Log

WORST: Final = ("loop_lag_ms",)  # figures of which the highest counts
LOWEST: Final = ("mos_lowest",)
MEANS: Final = {"mos_mean": "calls"}  # by the figure that is their weight; others are added

Figures = dict[str, object]
Counted = dict[str, Any]


class Whole:
    """The figures of a gateway with several workers; the arguments are those of this one."""

    def __init__(
        self, team: Team, figures: Callable[[], Figures], totals: CallTotals, lag: LoopLag
    ) -> None:
        self._team, self._figures, self._totals, self._lag = team, figures, totals, lag
        self._log = Log("siprtmp")
        self._counted: list[Counted] = []
        self._before = team.place.kept.kept(team.place.index)
        team.handlers["figures"] = self._tell

    def figures(self) -> Figures:
        """The figures of all workers that answer."""
        others = self._team.bus.ask_all({"do": "figures"})
        answers = [self._own(), *(each for each in others.values() if each is not None)]
        whole = added([each["figures"] for each in answers])
        waited = {tuple(key) for each in answers for key in each["waited"]}
        whole["streams"] = sum(each["own"] for each in answers) + len(waited)
        self._counted = [each["counted"] for each in answers]
        for worker in self._team.place.others:
            if others.get(worker) is None:
                self._log.warning("worker-silent", silent=worker)
                self._counted.append(self._team.place.kept.kept(worker))
        counters = added([each.get("counters", {}) for each in self._counted])
        whole |= {name: value for name, value in counters.items() if name in whole}
        whole["workers"] = self._team.place.count
        whole["workers_silent"] = self._team.place.count - len(answers)
        return whole

    def lags(self) -> Histogram:
        """How late the loops of all workers were, when the figures were last collected."""
        seen = Histogram(LAG_BOUNDS)
        for each in self._counted:
            if each:
                seen.load(each["lag"])
        return seen

    def totals(self) -> CallTotals:
        """The calls of all workers that had ended then."""
        found = CallTotals()
        for each in self._counted:
            if each:
                found.load(each["calls"])
        return found

    def _tell(self, worker: int, message: Message) -> Message:
        return self._own()

    def _own(self) -> Message:
        """The figures of this worker; players that are other workers are not counted."""
        figures = self._figures()
        players = figures["players"]
        assert isinstance(players, int)
        figures["players"] = players - self._team.lent
        return {
            "figures": figures,
            "own": sum(1 for _ in self._team.own()),
            "waited": [*self._team.waited()],
            "counted": self._keep(figures),
        }

    def _keep(self, figures: Figures) -> Counted:
        """Write down what this worker and its predecessors have counted, before it is told."""
        own: Figures = {name: figures[name] for name in COUNTERS if name in figures}
        lag, calls = Histogram(LAG_BOUNDS), CallTotals()
        if before := self._before:
            lag.load(before["lag"])
            calls.load(before["calls"])
        lag.load(self._lag.seen.dump())
        calls.load(self._totals.dump())
        counters = added([own, before.get("counters", {})])
        counted = {"counters": counters, "lag": lag.dump(), "calls": calls.dump()}
        self._team.place.kept.keep(self._team.place.index, counted)
        return counted


def added(figures: list[Mapping[str, object]]) -> Figures:
    """Add the figures of several processes."""
    whole: Figures = {}
    for each in figures:
        for name, value in each.items():
            before = whole.get(name)
            if isinstance(value, int | float) and isinstance(before, int | float):
                highest, lowest = max(before, value), min(before, value)
                joined = lowest if name in LOWEST else before + value
                whole[name] = highest if name in WORST else joined
            elif before is None:
                whole[name] = value
    for name, weight in MEANS.items():
        if name in whole:
            whole[name] = _mean([(each.get(name), each.get(weight)) for each in figures])
    return whole


def _mean(values: list[tuple[Any, Any]]) -> float | None:
    """The mean of values by their weights."""
    known = [(value, weight) for value, weight in values if value is not None and weight]
    total = sum(weight for _, weight in known)
    return round(sum(value * weight for value, weight in known) / total, 2) if known else None


class WholeOverview:
    """Lists and ends what all workers have; `own` is what this one has, at times of `clock`."""

    def __init__(self, own: Overview, team: Team, clock: Callable[[], float]) -> None:
        self._own, self._team = own, team
        self.wake = own.wake
        team.handlers["mix"] = lambda worker, message: _said(own.mix, message["id"], clock())
        team.handlers["unmix"] = lambda worker, message: _said(own.unmix, message["id"], clock())
        team.handlers["rows"] = lambda worker, message: [*own.rows(clock())]
        team.handlers["ids"] = lambda worker, message: [*own.ids(clock())]
        team.handlers["end"] = lambda worker, message: own.end(message["id"], clock())

    def rows(self, now: float) -> Iterator[tuple[str, Row]]:
        """All rows; a stream or a trunk of several workers is one row, with the sums of all."""
        joined: dict[tuple[str, object], Row] = {}
        rows = [*self._own.rows(now)]
        for each in self._team.bus.ask_all({"do": "rows"}).values():
            rows += each or ()
        for kind, row in rows:
            if (join := _JOINED.get(kind)) is None:
                yield kind, row
            elif (known := joined.setdefault((kind, row["name"]), row)) is not row:
                joined[kind, row["name"]] = join(known, row)
        for (kind, _), row in joined.items():
            yield kind, row

    def end(self, text: str, now: float) -> list[str]:
        """End what has this id, in the worker that has it, as `Overview.end` does."""
        wanted, worker = self._find(text, now)
        if worker is None:
            return self._own.end(wanted, now)
        return [*self._ask("end", wanted, worker)]

    def mix(self, text: str, now: float) -> str:
        """Publish both sides of a call, in the worker that has it, as `Overview.mix` does."""
        return self._act("mix", self._own.mix, text, now)

    def unmix(self, text: str, now: float) -> str:
        """End that, as `Overview.unmix` does."""
        return self._act("unmix", self._own.unmix, text, now)

    def _act(self, do: str, act: Callable[[str, float], str], text: str, now: float) -> str:
        wanted, worker = self._find(text, now)
        if worker is None:
            return act(wanted, now)
        said, reason = self._ask(do, wanted, worker)
        if reason:
            raise LocalError(reason)
        return str(said)

    def _find(self, text: str, now: float) -> tuple[str, int | None]:
        """The id that is meant, and the other worker that has it; None for this one."""
        found: dict[str, int | None] = dict.fromkeys(self._own.ids(now))
        for worker, ids in self._team.bus.ask_all({"do": "ids"}).items():
            found |= dict.fromkeys(ids or (), worker)
        wanted = only(text, set(found))
        return wanted, found[wanted]

    def _ask(self, do: str, wanted: str, worker: int) -> Any:
        answer = self._team.bus.ask({"do": do, "id": wanted}, worker)
        if not answer:
            raise LocalError(f"the worker of {wanted!r} does not answer")
        return answer


def _said(act: Callable[[str, float], str], text: str, now: float) -> tuple[str, str]:
    """What an action gives, and the reason why it cannot be done."""
    try:
        return act(text, now), ""
    except LocalError as error:
        return "", str(error)


def _one_stream(row: Row, other: Row) -> Row:
    """Join the rows of one stream: the worker with the publisher knows its source.

    There the other worker is a player, if it has got the stream, and it counts its own.
    """
    main, copy = (other, row) if other["source"] else (row, other)
    players = [each["players"] for each in (row, other)]
    is_lent = main["seconds"] is not None and copy["seconds"] is not None
    total = sum(each for each in players if isinstance(each, int)) - is_lent
    return {**copy, **main, "players": total}


def _one_trunk(row: Row, other: Row) -> Row:
    """Join the rows of one trunk: one worker registers it, and each has calls by it."""
    main = row if row["state"] != OFF else other
    return {**main, "calls": sum(int(str(each["calls"])) for each in (row, other))}


_JOINED: Final[Mapping[str, Callable[[Row, Row], Row]]] = {
    "streams": _one_stream,
    "trunks": _one_trunk,
}
