"""Telephone events: pressed keys as numbers, because codecs distort tones.

Implements RFC 4733 §2.3, with the DTMF codes of §3.2.

A key is reported in several packets of one RTP timestamp, the last report three times with the E
bit set (§2.5.1.4): `EventSender` makes them, and `EventReceiver` one event of them.

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
        return cls(event, duration, bool(flags & 0x80), flags & 0x3F)  # §2.3.3 [r-bit-zero]

    def __bytes__(self) -> bytes:
        """Write the four octets, R bit clear: §2.3."""
        # §2.3.3 [r-bit-zero]
        return _REPORT.pack(self.event, (0x80 if self.end else 0) | self.volume, self.duration)

    @property
    def digit(self) -> str | None:
        """The key of a DTMF event, or None for any other event: §3.2."""
        return digit_of(self.event)

    @classmethod
    def of(cls, digit: str, duration: int, *, end: bool = False, volume: int = 10) -> Self:
        """Make the report of a key of `DIGITS`; LocalError if it is none: §3.2."""
        return cls(event_of(digit), duration, end, volume)


def digit_of(event: int) -> str | None:
    """Give the key of a DTMF event, or None for any other event: §3.2."""
    return DIGITS[event] if event < len(DIGITS) else None


def event_of(digit: str) -> int:
    """Give the code of a key of `DIGITS`; LocalError if it is none: §3.2."""
    code = DIGITS.find(digit.upper()) if len(digit) == 1 else -1
    if code < 0:
        raise LocalError(f"{digit!r} is not a DTMF digit")
    return code


def parse_events(payload: bytes | memoryview) -> tuple[TelephoneEvent, ...]:
    """Read a payload of up to `MAX_REPORTS` contiguous events, or raise RemoteError: §2.5.1.5."""
    if not payload or len(payload) % _REPORT.size or len(payload) > MAX_REPORTS * _REPORT.size:
        raise RemoteError(f"telephone-event payload of {len(payload)} octets")
    size = _REPORT.size
    return tuple(
        TelephoneEvent.parse(payload[at : at + size]) for at in range(0, len(payload), size)
    )
