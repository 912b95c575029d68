"""Going over from one server to another that plays the same stream, and leaving nothing out.

E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
[leave-at-boundary]: the old server is heard until it comes to where one can begin at the new
one.  Either may be ahead; the publisher may have been asked to move as well, so the old one may
end at any moment, and has perhaps played the new one's first key frame.

    >>> passed, ahead = PlayedPosition(), StandbyBuffer()
    >>> key, frame = bytes.fromhex("1701"), bytes.fromhex("2701")
    >>> passed.note(9, 0, key, now=0.0)  # the old server has played no more than that
    >>> for message in [(9, 0, key), (9, 40, frame)]:
    ...     ahead.take(*message, passed, now=0.0)
    >>> [time for _, time, _ in ahead.messages]
    [40]
"""

from typing import Final

from rtmplite.flv.tag import TagType
from rtmplite.live.tracks import Tracks, Weight

FAR: Final = 10_000  # ms
AHEAD: Final = 8 * 1024 * 1024  # bytes of what the next server has played meanwhile


class PlayedPosition:
    """How far those who watch have come, with one server or several.

    Own design: times in ms, of each medium by itself, since servers interleave them as they like;
    `start` is the newest key frame, by which another server's stream is known to be the same.
    """

    def __init__(self) -> None:
        self.start: tuple[int, bytes] | None = None
        self._times: dict[int, int] = {}
        self._repeated: dict[int, int] = {}  # up to where the server in use repeats another one
        self._tracks = Tracks()

    def note(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """This was passed on.  Own design."""
        weight, _ = self._tracks.note(type_id, timestamp, payload, now)
        if type_id != TagType.SCRIPT and weight is not Weight.ESSENTIAL:
            self._times[type_id] = timestamp
        if weight is Weight.START:
            self.start = timestamp, payload

    def has(self, type_id: int, timestamp: int) -> bool:
        """Whether what is of that time was passed on.

        Own design: unless it is far before, for then it is of another time line.
        """
        return _reaches(self._times.get(type_id), timestamp)

    def go_over(self) -> None:
        """From now on another server plays, and may begin with what was passed on.  Own design."""
        self._repeated = dict(self._times)

    def is_repeated(self, type_id: int, timestamp: int, payload: bytes, now: float) -> bool:
        """Whether the server in use plays what the one before has played.

        E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
        [leave-at-boundary]: no media twice, but codec headers may differ.
        """
        until = self._repeated.get(type_id)
        if until is None:
            return False
        if _reaches(until, timestamp):
            weight, _ = self._tracks.note(type_id, timestamp, payload, now)
            return weight is not Weight.ESSENTIAL
        del self._repeated[type_id]
        return False


def _reaches(newest: int | None, timestamp: int) -> bool:
    return newest is not None and newest - FAR < timestamp <= newest


class StandbyBuffer:
    """What the next server has played, from where one can begin there.

    Own design: `begin` is that place, type and time in ms: a key frame that was not passed on, or,
    once the next server has played the very key frame that was passed on last, whatever follows
    what was passed on; `is_due` is whether to go there without waiting for the old server to come
    to it.
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
        """Keep what is needed of one message; `passed` is what players have seen.

        E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
        [leave-at-boundary].
        """
        weight, payload = self._tracks.note(type_id, timestamp, payload, now)
        if self.begin is None:
            if weight in (Weight.NOTHING, Weight.ESSENTIAL) or type_id == TagType.SCRIPT:
                return
            starts = self._tracks.can_begin(weight, now)
            self._is_same = self._is_same or passed.start == (timestamp, payload)
            is_new = not passed.has(type_id, timestamp)
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
        """Whether the old server has come to where the new one is to go on, with this message.

        E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
        [leave-at-boundary]: where the new one begins, or, if that is behind, where one can begin
        here; then the new one is waited for.
        """
        weight, _ = self._old.note(type_id, timestamp, payload, now)
        if type_id == TagType.SCRIPT or weight is Weight.ESSENTIAL:
            return False
        if self.begin is not None:
            return type_id == self.begin[0] and timestamp >= self.begin[1]
        return self._tracks.begun and self._tracks.can_begin(weight, now)
