"""From samples, and a phone's payloads, to tags of a codec that players have: AAC or Speex.

Implements FLV 10.1 §E.4.2.1 behind a decoder and an encoder: the sequence header of AAC once, then
one frame a tag.

Own design: AAC of 48 kHz whatever the phone's rate, since all players have that, and a frame of
1024 samples is then 21 ms.
"""

from array import array
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from siprtmp.media.transcode import libspeex
from siprtmp.media.transcode.resampler import as_frame, begun_alone, open_encoder, resampler
from siprtmp.media.transcode.to_samples import payload_decoder
from siprtmp.media.translate.audio_formats import AAC, NARROWBAND, SPEEX, AudioCodec
from siprtmp.media.translate.conversion import AudioToFlv, Tag, UnsuitableError
from siprtmp.media.translate.timebase import RTP_WRAP, wrapped_difference

if TYPE_CHECKING:
    from av.audio.codeccontext import AudioCodecContext

RATE: Final = 48_000
AAC_FORMAT: Final = AAC, RATE  # for the stream's metadata: FLV 10.1 §E.5
FRAME: Final = 1024  # samples of a frame of AAC
BITS: Final = 64_000  # a second, for one channel
HEADER: Final = b"\xaf\x00"  # FLV 10.1 §E.4.2.1 [aac-packet-type] [aac-says-stereo]
FRAME_HEAD: Final = b"\xaf\x01"
MAX_FILLED: Final = 0.2  # s of loss that are filled up
MAX_REPEATS: Final = 3  # of the last packet; silence follows
SPEEX_FRAME: Final = 160  # samples, 20 ms: RFC 5574 §3.3
_SPEEX_HEAD: Final = bytes([NARROWBAND.tag_byte])


class AacTags:
    """Encodes audio of one channel; the rate may change: FLV 10.1 §E.4.2.1."""

    def __init__(self) -> None:
        self._encoder: AudioCodecContext | None = None  # from the first samples on
        self._rate = 0
        self._taken = 0.0  # samples given to the resampler, at 48 kHz
        self._made = 0  # and to the encoder
        self._last_ms = 0

    def encode(self, samples: "array[int]", rate: int, at: int) -> list[Tag]:
        """The tags that are complete with these samples, the first at the time `at` (ms)."""
        tags: list[Tag] = []
        if self._encoder is None:
            self._encoder = open_encoder("aac", "fltp", RATE, {"aac_coder": "fast"}, BITS)
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


class TranscodedToFlv(AudioToFlv):
    """Turns one phone's audio into tags of AAC, which every player has.

    A short loss is filled up with the last packet, fainter each time; after a long silence the time
    of the stream jumps.
    """

    audio_format = AAC_FORMAT

    def __init__(self, codec: AudioCodec) -> None:
        super().__init__(codec)
        self._tags = AacTags()

    def _use(self, codec: AudioCodec) -> None:
        self.codec = codec
        self._decode = payload_decoder(codec)
        self._per_tick = codec.sample_rate // codec.clock_rate
        self._next: int | None = None  # the RTP timestamp behind the last packet
        self._last = array("h")

    @property
    def transcodes(self) -> str:
        return f"{self.codec.name} > aac"

    def convert(self, payload: bytes, timestamp: int, ssrc: int, arrival_ms: int) -> list[Tag]:
        if ssrc != self._ssrc:
            self._restart(ssrc)
            self._next = None
        at = self.clock.milliseconds(timestamp, arrival_ms)
        try:
            samples = self._decode(payload)
        except UnsuitableError:
            return []
        if not samples:
            return []
        filled = self._fill(timestamp)  # RFC 6716 §4.4 [loss-concealment]
        self._next = timestamp + len(samples) // self._per_tick
        self._last = samples
        at -= len(filled) * 1000 // self.codec.sample_rate
        return self._tags.encode(filled + samples, self.codec.sample_rate, at)

    def _fill(self, timestamp: int) -> "array[int]":
        """Audio in place of packets lost before this one, if they were few."""
        if self._next is None:
            return array("h")
        missing = wrapped_difference(timestamp, self._next, RTP_WRAP) * self._per_tick
        if not 0 < missing <= MAX_FILLED * self.codec.sample_rate:
            return array("h")
        out, piece = array("h"), self._last
        for _ in range(MAX_REPEATS):
            piece = array("h", (sample // 2 for sample in piece))
            out += piece
        return out[:missing] + array("h", bytes(2 * max(0, missing - len(out))))


class SpeexToFlv(AudioToFlv):
    """Turns one phone's G.711 into tags of Speex, for clients that speak nothing else.

    Own design: narrowband, since G.711 has no more; the client asks for it by the names `ulaw` and
    `alaw`, as those of the original gateway do.
    """

    audio_format = SPEEX, NARROWBAND.clock_rate

    def __init__(self, codec: AudioCodec) -> None:
        super().__init__(codec)
        self._encode = libspeex.encoder(NARROWBAND.clock_rate)
        self._rest = array("h")

    def _use(self, codec: AudioCodec) -> None:
        self.codec, self._decode = codec, payload_decoder(codec)

    @property
    def transcodes(self) -> str:
        return f"{self.codec.name} > speex"

    def convert(self, payload: bytes, timestamp: int, ssrc: int, arrival_ms: int) -> list[Tag]:
        if ssrc != self._ssrc:
            self._restart(ssrc)
            self._rest = array("h")
        at = self.clock.milliseconds(timestamp, arrival_ms) - len(self._rest) * 1000 // 8000
        samples, tags = self._rest + self._decode(payload), []
        whole = len(samples) - len(samples) % SPEEX_FRAME
        for start in range(0, whole, SPEEX_FRAME):
            frame = self._encode(samples[start : start + SPEEX_FRAME])
            tags.append((at + start // 8, _SPEEX_HEAD + frame))
        self._rest = samples[whole:]
        return tags
