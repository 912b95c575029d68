"""From any FLV audio, or any payload, to samples for a mixer.

Implements RFC 3551 §4.5.14 for tags of G.711: FLV 10.1 §E.4.2.1.

Own design: G.711 of 8 kHz needs tables alone, all else a decoder.
"""

from array import array

from p2psip.rtp.payload import g711
from siprtmp.media.transcode import audio_decoder
from siprtmp.media.transcode.payload_decoder import Decode, payload_decoder
from siprtmp.media.transcode.resampler import as_frame, as_samples, resampler
from siprtmp.media.translate.audio_formats import ALAW, ULAW, AudioCodec
from siprtmp.media.translate.conversion import UnsuitableError


class ToSamples:
    """The samples of one speaker's tags, mono at `rate`: RFC 3551 §4.5.14."""

    def __init__(self, rate: int = g711.CLOCK_RATE) -> None:
        self._rate = rate
        self._decoder: audio_decoder.AudioDecoder | None = None

    def decode(self, tag: bytes) -> "array[int]":
        """The samples of a tag body: FLV 10.1 §E.4.2.1.  None for a header.

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


class PayloadsToSamples:
    """The samples of one sender's payloads, mono at `rate`: RFC 3551 §4.5."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._codec: AudioCodec | None = None
        self._decode: Decode | None = None

    def decode(self, codec: AudioCodec, payload: bytes) -> "array[int]":
        """The samples of a payload.  Raises UnsuitableError.  RFC 3551 §4.5."""
        if codec is not self._codec or self._decode is None:
            self._codec, self._decode = codec, payload_decoder(codec)
            self._resample = resampler("s16", self._rate)
        samples = self._decode(payload)
        if codec.sample_rate == self._rate or not samples:
            return samples
        return as_samples(self._resample(as_frame(samples, codec.sample_rate)))
