"""Counts, times and judges the reports of both ends of the demo.

Own design: pure.  Frame n of one end begins at sample n * 160 of the other end, whatever packets
carried it; so the time of sending is matched with that of hearing.
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
    """One direction of the call: speaker, listener, tone (Hz), number of frames.

    `latencies` are in seconds; `result` is the listener's last report.
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
        """Take the times at which the speaker sent its next frames."""
        self._sent += times
        self._match()

    def add_heard(self, heard: Sequence[tuple[float, int]]) -> None:
        """Take (time, place in samples) of each frame that the listener heard."""
        self.heard += len(heard)
        self._unmatched += heard
        self._match()

    def _match(self) -> None:
        while self._unmatched and self._unmatched[0][1] // FRAME < len(self._sent):
            at, place = self._unmatched.pop(0)
            self.latencies.append(at - self._sent[place // FRAME])

    @property
    def latency(self) -> float:
        """The mean latency of the last frames, in milliseconds."""
        return 1000 * fmean(self.latencies[-RECENT:]) if self.latencies else 0.0

    def summary(self) -> str:
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
        return self.frames * FRAME // WINDOW

    def fault(self) -> str | None:
        """The reason why this direction failed, None if it held."""
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
    full = round(min(max(part, 0.0), 1.0) * width)
    return f"[{'#' * full}{'-' * (width - full)}]"


def cost(share: float, mhz: float | None) -> str:
    """The gateway's CPU time: of one core, and as MHz where the clock is known."""
    core = f"{share:.1%} of a core"
    return core if mhz is None else f"{share * mhz:.0f} MHz per call ({core} at {mhz:.0f} MHz)"
