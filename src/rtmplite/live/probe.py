"""Measures a live stream by watching it: tracks, rates, key frames, jitter.

Own design: no text says how to judge a stream.  Each message has a time of arrival in seconds and
its own timestamp in milliseconds; only differences of times are used.

    >>> probe = Probe(0.0)
    >>> for i in range(50):
    ...     frame = b"\\x27\\x01" if i % 25 else b"\\x17\\x01"
    ...     probe.note(TagType.VIDEO, i * 40, frame, i / 25)
    >>> report = probe.report(2.0)
    >>> report["tracks"][0]["codec"], report["tracks"][0]["rate"]
    ('AVC', 25.0)
    >>> report["tracks"][0]["key_frame_interval"]
    1.0
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError
from rtmplite.flv import metadata
from rtmplite.flv.audio import SoundFormat
from rtmplite.flv.audio import is_sequence_header as is_audio_header
from rtmplite.flv.enhanced import four_cc_text
from rtmplite.flv.enhanced_audio import ExAudioTag
from rtmplite.flv.enhanced_video import ExVideoTag
from rtmplite.flv.tag import TagType
from rtmplite.flv.video import CODEC_NAMES, is_key_frame
from rtmplite.flv.video import is_sequence_header as is_video_header
from rtmplite.live.tracks import AUDIO_NAMES, legacy_name

GAIN: Final = 16  # of the jitter's mean: RFC 3550 §6.4.1
WRAP: Final = 1 << 32  # ms: RTMP 1.0 §4
MAX_TRACKS: Final = 64  # more than anybody sends; a stream that names more is not believed

_EXTENDED: Final = 0x80  # of video: E-RTMP v2 §"Enhanced Video"
_HZ: Final = (5512, 11025, 22050, 44100)  # FLV 10.1 §E.4.2.1
_FIXED_HZ: Final[Mapping[int, int]] = {
    SoundFormat.SPEEX: 16000,
    SoundFormat.NELLYMOSER_16_KHZ_MONO: 16000,
    SoundFormat.NELLYMOSER_8_KHZ_MONO: 8000,
    SoundFormat.G711_A_LAW: 8000,
    SoundFormat.G711_MU_LAW: 8000,
    SoundFormat.MP3_8_KHZ: 8000,
}
# Source: the sampling frequencies of AAC's decoder configuration, by their index.
_AAC_HZ: Final = (
    *(96000, 88200, 64000, 48000, 44100, 32000, 24000),
    *(22050, 16000, 12000, 11025, 8000, 7350),
)

Report: TypeAlias = dict[str, "float | list[dict[str, object]] | None"]
_Key: TypeAlias = tuple[int, str, int]  # message type, codec, track id


@dataclass(slots=True)
class Track:
    """The measurements of one track: sizes in bytes, times in ms as they came."""

    kind: str
    codec: str
    track_id: int
    messages: int = 0
    size: int = 0
    first: int = 0
    last: int = 0
    jitter: float = 0.0  # s
    keys: list[int] = field(default_factory=list)
    hz: int | None = None
    channels: int | None = None
    _transit: float | None = None

    def note(self, timestamp: int, size: int, now: float) -> None:
        """Count a message with media: RFC 3550 §6.4.1 for the jitter."""
        if not self.messages:
            self.first = timestamp
        self.messages, self.size, self.last = self.messages + 1, self.size + size, timestamp
        transit = now - timestamp / 1000
        if self._transit is not None:
            self.jitter += (abs(transit - self._transit) - self.jitter) / GAIN
        self._transit = transit

    def report(self) -> dict[str, object]:
        """The figures of the track by name, without the unknown ones."""
        span = (self.last - self.first) / 1000
        per_second = (self.messages - 1) / self.messages / span if span > 0 else 0.0
        intervals = [b - a for a, b in zip(self.keys, self.keys[1:], strict=False)]
        known: dict[str, object] = {
            "kind": self.kind,
            "codec": self.codec,
            "track_id": self.track_id or None,
            "hz": self.hz,
            "channels": self.channels,
            "messages": self.messages,
            "rate": round(self.messages * per_second, 2) if span > 0 else None,
            "kbit_s": round(self.size * per_second * 8 / 1000, 1) if span > 0 else None,
            "jitter_ms": round(self.jitter * 1000, 1),
        }
        if self.keys:
            known["key_frames"] = len(self.keys)
        if intervals:
            known["key_frame_interval"] = round(sum(intervals) / len(intervals) / 1000, 3)
            known["longest_key_frame_interval"] = max(intervals) / 1000
        return {name: value for name, value in known.items() if value is not None}


class Probe:
    """Watches one stream; `now` is when it was asked for."""

    def __init__(self, now: float) -> None:
        self.metadata: dict[str, Value] = {}
        self._asked = now
        self._first: tuple[float, int] | None = None  # arrival and time of the first media
        self._first_key: float | None = None
        self._ahead = 0.0
        self._newest = 0
        self._tracks: dict[_Key, Track] = {}

    @property
    def tracks(self) -> list[Track]:
        """The tracks in order of appearance."""
        return list(self._tracks.values())

    def note(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take a message of type 8, 9 or 18: RTMP 1.0 §7.1.  A broken one is not counted."""
        if type_id == TagType.SCRIPT:
            with suppress(RemoteError):
                self.metadata = metadata.read(payload) or self.metadata
            return
        if not payload:
            return
        time = self._unwrap(timestamp)
        is_audio = type_id == TagType.AUDIO
        is_header = (is_audio_header if is_audio else is_video_header)(payload)
        for codec, track_id, size in (_audio if is_audio else _video)(payload):
            track = self._track(type_id, codec, track_id)
            if track is None:
                continue
            if is_audio:
                _learn(track, payload, is_header)
            if is_header:
                continue
            track.note(time, size, now)
            if not is_audio and is_key_frame(payload):
                track.keys.append(time)
                self._first_key = now if self._first_key is None else self._first_key
        if not is_header:
            self._arrived(time, now)

    def report(self, now: float) -> Report:
        """Give all figures; times in ms unless their name says otherwise.

        `backlog_ms` is how much older the first messages were than the newest: a server that
        begins with an old key frame makes its players lag by that much.
        """
        first, first_key = self._first, self._first_key
        return {
            "seconds": round(now - self._asked, 3),
            "tracks": [track.report() for track in self.tracks],
            "first_message_ms": None if first is None else _ms(first[0] - self._asked),
            "first_key_frame_ms": None if first_key is None else _ms(first_key - self._asked),
            "backlog_ms": _ms(self._ahead),
        }

    def _track(self, type_id: int, codec: str, track_id: int) -> Track | None:
        key = type_id, codec, track_id
        if key not in self._tracks:
            if len(self._tracks) >= MAX_TRACKS:
                return None
            kind = "audio" if type_id == TagType.AUDIO else "video"
            self._tracks[key] = Track(kind, codec, track_id)
        return self._tracks[key]

    def _arrived(self, time: int, now: float) -> None:
        if self._first is None:
            self._first = now, time
        begin, at = self._first
        self._ahead = max(self._ahead, (time - at) / 1000 - (now - begin))

    def _unwrap(self, timestamp: int) -> int:
        """The time nearest to the newest before it: RTMP 1.0 §5.3.1.2 lets it wrap."""
        # RTMP 1.0 §4 [serial-numbers]
        ahead = (timestamp - self._newest + WRAP // 2) % WRAP - WRAP // 2
        self._newest += ahead
        return self._newest


def _audio(payload: bytes) -> list[tuple[str, int, int]]:
    """Codec, track id and size of each part of an audio message: FLV 10.1 §E.4.2.1."""
    if payload[0] >> 4 != SoundFormat.EXTENDED:
        return [(legacy_name(AUDIO_NAMES, payload[0] >> 4), 0, len(payload))]
    try:
        tag = ExAudioTag.parse(payload)
    except RemoteError:
        return []
    return [(four_cc_text(part.four_cc), part.track_id, len(part.data)) for part in tag.tracks]


def _video(payload: bytes) -> list[tuple[str, int, int]]:
    """The same of a video message: FLV 10.1 §E.4.3.1."""
    if not payload[0] & _EXTENDED:
        return [(legacy_name(CODEC_NAMES, payload[0] & 0x0F), 0, len(payload))]
    try:
        tag = ExVideoTag.parse(payload)
    except RemoteError:
        return []
    return [(four_cc_text(part.four_cc), part.track_id, len(part.data)) for part in tag.tracks]


def _learn(track: Track, payload: bytes, is_header: bool) -> None:
    """Rate and channels from the first byte, or from AAC's configuration: FLV 10.1 §E.4.2.1."""
    if track.hz is not None or payload[0] >> 4 == SoundFormat.EXTENDED:
        return
    codec = payload[0] >> 4
    if codec != SoundFormat.AAC:
        track.hz = _FIXED_HZ.get(codec, _HZ[payload[0] >> 2 & 3])
        track.channels = 1 + (payload[0] & 1)
    elif is_header and len(payload) >= 4:
        index = (payload[2] << 8 | payload[3]) >> 7 & 0x0F
        if index < len(_AAC_HZ):
            track.hz, track.channels = _AAC_HZ[index], payload[3] >> 3 & 0x0F or None


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)
