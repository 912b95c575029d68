"""Hearing telephone events: each once, with its length, whatever is lost.

Implements RFC 4733 §2.5.2.

An event begins with the first of its reports that arrives.  It ends with a report that says so;
else with the next event; else when nothing more is heard of it.

    >>> receiver = EventReceiver()
    >>> [receiver.heard(160, bytes.fromhex(report), now=0.0) for report in ("050a0190", "058a0320")]
    [[EventBegan(event=5, volume=10)], [EventEnded(event=5, duration=800, complete=True)]]
    >>> receiver.heard(160, bytes.fromhex("058a0320"), now=0.1)
    []
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from p2psip.rtp.payload.dtmf import TelephoneEvent, digit_of, parse_events

PATIENCE: Final = 0.15  # s without a report, three intervals, until an event is over: §2.5.2.2
MAX_DURATION: Final = 0xFFFF  # ticks of one segment. Source: §2.5.1.3


@dataclass(frozen=True, slots=True)
class EventBegan:
    """An event has begun: its code (§3), and its level in -dBm0 (§2.3.4)."""

    event: int
    volume: int

    @property
    def digit(self) -> str | None:
        """The key of a DTMF event, or None for any other event: §3.2."""
        return digit_of(self.event)


@dataclass(frozen=True, slots=True)
class EventEnded:
    """An event is over: its ticks as told, maybe more unless `complete`: §2.5.2.2."""

    event: int
    duration: int
    complete: bool

    @property
    def digit(self) -> str | None:
        """The key of a DTMF event, or None for any other event: §3.2."""
        return digit_of(self.event)


HeardEvent: TypeAlias = EventBegan | EventEnded
"""What `EventReceiver` tells: §2.5.2.2."""


@dataclass(slots=True)
class _Current:
    """The event that has begun and not ended; `before` is the length of its full segments."""

    event: int
    before: int
    duration: int


class EventReceiver:
    """Follows the events of one source: §2.5.2.2, Field §"Events whose timestamp moves"."""

    def __init__(self) -> None:
        self._timestamp: int | None = None  # of the newest segment
        self._newest = -1, 0  # its event, and the ticks that were reported of it
        self._current: _Current | None = None
        self.deadline: float | None = None

    def heard(self, timestamp: int, payload: bytes | memoryview, now: float) -> list[HeardEvent]:
        """Take a packet's RTP timestamp and payload: §2.5.1.5.  RemoteError if malformed."""
        told: list[HeardEvent] = []
        for report in parse_events(payload):
            if report.duration:  # §2.3.5 [zero-duration-ignored]
                self._report(timestamp, report, told)
            # §2.5.1.5 [timestamp-of-first]
            timestamp = timestamp + report.duration & 0xFFFFFFFF  # §2.5.2.4
        self.deadline = now + PATIENCE if self._current else None
        return told

    def tick(self, now: float) -> list[HeardEvent]:
        """End an event of which nothing more is heard: §2.5.2.2."""
        if self.deadline is None or now < self.deadline:
            return []
        self.deadline = None
        told: list[HeardEvent] = []
        self._end(told, complete=False)
        return told

    def _report(self, timestamp: int, report: TelephoneEvent, told: list[HeardEvent]) -> None:
        """Take one report: of the current segment, of the next, of another event, or a late one."""
        ahead = 0 if self._timestamp is None else timestamp - self._timestamp & 0xFFFFFFFF
        current = self._current
        if ahead == 0 and self._timestamp is not None:
            if current is None:
                return  # §2.5.2.2 [ended-is-not-restarted]
            current.duration = max(current.duration, report.duration)
        elif ahead >> 31:
            return
        elif current and current.event == report.event and ahead == MAX_DURATION:
            current.before += MAX_DURATION  # §2.5.2.3 [segments-without-gap-are-one-event]
            current.duration = report.duration
        elif report.event == self._newest[0] and ahead < self._newest[1] + (current is not None):
            # Field §"Events whose timestamp moves"
            if current is not None:
                current.duration = max(current.duration, report.duration)
        else:
            self._end(told, complete=False)
            self._current = _Current(report.event, 0, report.duration)
            told.append(EventBegan(report.event, report.volume))
        self._timestamp, self._newest = timestamp, (report.event, report.duration)
        if report.end:
            self._end(told, complete=True)

    def _end(self, told: list[HeardEvent], complete: bool) -> None:
        current, self._current = self._current, None
        if current is not None:
            # §2.5.2.2 [lengths-from-reports]
            told.append(EventEnded(current.event, current.before + current.duration, complete))
