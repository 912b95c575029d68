"""A part of a live stream for a player who asked for so much and no more.

Implements RTMP 1.0 §7.2.2.1 as far as it speaks of a duration of what is live.

    >>> class Nobody:
    ...     framing, outlet = (lambda self, *message: b"frame"), None
    >>> excerpt = DurationLimit(Nobody(), 20)
    >>> [excerpt(8, at, b"\\xb2 a sound") and excerpt.is_over for at in (500, 510, 520, 530)]
    [False, False, False, True]
"""

from typing import Final

from rtmplite.flv.tag import TIMESTAMP_MASK, TagType
from rtmplite.live.streams import Player
from rtmplite.live.tracks import Tracks, Weight

_MEDIA: Final = (Weight.START, Weight.PLAIN)


class DurationLimit:
    """How one player's messages are written until `duration` ms have been: §7.2.2.1.

    Own design: a `Framing` that knows the times.  When `is_over` the player's outlet has been
    replaced by one that nothing comes out of, and somebody who knows what time it is has to say
    so and to give up the place.  With a duration of 0 that is after one moment.
    """

    def __init__(self, player: Player, duration: float) -> None:
        self.is_over = False
        self._player, self._duration, self._usual = player, duration, player.framing
        self._tracks = Tracks()
        self._first: int | None = None

    def __call__(self, type_id: int, timestamp: int, payload: bytes) -> bytes:
        """One message as the player gets it, if it does: §7.2.2.1."""
        weight, _ = self._tracks.note(type_id, timestamp, payload, 0.0)
        if weight in _MEDIA and type_id != TagType.SCRIPT:
            self._first = timestamp if self._first is None else self._first
            since = (timestamp - self._first) & TIMESTAMP_MASK
            if self._duration < since < 1 << 31 and not self.is_over:
                self.is_over, self._player.outlet = True, _Nowhere()
        return self._usual(type_id, timestamp, payload)


class _Nowhere:
    """An `Outlet` that nobody listens to."""

    output_size = 0

    def put(self, data: bytes) -> None:
        """Drop it."""

    def abort(self, reason: str, now: float) -> None:
        """It is never too slow."""
