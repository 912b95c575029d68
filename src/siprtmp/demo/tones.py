"""Tones as proof of audio: made as G.711, recognised again among samples.

Implements RFC 3551 §4.5.14 by way of `p2psip.rtp.payload.g711`.

Own design: a window is right if nearly all of its energy is at the expected frequency.  Goertzel's
recurrence computes that with one step per sample, without a library.

    >>> from array import array
    >>> heard = array("h")
    >>> for number in range(50):
    ...     heard.extend(g711.decode_ulaw(Tone(440).frame(number)))
    >>> judge(heard, 440)
    Heard(windows=10, right=10, loudest=440)
    >>> judge(heard, 450).right
    0
"""

from array import array
from dataclasses import dataclass
from math import cos, pi, sin
from typing import Final

from p2psip.rtp.payload import g711

FRAME: Final = 160  # samples in 20 ms: RFC 3551 §4.2
FRAME_SECONDS: Final = FRAME / g711.CLOCK_RATE
WINDOW: Final = 800  # samples, 0.1 s; what is 5 Hz off has then lost half of its energy
LEVEL: Final = 8000  # of 32767
QUIET: Final = 800  # a window with less than this is silence, whatever its tone
PURE: Final = 0.9  # the part of the energy that must be at the right frequency
SEARCH: Final = range(100, 3900, 10)  # Hz


@dataclass(frozen=True, slots=True)
class Tone:
    """A sine of `hz`, in frames of 20 ms."""

    hz: int

    def frame(self, number: int) -> bytes:
        """Frame `number` in PCMU; they follow each other without a seam."""
        step = 2 * pi * self.hz / g711.CLOCK_RATE
        start = number * FRAME
        return g711.encode_ulaw(int(LEVEL * sin(step * at)) for at in range(start, start + FRAME))


@dataclass(frozen=True, slots=True)
class Heard:
    """A verdict: `right` of `windows` had the tone; `loudest` (Hz) is the frequency of one."""

    windows: int
    right: int
    loudest: int


def judge(samples: "array[int]", hz: int) -> Heard:
    """Look for a tone in every whole window."""
    starts = range(0, len(samples) - WINDOW + 1, WINDOW)
    windows = [samples[start : start + WINDOW] for start in starts]
    right = [_is_loud(window) and _share(window, hz) >= PURE for window in windows]
    telling = next((w for w, good in zip(windows, right, strict=True) if not good), None)
    if telling is None:
        telling = windows[0] if windows else array("h")
    return Heard(len(windows), sum(right), loudest(telling))


def loudest(window: "array[int]") -> int:
    """The frequency (Hz) with most energy, 0 for silence."""
    return max(SEARCH, key=lambda hz: _share(window, hz)) if _is_loud(window) else 0


def _is_loud(window: "array[int]") -> bool:
    return sum(sample * sample for sample in window) > QUIET * QUIET * len(window)


def _share(window: "array[int]", hz: int) -> float:
    """The part of a window's energy at one frequency, 0 to about 1: Goertzel's recurrence."""
    turn = 2 * cos(2 * pi * hz / g711.CLOCK_RATE)
    before = last = 0.0
    for sample in window:
        before, last = last, sample + turn * last - before
    power = last * last + before * before - turn * last * before
    return 2 * power / len(window) / sum(sample * sample for sample in window)
