"""Audio as samples: G.711 put back on its time line, and WAV files.

Implements RFC 3550 §5.1 for the payloads of RFC 3551 §4.5.14.  Samples are signed, 16 bits wide,
8000 a second, one channel, in an `array("h")`.
"""

import sys
import wave
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Final

from p2psip.errors import LocalError
from p2psip.rtp.payload import g711

Law = tuple[Callable[["array[int]"], bytes], Callable[[bytes], "array[int]"]]

# How to write and read each codec that is a table: RFC 3551 §6.
LAWS: Final[dict[str, Law]] = {
    "PCMU": (g711.encode_ulaw, g711.decode_ulaw),
    "PCMA": (g711.encode_alaw, g711.decode_alaw),
}
ROUNDING: Final = 40  # samples: clocks in milliseconds and recut packets are not lost audio
LONGEST_GAP: Final = 10 * g711.CLOCK_RATE  # samples; a larger gap means another stream


class Recording:
    """The received audio, of which `missing` samples are silence filled in: RFC 3550 §5.1."""

    def __init__(self, law: str = "PCMU") -> None:
        self._decode = LAWS[law][1]
        self._next: int | None = None
        self.samples = array("h")
        self.missing = 0

    def add(self, payload: bytes, timestamp: int) -> int:
        """Decode a payload; place it by `timestamp`, or append it if that is far off; its place."""
        gap = self._gap(timestamp)
        if ROUNDING < gap <= LONGEST_GAP:
            self.samples.extend(array("h", bytes(2 * gap)))
            self.missing += gap
        place = len(self.samples)
        self.samples.extend(self._decode(payload))
        self._next = timestamp + len(payload)
        return place

    def _gap(self, timestamp: int) -> int:
        """How many samples are missing before `timestamp`, the short way round the clock."""
        if self._next is None:
            return 0
        return (timestamp - self._next + (1 << 31)) % (1 << 32) - (1 << 31)


def read_wav(path: Path) -> "array[int]":
    """Read a file of 16-bit samples, 8000 a second, one channel; LocalError for any other."""
    try:
        with wave.open(str(path), "rb") as file:
            form = file.getsampwidth(), file.getframerate(), file.getnchannels()
            data = file.readframes(file.getnframes())
    except (OSError, EOFError, wave.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise LocalError(f"{path}: {reason or 'not a WAV file'}") from None
    if form != (2, g711.CLOCK_RATE, 1):
        found = "{} bits, {} Hz, {} channel(s)".format(8 * form[0], *form[1:])
        raise LocalError(f"{path} has {found}; 16 bits, 8000 Hz, 1 channel are needed")
    samples = array("h", data[: len(data) // 2 * 2])
    if sys.byteorder == "big":
        samples.byteswap()
    return samples


def write_wav(path: Path, samples: "array[int]") -> None:
    """Write a file as `read_wav` reads it; LocalError if it cannot be written."""
    little = array("h", samples)
    if sys.byteorder == "big":
        little.byteswap()
    try:
        with path.open("wb") as raw, wave.open(raw, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(g711.CLOCK_RATE)
            file.writeframes(little.tobytes())
    except OSError as error:
        raise LocalError(f"{path}: {error.strerror}") from None
