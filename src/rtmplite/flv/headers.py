"""Finds the headers that a decoder needs before audio or video, and the one in force.

Own design: a decoder needs the newest sequence header (FLV 10.1 §E.4.2.1, FLV 10.1 §E.4.3.1) of
every track, where loudspeakers stand (E-RTMP v2 §"Enhanced Audio"), and colors if they are told
(E-RTMP v2 §"Metadata Frame").
"""

from collections.abc import Iterable
from typing import Final, TypeAlias

from rtmplite.flv.audio import SoundFormat, is_empty_header
from rtmplite.flv.audio import is_sequence_header as is_audio_header
from rtmplite.flv.enhanced_raw import (
    AUDIO_MULTITRACK,
    DEFAULT_TRACK,
    VIDEO_MULTITRACK,
    audio_packet_type,
    track_ids,
    video_packet_type,
)
from rtmplite.flv.tag import Tag, TagType
from rtmplite.flv.video import is_sequence_header as is_video_header

HeaderKey: TypeAlias = tuple[int, int, frozenset[int]]
"""Message type, packet type, track ids."""

MAX_KEPT: Final = 2 * 1024 * 1024  # bytes of the headers of one file, far beyond need

# Packet types.  Sequence start, and where loudspeakers stand: E-RTMP v2 §"Enhanced Audio".
_AUDIO_HEADERS: Final = (0, 4)
# Sequence start, colors, another sequence start: E-RTMP v2 §"Enhanced Video".
_VIDEO_HEADERS: Final = (0, 4, 5)
_MPEG2TS_START: Final = 5  # instead of the usual one, so it replaces that
_EXTENDED: Final = 0x80  # of video: E-RTMP v2 §"Enhanced Video"


def is_header(type_id: int, payload: bytes) -> bool:
    """Whether nothing decodes without this message: FLV 10.1 §E.4.2.1, FLV 10.1 §E.4.3.1."""
    if not payload:
        return False
    if type_id == TagType.AUDIO:
        if payload[0] >> 4 == SoundFormat.EXTENDED:  # E-RTMP v2 §"Enhanced Audio"
            return audio_packet_type(payload) in _AUDIO_HEADERS and not is_empty_header(payload)
        return is_audio_header(payload)
    if payload[0] & _EXTENDED:  # E-RTMP v2 §"Enhanced Video"
        return type_id == TagType.VIDEO and video_packet_type(payload) in _VIDEO_HEADERS
    return type_id == TagType.VIDEO and is_video_header(payload)


def header_key(type_id: int, payload: bytes) -> HeaderKey:
    """The key of a header: two with the same key are for the same place in a decoder."""
    first = payload[0] if payload else 0
    if type_id == TagType.AUDIO and first >> 4 == SoundFormat.EXTENDED:
        return type_id, audio_packet_type(payload) or 0, track_ids(payload, AUDIO_MULTITRACK)
    if type_id == TagType.VIDEO and first & _EXTENDED:
        kind = video_packet_type(payload) or 0
        # E-RTMP v2 §"Enhanced Video" [one-sequence-start]
        return type_id, 0 if kind == _MPEG2TS_START else kind, track_ids(payload, VIDEO_MULTITRACK)
    return type_id, 0, DEFAULT_TRACK


def replaced_by(key: HeaderKey, known: Iterable[HeaderKey]) -> list[HeaderKey]:
    """The headers that one replaces: the same for some of its tracks."""
    return [each for each in known if each[:2] == key[:2] and each[2] <= key[2]]


class HeaderPlaces:
    """The headers of a file with their positions, without those that only repeat the last one."""

    def __init__(self) -> None:
        self.found: list[tuple[int, Tag]] = []
        self._newest: dict[HeaderKey, bytes] = {}
        self._kept = 0

    def note(self, position: int, tag: Tag) -> None:
        """Take a tag that is a header."""
        key = header_key(tag.tag_type, tag.data)
        if self._newest.get(key) == tag.data or self._kept > MAX_KEPT:
            return
        for each in replaced_by(key, list(self._newest)):
            del self._newest[each]
        self._newest[key] = tag.data
        self._kept += len(tag.data)
        self.found.append((position, tag))


def in_force(headers: Iterable[Tag]) -> list[Tag]:
    """The headers that the ones in this order leave in force, those of audio first."""
    newest: dict[HeaderKey, Tag] = {}
    for tag in headers:
        key = header_key(tag.tag_type, tag.data)
        for each in replaced_by(key, list(newest)):
            del newest[each]
        newest[key] = tag
    return sorted(newest.values(), key=lambda tag: tag.tag_type)
