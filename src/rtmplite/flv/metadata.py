"""onMetaData: what a stream says about itself before the first frame.

Implements FLV 10.1 §E.5, and FLV 10.1 §E.4.4.1 for what holds it.

    >>> read(build(audio_codec_id=11, audio_sample_rate=16000, stereo=False))
    EcmaArray({'audiocodecid': 11.0, 'audiosamplerate': 16000.0, 'stereo': False})
"""

from collections.abc import Mapping
from typing import Final

from rtmplite.amf import amf0
from rtmplite.amf.values import EcmaArray, Value
from rtmplite.errors import RemoteError

ON_METADATA: Final = "onMetaData"
SET_DATA_FRAME: Final = "@setDataFrame"  # what publishers put first: Field §"@setDataFrame"

# Source: §E.5, by the name of each argument of `build`.
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
    extra: Mapping[str, Value] | None = None,
) -> bytes:
    """Write the body of the script tag, or data message, that describes a stream: §E.5.

    Seconds, pixels, frames a second, kbit/s, Hz and bits; what is None is left out.
    """
    given = locals()
    members = {name: given[key] for key, name in _NAMES.items() if given[key] is not None}
    return amf0.encode(ON_METADATA, EcmaArray(members | dict(extra or {})))


def read(payload: bytes | memoryview) -> dict[str, Value] | None:
    """Find the description in a script tag or data message: §E.5.

    Takes it with or without the publisher's wrapper, and as array or object, as encoders differ
    (Field §"@setDataFrame").  None if the payload says something else.  Raises RemoteError for
    broken AMF.
    """
    values = amf0.decode(payload)
    if values[:1] == [SET_DATA_FRAME]:
        del values[0]
    match values:
        case [str(name), dict(members), *_] if name == ON_METADATA:
            return members
        case [str(name), *_] if name == ON_METADATA:
            raise RemoteError("onMetaData without properties")
        case _:
            return None
