"""Reads the fields of enhanced audio and video that a relay needs from a message's raw bytes.

Implements E-RTMP v2 §"Enhanced Video" and, for audio, E-RTMP v2 §"Enhanced Audio".  Nothing here
looks at a FourCC, so what is unknown is relayed as well as any; nothing raises, what is broken
is merely of no importance.  A property test holds all of it against `ExVideoTag` and `ExAudioTag`.
"""

from typing import Final

from rtmplite.flv.enhanced import MAX_MOD_EX, MAX_TRACKS, MOD_EX, MultitrackType

AUDIO_MULTITRACK: Final = 5  # AudioPacketType, kept as a number for the sake of time
VIDEO_MULTITRACK: Final = 6  # VideoPacketType
DEFAULT_TRACK: Final = frozenset((0,))  # what a message without track ids is for

_METADATA, _COMMAND = 4, 5  # a VideoPacketType, a VideoFrameType

_Place = tuple[int, int | None, int]  # packet type, multitrack type, where the rest begins


def audio_packet_type(payload: bytes | memoryview) -> int | None:
    """The packet type of an enhanced audio payload; None if it is broken: §"Enhanced Audio"."""
    kind = payload[0] & 0x0F
    if kind not in (AUDIO_MULTITRACK, MOD_EX):
        return kind
    place = _place(payload, AUDIO_MULTITRACK)
    return place[0] if place else None


def video_packet_type(payload: bytes | memoryview) -> int | None:
    """The packet type of a payload, None for a command or broken: §"Enhanced Video"."""
    kind, is_command = payload[0] & 0x0F, payload[0] >> 4 & 7 == _COMMAND
    if kind in (MOD_EX, VIDEO_MULTITRACK):
        place = _place(payload, VIDEO_MULTITRACK)
        if place is None or (is_command and place[2] == len(payload)):
            return None
        kind = place[0]
    return None if is_command and kind != _METADATA else kind


def track_ids(payload: bytes | memoryview, multitrack: int) -> frozenset[int]:
    """The ids of a payload's tracks up to where it breaks, if `multitrack` announces several."""
    place = _place(payload, multitrack)
    if place is not None and place[1] is None:
        return DEFAULT_TRACK
    return frozenset(_tracks(payload, place))  # §"Enhanced Video" [track-id]


def codecs(payload: bytes | memoryview, multitrack: int) -> dict[int, int]:
    """The FourCC of every track of a payload, by its id, for the tracks of `track_ids`."""
    # §"Enhanced Video" [video-fourccs], E-RTMP v2 §"Enhanced Audio" [audio-fourccs]
    return _tracks(payload, _place(payload, multitrack))


def _tracks(payload: bytes | memoryview, place: _Place | None) -> dict[int, int]:
    if place is None:
        return {}
    _, layout, at = place
    codec, shared = int.from_bytes(payload[at : at + 4], "big"), MultitrackType.MANY_TRACKS
    if layout is None:
        return {0: codec} if at + 4 <= len(payload) else {}
    if layout == MultitrackType.ONE_TRACK:
        return dict.fromkeys(payload[at + 4 : at + 5], codec)
    at += 4 if layout == shared else 0
    found = dict[int, int]()
    for _ in range(MAX_TRACKS):
        if layout != shared:
            codec, at = int.from_bytes(payload[at : at + 4], "big"), at + 4
        if at + 4 > len(payload):
            break
        found[payload[at]] = codec
        at += 4 + int.from_bytes(payload[at + 1 : at + 4], "big")
    return found


def _place(payload: bytes | memoryview, multitrack: int) -> _Place | None:
    """Skip the modifiers, and the byte after a multitrack type; None if it is too short."""
    kind, at = payload[0] & 0x0F, 1
    for _ in range(MAX_MOD_EX):
        if kind != MOD_EX:
            break
        size = payload[at] + 1 if at < len(payload) else 0
        at += 1
        if size == 256:
            size = int.from_bytes(payload[at : at + 2], "big") + 1
            at += 2
        at += size
        if not size or at >= len(payload):
            return None
        kind, at = payload[at] & 0x0F, at + 1
    if kind == MOD_EX:
        return None
    if kind != multitrack:
        return kind, None, at
    if at >= len(payload) or payload[at] & 0x0F in (multitrack, MOD_EX):
        return None
    return payload[at] & 0x0F, payload[at] >> 4, at + 1
