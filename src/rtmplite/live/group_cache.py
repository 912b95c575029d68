"""The messages of a live stream since its last key frame, for players that come later.

Own design: a decoder begins at a key frame (FLV 10.1 §E.4.3.1), and the next one may be seconds
away.  With the frames since the last one, and the audio between them, each at its own time, a
player shows something at once.  It stays behind by as much as the group is long.  What is longer
than that is worth is not kept: the player waits for the next key frame.

    >>> group = GroupCache(1000, Account(MemoryBudget()))
    >>> group.put(8, 20, b"sound before any picture")
    >>> group.begin()
    >>> group.put(9, 40, b"key frame")
    >>> group.put(8, 50, b"sound")
    >>> group.messages
    [(9, 40, b'key frame'), (8, 50, b'sound')]
"""

from typing import Final

from rtmplite.flv.tag import TIMESTAMP_MASK
from rtmplite.limits.memory_budget import Account
from rtmplite.limits.memory_budget import MemoryBudget as MemoryBudget  # for the example

MAX_MS: Final = 10_000  # ffmpeg's key frames are 10 s apart where nobody says better
KEEPING: Final = 128  # bytes that a message takes beside its payload
BLOCK: Final = 64 * 1024  # bytes that are paid at once, so that few messages pay


class GroupCache:
    """Keeps one group of at most `limit` bytes, paid from `account`; a `limit` of 0 keeps none.

    `is_open` is true while messages are to be put in; `octets` is what they take.  A message may
    be appended without `put` if `octets` stays within `paid` and its time is before `until`.
    """

    __slots__ = ("_account", "_limit", "is_open", "messages", "octets", "paid", "until")

    def __init__(self, limit: int, account: Account) -> None:
        self._limit, self._account = limit, account
        self.octets = self.paid = self.until = 0
        self.is_open = False
        self.messages: list[tuple[int, int, bytes]] = []  # type, time in ms, payload

    def begin(self) -> None:
        """Forget the group: the next message is a key frame."""
        self.messages.clear()
        self.octets, self.until, self.is_open = 0, 0, self._limit > 0

    def put(self, type_id: int, timestamp: int, payload: bytes) -> None:
        """Take a message with its time in ms, or give up if the group becomes too long."""
        if not self.is_open:
            return
        self.octets += len(payload) + KEEPING
        if self.octets > self.paid and not self._pay():
            self.drop()
            return
        self.messages.append((type_id, timestamp, payload))
        begin = self.messages[0][1]
        if MAX_MS < (timestamp - begin & TIMESTAMP_MASK) < 1 << 31:
            self.drop()
        elif begin + MAX_MS <= TIMESTAMP_MASK:
            self.until = begin + MAX_MS

    def drop(self) -> None:
        """Keep nothing until the next key frame, and give the memory back."""
        self.messages.clear()
        self._account.give(self.paid)
        self.octets = self.paid = 0
        self.is_open = False

    def _pay(self) -> bool:
        """Take the missing memory; False if memory is short, or the group is too large."""
        if self.octets > self._limit:
            return False
        missing = min(max(self.octets, self.paid + BLOCK), self._limit) - self.paid
        if not self._account.leaves_half(missing):  # players wait rather than publishers go
            return False
        self._account.take(missing)
        self.paid += missing
        return True


class Beginning:
    """The first messages of a publication, for a player that is still on its way; a sink.

    Own design: `is_whole` is true as long as all of them are here; what is longer than a group may
    be is dropped, as a group is.
    """

    def __init__(self, group: GroupCache) -> None:
        self._group = group
        group.begin()

    @property
    def is_whole(self) -> bool:
        """Whether there are messages, and none is missing."""
        return self._group.is_open and bool(self._group.messages)

    @property
    def octets(self) -> int:
        """Return the bytes that the messages take."""
        return self._group.octets

    @property
    def messages(self) -> list[tuple[int, int, bytes]]:
        """Type, time in ms and payload of each."""
        return self._group.messages

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Keep one message: RTMP 1.0 §7.1.4."""
        self._group.put(type_id, timestamp, payload)

    def end(self, now: float) -> None:
        """Forget them, and give their memory back."""
        self._group.drop()
