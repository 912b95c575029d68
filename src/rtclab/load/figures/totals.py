"""What all clients have seen together: the summary of a run, or of a part of it.

Own design: the figures of OvenRtcTester's summary are over the clients that are connected, as
there; sums and delays are over all.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rtclab.load.figures.delays import Delays
from rtclab.load.figures.tally import AUDIO, KINDS, VIDEO, State, Tally

GONE: Final = (State.FAILED, State.DISCONNECTED)
UP: Final = (State.CONNECTED, State.COMPLETED)


class Spread(NamedTuple):
    """The mean, the most and the least of a figure over clients."""

    average: float = 0.0
    most: float = 0.0
    least: float = 0.0

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Over these values, all 0 without any."""
        if not values:
            return cls()
        return cls(sum(values) / len(values), max(values), min(values))


@dataclass(slots=True)
class Totals:
    """Sums over clients, and their spreads."""

    clients: int = 0
    states: Counter[State] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    refused: int = 0  # clients that the server turned away, or left, by its own word
    failed: int = 0  # clients that got no answer, or lost the connection
    running: float = 0.0
    packets: int = 0
    lost: int = 0
    bytes: int = 0
    stalls: int = 0
    stalled: float = 0.0
    delays: dict[str, Delays] = field(default_factory=lambda: {kind: Delays() for kind in KINDS})
    spreads: dict[str, Spread] = field(default_factory=dict)

    @classmethod
    def of(cls, tallies: Iterable[Tally]) -> "Totals":
        """Add up these clients."""
        found, connected = cls(), list[Tally]()
        for each in tallies:
            found.clients += 1
            found.states[each.state] += 1
            if each.state in GONE:
                found.reasons[each.reason] += 1
                found.refused += each.refused
                found.failed += not each.refused
            found.running = max(found.running, each.running)
            for name in ("packets", "lost", "bytes", "stalls", "stalled"):
                setattr(found, name, getattr(found, name) + getattr(each, name))
            for kind, delays in each.delays.items():
                found.delays[kind] += delays
            if each.state is State.CONNECTED:
                connected.append(each)
        found.spreads = {name: Spread.of([*map(read, connected)]) for name, read in COLUMNS.items()}
        frames, keys = sum(map(_frames, connected)), sum(each.key_frames for each in connected)
        spread = Spread.of([each.frames / each.key_frames for each in connected if each.key_frames])
        found.spreads["GOP"] = spread._replace(average=frames / keys if keys else 0.0)
        return found

    @property
    def loss(self) -> float:
        """Lost packets in percent of those that were to come."""
        return 100 * self.lost / max(1, self.packets + self.lost)

    @property
    def media(self) -> Delays:
        """The delays of stamped pictures and sounds together."""
        together = Delays(self.delays[VIDEO].counts)
        together += self.delays[AUDIO]
        return together

    @property
    def is_up(self) -> bool:
        """Whether any client has ever been accepted."""
        return any(self.states[each] for each in UP) or self.delays["set-up"].count > 0

    def since(self, earlier: "Totals") -> "Totals":
        """What came after an earlier state of the same clients; the spreads are of now."""
        names = ("refused", "failed", "packets", "lost", "bytes", "stalls", "stalled")
        return Totals(
            clients=self.clients,
            states=self.states,
            reasons=self.reasons - earlier.reasons,
            running=self.running - earlier.running,
            delays={kind: each.since(earlier.delays[kind]) for kind, each in self.delays.items()},
            spreads=self.spreads,
            **{name: getattr(self, name) - getattr(earlier, name) for name in names},
        )


def _frames(tally: Tally) -> float:
    return tally.frames


COLUMNS: Final[dict[str, Callable[[Tally], float]]] = {
    "video delay": lambda each: each.tracks[VIDEO].delay,
    "audio delay": lambda each: each.tracks[AUDIO].delay,
    "FPS": lambda each: each.fps.average,
    "BPS": lambda each: each.bps.average,
    "bytes": lambda each: each.bytes,
    "packets": lambda each: each.packets,
    "packet losses": lambda each: each.lost,
    "jitter": lambda each: each.jitter,
}
