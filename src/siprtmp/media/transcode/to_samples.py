"""A phone's payloads, and any FLV audio, as samples.

Implements RFC 3551 §4.5 and RFC 7587 §4.2 as far as they say what a decoder is fed with, and FLV
10.1 §E.4.2.1 for tags of G.711.

Own design: G.711 and L16 are decoded here, all else by PyAV.
"""

from array import array
from collections.abc import Callable
from typing import Final

from p2psip.errors import RemoteError
from p2psip.rtp.payload import g711, l16
from p2psip.rtp.payload.aac import read_aac
from siprtmp.media.transcode import audio_decoder
from siprtmp.media.transcode.resampler import as_frame, as_samples, open_decoder, resampler
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

    channels = 2 if config and codec.channels > 1 else 1
    context = open_decoder(name, codec.sample_rate, channels, config)
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


class PayloadsToSamples:
    """The samples of one sender's payloads, mono at `rate`."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._codec: AudioCodec | None = None
        self._decode: Decode | None = None

    def decode(self, codec: AudioCodec, payload: bytes) -> "array[int]":
        """The samples of a payload.  Raises UnsuitableError."""
        if codec is not self._codec or self._decode is None:
            self._codec, self._decode = codec, payload_decoder(codec)
            self._resample = resampler("s16", self._rate)
        samples = self._decode(payload)
        if codec.sample_rate == self._rate or not samples:
            return samples
        return as_samples(self._resample(as_frame(samples, codec.sample_rate)))


class ToSamples:
    """The samples of one speaker's tags, mono at `rate`; G.711 of 8 kHz needs tables alone."""

    def __init__(self, rate: int = g711.CLOCK_RATE) -> None:
        self._rate = rate
        self._decoder: audio_decoder.AudioDecoder | None = None

    def decode(self, tag: bytes) -> "array[int]":
        """The samples of a tag body, none for a header.

        Raises UnsuitableError, also for what only a decoder reads that is not installed.
        """
        sound_format = tag[0] >> 4 if tag else ULAW
        if self._rate == g711.CLOCK_RATE:
            if sound_format == ULAW:
                return g711.decode_ulaw(tag[1:])
            if sound_format == ALAW:
                return g711.decode_alaw(tag[1:])
        if self._decoder is None:
            if not audio_decoder.is_available():
                raise UnsuitableError("its codec needs the extra transcode")
            self._decoder = audio_decoder.AudioDecoder(self._rate)
        return self._decoder.decode(tag)
