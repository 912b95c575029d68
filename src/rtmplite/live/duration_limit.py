"""Limits the playback of a live stream to the duration that the player asked for."""

from typing import Final

from rtmplite.flv.tag import TIMESTAMP_MASK, TagType
from rtmplite.live.streams import LivePlayer
from rtmplite.live.tracks import Tracks, Weight

_MEDIA: Final = (Weight.START, Weight.PLAIN)


class DurationLimit:
    """Writes one player's messages until `duration` ms have passed: RTMP 1.0 §7.2.2.1.

    Own design: a `Framing`, since it sees the time of each message.  When `is_over`, the player's
    outlet has been replaced by one that drops everything, and the stream's owner has to tell the
    client and leave the stream.  `since` is the time of the first message where the player has got
    some already.  A duration of 0 gives the messages of one moment.

        >>> class Nobody:
        ...     framing, outlet = (lambda self, *message: b"frame"), None
        >>> excerpt = DurationLimit(Nobody(), 20)
        >>> [excerpt(8, at, b"\\xb2 audio") and excerpt.is_over for at in (500, 510, 520, 530)]
        [False, False, False, True]
    """

    def __init__(self, player: LivePlayer, duration: float, since: int | None = None) -> None:
        self.is_over = False
        self._player, self._duration, self._usual = player, duration, player.framing
        self._tracks = Tracks()
        self._first = since

    def __call__(self, type_id: int, timestamp: int, payload: bytes) -> bytes:
        """Write one message, perhaps the first that the player does not get: RTMP 1.0 §7.2.2.1."""
        weight, _ = self._tracks.note(type_id, timestamp, payload, 0.0)
        if weight in _MEDIA and type_id != TagType.SCRIPT:
            self._first = timestamp if self._first is None else self._first
            since = (timestamp - self._first) & TIMESTAMP_MASK
            if self._duration < since < 1 << 31 and not self.is_over:
                self.is_over, self._player.outlet = True, _Nowhere()
        return self._usual(type_id, timestamp, payload)


class _Nowhere:
    """An `Outlet` that drops everything."""

    output_size = 0

    def put(self, data: bytes) -> None:
        """Drop the bytes."""

    def abort(self, reason: str, now: float) -> None:
        """Do nothing: it is never too slow."""
