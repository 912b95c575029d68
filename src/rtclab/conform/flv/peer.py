"""A file or an HTTP stream of FLV, read once, and taken apart without a reader's mercy.

Implements FLV 10.1 §E.2 to §E.4.1, the fields as they stand.

Own design: our own reader passes over what is wrong, so the cases have one that keeps every field.
A stream that does not end is read for some seconds; what a cut at its end breaks is not judged.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.error import HTTPError
from urllib.request import urlopen

from rtclab.conform.case import NotApplicable, Unreachable
from rtmplite.flv.enhanced_audio import ExAudioTag
from rtmplite.flv.enhanced_video import IS_EX_HEADER, ExVideoTag
from rtmplite.flv.tag import HEADER_SIZE, TagType

SECONDS: Final = 5.0  # of a stream
LARGEST: Final = 256 << 20  # octets of a file or a stream
SILENT: Final = 10.0  # s without an octet of a stream
_SIGNATURE: Final = b"FLV"  # §E.2
_PIECE: Final = 65536
_BACK: Final = 4  # octets of PreviousTagSize
_AAC, _EXTENDED, _AVC = 10, 9, 7  # SoundFormat twice, and CodecID: §E.4.2.1, §E.4.3.1


@dataclass(frozen=True, slots=True)
class RawTag:
    """A tag as it stands: §E.4.1; `back` is the number behind it, None where there is none."""

    at: int  # octets before it
    first: int  # octet with Reserved, Filter and TagType
    timestamp: int  # ms, signed
    stream_id: int
    data: bytes
    back: int | None

    @property
    def kind(self) -> int:
        """The type: §E.4.1."""
        return self.first & 0x1F

    @property
    def is_aac(self) -> bool:
        """Whether it is AAC, with the octet that tells its packet type: §E.4.2.1."""
        return self.kind == TagType.AUDIO and len(self.data) > 1 and self.data[0] >> 4 == _AAC

    @property
    def is_avc(self) -> bool:
        """Whether it is AVC with the four octets of its header: §E.4.3.1."""
        plain = self.kind == TagType.VIDEO and len(self.data) > 4 and not self.is_enhanced
        return plain and self.data[0] & 15 == _AVC and self.data[0] >> 4 != 5

    @property
    def is_enhanced(self) -> bool:
        """Whether its codec has a FourCC: E-RTMP v2 §"Enhanced Video", §"Enhanced Audio"."""
        if not self.data:
            return False
        if self.kind == TagType.VIDEO:
            return bool(self.data[0] & IS_EX_HEADER)
        return self.kind == TagType.AUDIO and self.data[0] >> 4 == _EXTENDED

    @property
    def enhanced(self) -> ExVideoTag | ExAudioTag:
        """The body of an enhanced tag; raises RemoteError."""
        reader = ExVideoTag if self.kind == TagType.VIDEO else ExAudioTag
        return reader.parse(self.data)

    def __str__(self) -> str:
        return f"the tag at octet {self.at}"


@dataclass(frozen=True, slots=True)
class FlvData:
    """The octets and the tags; `is_cut` where the end is ours, not the target's."""

    data: bytes
    is_cut: bool
    tags: tuple[RawTag, ...]
    rest: bytes  # behind the last whole tag

    @classmethod
    def read(cls, data: bytes, *, is_cut: bool) -> "FlvData":
        """Take apart; the first tag is looked for where DataOffset says (§E.2)."""
        tags, at = [], int.from_bytes(data[5:9], "big") + _BACK
        while (size := _size(data, at)) is not None:
            tags.append(_tag(data, at, size))
            at += size + _BACK
        return cls(data, is_cut, tuple(tags), data[at:])

    def of(self, kind: TagType) -> list[RawTag]:
        """The tags of a type; NotApplicable if there are none."""
        if found := [each for each in self.tags if each.kind == kind]:
            return found
        raise NotApplicable(f"no tags of type {int(kind)}")


def _size(data: bytes, at: int) -> int | None:
    """The size of the tag at an octet, its header included; None if it is not all there."""
    if at + HEADER_SIZE > len(data):
        return None
    size = HEADER_SIZE + int.from_bytes(data[at + 1 : at + 4], "big")
    return size if at + size <= len(data) else None


def _tag(data: bytes, at: int, size: int) -> RawTag:
    stamp = int.from_bytes(bytes([data[at + 7]]) + data[at + 4 : at + 7], "big", signed=True)
    back = data[at + size : at + size + _BACK]
    return RawTag(
        at,
        data[at],
        stamp,
        int.from_bytes(data[at + 8 : at + 11], "big"),
        data[at + HEADER_SIZE : at + size],
        int.from_bytes(back, "big") if len(back) == _BACK else None,
    )


class FlvTargets:
    """What was read of each target, so that a run reads it once."""

    def __init__(self) -> None:
        self._kept: dict[str, FlvData] = {}

    def reach(self, target: str) -> None:
        """Read it; raises Unreachable if a URL gives nothing, ValueError for no file, or no FLV."""
        self._kept[target] = read = _fetch(target)
        if not read.data and _is_url(target):
            raise Unreachable("nothing to read")
        if not read.data.startswith(_SIGNATURE) and not read.tags:
            raise ValueError("this is no FLV")

    @contextmanager
    def connect(self, target: str) -> Iterator[FlvData]:
        """Give a case what was read."""
        if target not in self._kept:
            self._kept[target] = _fetch(target)
        yield self._kept[target]


def _is_url(target: str) -> bool:
    return target.startswith(("http://", "https://"))


def _fetch(target: str) -> FlvData:
    if _is_url(target):
        return _from_http(target)
    try:
        with Path(target).open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from None
    return FlvData.read(data[:LARGEST], is_cut=len(data) > LARGEST)


def _from_http(target: str) -> FlvData:
    """Read a file to its end, a stream for some seconds."""
    data, began = bytearray(), time.monotonic()
    try:
        with urlopen(target, timeout=SILENT) as response:
            while time.monotonic() - began < SECONDS and len(data) < LARGEST:
                piece = response.read1(_PIECE)
                if not piece:
                    return FlvData.read(bytes(data), is_cut=False)
                data += piece
    except TimeoutError:
        pass  # a stream that stands still is judged by what has come
    except HTTPError as error:
        raise Unreachable(str(error)) from None
    except OSError as error:  # a URLError has another one within
        inner = getattr(error, "reason", error)
        raise Unreachable(getattr(inner, "strerror", None) or str(inner)) from None
    except (HTTPException, ValueError) as error:
        raise Unreachable(f"no answer by HTTP: {error}") from None
    return FlvData.read(bytes(data), is_cut=True)
