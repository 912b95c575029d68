"""The playlist of one client: the files it plays one after the other, each with its times.

Implements RTMP 1.0 §7.2.2.1 as far as it speaks of a playlist.  A `Library` gives files, and these
their bytes, by calling back later: nothing here waits for a disk.  Own design: members without a
section serve these two purposes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from rtmplite.amf.values import Value
from rtmplite.flv.index import Index
from rtmplite.rtmp.netstream import PlayRequest

MAX_ITEMS: Final = 1000
MAX_NAMES: Final = 64 * 1024  # characters, of all items together


class Recording(Protocol):
    """An open file."""

    @property
    def index(self) -> Index:
        """The index of the file: the places where playing can begin."""

    def read(self, at: int, size: int, then: Callable[[bytes, float], None]) -> None:
        """Call `then` with `size` bytes, fewer at the end, none if unreadable, and the time."""

    def close(self) -> None:
        """Close the file, and call no `then` any more."""


class Library(Protocol):
    """Finds files by the names that clients play."""

    def open(self, name: str, then: Callable[[Recording | None, float], None]) -> None:
        """Call `then`, now or later, with the file, or None, and the time."""


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
    """The items in order, and the item that is played now: §7.2.2.1."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._number = 0

    def __len__(self) -> int:
        return len(self._items)

    @property
    def current(self) -> Item | None:
        """The item that is played now, None before the first and after the last."""
        return self._items[self._number] if self._number < len(self._items) else None

    @property
    def ends(self) -> float | None:
        """The latest time to seek to in ms, None before any item: RTMP 1.0 §7.2.2.7."""
        return max((item.ends for item in self._items if item.ends is not None), default=None)

    @property
    def has_room(self) -> bool:
        """Whether another item may be kept."""
        return len(self) < MAX_ITEMS and sum(len(item.name) for item in self._items) < MAX_NAMES

    def append(self, name: str, request: PlayRequest) -> None:
        """Add an item after all others, as play without reset does: §7.2.2.1."""
        self._items.append(Item(name, request))

    def advance(self) -> Item | None:
        """Go to the next item, None if there is none until another is appended."""
        self._number = min(self._number + 1, len(self._items))
        return self.current

    def forget_the_rest(self) -> None:
        """Drop the items after the current one, as the "stop" of play2 asks."""
        del self._items[self._number + 1 :]

    def find(self, name: str) -> Item | None:
        """The current or a later item of that name, for the "swap" of play2."""
        return next((item for item in self._items[self._number :] if item.name == name), None)

    def at(self, milliseconds: float) -> Item | None:
        """Go to the item of a time, None if no item has begun: RTMP 1.0 §7.2.2.7."""
        begun = [n for n, item in enumerate(self._items) if item.shift is not None]
        if not begun:
            return None
        past = [n for n in begun if self._items[n].base <= milliseconds]
        self._number = past[-1] if past else begun[0]
        return self._items[self._number]


def request_of(options: Mapping[str, Value]) -> PlayRequest:
    """Read `start`, `len` and `offset` of NetStreamPlayOptions: RTMP 1.0 §7.2.2.2."""
    offset = options.get("offset")
    start = offset if isinstance(offset, float) and offset >= 0 else options.get("start")
    return PlayRequest.parse((start, options.get("len")))
