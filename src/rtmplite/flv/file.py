"""FLV files: a header, then tags, each followed by its size to find the way back.

Implements FLV 10.1 §E.2 and FLV 10.1 §E.3.

    >>> name = Tag(TagType.SCRIPT, 0, b"...")
    >>> read(write([name]))
    (Header(has_audio=False, has_video=False, version=1), [Tag(tag_type=18, timestamp=0, \
data=b'...', stream_id=0, filtered=False)])
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final, Self

from rtmplite.errors import RemoteError
from rtmplite.flv.tag import HEADER_SIZE, Tag, TagType, data_size

_HEADER: Final = Struct(">3sBBI")  # §E.2
_SIZE: Final = Struct(">I")  # §E.3
_AUDIO: Final = 4  # §E.2
_VIDEO: Final = 1  # §E.2


@dataclass(frozen=True, slots=True)
class Header:
    """The first nine bytes of a file: §E.2."""

    has_audio: bool
    has_video: bool
    version: int = 1

    @classmethod
    def parse(cls, data: bytes | memoryview) -> Self:
        """Read the header at the start of `data`: §E.2; RemoteError if it is none."""
        if len(data) < _HEADER.size or bytes(data[:3]) != b"FLV":
            raise RemoteError("this is no FLV file")
        _, version, flags, offset = _HEADER.unpack_from(data)
        if offset < _HEADER.size:
            raise RemoteError(f"an FLV header of {offset} bytes")
        return cls(bool(flags & _AUDIO), bool(flags & _VIDEO), version)

    def __bytes__(self) -> bytes:
        flags = _AUDIO * self.has_audio | _VIDEO * self.has_video
        return _HEADER.pack(b"FLV", self.version, flags, _HEADER.size)


def read(data: bytes | memoryview) -> tuple[Header, list[Tag]]:
    """Read a whole file: §E.3.  Raises RemoteError where it is broken or ends within a tag."""
    return Header.parse(data), list(tags(data))


def tags(data: bytes | memoryview) -> Iterator[Tag]:
    """Give the tags of a file one by one: §E.3.

    The way back is not checked, since some writers fill it wrongly and no reader needs it.
    Raises RemoteError where the file is broken or ends within a tag.
    """
    Header.parse(data)
    data = memoryview(data)
    at = _HEADER.unpack_from(data)[3] + _SIZE.size  # §E.2, DataOffset
    while at < len(data):
        end = at + HEADER_SIZE + data_size(data, at)
        yield Tag.parse(data[at:end])
        at = end + _SIZE.size


def write(content: Iterable[Tag]) -> bytes:
    """Write a whole file: §E.3; its header tells what the tags hold: §E.2."""
    content = list(content)
    kinds = {tag.tag_type for tag in content}
    parts = [bytes(Header(TagType.AUDIO in kinds, TagType.VIDEO in kinds)), bytes(_SIZE.size)]
    for tag in content:
        raw = bytes(tag)
        parts += raw, _SIZE.pack(len(raw))
    return b"".join(parts)
