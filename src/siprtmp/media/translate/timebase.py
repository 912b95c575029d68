"""The two clocks of audio, RTMP's milliseconds and RTP's ticks, and their conversion.

Implements RFC 3550 §5.1 (the timestamp counts samples) beside RTMP 1.0 §5.4.1 (it is
milliseconds, whatever the medium).

Own design: neither clock is converted for every packet.  Samples are counted, and the other clock
only shows gaps, so that rounded milliseconds never enter an RTP timestamp, nor network jitter an
RTMP timestamp.
"""

from collections.abc import Callable
from typing import Final

REANCHOR_MS: Final = 40  # how far the sample count may stray from RTMP time before a gap is real
RTMP_WRAP: Final = 1 << 32  # ms: RTMP 1.0 §5.3.1.3, the extended timestamp
RTP_WRAP: Final = 1 << 32  # ticks: RFC 3550 §5.1
# An RTP timestamp further off than this starts a new stream: Field §"Clocks that jump"
JUMP_SECONDS: Final = 5.0


def wrapped_difference(a: int, b: int, wrap: int) -> int:
    """`a - b` on a clock that wraps, taken the short way round: RTMP 1.0 §5.3.1.3."""
    return (a - b + wrap // 2) % wrap - wrap // 2


class SampleClock:
    """Counts samples for RTP, and follows RTMP time over gaps: RFC 3550 §5.1.

    `position` is in ticks since the stream began; RTP's random offset is not
    added here.  `on_surplus` is called with RTMP time (ms) and the ticks of audio so far when there
    has been more audio than time.
    """

    __slots__ = (
        *("_anchor_ms", "_anchor_ticks", "_missed"),
        *("clock_rate", "on_surplus", "position"),
    )

    def __init__(
        self, clock_rate: int, on_surplus: Callable[[int, int], None] | None = None
    ) -> None:
        self.clock_rate, self.on_surplus = clock_rate, on_surplus
        self._missed = 0
        self.position = 0
        self._anchor_ms: int | None = None
        self._anchor_ticks = 0

    @property
    def state(self) -> tuple[int, int, int, int] | None:
        """What another clock goes on with: RFC 3550 §5.1; None before the first tag.

        `position`, RTMP time (ms) and ticks of the anchor, and the rate.
        """
        if self._anchor_ms is None:
            return None
        return self.position, self._anchor_ms, self._anchor_ticks, self.clock_rate

    def gap(self, timestamp: int, pending: int) -> int:
        """Ticks missing before a tag of RTMP time `timestamp` (ms); 0 when it follows on.

        `pending` ticks of earlier audio wait beyond `position`.  A clock that ran
        backwards counts as a new anchor, never as a negative gap.  RFC 3550 §5.1: silence
        that was not sent still takes its time.
        """
        here = self.position + pending
        if self._anchor_ms is None:
            self._anchor_ms, self._anchor_ticks = timestamp, here
            return 0
        expected = self._anchor_ms + (here - self._anchor_ticks) * 1000 // self.clock_rate
        if -REANCHOR_MS <= timestamp - expected <= REANCHOR_MS:
            return 0
        off = wrapped_difference(timestamp, expected, RTMP_WRAP)
        if -REANCHOR_MS <= off <= REANCHOR_MS:
            return 0
        self._anchor_ms, self._anchor_ticks = timestamp, here
        if off < 0:
            if self.on_surplus is not None:
                self.on_surplus(timestamp, here - self._missed)
            return 0
        missing = off * self.clock_rate // 1000
        self._anchor_ticks += missing
        self._missed += missing
        return missing


class MediaClock:
    """Turns RTP timestamps into RTMP time that never runs backwards: RTMP 1.0 §5.4.1."""

    __slots__ = ("_base_ms", "_last_ms", "_span", "_ticks", "_timestamp", "clock_rate")

    def __init__(self, clock_rate: int) -> None:
        self.clock_rate = clock_rate
        self._span = int(JUMP_SECONDS * clock_rate)
        self._timestamp: int | None = None
        self._ticks = 0
        self._base_ms = 0
        self._last_ms = 0

    def restart(self, clock_rate: int) -> None:
        """Forget the RTP side, as a new SSRC or codec requires: RFC 3550 §5.1."""
        self.clock_rate = clock_rate
        self._span = int(JUMP_SECONDS * clock_rate)
        self._timestamp = None

    @property
    def state(self) -> tuple[int, int, int, int, int, int] | None:
        """What another clock goes on with: RFC 3550 §5.1; None before the first packet.

        RTP time, ticks since the anchor, RTMP time (ms) of the anchor and of the last packet, rate,
        and the ticks from which a step is a jump.
        """
        if self._timestamp is None:
            return None
        rate, span = self.clock_rate, self._span
        return self._timestamp, self._ticks, self._base_ms, self._last_ms, rate, span

    def went_on(self, timestamp: int, ticks: int, last_ms: int) -> None:
        """Follow a clock that has gone on from `state`: RFC 3550 §5.1."""
        self._timestamp, self._ticks, self._last_ms = timestamp, ticks, last_ms

    @property
    def latest(self) -> int | None:
        """RTMP time of the newest packet, None before the first: RTMP 1.0 §5.4.1."""
        return None if self._timestamp is None else self._last_ms

    def at(self, timestamp: int) -> float | None:
        """Convert an RTP time of the source to RTMP time (ms); None before the first packet."""
        if self._timestamp is None:
            return None
        ticks = self._ticks + wrapped_difference(timestamp, self._timestamp, RTP_WRAP)
        return self._base_ms + ticks * 1000 / self.clock_rate

    def milliseconds(self, timestamp: int, arrival_ms: int) -> int:
        """RTMP time of RTP time `timestamp`; `arrival_ms` anchors the first and after a jump."""
        if self._timestamp is not None:
            step = timestamp - self._timestamp
            if not 0 <= step <= self._span:
                step = wrapped_difference(timestamp, self._timestamp, RTP_WRAP)
            if -self._span <= step <= self._span:
                self._timestamp = timestamp
                self._ticks += step
                now = self._base_ms + self._ticks * 1000 // self.clock_rate
                self._last_ms = max(now, self._last_ms)
                return self._last_ms
        self._timestamp, self._ticks = timestamp, 0
        self._base_ms = self._last_ms = max(arrival_ms, self._last_ms)
        return self._base_ms
