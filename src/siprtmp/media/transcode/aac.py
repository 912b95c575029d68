"""Samples as tags of AAC.

Implements FLV 10.1 §E.4.2.1: the sequence header once, then one frame a tag.

Own design: everything is made 48 kHz, which all players have.
"""

from array import array
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from siprtmp.media.transcode.resampler import as_frame, begun_alone, resampler
from siprtmp.media.translate.audio_formats import AAC
from siprtmp.media.translate.conversion import Tag

if TYPE_CHECKING:
    from av.audio.codeccontext import AudioCodecContext

RATE: Final = 48_000
AAC_FORMAT: Final = AAC, RATE  # for the stream's metadata: FLV 10.1 §E.5
FRAME: Final = 1024  # samples of a frame of AAC
BITS: Final = 64_000  # a second, for one channel
HEADER: Final = b"\xaf\x00"  # FLV 10.1 §E.4.2.1 [aac-packet-type] [aac-says-stereo]
FRAME_HEAD: Final = b"\xaf\x01"


class AacTags:
    """Encodes audio of one channel; the rate may change: FLV 10.1 §E.4.2.1."""

    def __init__(self) -> None:
        self._encoder: AudioCodecContext | None = None  # from the first samples on
        self._rate = 0
        self._taken = 0.0  # samples given to the resampler, at 48 kHz
        self._made = 0  # and to the encoder
        self._last_ms = 0

    def encode(self, samples: "array[int]", rate: int, at: int) -> list[Tag]:
        """The tags that are complete with these samples, the first of which is of time `at` (ms).

        FLV 10.1 §E.4.2.1.
        """
        tags: list[Tag] = []
        if self._encoder is None:
            self._encoder = _open()
            self._encode = begun_alone(self._encoder.encode)
            # FLV 10.1 §E.4.2.2 [audio-specific-config]
            tags.append((at, HEADER + (self._encoder.extradata or b"")))
        if rate != self._rate:
            self._rate = rate
            self._resample = resampler("fltp", RATE, FRAME)
        for piece in self._resample(as_frame(samples, rate)):
            piece.pts, piece.time_base = self._made, Fraction(1, RATE)
            self._made += piece.samples
            for packet in self._encode(piece):
                behind = (packet.pts or 0) - self._taken
                self._last_ms = max(self._last_ms, at + round(behind * 1000 / RATE))
                # FLV 10.1 §E.4.2.2 [raw-frames]
                tags.append((self._last_ms, FRAME_HEAD + bytes(packet)))
        self._taken += len(samples) * RATE / rate
        return tags


def _open() -> "AudioCodecContext":
    import av

    context = av.CodecContext.create("aac", "w")
    assert isinstance(context, av.AudioCodecContext)
    context.sample_rate, context.format, context.layout = RATE, "fltp", "mono"
    context.time_base, context.bit_rate = Fraction(1, RATE), BITS
    context.options, context.thread_count = {"aac_coder": "fast"}, 1
    context.open()
    return context
