"""Telephone events: pressed keys as numbers, because codecs distort tones.

Implements RFC 4733 §2.3, with the DTMF codes of §3.2.

A key is reported in several packets of one RTP timestamp: first reports with a growing
duration, then the last one three times with the E bit set (§2.5.1.4).  `DigitReader`
makes one digit of them, even if some are lost.

    >>> event = TelephoneEvent.parse(bytes.fromhex("0b8a0320"))
    >>> event
    TelephoneEvent(event=11, duration=800, end=True, volume=10)
    >>> event.digit
    '#'
"""

import struct
from dataclasses import dataclass
from typing import Final, Self

from p2psip.errors import LocalError, RemoteError

DIGITS: Final = "0123456789*#ABCD"  # Source: §3.2 Table 3, in the order of their codes
# Own design: more keys than anybody presses between two packets; without a bound one forged
# datagram could hold sixteen thousand.
MAX_REPORTS: Final = 16
FINAL_REPORTS: Final = 3  # Source: §2.5.1.4, how often the last report of an event is sent
MAX_DURATION: Final = 0xFFFF  # in ticks: §2.5.1.3 [longest-duration]
_REPORT: Final = struct.Struct("!BBH")


@dataclass(frozen=True, slots=True)
class TelephoneEvent:
    """One event report, four octets: §2.3.

    `duration` is in ticks since the packet's timestamp (0: until further notice),
    `volume` the level in -dBm0, 0 to 63.  LocalError if a field does not fit.
    """

    event: int
    duration: int
    end: bool = False
    volume: int = 10

    def __post_init__(self) -> None:
        if self.event >> 8 or self.duration >> 16 or self.volume >> 6:
            raise LocalError("event, duration and volume have 8, 16 and 6 bits")

    @classmethod
    def parse(cls, data: bytes | memoryview) -> Self:
        """Read one report, or raise RemoteError; the R bit is ignored: §2.3.3."""
        if len(data) != _REPORT.size:
            raise RemoteError(f"telephone-event of {len(data)} octets")
        event, flags, duration = _REPORT.unpack(data)
        # §2.3.3 [r-bit-ignored]
        return cls(event, duration, bool(flags & 0x80), flags & 0x3F)

    def __bytes__(self) -> bytes:
        """Write the four octets, R bit clear: §2.3."""
        # §2.3.3 [r-bit-clear]
        return _REPORT.pack(self.event, (0x80 if self.end else 0) | self.volume, self.duration)

    @property
    def digit(self) -> str | None:
        """The key of a DTMF event, or None for any other event: §3.2."""
        return DIGITS[self.event] if self.event < len(DIGITS) else None

    @classmethod
    def of(cls, digit: str, duration: int, *, end: bool = False, volume: int = 10) -> Self:
        """Make the report of a key of `DIGITS`: §3.2; LocalError for another, or no duration."""
        code = DIGITS.find(digit.upper()) if len(digit) == 1 else -1
        if code < 0 or duration == 0:  # §2.3.5 [no-zero-duration]
            raise LocalError(f"{digit!r} for {duration} ticks is no DTMF digit")
        return cls(code, duration, end, volume)


def parse_events(payload: bytes | memoryview) -> tuple[TelephoneEvent, ...]:
    """Read a payload of up to `MAX_REPORTS` contiguous events, or raise RemoteError: §2.5.1.5."""
    if not payload or len(payload) % _REPORT.size or len(payload) > MAX_REPORTS * _REPORT.size:
        raise RemoteError(f"telephone-event payload of {len(payload)} octets")
    size = _REPORT.size
    return tuple(
        TelephoneEvent.parse(payload[at : at + size]) for at in range(0, len(payload), size)
    )


class DigitReader:
    """Reads each key once, from the first of its reports that arrives: §2.5.2.2.

    It remembers one event: reports of an older timestamp are late repetitions, and a key that is
    held for longer than the duration can tell is reported in segments, one behind the other.
    """

    def __init__(self) -> None:
        self._begun: int | None = None
        self._held = -1  # the code of an event that has not ended

    def read(self, timestamp: int, payload: bytes | memoryview) -> str:
        """Take a packet's RTP timestamp and payload; answer its new digits, often "": §2.5.1.5.

        Raises RemoteError if the payload is malformed.
        """
        events = parse_events(payload)
        digits = ""
        for event in events:
            if event.duration and self._is_new(timestamp):  # §2.3.5 [zero-is-ignored]
                if not self._continues(event, timestamp):
                    digits += event.digit or ""
                self._begun, self._held = timestamp, event.event
            if event.end and timestamp == self._begun:
                self._held = -1
            # §2.5.1.5 [timestamp-of-first]
            timestamp = timestamp + event.duration & 0xFFFFFFFF
        return digits

    def _is_new(self, timestamp: int) -> bool:
        # §2.5.2.2 [further-reports-ignored] [by-timestamps] [not-by-spacing]
        return self._begun is None or 0 < (timestamp - self._begun & 0xFFFFFFFF) < 1 << 31

    def _continues(self, event: TelephoneEvent, timestamp: int) -> bool:
        """Whether the report is of the next segment of the event before it: §2.5.2.3."""
        if self._begun is None or event.event != self._held:
            return False
        # §2.5.2.3 [segments-are-one]
        return timestamp - self._begun & 0xFFFFFFFF == MAX_DURATION
