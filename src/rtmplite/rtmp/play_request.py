"""What a client asks by play, and what then plays a recording to it: RTMP 1.0 §7.2.2.1."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from rtmplite.amf.values import Value

ANY: Final = -2.0  # what is live, else what is recorded: RTMP 1.0 §7.2.2.1
LIVE_ONLY: Final = -1.0  # RTMP 1.0 §7.2.2.1
TO_THE_END: Final = -1.0  # RTMP 1.0 §7.2.2.1


@dataclass(frozen=True, slots=True)
class PlayRequest:
    """The further arguments of play: RTMP 1.0 §7.2.2.1.

    `start` is in ms, or `ANY` or `LIVE_ONLY`; `duration` is in ms, or `TO_THE_END`.  Without
    `reset` the stream is appended to the playlist of this client.
    """

    start: float = ANY
    duration: float = TO_THE_END
    reset: bool = True

    @classmethod
    def parse(cls, args: tuple[Value, ...]) -> "PlayRequest":
        """Parse the arguments after the name; a wrong one counts as absent: Field §"Play times".

        RTMP 1.0 §7.2.2.1 gives seconds, the unit of scripts; clients send ms, and the two special
        values with or without the factor.
        """
        start, duration, reset = [*args, None, None, None][:3]
        begin, length = _number(start, ANY), _number(duration, TO_THE_END)
        if begin < 0:
            begin = LIVE_ONLY if begin in (LIVE_ONLY, 1000 * LIVE_ONLY) else ANY
        return cls(begin, length if length >= 0 else TO_THE_END, reset is None or bool(reset))


class Playback(Protocol):
    """Plays a recorded stream to one client.  Own design: a live stream needs no such object."""

    def pause(self, paused: bool, at: float, now: float) -> None:
        """Pause or go on; `at` is the client's time in ms: RTMP 1.0 §7.2.2.8."""

    def seek(self, milliseconds: float, now: float) -> None:
        """Go on from a time of the client's: RTMP 1.0 §7.2.2.7."""

    def select(self, now: float, *, audio: bool | None = None, video: bool | None = None) -> None:
        """Switch a medium off or on: RTMP 1.0 §7.2.2.4, §7.2.2.5."""

    def play2(self, options: Mapping[str, Value], now: float) -> None:
        """Go over to another stream, by NetStreamPlayOptions: RTMP 1.0 §7.2.2.2."""

    def buffer(self, milliseconds: int, now: float) -> None:
        """Take the length of the client's buffer: RTMP 1.0 §7.1.7."""

    def stop(self, now: float) -> None:
        """Stop without a word: the client is gone, or plays another stream."""


def _number(value: Value, default: float) -> float:
    """Read a time that a client sent; `default` for NaN and numbers beyond 32 bits."""
    return value if isinstance(value, float) and abs(value) < 1 << 32 else default
