"""The state that a live stream keeps for late players: metadata and codec headers, no media.

Own design: a decoder needs the newest sequence headers (FLV 10.1 §E.4.2.1, FLV 10.1 §E.4.3.1) of
every track, and colors if they are told (E-RTMP v2 §"Metadata Frame"), a player the newest
onMetaData, and then a frame that stands alone.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from rtmplite.amf import amf0
from rtmplite.errors import RemoteError
from rtmplite.flv import metadata
from rtmplite.flv.audio import SoundFormat
from rtmplite.flv.enhanced import MOD_EX, four_cc_text
from rtmplite.flv.enhanced_raw import (
    AUDIO_MULTITRACK,
    DEFAULT_TRACK,
    VIDEO_MULTITRACK,
    codecs,
    track_ids,
)
from rtmplite.flv.headers import HeaderKey, header_key, is_header, replaced_by
from rtmplite.flv.tag import TagType
from rtmplite.flv.video import CODEC_NAMES, is_key_frame
from rtmplite.limits.memory_budget import Account

AUDIO: Final = int(TagType.AUDIO)
VIDEO: Final = int(TagType.VIDEO)

VIDEO_SILENCE: Final = 2.0  # s without a frame after which audio need not wait for video

# What one stream may make us keep, far beyond need: two headers for each of 256 tracks of both
# media.  Every header counts as so many bytes more than it has.
MAX_KEPT: Final = 2 * 1024 * 1024  # bytes
KEEPING: Final = 1024  # bytes

_CLEAR_DATA_FRAME: Final = amf0.encode("@clearDataFrame")
_ON_META_DATA: Final = amf0.encode("onMetaData")
_METADATA_KEY: Final[HeaderKey] = (TagType.SCRIPT, 0, DEFAULT_TRACK)

_OPENING: Final = (int(TagType.SCRIPT), int(TagType.AUDIO), int(TagType.VIDEO))

PEEK: Final = 16  # bytes of a message that name the codec of its first track

AUDIO_NAMES: Final = {each.value: each.name for each in SoundFormat}
_EXTENDED: Final = 0x80  # of video: E-RTMP v2 §"Enhanced Video"


def codec_names(type_id: int, payload: bytes) -> list[str]:
    """The codecs of an audio or video message, or of its beginning, in the order of its tracks.

    FLV 10.1 §E.4.2.1 and §E.4.3.1 number them, E-RTMP v2 §"Enhanced Audio" and §"Enhanced Video"
    name them.

        >>> codec_names(9, b"\\x17\\x00"), codec_names(8, b"\\x90Opus"), codec_names(18, b"\\x02")
        (['AVC'], ['Opus'], [])
    """
    if not payload or type_id not in (TagType.AUDIO, TagType.VIDEO):
        return []
    is_audio = type_id == TagType.AUDIO
    if is_audio and payload[0] >> 4 != SoundFormat.EXTENDED:
        return [legacy_name(AUDIO_NAMES, payload[0] >> 4)]
    if not is_audio and not payload[0] & _EXTENDED:
        return [legacy_name(CODEC_NAMES, payload[0] & 0x0F)]
    found = codecs(payload, AUDIO_MULTITRACK if is_audio else VIDEO_MULTITRACK)
    return [four_cc_text(each) for each in found.values()]


def legacy_name(names: Mapping[int, str], number: int) -> str:
    """The name of a codec that has a number in FLV 10.1 §E.4.2.1 or §E.4.3.1."""
    return names.get(number, f"codec {number}")


class Weight(Enum):
    """The use of a message to a player that lacks the ones before it."""

    NOTHING = 0  # meant for the server alone
    ESSENTIAL = 1  # nothing plays without it: sent to waiting players as well
    START = 2  # a good place to begin
    PLAIN = 3  # of no use without the ones before, where there is video


_PLAIN, _ESSENTIAL, _NOTHING = Weight.PLAIN, Weight.ESSENTIAL, Weight.NOTHING


class Tracks:
    """The media of one publication, without its players.

    `timestamp` is the newest, in ms; `begun` is whether there was anything but what `opening` has;
    `kinds` are the message types seen; `has_switched` is whether the last header replaced another
    one of a decoder.  What is kept is paid from `account`, if there is one.
    """

    def __init__(self, account: Account | None = None) -> None:
        self._account = account
        self.timestamp, self.begun, self.has_switched = 0, False, False
        self.kinds: set[int] = set()
        self._first: dict[int, bytes] = {}  # the beginning of the first message of each kind
        self._newest: dict[HeaderKey, bytes] = {}  # of what is essential, in order of arrival
        self._kept = 0  # bytes, as MAX_KEPT counts
        self._main = 0  # the track at whose key frames one can begin
        self._video_at: float | None = None

    def note(
        self, type_id: int, timestamp: int, payload: bytes, now: float
    ) -> tuple[Weight, bytes]:
        """Weigh one message, keep it if late players need it, and give the payload to send.

        `type_id` is 8, 9 or 18; `payload` is an FLV tag body (FLV 10.1 §E.4.1).  RemoteError if
        the account cannot pay for it.
        """
        before, self.timestamp = self.timestamp, timestamp
        if type_id not in self.kinds:
            self.kinds.add(type_id)
            self._first[type_id] = payload[:PEEK]
        if type_id == AUDIO:
            weight = _AUDIO_WEIGHTS.get(payload[0]) if payload else _PLAIN
            if weight is None:
                weight = _weigh_audio(payload)
        elif type_id == VIDEO:
            weight = self._weigh_video(payload, now)
        else:
            weight, payload = self._unwrap(payload)
            self.timestamp = before if weight is _ESSENTIAL else timestamp  # metadata has time 0
        if weight is _ESSENTIAL:
            self._keep(type_id, payload)
        elif weight is not _NOTHING:
            self.begun = True
        return weight, payload

    def has_video(self, now: float) -> bool:
        """Whether video is coming, as opposed to a camera that was switched off.

        `now` is in seconds.
        """
        return self._video_at is not None and now - self._video_at < VIDEO_SILENCE

    def opening(self) -> list[tuple[int, bytes]]:
        """Type and payload of the messages that a player gets first, metadata before headers.

        The colors before any frame, and all as it came, so that a player has them for the first
        frame.
        """
        kept = [(type_id, payload) for (type_id, _, _), payload in self._newest.items()]
        # E-RTMP v2 §"Metadata Frame" [metadata-first] [in-time], E-RTMP v1 §"Metadata Frame"
        # [metadata-first], Field §"Beginnings of streams" [metadata-first] [headers-first]
        return sorted(kept, key=lambda each: _OPENING.index(each[0]))

    def can_begin(self, weight: Weight, now: float) -> bool:
        """Whether a player may start with a message of that weight, or go over to another stream.

        Own design: at a key frame, and anywhere while there is no video.
        """
        if weight is _PLAIN:
            return not self.has_video(now)
        return weight is Weight.START  # Field §"Beginnings of streams" [key-frame-first]

    @property
    def codecs(self) -> list[str]:
        """The codecs of the first messages and of all kept headers, each named once."""
        seen = [*self._first.items(), *((key[0], header) for key, header in self._newest.items())]
        names = [name for type_id, payload in seen for name in codec_names(type_id, payload)]
        return list(dict.fromkeys(names))

    def _unwrap(self, payload: bytes) -> tuple[Weight, bytes]:
        if payload.startswith(_CLEAR_DATA_FRAME):
            self._forget(_METADATA_KEY)
            return Weight.NOTHING, payload
        payload = metadata.unwrapped(payload)  # players of all kinds want it so
        if not payload.startswith(_ON_META_DATA):
            return Weight.PLAIN, payload
        payload = metadata.in_amf0(payload)
        if _METADATA_KEY in self._newest and not _is_readable(payload):
            return Weight.PLAIN, payload  # who comes late is better served with the one before
        return Weight.ESSENTIAL, payload

    def _weigh_video(self, payload: bytes, now: float) -> Weight:
        weight = _VIDEO_WEIGHTS.get(payload[0]) if payload and self._main == 0 else None
        if weight is None:
            weight = _weigh_video(payload)
            if payload and payload[0] & 0x80 and not self._is_main(payload, now):
                return Weight.ESSENTIAL if weight is Weight.ESSENTIAL else Weight.PLAIN
        self._video_at = now
        return weight

    def _is_main(self, payload: bytes, now: float) -> bool:
        """Whether the main track is among those of a message.

        Own design: that is the lowest one of those that have not fallen silent, so that track 0 is
        the default.  Nothing else depends on a number.
        """
        ids = track_ids(payload, VIDEO_MULTITRACK)
        # E-RTMP v2 §"Multitrack Media Message Guidelines" [track-0-is-default]
        if ids and (min(ids) < self._main or not self.has_video(now)):
            self._main = min(ids)
        # E-RTMP v2 §"Multitrack Media Message Guidelines" [no-guess-by-id]
        return self._main in ids

    def _keep(self, type_id: int, payload: bytes) -> None:
        """Keep a header, and forget those it replaces: the same for some of its tracks."""
        key = header_key(type_id, payload)
        # For colors E-RTMP v2 §"Metadata Frame" [replaces], E-RTMP v1 §"Metadata Frame" [replaces].
        replaced = replaced_by(key, self._newest)
        known = [self._newest[each] for each in replaced]
        self.has_switched = type_id != TagType.SCRIPT and any(each != payload for each in known)
        for each in replaced:
            self._forget(each)
        if self._account is not None:
            self._account.take(len(payload) + KEEPING)
        self._newest[key] = payload
        self._kept += len(payload) + KEEPING
        while self._kept > MAX_KEPT:
            self._forget(next(iter(self._newest)))

    def _forget(self, key: HeaderKey) -> None:
        if key in self._newest:
            size = len(self._newest.pop(key)) + KEEPING
            self._kept -= size
            if self._account is not None:
                self._account.give(size)


def _is_readable(payload: bytes) -> bool:
    """Whether a description can be read: FLV 10.1 §E.5."""
    try:
        return metadata.read(payload) is not None
    except RemoteError:
        return False


def _weigh_audio(payload: bytes) -> Weight:
    return Weight.ESSENTIAL if is_header(AUDIO, payload) else Weight.PLAIN


def _weigh_video(payload: bytes) -> Weight:
    if is_header(VIDEO, payload):
        return Weight.ESSENTIAL
    return Weight.START if is_key_frame(payload) else Weight.PLAIN


# Weights by the first byte, so that most messages cost one look: for audio that is not AAC, and
# FourCC packets without modifiers and track ids; a header of audio may be empty.
_AUDIO_WEIGHTS: Final[Mapping[int, Weight]] = {
    first: _weigh_audio(bytes((first, 0)))
    for first in range(256)
    if first >> 4 != SoundFormat.AAC and first not in (0x90, 0x90 | AUDIO_MULTITRACK, 0x90 | MOD_EX)
}
_VIDEO_WEIGHTS: Final[Mapping[int, Weight]] = {
    first: _weigh_video(bytes((first, 0)))
    for first in range(0x80, 0x100)
    if first & 0x0F not in (VIDEO_MULTITRACK, MOD_EX)
}
