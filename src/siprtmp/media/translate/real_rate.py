"""Notices G.711 that is not of 8 kHz, by the time that the publisher itself gives it.

Implements FLV 10.1 §E.4.2.1, where G.711 has 8 kHz and one channel whatever its flags say.

Own design: ffmpeg publishes u-law of any rate and number of channels under the same flags, which
would last eleven times too long at 44.1 kHz in stereo.  Its RTMP time tells the real rate.  Two
channels need no care: octets of both in turn, at the rate of both, are heard as their sum.
"""

from typing import Final

from siprtmp.media.translate.conversion import UnsuitableError

G711_RATE: Final = 8000  # Source: FLV 10.1 §E.4.2.1
FACTOR: Final = 1.3  # more audio than time from here on is another rate, not a clock that is fast
MARKS: Final = 3  # steps backwards within a second each, before that is sure
SPAN_MS: Final = 60
# Octets a second that are likely, of one channel and two
RATES: Final = (11025, 16000, 22050, 24000, 32000, 44100, 48000, 64000, 88200, 96000)
MAX_RATE: Final = 192_000


class OtherRateError(UnsuitableError):
    """The publisher's G.711 has `rate` octets a second; 0 for another codec, whose header tells."""

    def __init__(self, rate: int) -> None:
        super().__init__(f"G.711 of {rate} octets a second")
        self.rate = rate


class RealRate:
    """Watches a clock of samples for audio that takes less time than it should.

    `clock_rate` is what the clock counts in a second of audio at 8 kHz.
    """

    def __init__(self, clock_rate: int) -> None:
        self._clock_rate = clock_rate
        self._since: tuple[int, int] | None = None  # RTMP time and position of the first mark
        self._at = self._marks = 0

    @property
    def in_doubt(self) -> bool:
        """Whether more audio than time has passed, and the reason is not decided."""
        return self._since is not None

    def mark(self, timestamp: int, position: int) -> None:
        """Take RTMP time (ms) and the position of audio that is too early for it.

        Raises OtherRateError when that has become the rule.
        """
        if self._since is None or not 0 <= timestamp - self._at <= 1000:
            self._since, self._at, self._marks = (timestamp, position), timestamp, 0
            return
        self._at, self._marks = timestamp, self._marks + 1
        span = timestamp - self._since[0]
        if self._marks < MARKS or span < SPAN_MS:
            return
        factor = (position - self._since[1]) * 1000 / span / self._clock_rate
        if factor > FACTOR:
            raise OtherRateError(_likely(min(round(G711_RATE * factor), MAX_RATE)))


def _likely(rate: int) -> int:
    """The likely rate that is next, if it is within 4 %, as milliseconds are coarse."""
    best = min(RATES, key=lambda each: abs(each - rate))
    return best if abs(best - rate) < 0.04 * best else rate
