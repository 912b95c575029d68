"""What a server must hold to, and what came of it.

Own design: a refusal is the server's own word and always counts.  Delay, loss, stalls and silence
count only where the generator kept its own time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from rtclab.load.figures.health import BUSY, LATE, Health
from rtclab.load.figures.totals import Totals


class Exit(IntEnum):
    """The exit codes of a run."""

    HELD = 0
    BROKE = 1
    UNREACHABLE = 3
    UNJUDGED = 4  # the generator was the limit


@dataclass(frozen=True, slots=True)
class Limits:
    """The thresholds; None does not judge."""

    loss: float | None = 1.0  # percent of the packets
    delay: float | None = 1000.0  # ms, of 95 stamped frames in 100
    refused: float | None = 0.0  # percent of the clients
    stalls: int | None = None
    own_late: float = LATE  # ms
    own_cpu: float = BUSY  # percent

    def refusals(self, window: Totals) -> list[str]:
        """What the server has said itself."""
        if self.refused is None or not window.refused:
            return []
        share = 100 * window.refused / max(1, window.clients)
        if share <= self.refused:
            return []
        return [f"{window.refused} of {window.clients} clients refused: {said(window)}"]

    def breaches(self, window: Totals) -> list[str]:
        """What was measured here, and holds if the generator kept its time."""
        found = []
        if self.loss is not None and window.loss > self.loss:
            found.append(f"loss of {window.loss:.2f}%, more than {self.loss:g}%")
        delay = window.media.percentile(95)
        if self.delay is not None and delay > self.delay:
            found.append(f"delay of {delay:.0f} ms (p95), more than {self.delay:g} ms")
        if self.stalls is not None and window.stalls > self.stalls:
            found.append(f"{window.stalls} stalls, more than {self.stalls}")
        share = 100 * window.failed / max(1, window.clients)
        if self.refused is not None and share > self.refused:
            found.append(f"{window.failed} of {window.clients} clients failed: {said(window)}")
        return found

    def judge(self, window: Totals, health: Health) -> "Verdict":
        """Judge a window; the generator is asked before the server is blamed."""
        if refusals := self.refusals(window):
            return Verdict(Exit.BROKE, refusals)
        breaches = self.breaches(window)
        own = health.complaints(self.own_late, self.own_cpu)
        if breaches and own:
            return Verdict(Exit.UNJUDGED, [f"the generator was the limit: {'; '.join(own)}"])
        return Verdict(Exit.BROKE if breaches else Exit.HELD, breaches)


@dataclass(frozen=True, slots=True)
class Verdict:
    """An exit code and its reasons."""

    code: Exit
    reasons: Sequence[str] = ()


def said(window: Totals) -> str:
    """The most frequent reasons of clients that have gone; that none was accepted, if none has."""
    if not window.reasons:
        return "no client was accepted in the time of the run"
    found = [f"{count} x {reason}" for reason, count in window.reasons.most_common(3)]
    more = len(window.reasons) - len(found)
    return "; ".join(found) + (f"; and {more} others" if more else "")
