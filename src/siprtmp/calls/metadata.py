"""The metadata of a stream that comes from a phone.

Implements FLV 10.1 §E.5: without onMetaData, stock players wait for video that never comes.
"""

from typing import Final

from rtmplite.amf import amf0
from rtmplite.amf.values import EcmaArray, Value
from rtmplite.flv.video import CodecId
from siprtmp.media.translate.video_tag import FOUR_CCS, H264

DATA: Final = 18  # the message type of AMF0 data: RTMP 1.0 §7.1.2


def on_metadata(
    audio: tuple[int, int], video: str = "", size: tuple[int, int] | None = None
) -> bytes:
    """The body of an onMetaData message for audio, and for `video` if there is any: FLV 10.1 §E.5.

    `audio` has SoundFormat and samples a second.
    """
    values: dict[str, Value] = {
        "hasAudio": True,
        "hasVideo": bool(video),
        "audiocodecid": float(audio[0]),
        "audiosamplerate": float(audio[1]),
        "audiosamplesize": 16.0,
        "audiochannels": 1.0,
        "stereo": False,
        "encoder": "siprtmp",
    }
    if video:  # E-RTMP v2 §"Enhancing onMetaData": a FourCC is a codec's number
        values["videocodecid"] = float(CodecId.AVC if video == H264 else FOUR_CCS[video])
    if size is not None:
        values["width"], values["height"] = map(float, size)
    return amf0.encode("onMetaData", EcmaArray(values))
