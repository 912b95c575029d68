"""Published audio that the owner of a socket reads in place of the connection.

Own design: of a thousand messages of a publisher hardly one needs more than a time, a length and a
place to go.  Those may be read elsewhere (`rtmplite.net._intake`, in C), from the state of one
chunk stream on; all others come to `ChunkTransport.receive`, which first takes back what was
counted meanwhile.  So the connection is always right when anybody looks, and stays the
specification.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeAlias

from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.message import MessageType

AGAIN: Final = 10  # messages after which a chunk stream that could not be lent is tried again
WORTH: Final = 5  # messages read elsewhere that were worth it; with video there are fewer in a row

AudioSink: TypeAlias = Callable[[int, int, bytes, float], None]
"""Takes a message: type, time in ms, payload, and when it came, in seconds."""


class Taken(NamedTuple):
    """What was read elsewhere: octets, when, and the last header (RTMP 1.0 §5.3.1)."""

    octets: int
    timestamp: int
    delta: int
    length: int
    heard: float


class Inlet(Protocol):
    """Reads usual messages, and has so many so far; `take` of its owner is given all others."""

    passed: int

    def lend(self, *terms: object) -> bool:
        """Read the messages of a chunk stream, see `LentReading.begin`; False if it won't."""

    def follow(self) -> tuple[int, int, int, int, float] | None:
        """Give the fields of `Taken` since the last time; None if there was nothing."""

    def reclaim(self) -> tuple[int, int, int, int, float] | None:
        """The same, and read no more."""


class LentReading:
    """Lends the audio of one connection to an `inlet`, which is None where there is none."""

    def __init__(self, reader: ChunkReader) -> None:
        self.inlet: Inlet | None = None
        self.is_lent = False
        self._reader, self._chunk_stream_id, self._wait, self._before = reader, 0, 0, 0

    def is_due(self) -> bool:
        """Whether it is worth asking the inlet, if there is one, after this message."""
        self._wait -= 1
        if self._wait >= 0 or self.inlet is None:
            return False
        self._wait = AGAIN
        return True

    def begin(self, stream_id: int, most: int, sink: AudioSink | None) -> None:
        """Lend the audio of a message stream, for less than `most` octets more."""
        state = self._reader.state(MessageType.AUDIO, stream_id)
        if state is None or sink is None or self.inlet is None:
            return
        if self.inlet.lend(*state, most, sink):
            self.is_lent, self._before = True, self.inlet.passed
            self._chunk_stream_id = state.chunk_stream_id

    def follow(self) -> float | None:
        """Move the reader past messages read elsewhere; returns the time of the last, or None."""
        return self._note(self.inlet.follow()) if self.is_lent and self.inlet is not None else None

    def end(self) -> float | None:
        """The same, and read everything here from now on."""
        if not self.is_lent or self.inlet is None:
            return None
        heard, self.is_lent = self._note(self.inlet.reclaim()), False
        if self.inlet.passed - self._before >= WORTH:
            self._wait = 0
        return heard

    def _note(self, seen: tuple[int, int, int, int, float] | None) -> float | None:
        if seen is None:
            return None
        octets, timestamp, delta, length, heard = Taken(*seen)
        self._reader.went_on(self._chunk_stream_id, octets, timestamp, delta, length)
        return heard
