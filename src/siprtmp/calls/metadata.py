"""The metadata of a stream that comes from a phone.

Implements FLV 10.1 §E.5: without onMetaData, stock players wait for video that never comes.
"""

from typing import Final

from rtmplite.amf import amf0
from rtmplite.amf.values import EcmaArray, Value
from rtmplite.flv.video import CodecId
from rtmplite.live.streams import LiveStream
from siprtmp.calls.call import Call
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


def announce(remote: LiveStream, call: Call | None, now: float) -> None:
    """Begin `remote` with the metadata of the phone's media: FLV 10.1 §E.5.

    Through a tunnel those of the publisher at its other end will come.
    """
    remote.begin(now)
    describe(remote, call, now)


def describe(remote: LiveStream, call: Call | None, now: float) -> None:
    """Write the metadata of a stream, and again when more is known: FLV 10.1 §E.5.

    It always has the time 0, by which ffmpeg tells it from text that is to be shown.
    """
    heard = call.format if call is not None else None
    if heard is not None:
        body = on_metadata(heard.audio_format, heard.video, heard.size)
        remote.write(DATA, 0, body, now)


def watched(call: Call, remote: LiveStream, now: float) -> None:
    """Ask the phone for a key frame if those who watch it have none to begin with.

    RFC 5104 §3.5.1; a player that joins gets the frames since the last one, if they are kept.
    """
    if remote.players and remote.starts_at is None:
        call.request_key_frame(now)
