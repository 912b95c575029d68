"""The metadata of a stream that comes from a phone.

Implements FLV 10.1 §E.5: without onMetaData, stock players wait for video that never comes.
"""

from typing import TYPE_CHECKING, Final

from rtmplite.amf import amf0
from rtmplite.amf.values import EcmaArray, Value
from rtmplite.flv.video import CodecId
from rtmplite.live.streams import LiveStream
from siprtmp.media.transcode.to_flv import TranscodedToFlv
from siprtmp.media.translate.flv_to_h264 import H264
from siprtmp.media.translate.picture_codec import FOUR_CCS

if TYPE_CHECKING:
    from siprtmp.calls.call import AudioCall

DATA: Final = 18  # the message type of AMF0 data: RTMP 1.0 §7.1.2


def on_metadata(
    sound: tuple[int, int], video: str = "", size: tuple[int, int] | None = None
) -> bytes:
    """The body of an onMetaData message for audio, and for `video` if there is any: FLV 10.1 §E.5.

    `sound` has SoundFormat and samples a second.
    """
    values: dict[str, Value] = {
        "hasAudio": True,
        "hasVideo": bool(video),
        "audiocodecid": float(sound[0]),
        "audiosamplerate": float(sound[1]),
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


def announce(remote: LiveStream, call: "AudioCall | None", now: float) -> None:
    """Begin `remote` with the metadata of the call's sound: FLV 10.1 §E.5."""
    remote.begin(now)
    if call is None or call.x_flv.leg is None:  # else the publisher's own will come
        describe(remote, call, now)


def describe(remote: LiveStream, call: "AudioCall | None", now: float) -> None:
    """Write the metadata of a stream, and again when more is known: FLV 10.1 §E.5.

    It always has the time 0, by which ffmpeg tells it from text that is to be shown.
    """
    plan = call.plan if call is not None else None
    if call is not None and plan is not None:
        call.video.described = remote
        sound = call.leg.sound if call.leg is not None else None
        codec = plan.codec
        sound = sound or (
            (codec.sound_format, codec.sample_rate) if codec.passes else TranscodedToFlv.sound
        )
        remote.write(DATA, 0, on_metadata(sound, *pictures(call)), now)


def pictures(call: "AudioCall") -> tuple[str, tuple[int, int] | None]:
    """The codec of the pictures that players get, "" if none, and their size: FLV 10.1 §E.5."""
    video = call.video.leg
    if video is None or video.plan is None or not video.plan.media.receives:
        return "", video.size if video is not None else None
    is_taken = video.codec == H264 or call.user.takes(video.codec)
    return video.codec if is_taken else "", video.size
