"""Counting, timing and judging what both ends of the demo have told.

Own design: pure.  Frame n of one end is sample n * 160 at the other, whatever packets it came
in; that is how sending and hearing are matched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from siprtmp.demo.tones import FRAME, WINDOW

ENOUGH = 0.95  # of all windows must have the right tone
RECENT = 25  # frames in the live figure of latency


@dataclass(slots=True)
class Direction:
    """One way of the call: who speaks, who listens, the tone (Hz), the frames there are to be.

    `latencies` are in seconds; `result` is what the listener said at the end.
    """

    speaker: str
    listener: str
    tone: int
    frames: int
    heard: int = 0
    latencies: list[float] = field(default_factory=list)
    result: Mapping[str, Any] | None = None
    _sent: list[float] = field(default_factory=list)
    _unmatched: list[tuple[float, int]] = field(default_factory=list)

    def add_sent(self, times: Sequence[float]) -> None:
        """Take when the speaker sent its next frames."""
        self._sent += times
        self._match()

    def add_heard(self, heard: Sequence[tuple[float, int]]) -> None:
        """Take what the listener heard: (time, place in samples) of each frame."""
        self.heard += len(heard)
        self._unmatched += heard
        self._match()

    def _match(self) -> None:
        while self._unmatched and self._unmatched[0][1] // FRAME < len(self._sent):
            at, place = self._unmatched.pop(0)
            self.latencies.append(at - self._sent[place // FRAME])

    @property
    def latency(self) -> float:
        """The mean of late, in milliseconds."""
        return 1000 * fmean(self.latencies[-RECENT:]) if self.latencies else 0.0

    def summary(self) -> str:
        """What was heard, in one line."""
        said = f"{self.speaker} -> {self.listener}"
        if self.result is None:
            return f"{said}  {self.heard} of {self.frames} frames"
        times = [1000 * each for each in self.latencies] or [0.0]
        return (
            f"{said}  {self.tone} Hz in {self.result['right']} of {self.windows} windows, "
            f"{self.heard} of {self.frames} frames, "
            f"latency {median(times):.1f} ms, {max(times):.1f} at most"
        )

    @property
    def windows(self) -> int:
        """How many windows there should have been."""
        return self.frames * FRAME // WINDOW

    def fault(self) -> str | None:
        """Why this way did not hold, None if it did."""
        if self.result is None:
            return f"the {self.listener} has no result"
        if not self.heard:
            return f"the {self.listener} heard nothing of {self.frames} frames"
        lost = self.frames - self.heard
        if lost or self.result["missing"]:
            filled = self.result["missing"] / FRAME
            return f"the {self.listener} lost {max(lost, filled):g} of {self.frames} frames"
        right, whole = self.result["right"], self.windows
        if right <= ENOUGH * whole:
            return (
                f"the {self.listener} heard {self.tone} Hz in only {right} of {whole} windows, "
                f"else {self.result['loudest']} Hz"
            )
        return None


def bar(part: float, width: int = 10) -> str:
    """Progress as a bar; `part` is 0 to 1."""
    full = round(min(max(part, 0.0), 1.0) * width)
    return f"[{'#' * full}{'-' * (width - full)}]"


def cost(share: float, mhz: float | None) -> str:
    """What the gateway took: of one core, and as MHz where the clock is known."""
    core = f"{share:.1%} of a core"
    return core if mhz is None else f"{share * mhz:.0f} MHz per call ({core} at {mhz:.0f} MHz)"
