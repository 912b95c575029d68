"""What one client plays from files, one after the other, and where in it each of them stands.

Implements RTMP 1.0 §7.2.2.1 as far as it speaks of a playlist.  Files are asked for through
`Library`, and come, as do their bytes, when they come: nothing here waits for a disk.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from rtmplite.amf.values import Value
from rtmplite.flv.index import Index
from rtmplite.rtmp.application import PlayRequest

# Own design: more is no playlist.
MAX_ITEMS: Final = 1000
MAX_NAMES: Final = 64 * 1024  # characters, of all items together


class Recording(Protocol):
    """Own design: an open file."""

    @property
    def index(self) -> Index:
        """Own design: where it can be begun."""

    def read(self, at: int, size: int, then: Callable[[bytes, float], None]) -> None:
        """Call `then` with so many bytes and the time, later or at once.

        Own design: fewer bytes at the end, none if they cannot be read.
        """

    def close(self) -> None:
        """Own design: no `then` is called after this."""


class Library(Protocol):
    """Own design: finds files by the names that clients say."""

    def open(self, name: str, then: Callable[[Recording | None, float], None]) -> None:
        """Call `then` with the file, or None if there is none, and the time, later or at once."""


@dataclass(slots=True)
class Item:
    """One entry of a playlist: §7.2.2.1.

    `shift` is what to add to the file's times to get the client's, in ms; it is None until the
    item has been begun.  `base` is the client's time at that moment, `ends` that of its end.
    """

    name: str
    request: PlayRequest
    shift: int | None = None
    base: float = 0.0
    ends: float | None = None


class Playlist:
    """The items in order, and which of them is played now: §7.2.2.1."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._number = 0

    def __len__(self) -> int:
        return len(self._items)

    @property
    def current(self) -> Item | None:
        """Own design: None before the first and after the last."""
        return self._items[self._number] if self._number < len(self._items) else None

    @property
    def ends(self) -> float | None:
        """The latest time of the client's that can be sought, in ms: RTMP 1.0 §7.2.2.7.

        None while nothing has been begun.
        """
        return max((item.ends for item in self._items if item.ends is not None), default=None)

    @property
    def has_room(self) -> bool:
        """Own design: whether another item may be kept."""
        return len(self) < MAX_ITEMS and sum(len(item.name) for item in self._items) < MAX_NAMES

    def append(self, name: str, request: PlayRequest) -> None:
        """Play this after all others: §7.2.2.1, a play command without reset."""
        self._items.append(Item(name, request))

    def advance(self) -> Item | None:
        """Go to the next item.  Own design: there may be none, until one is appended."""
        self._number = min(self._number + 1, len(self._items))
        return self.current

    def forget_the_rest(self) -> None:
        """Drop what would come after the current item.  Own design: play2's "stop"."""
        del self._items[self._number + 1 :]

    def find(self, name: str) -> Item | None:
        """The current or a later item of that name.  Own design: for play2's "swap"."""
        return next((item for item in self._items[self._number :] if item.name == name), None)

    def at(self, milliseconds: float) -> Item | None:
        """Go to the item that a time of the client's falls into: RTMP 1.0 §7.2.2.7.

        What has not been begun yet has no place in time; None if nothing has.
        """
        begun = [n for n, item in enumerate(self._items) if item.shift is not None]
        if not begun:
            return None
        past = [n for n in begun if self._items[n].base <= milliseconds]
        self._number = past[-1] if past else begun[0]
        return self._items[self._number]


def request_of(options: Mapping[str, Value]) -> PlayRequest:
    """`start` and `len` of NetStreamPlayOptions, or where to `resume`: RTMP 1.0 §7.2.2.2."""
    offset = options.get("offset")
    start = offset if isinstance(offset, float) and offset >= 0 else options.get("start")
    return PlayRequest.parse((start, options.get("len")))
