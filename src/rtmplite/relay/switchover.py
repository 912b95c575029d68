"""Moving from one server to another that plays the same stream, without losing a message.

E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest": the old server is
played up to a place where the new one can begin.  Either server may be ahead.  The publisher may
have been asked to move as well.  So the old stream may end at any moment, and may contain the first
key frame of the new one.

    >>> passed, ahead = PlayedPosition(), StandbyBuffer()
    >>> key, frame = bytes.fromhex("1701"), bytes.fromhex("2701")
    >>> passed.note(9, 0, key, now=0.0)  # all that the old server has played
    >>> for message in [(9, 0, key), (9, 40, frame)]:
    ...     ahead.take(*message, passed, now=0.0)
    >>> [time for _, time, _ in ahead.messages]
    [40]
"""

from typing import Final

from rtmplite.flv.tag import TagType
from rtmplite.live.tracks import Tracks, Weight

FAR: Final = 10_000  # ms; a time that much earlier is of another time line
AHEAD: Final = 8 * 1024 * 1024  # bytes to keep of the next server's messages


class PlayedPosition:
    """The times up to which messages have been passed on, from one server or several.

    Own design: in ms, for each medium alone, since servers interleave the media as they like;
    `start` is the newest key frame, which shows that another server's stream is the same.
    """

    def __init__(self) -> None:
        self.start: tuple[int, bytes] | None = None
        self._times: dict[int, int] = {}
        self._repeated: dict[int, int] = {}  # times up to which the server in use repeats
        self._tracks = Tracks()

    def note(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Note a message that was passed on."""
        weight, _ = self._tracks.note(type_id, timestamp, payload, now)
        if type_id != TagType.SCRIPT and weight is not Weight.ESSENTIAL:
            self._times[type_id] = timestamp
        if weight is Weight.START:
            self.start = timestamp, payload

    def has(self, type_id: int, timestamp: int) -> bool:
        """Whether a message of that time was passed on; a far earlier time is another time line."""
        return _reaches(self._times.get(type_id), timestamp)

    def go_over(self) -> None:
        """Expect another server, which may repeat messages that were passed on."""
        self._repeated = dict(self._times)

    def is_repeated(self, type_id: int, timestamp: int, payload: bytes, now: float) -> bool:
        """Whether the server in use repeats a message of the one before.

        No media is passed twice, but codec headers may differ.
        """
        until = self._repeated.get(type_id)
        if until is None:
            return False
        if _reaches(until, timestamp):
            weight, _ = self._tracks.note(type_id, timestamp, payload, now)
            # E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
            # [leave-at-boundary]
            return weight is not Weight.ESSENTIAL
        del self._repeated[type_id]
        return False


def _reaches(newest: int | None, timestamp: int) -> bool:
    return newest is not None and newest - FAR < timestamp <= newest


class StandbyBuffer:
    """The messages of the next server, from a place where playing can begin.

    Own design: `begin` is that place, as type and time in ms: a key frame that was not passed on,
    or, if the next server has played the last key frame that was, the first message after those
    passed on.  `is_due` is whether to move at once, without waiting for the old server to reach
    that place.
    """

    def __init__(self) -> None:
        self.begin: tuple[int, int] | None = None
        self.is_due = self.from_anywhere = False
        self.messages: list[tuple[int, int, bytes]] = []
        self._tracks, self._size = Tracks(), 0
        self._old = Tracks()
        self._is_same = False

    def take(
        self, type_id: int, timestamp: int, payload: bytes, passed: PlayedPosition, now: float
    ) -> None:
        """Keep a message if it is needed; `passed` is the position of the players."""
        weight, payload = self._tracks.note(type_id, timestamp, payload, now)
        if self.begin is None:
            if weight in (Weight.NOTHING, Weight.ESSENTIAL) or type_id == TagType.SCRIPT:
                return
            starts = self._tracks.can_begin(weight, now)
            self._is_same = self._is_same or passed.start == (timestamp, payload)
            is_new = not passed.has(type_id, timestamp)
            # E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
            # [leave-at-boundary]
            here = is_new and (starts or self._is_same)
            if not here and not (starts and self.from_anywhere):
                return
            self.begin, self.is_due = (type_id, timestamp), self.from_anywhere
            self.messages = [
                (kind, 0 if kind == TagType.SCRIPT else timestamp, header)
                for kind, header in self._tracks.opening()
            ]
        if weight is not Weight.NOTHING:
            self.messages.append((type_id, timestamp, payload))
            self._size += len(payload)
            self.is_due = self.is_due or self._size > AHEAD

    def meets(self, type_id: int, timestamp: int, payload: bytes, now: float) -> bool:
        """Whether to move before this message of the old server.

        At the place where the new server begins, or, if the new server is behind, at a key frame
        of the old one; the new one's key frame follows later.
        """
        weight, _ = self._old.note(type_id, timestamp, payload, now)
        if type_id == TagType.SCRIPT or weight is Weight.ESSENTIAL:
            return False
        if self.begin is not None:
            # E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
            # [leave-at-boundary]
            return type_id == self.begin[0] and timestamp >= self.begin[1]
        # E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
        # [leave-at-boundary]
        return self._tracks.begun and self._tracks.can_begin(weight, now)
