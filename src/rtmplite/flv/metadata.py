"""onMetaData: the description of a stream, sent before the first frame.

Implements FLV 10.1 §E.5, and FLV 10.1 §E.4.4.1 for what holds it.

    >>> read(build(audio_codec_id=11, audio_sample_rate=16000, stereo=False))
    EcmaArray({'audiocodecid': 11.0, 'audiosamplerate': 16000.0, 'stereo': False})

A codec named by FourCC has that as its number, and tracks beyond the first have maps of their own:
E-RTMP v2 §"Enhancing onMetaData".

Not done: E-RTMP v2 §"Multitrack Media Message Guidelines" [choose-by-metadata]: nothing here
chooses a track, whoever plays a stream gets all of them and what is said of them.

Not done: E-RTMP v2 §"SCRIPTDATA Multitrack Parameter Handling" [track-id-argument]: no method that
we call or answer is about one track.
"""

from collections.abc import Mapping
from typing import Final

from rtmplite.amf import amf0
from rtmplite.amf.values import EcmaArray, Value
from rtmplite.errors import LocalError, RemoteError

ON_METADATA: Final = "onMetaData"
SET_DATA_FRAME: Final = "@setDataFrame"  # what publishers put first: Field §"@setDataFrame"

# Source: E-RTMP v2 §"Enhancing onMetaData".
AUDIO_TRACKS: Final = "audioTrackIdInfoMap"
VIDEO_TRACKS: Final = "videoTrackIdInfoMap"

_WRAPPER: Final = amf0.encode(SET_DATA_FRAME)
_AMF3_FOLLOWS: Final = amf0.encode(ON_METADATA) + bytes((amf0.AVMPLUS,))
_TRACK_IDS: Final = frozenset(map(str, range(256)))

# Source: §E.5 [properties], by the name of each argument of `build`.
_NAMES: Final[Mapping[str, str]] = {
    "duration": "duration",
    "width": "width",
    "height": "height",
    "frame_rate": "framerate",
    "video_codec_id": "videocodecid",
    "video_data_rate": "videodatarate",
    "audio_codec_id": "audiocodecid",
    "audio_data_rate": "audiodatarate",
    "audio_sample_rate": "audiosamplerate",
    "audio_sample_size": "audiosamplesize",
    "stereo": "stereo",
}


def build(
    *,
    duration: float | None = None,
    width: float | None = None,
    height: float | None = None,
    frame_rate: float | None = None,
    video_codec_id: int | None = None,
    video_data_rate: float | None = None,
    audio_codec_id: int | None = None,
    audio_data_rate: float | None = None,
    audio_sample_rate: float | None = None,
    audio_sample_size: float | None = None,
    stereo: bool | None = None,
    audio_tracks: Mapping[int, Mapping[str, Value]] | None = None,
    video_tracks: Mapping[int, Mapping[str, Value]] | None = None,
    extra: Mapping[str, Value] | None = None,
) -> bytes:
    """Write the body of the script tag, or data message, that describes a stream: §E.5.

    Seconds, pixels, frames a second, kbit/s, Hz and bits; what is None is left out.  A codec id
    may be a FourCC (E-RTMP v2 §"Enhancing onMetaData").  The tracks, from 1 on, have members by the
    names of the wire.  It is one call with one array.
    """
    given = locals()
    # E-RTMP v2 §"Enhancing onMetaData" [four-cc-codec-ids], E-RTMP v1 §"Enhancing onMetaData"
    # [four-cc-codec-ids]
    members = {name: given[key] for key, name in _NAMES.items() if given[key] is not None}
    for name, maps in ((AUDIO_TRACKS, audio_tracks), (VIDEO_TRACKS, video_tracks)):
        if maps:
            # E-RTMP v2 §"Enhancing onMetaData" [track-maps]
            members[name] = {str(number): dict(each) for number, each in maps.items()}
    # §E.4.4.1 [name-and-value], §E.5 [on-metadata], E-RTMP v2 §"Enhancing onMetaData"
    # [on-meta-data-array], E-RTMP v1 §"Enhancing onMetaData" [on-meta-data-tag]
    return amf0.encode(ON_METADATA, EcmaArray(members | dict(extra or {})))


def read(payload: bytes | memoryview) -> dict[str, Value] | None:
    """Find the description in a script tag or data message: §E.5.

    Takes it with or without the publisher's wrapper, and as array or object, as encoders differ
    (Field §"@setDataFrame", E-RTMP v2 §"Conventions").  None if the payload says something else.
    Raises RemoteError for broken AMF.
    """
    values = amf0.decode(payload)
    if values[:1] == [SET_DATA_FRAME]:
        del values[0]
    match values:
        case [str(name), dict(members), *_] if name == ON_METADATA:
            return members  # E-RTMP v2 §"Conventions" [array-or-object]
        case [str(name), *_] if name == ON_METADATA:
            raise RemoteError("onMetaData without properties")
        case _:
            return None


def wrapped(payload: bytes) -> bytes:
    """Wrap onMetaData as a publisher sends it, for the server to keep: Field §"@setDataFrame"."""
    return _WRAPPER + payload


def unwrapped(payload: bytes) -> bytes:
    """Remove a publisher's wrapper, if there is one, as for a player: Field §"@setDataFrame"."""
    # Field §"@setDataFrame" [unwrapped]
    return payload.removeprefix(_WRAPPER)


def in_amf0(payload: bytes) -> bytes:
    """Rewrite a description from AMF3, which files and ffmpeg lack, in AMF0: §E.4.4.1."""
    if not payload.startswith(_AMF3_FOLLOWS):
        return payload
    try:
        return build(extra=read(payload))
    except (RemoteError, LocalError):
        return payload


def tracks(members: Mapping[str, Value], name: str) -> dict[int, dict[str, Value]]:
    """Give the members of each track beyond the first, by its id; `name` is that of the map.

    E-RTMP v2 §"Enhancing onMetaData".  What a map omits is as in `members`, for the first track.
    Entries without a track id or a description are left out.
    """
    maps = members.get(name)
    if not isinstance(maps, dict):
        return {}
    # E-RTMP v2 §"Enhancing onMetaData" [track-maps]
    return {
        int(number): dict(described)
        for number, described in maps.items()
        if number in _TRACK_IDS and isinstance(described, dict)
    }
