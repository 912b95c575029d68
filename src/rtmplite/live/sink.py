"""Takes published messages, and writes them for the players of a protocol."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from rtmplite.flv.published_video import PublishedVideo

# Writes a message for a player's protocol, from type, timestamp in ms and payload.
# Players whose framings are equal get the same bytes.
Framing: TypeAlias = Callable[[int, int, bytes], bytes]


class Sink(Protocol):
    """The destination of a published stream: a `LiveStream`, a recorder or a phone.

    Own design: RTMP 1.0 §7.2.2.6 says what a publisher sends, not who takes it.
    """

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take one message of type 8, 9 or 18; `timestamp` in ms: RTMP 1.0 §7.1.2 to §7.1.5."""

    def end(self, now: float) -> None:
        """Note that no more will come, because it was unpublished or cut off."""


class MendedSink(Sink, Protocol):
    """A sink that may keep a picture for a moment.  Own design: see `PublishedVideo`."""

    @property
    def deadline(self) -> float | None:
        """When to call `tick`."""

    def tick(self, now: float) -> None:
        """Pass on a picture that nothing has followed."""


def mended(sink: Sink) -> MendedSink:
    """Give a sink what odd encoders send as decoders need it: FLV 10.1 §E.4.3.2."""
    return PublishedVideo(sink)
