"""From a phone's payloads to AAC, which every player has, for codecs that FLV does not have.

Implements FLV 10.1 §E.4.2.1 behind a decoder and an encoder; RTMP time follows RTP time as it does
for `RtpToFlv`.

Own design: AAC of 48 kHz whatever the phone's rate, since a frame of 1024 samples is then 21 ms.
A short loss is filled up with the last packet, fainter each time; after a long silence the time of
the stream jumps.
"""

from array import array
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from siprtmp.media.transcode.decoder import UndecodableError
from siprtmp.media.transcode.payload_decoder import payload_decoder
from siprtmp.media.translate.audio_formats import AAC, AudioCodec
from siprtmp.media.translate.rtp_to_flv import Tag
from siprtmp.media.translate.timebase import RTP_WRAP, MediaClock, wrapped_difference

if TYPE_CHECKING:
    from av.audio.codeccontext import AudioCodecContext

RATE: Final = 48_000
FRAME: Final = 1024  # samples of a frame of AAC
BITS: Final = 64_000  # a second, for one channel
MAX_FILLED: Final = 0.2  # s of loss that are filled up
MAX_REPEATS: Final = 3  # of the last packet; silence follows
HEADER: Final = b"\xaf\x00"  # FLV 10.1 §E.4.2.1 [aac-packet-type]
FRAME_HEAD: Final = b"\xaf\x01"


class TranscodedToFlv:
    """Turns one phone's audio into tags of AAC: FLV 10.1 §E.4.2.1.  Used like `RtpToFlv`."""

    sound = AAC, RATE

    def __init__(self, codec: AudioCodec) -> None:
        self.clock = MediaClock(codec.clock_rate)
        self._ssrc: int | None = None
        self._encoder: AudioCodecContext | None = None  # from the first packet on
        self._taken = 0.0  # samples given to the resampler, at 48 kHz
        self._made = 0  # and to the encoder
        self._last_ms = 0
        self._use(codec)

    @property
    def making(self) -> str:
        """The phone's codec and the players': FLV 10.1 §E.4.2.1."""
        return f"{self.codec.name} > aac"

    def _use(self, codec: AudioCodec) -> None:
        self.codec = codec
        self._decode = payload_decoder(codec)
        self._resampler: Any = None
        self._per_tick = codec.sample_rate // codec.clock_rate
        self._next: int | None = None  # the RTP timestamp behind the last packet
        self._last = array("h")

    def switch(self, codec: AudioCodec) -> None:
        """Follow the phone to another agreed codec: RFC 3264 §5.1 allows that at any time."""
        if codec.clock_rate != self.codec.clock_rate:
            self.clock.restart(codec.clock_rate)
        self._use(codec)

    def convert(self, payload: bytes, timestamp: int, ssrc: int, arrival_ms: int) -> list[Tag]:
        """The tags that are complete with one packet; a packet that makes no sense gives none.

        `timestamp` in ticks, `arrival_ms` of the gateway's clock.  FLV 10.1 §E.4.2.1 for the tags.
        """
        if ssrc != self._ssrc:
            if self._ssrc is not None:
                self.clock.restart(self.codec.clock_rate)
            self._ssrc, self._next = ssrc, None
        at = self.clock.milliseconds(timestamp, arrival_ms)
        try:
            samples = self._decode(payload)
        except UndecodableError:
            return []
        if not samples:
            return []
        filled = self._fill(timestamp)  # RFC 6716 §4.4 [loss-concealment]
        self._next = timestamp + len(samples) // self._per_tick
        self._last = samples
        at -= len(filled) * 1000 // self.codec.sample_rate
        return self._encode(filled + samples, at)

    def _fill(self, timestamp: int) -> "array[int]":
        """Sound in place of packets lost before this one, if they were few."""
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

    def _encode(self, samples: "array[int]", at: int) -> list[Tag]:
        """The frames that are complete with these samples, the first of which is of time `at`."""
        import av

        tags: list[Tag] = []
        if self._encoder is None:
            self._encoder = _aac()
            tags.append((at, HEADER + (self._encoder.extradata or b"")))
        if self._resampler is None:
            self._resampler = av.AudioResampler("fltp", "mono", RATE, frame_size=FRAME)
        frame = av.AudioFrame("s16", "mono", len(samples))
        frame.planes[0].update(samples.tobytes())
        frame.sample_rate = self.codec.sample_rate
        for piece in self._resampler.resample(frame):
            piece.pts, piece.time_base = self._made, Fraction(1, RATE)
            self._made += piece.samples
            for packet in self._encoder.encode(piece):
                behind = (packet.pts or 0) - self._taken
                self._last_ms = max(self._last_ms, at + round(behind * 1000 / RATE))
                tags.append((self._last_ms, FRAME_HEAD + bytes(packet)))
        self._taken += len(samples) * RATE / self.codec.sample_rate
        return tags


def _aac() -> "AudioCodecContext":
    import av

    context = av.CodecContext.create("aac", "w")
    assert isinstance(context, av.AudioCodecContext)
    context.sample_rate, context.format, context.layout = RATE, "fltp", "mono"
    context.time_base, context.bit_rate = Fraction(1, RATE), BITS
    context.options, context.thread_count = {"aac_coder": "fast"}, 1
    context.open()
    return context
