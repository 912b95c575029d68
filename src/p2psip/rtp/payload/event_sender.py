"""Sending telephone events: reports while a key is down, and three that it is up again.

Implements RFC 4733 §2.5.1.

When `deadline` has come, `tick` answers packets as (RTP timestamp, marker, payload).  All reports
of an event, or of a segment of a long one, have the timestamp of its beginning.

    >>> sender = EventSender(clock_rate=8000)
    >>> sender.press(EventPress(5, seconds=0.1), now=0.0)
    >>> def at(now):
    ...     return [(at, marker, payload.hex()) for at, marker, payload in sender.tick(now, 4000)]
    >>> at(0.0), at(0.05), at(0.1)
    ([], [(4000, True, '050a0190')], [(4000, False, '058a0320')])
    >>> at(0.16), at(0.22), sender.deadline
    ([(4000, False, '058a0320')], [(4000, False, '058a0320')], None)
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from p2psip.errors import LocalError
from p2psip.rtp.payload.dtmf import FINAL_REPORTS, TelephoneEvent

# §2.5.1.2 [fifty-ms]
INTERVAL: Final = 0.05  # s between reports. Source: §2.5.1.2
MAX_DURATION: Final = 0xFFFF  # ticks of one segment. Source: §2.5.1.3
MAX_QUEUED: Final = 64  # Own design: more keys than anybody waits for
MAX_SECONDS: Final = 3600.0  # of one event, Own design: longer is a mistake

EventPacket: TypeAlias = tuple[int, bool, bytes]
"""An RTP timestamp, a marker and a payload: §2.5.1.2."""


@dataclass(frozen=True, slots=True)
class EventPress:
    """An event to send: its code (§3), its length in seconds, its level in -dBm0 (§2.3.4)."""

    event: int
    seconds: float = 0.1
    volume: int = 10

    def __post_init__(self) -> None:
        if not 0 <= self.event < 256 or not 0 <= self.volume < 64:
            raise LocalError("event and volume have 8 and 6 bits")
        if not 0 < self.seconds <= MAX_SECONDS:
            raise LocalError(f"an event of {self.seconds} s")


@dataclass(slots=True)
class _Segment:
    """A part of an event with a timestamp of its own: §2.5.1.3; `done` counts final reports."""

    timestamp: int
    final: bytes = b""
    done: int = 0


class EventSender:
    """Sends events one after another, by the clock of the audio, in ticks a second: §2.5.1.2."""

    def __init__(self, clock_rate: int) -> None:
        self._clock_rate = clock_rate
        self._queue: deque[EventPress] = deque()
        self._press: EventPress | None = None
        self._segments: list[_Segment] = []  # those with reports to send, the newest last
        self._began = 0.0
        self._ended = 0  # ticks of the event that full segments have reported
        self._marked = False
        self._over: int | None = None  # the timestamp at which the last event ends
        self.deadline: float | None = None

    @property
    def busy(self) -> bool:
        """Whether an event is under way or waits: §2.5.1.2; audio had better be left out."""
        return self.deadline is not None

    def press(self, press: EventPress, now: float) -> None:
        """Queue an event; LocalError if too many wait: §2.5.1.2."""
        if len(self._queue) >= MAX_QUEUED:
            raise LocalError(f"more than {MAX_QUEUED} events wait")
        self._queue.append(press)
        if self.deadline is None:
            self.deadline = now

    def tick(self, now: float, timestamp: int) -> list[EventPacket]:
        """Answer the packets that are due, `timestamp` being that of the audio by now: §2.5.1.2."""
        if self.deadline is None or now < self.deadline:
            return []
        if self._press is None:
            self._begin(now, timestamp)
        packets = list(self._reports(now))
        self._segments = [each for each in self._segments if each.done < FINAL_REPORTS]
        if self._segments:
            self.deadline = now + INTERVAL  # §2.5.1.2 [constant-intervals]
        else:
            self._press = None
            self.deadline = now if self._queue else None
        return packets

    def clear(self) -> None:
        """Forget what waits and what is under way.  Own design: for a hold, or the end."""
        self._queue.clear()
        self._segments.clear()
        self._press = self._over = self.deadline = None

    def _begin(self, now: float, timestamp: int) -> None:
        self._press = press = self._queue.popleft()
        # §2.5.1.2: a timestamp is one event's, also where reports were late and audio stood still
        if self._over is not None and timestamp - self._over & 0x80000000:
            timestamp = self._over
        self._over = timestamp + self._ticks(press) & 0xFFFFFFFF
        self._began, self._ended, self._marked = now, 0, False  # §2.5.1.2 [reports-at-once]
        self._segments = [_Segment(timestamp)]

    def _ticks(self, press: EventPress) -> int:
        return max(1, round(press.seconds * self._clock_rate))

    def _reports(self, now: float) -> Iterator[EventPacket]:
        """Report on each segment, after the first interval: §2.3.5 forbids a duration of zero."""
        press = self._press
        assert press is not None
        total = self._ticks(press)
        elapsed = min(round((now - self._began) * self._clock_rate), total)
        newest = self._segments[-1]
        # §2.5.1.3 [as-many-segments]
        while not newest.final and elapsed - self._ended > MAX_DURATION:
            # §2.5.1.3 [max-duration-without-end]
            newest.final = bytes(TelephoneEvent(press.event, MAX_DURATION, False, press.volume))
            self._ended += MAX_DURATION
            # §2.5.1.3 [segment-begins-where-the-last-ended]
            newest = _Segment(newest.timestamp + MAX_DURATION & 0xFFFFFFFF)
            self._segments.append(newest)
        duration = elapsed - self._ended
        if elapsed == total and not newest.final:
            # §2.5.1.2 [final-has-end], §2.5.1.3 [last-segment-has-end]
            newest.final = bytes(TelephoneEvent(press.event, duration, True, press.volume))
        for segment in self._segments:
            # §2.3.5 [no-zero-duration]; §2.5.1.2: also before an end that comes late, as receivers
            # that act at the beginning of a key would miss it
            if segment is newest and duration > 0 and not (segment.final and self._marked):
                # §2.5.1.2 [duration-grows] [no-end-meanwhile]
                update = TelephoneEvent(press.event, duration, False, press.volume)
                yield segment.timestamp, self._is_first(), bytes(update)
            if segment.final:
                yield segment.timestamp, self._is_first(), segment.final  # §2.5.1.4 [end-stays]
                segment.done += 1  # §2.5.1.4 [final-three-times]

    def _is_first(self) -> bool:
        """Whether this is the first packet of the event, which is marked: §2.5.1.2."""
        # §2.5.1.2 [first-has-marker], §2.5.1.3 [no-marker-on-segments]
        is_first, self._marked = not self._marked, True
        return is_first
