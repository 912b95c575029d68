"""From a phone's payloads to AAC, which every player has, for codecs that FLV does not have.

Implements FLV 10.1 §E.4.2.1 behind a decoder and an encoder; RTMP time follows RTP time as it does
for `RtpToFlv`.

Own design: AAC of 48 kHz whatever the phone's rate, since a frame of 1024 samples is then 21 ms.
A short loss is filled up with the last packet, fainter each time; after a long silence the time of
the stream jumps.
"""

from array import array
from typing import Final

from siprtmp.media.transcode.aac import AAC_FORMAT, AacTags
from siprtmp.media.transcode.payload_decoder import payload_decoder
from siprtmp.media.translate.audio_formats import AudioCodec
from siprtmp.media.translate.conversion import Tag, UnsuitableError
from siprtmp.media.translate.timebase import RTP_WRAP, MediaClock, wrapped_difference

MAX_FILLED: Final = 0.2  # s of loss that are filled up
MAX_REPEATS: Final = 3  # of the last packet; silence follows


class TranscodedToFlv:
    """Turns one phone's audio into tags of AAC: FLV 10.1 §E.4.2.1.  Used like `RtpToFlv`."""

    audio_format = AAC_FORMAT

    def __init__(self, codec: AudioCodec) -> None:
        self.clock = MediaClock(codec.clock_rate)
        self._ssrc: int | None = None
        self._tags = AacTags()
        self._use(codec)

    @property
    def transcodes(self) -> str:
        """The phone's codec and the players': FLV 10.1 §E.4.2.1."""
        return f"{self.codec.name} > aac"

    def _use(self, codec: AudioCodec) -> None:
        self.codec = codec
        self._decode = payload_decoder(codec)
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
