"""FLV files: a header, then tags, each followed by its size to find the way back.

Implements FLV 10.1 §E.2 and FLV 10.1 §E.3.  `read_flv` and `write_flv` are for files that fit into
memory; `FlvReader` takes a file in pieces of any size, `framed` gives the bytes to append to one.

    >>> name = Tag(TagType.SCRIPT, 0, b"...")
    >>> read_flv(write_flv([name]))
    (FlvHeader(has_audio=False, has_video=False, version=1), [Tag(tag_type=18, timestamp=0, \
data=b'...', stream_id=0, filtered=False)])
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final, Protocol, Self

from rtmplite.errors import RemoteError
from rtmplite.flv.tag import HEADER_SIZE, Tag, TagType, data_size

_HEADER: Final = Struct(">3sBBI")  # §E.2 [data-offset], §E.1 [big-endian]
_SIZE: Final = Struct(">I")  # §E.3 [previous-tag-size]
_AUDIO: Final = 4  # §E.2 [type-flags]
_VIDEO: Final = 1  # §E.2 [type-flags]


@dataclass(frozen=True, slots=True)
class FlvHeader:
    """The first nine bytes of a file: §E.2."""

    has_audio: bool
    has_video: bool
    version: int = 1  # §E.2 [version]

    @classmethod
    def parse(cls, data: bytes | memoryview) -> Self:
        """Read the header at the start of `data`: §E.2; RemoteError if it is none."""
        # §E.2 [signature] [header-first]
        if len(data) < _HEADER.size or bytes(data[:3]) != b"FLV":
            raise RemoteError("this is no FLV file")
        _, version, flags, offset = _HEADER.unpack_from(data)
        if offset < _HEADER.size:
            raise RemoteError(f"an FLV header of {offset} bytes")
        return cls(bool(flags & _AUDIO), bool(flags & _VIDEO), version)

    def __bytes__(self) -> bytes:
        # §E.2 [type-flags] [reserved-zero]
        flags = _AUDIO * self.has_audio | _VIDEO * self.has_video
        return _HEADER.pack(b"FLV", self.version, flags, _HEADER.size)


def read_flv(data: bytes | memoryview) -> tuple[FlvHeader, list[Tag]]:
    """Read a whole file: §E.3.  Raises RemoteError where it is broken or ends within a tag."""
    return FlvHeader.parse(data), list(tags(data))


def tags(data: bytes | memoryview) -> Iterator[Tag]:
    """Give the tags of a file, ignoring the sizes behind them: §E.3.  RemoteError if broken."""
    at, data = first_tag(data), memoryview(data)
    while at < len(data):
        end = at + HEADER_SIZE + data_size(data, at)
        yield Tag.parse(data[at:end])
        at = end + _SIZE.size  # §E.3 [alternating]


def framed(tag: Tag) -> bytes:
    """Write a tag with the size that follows it, as it stands in a file: §E.3."""
    raw = bytes(tag)
    return raw + _SIZE.pack(len(raw))  # §E.3 [previous-tag-size] [alternating]


def write_flv(content: Iterable[Tag]) -> bytes:
    """Write a whole file: §E.3; its header tells whether the tags hold audio and video: §E.2."""
    content = list(content)
    kinds = {tag.tag_type for tag in content}
    header = start(TagType.AUDIO in kinds, TagType.VIDEO in kinds)
    return b"".join([header, *map(framed, content)])


def start(has_audio: bool, has_video: bool) -> bytes:
    """Write the part before the first tag: a header, and a previous tag's size of 0: §E.2, §E.3."""
    return bytes(FlvHeader(has_audio, has_video)) + bytes(_SIZE.size)  # §E.3 [first-size-zero]


class FlvReader:
    """Reads a file in pieces: §E.3.  It keeps less than one tag, and no more than it was fed.

    `header` is None until it is there.  `position` is where the next tag begins: bytes from the
    start of the file, or from the tag that reading began at, with `inside`.

        >>> reader, raw = FlvReader(), write_flv([Tag(TagType.SCRIPT, 0, b"...")])
        >>> [len(reader.feed(raw[i : i + 1])) for i in range(len(raw))].count(1), reader.position
        (1, 31)
    """

    def __init__(self, *, inside: bool = False) -> None:
        self.header: FlvHeader | None = None
        self.position = 0
        self._inside, self._held = inside, bytearray()

    @property
    def held(self) -> int:
        """Own design: how many bytes of the next tag have arrived."""
        return len(self._held)

    def feed(self, data: bytes | memoryview) -> list[Tag]:
        """Give the tags complete with these bytes, sizes included: §E.3.  RemoteError."""
        held = self._held
        held += data
        at, found = 0, []
        if not self._inside:
            at = self._skip_header()
        while self._inside and len(held) >= at + HEADER_SIZE:
            end = at + HEADER_SIZE + data_size(held, at)
            if len(held) < end + _SIZE.size:
                break
            found.append(Tag.parse(bytes(held[at:end])))
            at = end + _SIZE.size
        del held[:at]
        self.position += at
        return found

    def _skip_header(self) -> int:
        if len(self._held) < _HEADER.size:
            if not b"FLV".startswith(self._held[:3]):
                raise RemoteError("this is no FLV file")
            return 0
        self.header = FlvHeader.parse(bytes(self._held[: _HEADER.size]))
        first = first_tag(bytes(self._held[: _HEADER.size]))
        self._inside = len(self._held) >= first
        return first if self._inside else 0


def first_tag(data: bytes | memoryview) -> int:
    """Give the position of the first tag: §E.2, §E.3.  RemoteError for no FLV header."""
    FlvHeader.parse(data)
    return int(_HEADER.unpack_from(data)[3]) + _SIZE.size  # §E.2 [data-offset]


class Source(Protocol):
    """A file that can be read anywhere.  Own design: on a disk, or in `MemoryFile`."""

    @property
    def size(self) -> int:
        """The size in bytes, which may grow."""

    def read(self, at: int, size: int) -> bytes:
        """Give `size` bytes from `at` on, fewer only at the end."""


class MemoryFile:
    """A `Source` of bytes in memory.  Own design: for files that have been read already."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self._data)

    def read(self, at: int, size: int) -> bytes:
        """Give a slice."""
        return self._data[at : at + size]
