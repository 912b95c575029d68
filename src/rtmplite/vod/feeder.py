"""The tags of an open file, read ahead by a block at a time.

Own design: over FLV 10.1 §E.3, a disk may take its time, so blocks are asked for and come later.
Frames are mended like those of a publisher, since files have what publishers send.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from rtmplite.flv.file import FlvReader
from rtmplite.flv.index import IndexPlace
from rtmplite.flv.published_video import PublishedVideo
from rtmplite.flv.tag import Tag, TagType, as_script
from rtmplite.vod.playlist import Recording

BLOCK: Final = 128 * 1024  # bytes read at once

_KINDS: Final = frozenset(TagType)
_SENT: Final = frozenset((TagType.AUDIO, TagType.VIDEO, TagType.SCRIPT))


class Feeder:
    """Gives the tags of an open file from some place on, reading blocks as they are needed.

    Those of `head` come first, at the time of that place.
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
