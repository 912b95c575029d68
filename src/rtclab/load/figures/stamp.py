"""The generator's mark in each frame: its number and the time it was made.

Own design: in H.264 it is a message of type 5 of a SEI unit, which H.264 leaves to applications;
players pass over it.  It is written in letters, so nothing in it looks like a start
code.  In sound the same letters stand at the start of the frame, where they are heard as a click.
The time is that of the system's clock, so publisher and player may be on two machines whose clocks
agree.

    >>> find(mark(7, 1_000_000_000), now_ns=1_250_000_000)
    Stamp(number=7, age_ms=250.0)
    >>> find(b"no mark") is None
    True
"""

from dataclasses import dataclass
from typing import Final

MAGIC: Final = b"rtclab load mark"  # 16 bytes: as the UUID in front of the message
_DIGITS: Final = 16  # hexadecimal, of the number and of the time
SIZE: Final = len(MAGIC) + 2 * _DIGITS
LOOK: Final = 96  # bytes of a frame in which a mark is looked for
_SEI: Final = bytes([0x06, 5, SIZE])  # type of NAL unit, type of message, its size
_TRAILER: Final = b"\x80"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a mark says: the frame's number, and how long ago it was made."""

    number: int
    age_ms: float


def mark(number: int, now_ns: int) -> bytes:
    """Write a mark."""
    return MAGIC + b"%016x%016x" % (number, now_ns)


def sei_unit(number: int, now_ns: int) -> bytes:
    """Write a mark as a NAL unit of H.264."""
    return _SEI + mark(number, now_ns) + _TRAILER


def find(frame: bytes, now_ns: int = 0) -> Stamp | None:
    """Read the mark near the start of a frame, None without one."""
    at = frame.find(MAGIC, 0, LOOK)
    if at < 0 or len(frame) < at + SIZE:
        return None
    at += len(MAGIC)
    try:
        number = int(frame[at : at + _DIGITS], 16)
        made = int(frame[at + _DIGITS : at + 2 * _DIGITS], 16)
    except ValueError:  # not ours
        return None
    return Stamp(number, max(0.0, (now_ns - made) / 1e6))
