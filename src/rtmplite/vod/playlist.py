"""The playlist of one client: the files it plays one after the other, each with its times.

Implements RTMP 1.0 §7.2.2.1 as far as it speaks of a playlist.  A `Library` gives files, and these
their bytes, by calling back later: nothing here waits for a disk.  Own design: members without a
section serve these two purposes.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from rtmplite.amf.values import Value
from rtmplite.flv.file import FlvReader
from rtmplite.flv.index import Index, IndexPlace
from rtmplite.flv.published_video import PublishedVideo
from rtmplite.flv.tag import Tag, TagType, as_script
from rtmplite.rtmp.netstream import PlayRequest

MAX_ITEMS: Final = 1000
MAX_NAMES: Final = 64 * 1024  # characters, of all items together
BLOCK: Final = 128 * 1024  # bytes read at once
_KINDS: Final = frozenset(TagType)
_SENT: Final = frozenset((TagType.AUDIO, TagType.VIDEO, TagType.SCRIPT))


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


class Feeder:
    """Gives the tags of an open file from some place on, those of `head` first, at its time.

    Own design over FLV 10.1 §E.3: a disk may take its time, so blocks are asked for and come later.
    Frames are mended like those of a publisher, since files have what publishers send.
    """

    def __init__(
        self,
        recording: Recording,
        place: IndexPlace,
        on_tags: Callable[[float], None],
        head: Iterable[Tag] = (),
    ) -> None:
        self.recording, self.tags = recording, deque[Tag]()
        self._video = PublishedVideo(_Tags(self.tags))
        self.ended = False  # the file has no tags beyond `tags`
        self._on_tags, self._reader = on_tags, FlvReader(inside=True)
        self._at, self._reading, self._stopped = place.position, False, False
        self._take([replace(tag, timestamp=place.timestamp) for tag in head])

    def fill(self) -> None:
        """Read the next block, unless one is being read, or the file has ended."""
        size = min(BLOCK, self.recording.index.end - self._at)
        if self._reading or self.ended:
            return
        if size <= 0:
            self._end()
            return
        self._reading = True
        self.recording.read(self._at, size, self._on_data)

    def stop(self) -> None:
        """Ignore the block that is still being read."""
        self._stopped = True

    def _on_data(self, data: bytes, now: float) -> None:
        self._reading = False
        if self._stopped:
            return
        self._at += len(data)
        tags = self._reader.feed(data)
        broken = next((at for at, tag in enumerate(tags) if tag.tag_type not in _KINDS), None)
        self._take(tags[:broken])  # bytes that are no tag: a repaired file would give more
        if not data or broken is not None:
            self._end()
        self._on_tags(now)

    def _end(self) -> None:
        """Give the last tag even if the size after it was cut off."""
        self.ended = True
        self._take(self._reader.feed(bytes(4)))
        self._video.end(0.0)

    def _take(self, tags: list[Tag]) -> None:
        """Keep tags, with AMF3 data as type 18 (RTMP Errata §8.1.1)."""
        # RTMP Errata §8.1.1 [no-extended-without]
        for tag in map(as_script, tags):
            if tag.tag_type in _SENT:
                self._video.write(tag.tag_type, tag.timestamp, tag.data, 0.0)


class _Tags:
    """A sink that keeps messages as tags."""

    def __init__(self, tags: deque[Tag]) -> None:
        self._tags = tags

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        self._tags.append(Tag(type_id, timestamp, payload))

    def end(self, now: float) -> None:
        pass
