"""The figures and rows of all workers as those of one gateway.

Own design: any worker may be asked, over HTTP or the operator's socket, and asks the others over
the bus.  One that does not answer within a second is counted as silent and named in the log, and
its figures are missing; nobody waits longer for it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from p2psip.errors import LocalError
from siprtmp.edge.metrics import LAG_BOUNDS, Histogram, LoopLag
from siprtmp.edge.overview import Overview, Row, only
from siprtmp.edge.workers.bus import Message
from siprtmp.edge.workers.team import Team
from siprtmp.operation.logs import Log

WORST: Final = ("loop_lag_ms",)  # figures of which the highest counts; others are added

Figures = dict[str, object]


class Whole:
    """The figures of a gateway with several workers; `figures` and `lag` are those of this one."""

    def __init__(self, team: Team, figures: Callable[[], Figures], lag: LoopLag) -> None:
        self._team, self._figures, self._lag = team, figures, lag
        self._log = Log("siprtmp")
        self._lags: list[list[float]] = []
        team.handlers["figures"] = self._tell

    def figures(self) -> Figures:
        """The figures of all workers that answer."""
        others = self._team.bus.ask_all({"do": "figures"})
        for worker in self._team.place.others:
            if others.get(worker) is None:
                self._log.warning("worker-silent", silent=worker)
        answers = [self._own(), *(each for each in others.values() if each is not None)]
        self._lags = [each["lag"] for each in answers]
        whole = added([each["figures"] for each in answers])
        waited = {tuple(key) for each in answers for key in each["waited"]}
        whole["streams"] = sum(each["own"] for each in answers) + len(waited)
        whole["workers"] = self._team.place.count
        whole["workers_silent"] = self._team.place.count - len(answers)
        return whole

    def lags(self) -> Histogram:
        """How late the loops of all workers were, when the figures were last collected."""
        seen = Histogram(LAG_BOUNDS)
        for each in self._lags:
            seen.load(each)
        return seen

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
            "lag": self._lag.seen.dump(),
        }


def added(figures: list[Mapping[str, object]]) -> Figures:
    """Add the figures of several processes."""
    whole: Figures = {}
    for each in figures:
        for name, value in each.items():
            before = whole.get(name)
            if isinstance(value, int | float) and isinstance(before, int | float):
                whole[name] = max(before, value) if name in WORST else before + value
            else:
                whole.setdefault(name, value)
    return whole


class WholeOverview:
    """Lists and ends what all workers have; `own` is what this one has, at times of `clock`."""

    def __init__(self, own: Overview, team: Team, clock: Callable[[], float]) -> None:
        self._own, self._team = own, team
        self.mix, self.unmix, self.wake = own.mix, own.unmix, own.wake
        team.handlers["rows"] = lambda worker, message: [*own.rows(clock())]
        team.handlers["ids"] = lambda worker, message: [*own.ids(clock())]
        team.handlers["end"] = lambda worker, message: own.end(message["id"], clock())

    def rows(self, now: float) -> Iterator[tuple[str, Row]]:
        """All rows; a stream that several workers have is one, with the players of all."""
        streams: dict[object, Row] = {}
        rows = [*self._own.rows(now)]
        for each in self._team.bus.ask_all({"do": "rows"}).values():
            rows += each or ()
        for kind, row in rows:
            if kind != "streams":
                yield kind, row
            elif (known := streams.setdefault(row["name"], row)) is not row:
                streams[row["name"]] = _one_stream(known, row)
        for row in streams.values():
            yield "streams", row

    def end(self, text: str, now: float) -> list[str]:
        """End what has this id, in the worker that has it, as `Overview.end` does."""
        found = dict.fromkeys(self._own.ids(now), -1)
        for worker, ids in self._team.bus.ask_all({"do": "ids"}).items():
            found |= dict.fromkeys(ids or (), worker)
        wanted = only(text, set(found))
        if (worker := found[wanted]) < 0:
            return self._own.end(wanted, now)
        ended = self._team.bus.ask({"do": "end", "id": wanted}, worker)
        if not ended:
            raise LocalError(f"the worker of {wanted!r} does not answer")
        return [*ended]


def _one_stream(row: Row, other: Row) -> Row:
    """Join the rows of one stream: the worker with the publisher knows its source.

    There the other worker is a player, if it has got the stream, and it counts its own.
    """
    main, copy = (other, row) if other["source"] else (row, other)
    players = [each["players"] for each in (row, other)]
    is_lent = main["seconds"] is not None and copy["seconds"] is not None
    total = sum(each for each in players if isinstance(each, int)) - is_lent
    return {**copy, **main, "players": total}
