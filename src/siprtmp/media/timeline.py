"""One clock for the streams of a phone: that of its audio.

Implements RFC 3550 §6.4.1 and §6.5.1 for a call: the sender reports of two streams of one end show
which of their RTP times belong together.

Own design: the devices of a phone have clocks of their own.  One tenth of a second in 1,000 is
usual, and would part audio and video by seconds in an hour.  Audio is passed on as its samples
count, since ears notice a sample too many, and costs nothing here; the frames follow it, which no
eye notices.

    >>> from p2psip.rtp.rtcp import SenderReport, ntp_time
    >>> sound, timeline = Reception(8000), Timeline(started=0.0)
    >>> clock = MediaClock(8000)
    >>> sound.last_received = 1.0
    >>> clock.milliseconds(16000, arrival_ms=1000)
    1000
    >>> timeline.lead(sound, clock)
    >>> sound.note(SenderReport(7, ntp_time(500.0), 16000, 1, 160), now=1.0)
    >>> round(timeline.at(500.04, now=1.1), 3)
    1040.0
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from p2psip.rtp.reception import Reception
from p2psip.rtp.rtcp import unix_time
from siprtmp.media.translate.timebase import (
    JUMP_SECONDS,
    RTP_WRAP,
    MediaClock,
    wrapped_difference,
)

MAX_SKEW: Final = 2.0  # s between audio and video of one moment; more is no common clock
LATEST: Final = 31  # frames whose arrivals tell the usual one: a second or two
STEADY: Final = 10  # ms by which the usual arrival may be off before the frames follow it


class UsualArrival:
    """Tells when the frames of a phone without reports are shown: as late as they usually come.

    Own design: the first frame is long, or comes out of an encoder that has just begun, and so
    may be late as no other is; those behind it are not shown as late for the rest of the call.
    """

    def __init__(self, clock_rate: int) -> None:
        self._clock_rate = clock_rate
        self._timestamp: int | None = None
        self._ticks = 0  # RTP time of the latest frame since the first one
        self._behind: deque[int] = deque(maxlen=LATEST)  # ms between that and its arrival
        self._usual = 0

    def of(self, timestamp: int, arrival_ms: int) -> int | None:
        """RTMP time (ms) of a frame of this RTP time; None for one that is shown before others."""
        before = timestamp if self._timestamp is None else self._timestamp
        step = wrapped_difference(timestamp, before, RTP_WRAP)
        if abs(step) > JUMP_SECONDS * self._clock_rate:
            self._behind.clear()
        elif step <= 0 and self._behind:
            return None
        self._timestamp, self._ticks = timestamp, self._ticks + step
        own = self._ticks * 1000 // self._clock_rate
        self._behind.append(arrival_ms - own)
        median = sorted(self._behind)[len(self._behind) // 2]
        if len(self._behind) == 1 or abs(median - self._usual) > STEADY:
            self._usual = median
        return own + self._usual


class Timeline:
    """Tells RTMP times of the moments of a call, in ms.

    RFC 3550 §6.4.1; `started` is the gateway's time of RTMP time 0.  `before` is called before the
    audio is looked at.
    """

    def __init__(self, started: float, before: Callable[[], None] = lambda: None) -> None:
        self.started, self._before = started, before
        self._audio: Reception | None = None
        self._clock: MediaClock | None = None

    def lead(self, audio: Reception, clock: MediaClock) -> None:
        """Take this audio as the reference; `clock` tells the RTMP times of its packets: §6.4.1."""
        self._audio, self._clock = audio, clock

    def arrival(self, now: float) -> float:
        """RTMP time of a frame that arrives at `now`, by the audio beside it: RFC 3550 §5.1."""
        self._before()
        audio, clock = self._audio, self._clock
        if audio is not None and clock is not None and audio.last_received is not None:
            latest = clock.latest
            if latest is not None:
                return latest + (now - audio.last_received) * 1000
        return (now - self.started) * 1000

    def at(self, moment: float, now: float) -> float | None:
        """RTMP time of the audio of a moment by the phone's clock (Unix time): §6.4.1.

        `now` is when something else of that moment has come.  None before the first report, and if
        the two are too far apart to be of one clock, as with phones that make their NTP times up.
        """
        self._before()
        reference = self._audio.sender_clock if self._audio is not None else None
        if reference is None or self._clock is None:
            return None
        ntp, timestamp = reference
        base = self._clock.at(timestamp)
        if base is None:
            return None
        time = base + (moment - unix_time(ntp)) * 1000
        return time if abs(time - self.arrival(now)) <= MAX_SKEW * 1000 else None
