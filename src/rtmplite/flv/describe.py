"""The onMetaData of a whole file: length, size, codecs and key frames.

Implements FLV 10.1 §E.5, and Field §"Keyframes in metadata".  Codecs named by FourCC, and tracks
beyond the first, are told by E-RTMP v2 §"Enhancing onMetaData".

    >>> at, frames = Facts(), [(0, 13), (2000, 5013), (4000, 9013)]
    >>> at.duration, at.times, at.positions = 4040, *map(list, zip(*frames))
    >>> body = fit({"encoder": "x"}, at, 400)
    >>> len(body), metadata.read(body)["keyframes"]
    (400, {'times': [0.0, 2.0, 4.0], 'filepositions': [13.0, 5013.0, 9013.0]})
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Final

from rtmplite.amf.values import Value
from rtmplite.errors import LocalError
from rtmplite.flv import metadata
from rtmplite.flv.audio import AudioTag, SoundFormat
from rtmplite.flv.enhanced import MOD_EX
from rtmplite.flv.enhanced_raw import AUDIO_MULTITRACK, VIDEO_MULTITRACK, codecs
from rtmplite.flv.index import FILLER, HEADERS, KEYFRAMES, MAX_HEADERS, POSITIONS, TIMES
from rtmplite.flv.tag import TagType
from rtmplite.flv.walk import PEEK

_CODEC_IDS: Final = {TagType.AUDIO: "audiocodecid", TagType.VIDEO: "videocodecid"}
_MAPS: Final = {TagType.AUDIO: metadata.AUDIO_TRACKS, TagType.VIDEO: metadata.VIDEO_TRACKS}

# They come first, so that their places are known and they can be told as the file grows.
_GROWING: Final[Mapping[str, Value]] = {"duration": 0.0, "filesize": 0.0}
_PLACES: Final = (18, 37)  # of their names in the body, AMF0 §2.10; then the numbers
_DOUBLE: Final = Struct(">d")  # AMF0 §2.2

_NUMBER: Final = 9  # bytes: AMF0 §2.2

_EXTENDED_AUDIO: Final = SoundFormat.EXTENDED
_EXTENDED_VIDEO: Final = 0x80  # E-RTMP v1 §"Defining Additional Video Codecs"
_HZ: Final = (5512.5, 11025.0, 22050.0, 44100.0)  # FLV 10.1 §E.4.2.1
# What the format byte cannot say of these, it says wrongly: FLV 10.1 §E.4.2.1 [own-rates]
_OWN_RATE: Final[Mapping[int, float]] = {
    SoundFormat.SPEEX: 16000.0,
    SoundFormat.NELLYMOSER_16_KHZ_MONO: 16000.0,
    SoundFormat.NELLYMOSER_8_KHZ_MONO: 8000.0,
    SoundFormat.MP3_8_KHZ: 8000.0,
    SoundFormat.G711_A_LAW: 8000.0,
    SoundFormat.G711_MU_LAW: 8000.0,
}


@dataclass(slots=True)
class Facts:
    """The facts about a file's content; times in ms, positions and sizes in bytes.

    Own design: gathered by whoever writes or reads one.  `first` holds the beginning of the first
    body of each kind, `codecs` the FourCC of each track of each kind that has one; `times` and
    `positions` are the key frames', `headers` the positions of codec headers, None if nobody has
    looked for them.
    """

    kinds: set[int] = field(default_factory=set)
    first: dict[int, bytes] = field(default_factory=dict)
    duration: int = 0
    size: int = 0
    times: Sequence[int] = ()
    positions: Sequence[int] = ()
    headers: Sequence[int] | None = None
    codecs: dict[int, dict[int, int]] = field(default_factory=dict)

    def note(self, tag_type: int, body: bytes) -> None:
        """Note the codecs of a body, or of the beginning of one: §E.5."""
        self.first.setdefault(tag_type, body[:PEEK])
        multitrack = _multitrack(tag_type, body)
        if multitrack is None:
            return
        if tag_type not in self.codecs or body[0] & 0x0F in (multitrack, MOD_EX):
            self.codecs.setdefault(tag_type, {}).update(codecs(body, multitrack))

    def members(self) -> dict[str, Value]:
        """The properties, without key frames and tracks: §E.5."""
        found: dict[str, Value] = {
            "duration": self.duration / 1000,
            "filesize": float(self.size),
            "lasttimestamp": self.duration / 1000,
            "hasAudio": TagType.AUDIO in self.kinds,
            "hasVideo": TagType.VIDEO in self.kinds,
        }
        for tag_type, name in _CODEC_IDS.items():
            if 0 in self.codecs.get(tag_type, ()):
                # E-RTMP v2 §"Enhancing onMetaData" [four-cc-codec-ids] [default-track-on-top]
                found[name] = float(self.codecs[tag_type][0])
        return found | _of_audio(self.first.get(TagType.AUDIO, b"")) | _of_video(self.first)

    def tracks(self, said: Mapping[str, Value]) -> dict[str, Value]:
        """The metadata of the other tracks, from `said` and their codecs: two maps at most."""
        found: dict[str, Value] = {}
        for tag_type, maps in _MAPS.items():
            others = {n: codec for n, codec in self.codecs.get(tag_type, {}).items() if n}
            known: dict[int, dict[str, Value]] = metadata.tracks(said, maps) if others else {}
            for number, codec in sorted(others.items()):
                # E-RTMP v2 §"Multitrack Media Message Guidelines" [every-track-described]
                known[number] = {**known.get(number, {}), _CODEC_IDS[tag_type]: float(codec)}
            if known:  # E-RTMP v2 §"Enhancing onMetaData" [track-maps]
                found[maps] = {str(number): dict(track) for number, track in known.items()}
        return found


def describe(members: Mapping[str, Value], facts: Facts) -> bytes:
    """Write onMetaData with `members`, which `facts` overrides: §E.5."""
    return _build(members, facts, 1, None)


def fit(members: Mapping[str, Value], facts: Facts | None, size: int) -> bytes:
    """Write onMetaData of exactly `size` bytes: every key frame, or every second, fourth, ...

    Without `facts` it says nothing but `members`, and that length and size are 0: who writes a
    file does not know its end.

    Own design: so that room kept at the start of a file is enough however long it gets.  What is
    left is filled by an array of numbers, since ffmpeg 5.1 gives metadata up at a string beyond
    1 kB, and a name as long as the rest.  Raises LocalError if `members` alone need more.
    """
    every = 1
    while (rest := size - len(_build(members, facts, every, 0))) < 0:
        if facts is None or every > len(facts.times):
            raise LocalError(f"metadata does not fit into {size} bytes")
        every *= 2
    return _build(members, facts, every, rest)


def growing(body: bytes, duration: int, size: int) -> list[tuple[int, bytes]]:
    """Update an onMetaData made here: (position, bytes) to write over it; in ms and bytes: §E.5.

    Own design: eight bytes each, so that a file tells its length while it grows, and nobody who
    reads or is killed meanwhile finds half a description.  None if others made it.
    """
    out = []
    for name, at, value in zip(_GROWING, _PLACES, (duration / 1000, float(size)), strict=True):
        before = len(name).to_bytes(2, "big") + name.encode() + b"\0"
        if not body.startswith(before, at):
            return []
        out.append((at + len(before), _DOUBLE.pack(value)))
    return out


def _build(
    members: Mapping[str, Value], facts: Facts | None, every: int, filler: int | None
) -> bytes:
    said = {
        name: value for name, value in members.items() if not name.startswith((FILLER, HEADERS))
    }
    known: dict[str, Value] = {**_GROWING, **said, **_GROWING}
    if facts is not None:
        known |= facts.members() | facts.tracks(known)
        times, positions = facts.times[::every], facts.positions[::every]
        if len(facts.headers or ()) > MAX_HEADERS:  # a player has to search, as without key frames
            known.pop(KEYFRAMES, None)
        elif len(times) > 1:  # ffmpeg 5.1 calls an index of one invalid
            known[KEYFRAMES] = {
                TIMES: [time / 1000 for time in times],
                POSITIONS: [float(position) for position in positions],
            }
        if facts.headers is not None:
            known[HEADERS] = [float(position) for position in facts.headers[: MAX_HEADERS + 1]]
    if filler is not None:
        known[FILLER + "_" * (filler % _NUMBER)] = [0.0] * (filler // _NUMBER)
    return metadata.build(extra=known)


def _multitrack(tag_type: int, body: bytes) -> int | None:
    """The packet type that announces several tracks, None if this body has no FourCC at all."""
    if body and tag_type == TagType.AUDIO and body[0] >> 4 == _EXTENDED_AUDIO:
        return AUDIO_MULTITRACK
    if body and tag_type == TagType.VIDEO and body[0] & _EXTENDED_VIDEO:
        return VIDEO_MULTITRACK
    return None


def _of_audio(peek: bytes) -> dict[str, Value]:
    if not peek or peek[0] >> 4 == _EXTENDED_AUDIO:
        return {}
    tag = AudioTag.parse(peek[:1] + bytes(1))
    known: dict[str, Value] = {"audiocodecid": float(tag.sound_format)}
    if tag.sound_format == SoundFormat.AAC:  # the byte says 44 kHz stereo whatever it is
        return known
    known["audiosamplerate"] = _OWN_RATE.get(tag.sound_format, _HZ[tag.sound_rate])
    known["stereo"] = bool(tag.sound_type)
    return known


def _of_video(first: Mapping[int, bytes]) -> dict[str, Value]:
    peek = first.get(TagType.VIDEO, b"")
    if not peek or peek[0] & _EXTENDED_VIDEO:
        return {}
    return {"videocodecid": float(peek[0] & 0x0F)}
