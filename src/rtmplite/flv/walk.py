"""Walks through a file by tag headers alone, and finds the next tag after a broken one.

Implements FLV 10.1 §E.3 and FLV 10.1 §E.4.1 for files of any length: only the first bytes of each
tag are read.  What a crash, a full disk or a careless tool leaves behind is stepped over: a last
tag cut short, wrong sizes between tags, and bytes that are no tag at all.

    >>> from rtmplite.flv.file import MemoryFile, write_flv
    >>> from rtmplite.flv.tag import Tag
    >>> raw = write_flv([Tag(TagType.VIDEO, 40, b"pict"), Tag(TagType.VIDEO, 80, b"ure")])
    >>> walk = Walk(MemoryFile(raw[:-5]))
    >>> [(step.position, step.timestamp) for step in walk], walk.lost
    ([(13, 40)], 13)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rtmplite.flv.file import Source, first_tag
from rtmplite.flv.tag import HEADER_SIZE, Tag, TagType, as_script, data_size

PEEK: Final = 16  # bytes of a body that tell all we ask of it: FLV 10.1 §E.4.2.1 and §E.4.3.1
_LINK: Final = 4  # bytes of a tag's size, after it: §E.3
_BLOCK: Final = 65536  # read at once where headers must be looked for
_KNOWN: Final = frozenset(TagType)


@dataclass(frozen=True, slots=True)
class Step:
    """One tag of a file: where it begins, §E.4.1's fields, and the first bytes of its body."""

    position: int
    tag_type: int
    timestamp: int
    size: int  # of the body
    peek: bytes
    link: int  # what the file says the tag's size is: §E.3

    @property
    def end(self) -> int:
        """The position of the next tag: §E.3."""
        return self.position + HEADER_SIZE + self.size + _LINK

    @property
    def is_linked(self) -> bool:
        """Whether the size after the tag is right: §E.3."""
        return self.link == HEADER_SIZE + self.size


class Walk:
    """All whole tags of `source` from `start` on: §E.3.  `lost` counts bytes that were no tag.

    `end` is where the last whole tag ends, its size after it included, be that right, wrong or
    cut off.  A tag that does not end within the file, or is none by its first bytes, is looked
    past for the next pair of a header and a matching size.  The first use raises RemoteError if
    this is no FLV file.
    """

    def __init__(self, source: Source, start: int | None = None) -> None:
        self._source, self._start = source, start
        self.lost = 0
        self.end = 0

    def __iter__(self) -> Iterator[Step]:
        source = self._source
        at = first_tag(source.read(0, 9)) if self._start is None else self._start
        size, self.end = source.size, min(at, source.size)
        while at < size:
            step = _step(source, at, size)
            if step is None:
                found = self._search(at + 1, size)
                self.lost += (size if found is None else found) - at
                if found is None:
                    return
                at = found
                continue
            yield step
            at = step.end
            self.end = min(at, size)

    def _search(self, start: int, size: int) -> int | None:
        """Find the next tag with the same size before it (§E.4.1) and after it (§E.3)."""
        for block in range(start, size, _BLOCK):
            data = self._source.read(block, _BLOCK + HEADER_SIZE)
            for at in range(min(_BLOCK, len(data) - HEADER_SIZE + 1)):
                if data[at] in _KNOWN and data[at + 8 : at + 11] == bytes(3):
                    step = _step(self._source, block + at, size)
                    if step is not None and step.is_linked:
                        return block + at
        return None


def load(source: Source, step: Step) -> Tag:
    """Read all of a tag: §E.4.1."""
    return Tag.parse(source.read(step.position, HEADER_SIZE + step.size))


def load_script(source: Source, step: Step) -> Tag | None:
    """Read all of a script tag, AMF0 or AMF3, None if it is another: §E.4.1."""
    if step.tag_type not in (TagType.SCRIPT, TagType.SCRIPT_AMF3):
        return None
    tag = as_script(load(source, step))
    return tag if tag.tag_type == TagType.SCRIPT else None


def _step(source: Source, at: int, size: int) -> Step | None:
    """Read the header of one tag; None if it is none or goes beyond the end."""
    head = source.read(at, HEADER_SIZE + PEEK)
    if len(head) < HEADER_SIZE or head[0] & 0x1F not in _KNOWN or head[8:11] != bytes(3):
        return None  # a stream id is always 0: §E.4.1
    length = data_size(head)
    end = at + HEADER_SIZE + length
    if end > size:
        return None
    time = int.from_bytes(head[7:8] + head[4:7], "big", signed=True)
    body = head[HEADER_SIZE : HEADER_SIZE + length]
    if len(head) >= HEADER_SIZE + length + _LINK:
        link = head[HEADER_SIZE + length : HEADER_SIZE + length + _LINK]
    else:
        link = source.read(end, _LINK)
    told = int.from_bytes(link, "big") if len(link) == _LINK else -1
    return Step(at, head[0] & 0x1F, time, length, body, told)
