"""From a phone's G.711 to Speex, for clients that speak nothing else.

Implements FLV 10.1 §E.4.2.1 behind an encoder; RTMP time follows RTP time as for `RtpToFlv`.

Own design: narrowband, since G.711 has no more; the client asks for it by the names `ulaw` and
`alaw`, as those of the original gateway do.
"""

from array import array
from typing import Final

from siprtmp.media.transcode import libspeex
from siprtmp.media.transcode.payload_decoder import payload_decoder
from siprtmp.media.translate.audio_formats import NARROWBAND, SPEEX, AudioCodec
from siprtmp.media.translate.conversion import Tag
from siprtmp.media.translate.timebase import MediaClock

FRAME: Final = 160  # samples, 20 ms: RFC 5574 §3.3
_HEAD: Final = bytes([NARROWBAND.tag_byte])


class SpeexToFlv:
    """Turns one phone's G.711 into tags of Speex.  Used like `RtpToFlv`.  FLV 10.1 §E.4.2.1."""

    audio_format = SPEEX, NARROWBAND.clock_rate

    def __init__(self, codec: AudioCodec) -> None:
        self.clock = MediaClock(codec.clock_rate)
        self._encode = libspeex.encoder(NARROWBAND.clock_rate)
        self._rest = array("h")
        self._ssrc: int | None = None
        self.switch(codec)

    @property
    def transcodes(self) -> str:
        """The phone's codec and the client's: FLV 10.1 §E.4.2.1."""
        return f"{self.codec.name} > speex"

    def switch(self, codec: AudioCodec) -> None:
        """Follow the phone to the other law: RFC 3264 §5.1."""
        self.codec, self._decode = codec, payload_decoder(codec)

    def convert(self, payload: bytes, timestamp: int, ssrc: int, arrival_ms: int) -> list[Tag]:
        """One frame a tag; as `RtpToFlv.convert`."""
        if ssrc != self._ssrc:
            if self._ssrc is not None:
                self.clock.restart(self.codec.clock_rate)
            self._ssrc, self._rest = ssrc, array("h")
        at = self.clock.milliseconds(timestamp, arrival_ms) - len(self._rest) * 1000 // 8000
        samples, tags = self._rest + self._decode(payload), []
        whole = len(samples) - len(samples) % FRAME
        for start in range(0, whole, FRAME):
            frame = self._encode(samples[start : start + FRAME])
            tags.append((at + start // 8, _HEAD + frame))
        self._rest = samples[whole:]
        return tags
