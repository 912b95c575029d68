"""The course of a run: how many clients there are to be, and when it is over.

Own design: a step of a ramp is judged by what came in its own time, once its clients have begun.
A run without a ramp is one step, which is judged as a whole in the end.

    >>> Ramp.parse("100/20")
    Ramp(to=100, step=20)
"""

from dataclasses import dataclass, replace
from typing import Final, Self

from rtclab.load.figures.health import Health
from rtclab.load.figures.totals import Totals
from rtclab.load.figures.verdict import Exit, Limits, Verdict

SETTLE: Final = 2.0  # s after the last client of a step has begun, before it is judged


@dataclass(frozen=True, slots=True)
class Ramp:
    """How far, and in which steps."""

    to: int
    step: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read TO/STEP; ValueError for anything else."""
        to, slash, step = text.partition("/")
        found = cls(int(to), int(step))
        if not slash or not 0 < found.step <= found.to <= 1_000_000:
            raise ValueError(f"{text!r} is no ramp")
        return found


@dataclass(frozen=True, slots=True)
class Step:
    """One step that is over."""

    clients: int
    verdict: Verdict
    window: Totals
    health: Health


class Course:
    """A machine: `tick` says how many clients there are to be, until `verdict` is there.

    `interval` is the time between two clients, `life` the time of the whole run in s, None for no
    end, and `dwell` how long a step of the ramp is watched.
    """

    def __init__(
        self,
        count: int,
        limits: Limits,
        *,
        interval: float,
        life: float | None,
        ramp: Ramp | None = None,
        dwell: float = 10.0,
    ) -> None:
        self.aim = count
        self.steps: list[Step] = []
        self.verdict: Verdict | None = None
        self._limits, self._interval, self._life = limits, interval, life
        self._ramp, self._dwell = ramp, dwell
        self._began: float | None = None
        self._from = 0.0  # when the step is watched from
        self._base: Totals | None = None  # what there was then
        self._before = Totals()  # what there was when the step began
        self._health = Health()

    @property
    def held(self) -> int:
        """The most clients that the server held to its limits with; 0 if none."""
        return max(
            (each.clients for each in self.steps if each.verdict.code is Exit.HELD), default=0
        )

    def tick(self, now: float, totals: Totals, health: Health) -> int:
        """Take the figures so far and the generator's health since the last tick."""
        if self._began is None:
            self._began = now
            self._from = now + self.aim * self._interval + SETTLE
        self._health = self._health.worse(health)
        if self._ramp is not None and self.verdict is None:
            self._climb(self._ramp, now, totals)
        if self._life is not None and now - self._began >= self._life and self.verdict is None:
            self.finish(totals)
        return self.aim

    def _climb(self, ramp: Ramp, now: float, totals: Totals) -> None:
        if now < self._from:
            return
        if self._base is None:  # the clients are there: look from here on, but at all refusals
            gone = self._before
            self._base = replace(
                totals, refused=gone.refused, failed=gone.failed, reasons=gone.reasons
            )
            self._health = Health()
            return
        if now < self._from + self._dwell:
            return
        window = totals.since(self._base)
        verdict = self._limits.judge(window, self._health)
        self.steps.append(Step(self.aim, verdict, window, self._health))
        if verdict.code is not Exit.HELD or self.aim >= ramp.to:
            self.verdict = verdict
            return
        more = min(ramp.step, ramp.to - self.aim)
        self.aim += more
        self._from, self._base, self._before = now + more * self._interval + SETTLE, None, totals

    def finish(self, totals: Totals) -> Verdict:
        """End the run, and judge what is not judged yet."""
        if self.verdict is None:
            window = totals if self._base is None else totals.since(self._base)
            self.verdict = self._limits.judge(window, self._health)
            if self._ramp is None:
                self.steps.append(Step(self.aim, self.verdict, window, self._health))
        if not totals.is_up and totals.clients:
            self.verdict = Verdict(Exit.UNREACHABLE, self.verdict.reasons)
        return self.verdict
