"""The FLV tag: eleven bytes of type, size and time, then audio, video or script data.

Implements FLV 10.1 §E.4.1.  In RTMP the same bodies travel as message payloads, and the header's
fields as those of the message (RTMP 1.0 §7.1.6 shows both in one).
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from struct import Struct
from typing import Final, Self

from rtmplite.errors import LocalError, RemoteError

HEADER_SIZE: Final = 11  # bytes: §E.4.1 [data-size]
MAX_DATA: Final = 0xFFFFFF  # bytes, what UI24 can count: §E.4.1 [data-size]

TIMESTAMP_MASK: Final = 0xFFFFFFFF  # milliseconds wrap here: RTMP 1.0 §4

_FILTER: Final = 0x20  # §E.4.1 [filter]
_TYPE: Final = 0x1F  # §E.4.1 [tag-types]
_HEADER: Final = Struct(">BBHHBBBH")  # every UI24 as one byte and two: §E.4.1, §E.1 [big-endian]


class TagType(IntEnum):
    """The types of tags: §E.4.1; RTMP uses the same numbers for its messages."""

    AUDIO = 8  # §E.4.1 [tag-types]
    VIDEO = 9  # §E.4.1 [tag-types]
    SCRIPT_AMF3 = 15  # E-RTMP v2 §"Enabling AMF3 in FLV" [tag-type-15]
    SCRIPT = 18  # §E.4.1 [tag-types]


@dataclass(frozen=True, slots=True)
class Tag:
    """One tag: §E.4.1.

    `timestamp` is in ms, from -2**31 to 2**31 - 1; `filtered` marks an encrypted `data` (§F.1),
    which this library carries and does not open.
    """

    tag_type: int
    timestamp: int
    data: bytes
    stream_id: int = 0  # §E.4.1 [stream-id-zero]
    filtered: bool = False

    @classmethod
    def parse(cls, raw: bytes | memoryview) -> Self:
        """Read one whole tag: §E.4.1.

        Raises RemoteError if `raw` is not exactly as long as its header says.
        """
        if len(raw) < HEADER_SIZE:
            raise RemoteError(f"an FLV tag of {len(raw)} bytes")
        size = data_size(raw)
        if len(raw) != HEADER_SIZE + size:
            raise RemoteError(f"an FLV tag of {len(raw)} bytes that announces {size}")
        first, _, _, time, low, high, stream_high, stream = _HEADER.unpack_from(raw)
        timestamp = high << 24 | (time << 8 | low)  # §E.4.1 [timestamp-extended]
        if timestamp >= 1 << 31:
            timestamp -= 1 << 32  # the four bytes are an SI32: §E.4.1 [timestamp-extended]
        return cls(
            first & _TYPE,
            timestamp,
            bytes(raw[HEADER_SIZE:]),
            stream_high << 16 | stream,
            bool(first & _FILTER),  # §E.4.1 [filter]
        )

    def __bytes__(self) -> bytes:
        size, time = len(self.data), self.timestamp & 0xFFFFFFFF
        if size > MAX_DATA:
            raise LocalError(f"an FLV tag cannot hold {size} bytes")
        header = _HEADER.pack(
            # §E.4.1 [reserved-bits] [filter-when-encrypted]
            self.tag_type & _TYPE | (_FILTER if self.filtered else 0),
            size >> 16,
            size & 0xFFFF,
            time >> 8 & 0xFFFF,
            time & 0xFF,
            time >> 24,
            self.stream_id >> 16,
            self.stream_id & 0xFFFF,
        )
        return header + self.data


def as_script(tag: Tag) -> Tag:
    """Make a tag of type 15 one of type 18; any other stays as it is.

    E-RTMP v2 §"Enabling AMF3 in FLV": as in a message of that type, a zero comes
    first, and AMF3 stands behind a marker (RTMP Errata §7.2).  No other format has a meaning yet.
    """
    if tag.tag_type != TagType.SCRIPT_AMF3 or tag.data[:1] != b"\x00":
        return tag
    # E-RTMP v2 §"Enabling AMF3 in FLV" [tag-type-15]
    return replace(tag, tag_type=TagType.SCRIPT, data=tag.data[1:])


def data_size(raw: bytes | bytearray | memoryview, at: int = 0) -> int:
    """Give the DataSize of the tag whose header begins at `at`: §E.4.1.

    Raises RemoteError if the header is not all there.
    """
    if len(raw) < at + HEADER_SIZE:
        raise RemoteError("an FLV tag header is cut short")
    return int.from_bytes(raw[at + 1 : at + 4], "big")  # §E.4.1 [data-size], §E.1 [big-endian]
