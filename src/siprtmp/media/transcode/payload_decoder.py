"""The payloads of a phone's codec as samples.

Implements RFC 3551 §4.5 and RFC 7587 §4.2 as far as they say what a decoder is fed with.

Own design: G.711 and L16 are decoded here, G.722, Opus and Speex by PyAV.
"""

from array import array
from collections.abc import Callable
from typing import Final

from p2psip.errors import RemoteError
from p2psip.rtp.payload import g711, l16
from p2psip.rtp.payload.aac import read_aac
from siprtmp.media.transcode.resampler import as_samples, resampler
from siprtmp.media.translate.aac_passing import codec_config
from siprtmp.media.translate.audio_formats import ALAW, G722, OPUS, SPEEX, ULAW, AudioCodec
from siprtmp.media.translate.conversion import UnsuitableError

Decode = Callable[[bytes], "array[int]"]

MAX_SECONDS: Final = 0.5  # of audio that one payload may give


def payload_decoder(codec: AudioCodec) -> Decode:
    """A function from payloads to samples of one channel at `codec.sample_rate`.

    It raises UnsuitableError for what is no payload of the codec.
    """
    if codec.sound_format == ULAW:
        return g711.decode_ulaw
    if codec.sound_format == ALAW:
        return g711.decode_alaw
    if codec is OPUS:
        # RFC 7587 §6.1 [any-bandwidth-is-decoded] [stereo-is-decoded] [fec-is-no-harm]
        # RFC 7587 §7.1 [any-rate-is-decoded] [any-signal-is-decoded]
        return _by_av("libopus", codec)
    if codec is G722:
        return _by_av("g722", codec)
    if codec.is_aac:
        return _aac(codec)
    return _by_av("speex", codec) if codec.sound_format == SPEEX else _l16


def _l16(payload: bytes) -> "array[int]":
    try:
        return l16.decode_l16(payload)
    except RemoteError as error:
        raise UnsuitableError(str(error)) from None


def _aac(codec: AudioCodec) -> Decode:
    """The frames of a payload, but for one that is in several: RFC 3640 §3.3.6."""
    decode_frame = _by_av("aac", codec, codec_config(codec))

    def decode(payload: bytes) -> "array[int]":
        samples = array("h")
        try:
            frames = read_aac(payload)
        except RemoteError as error:
            raise UnsuitableError(str(error)) from None
        for size, frame in frames:
            samples += decode_frame(frame) if len(frame) == size else array("h")
        return samples

    return decode


def _by_av(name: str, codec: AudioCodec, config: bytes = b"") -> Decode:
    import av

    context = av.CodecContext.create(name, "r")
    assert isinstance(context, av.AudioCodecContext)
    context.sample_rate, context.layout, context.thread_count = codec.sample_rate, "mono", 1
    if config:
        context.extradata, context.layout = config, "stereo" if codec.channels > 1 else "mono"
    context.open(strict=False)
    limit = int(MAX_SECONDS * codec.sample_rate)
    resample = resampler("s16", codec.sample_rate)

    def decode(payload: bytes) -> "array[int]":
        samples = array("h")
        try:
            for frame in context.decode(av.Packet(payload)) if payload else ():
                samples += as_samples(resample(frame))
        except (av.FFmpegError, ValueError) as error:
            raise UnsuitableError(f"broken {name}: {error}") from None
        return samples[:limit]

    return decode
