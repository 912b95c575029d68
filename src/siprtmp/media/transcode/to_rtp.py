"""From any FLV audio to the payloads of a phone's codec, if that is not the publisher's.

Implements RFC 3551 §4.2 (one packet time a packet) between a decoder and an encoder.

Own design: the time of the packets is counted in samples, as `FlvToRtp` counts it, so a gap in the
publisher's time is a gap in that of RTP, and clocks that drift apart are set right 40 ms at a time.
"""

from array import array
from contextlib import suppress

from siprtmp.media.transcode.audio_decoder import G711_DECODERS, AudioDecoder
from siprtmp.media.transcode.audio_encoder import encoder
from siprtmp.media.translate.audio_formats import AudioCodec
from siprtmp.media.translate.conversion import AudioHeader, AudioToRtp, Packet, UnsuitableError
from siprtmp.media.translate.flv_to_rtp import G711_RATE, PacketCutter, RealRate
from siprtmp.media.translate.timebase import SampleClock


class TranscodedToRtp(AudioToRtp):
    """Makes the audio of one publisher into packets for one phone: RFC 3551 §4.2.

    Packets have up to `ptime` ms (RFC 8866 §6.5); `fmtp` is what the phone says of the codec (RFC
    8866 §6.15); `header` is the publisher's, and kept up to date; `g711_rate` the real rate of its
    G.711, 0 for the usual one.
    """

    def __init__(
        self,
        codec: AudioCodec,
        ptime: int,
        fmtp: str = "",
        header: AudioHeader | None = None,
        g711_rate: int = 0,
    ) -> None:
        self.codec = codec
        self._decoder = decoder = AudioDecoder(codec.sample_rate, g711_rate or G711_RATE)
        self._encoder = made = encoder(codec, ptime, fmtp)
        self._real_rate = real_rate = RealRate(codec.sample_rate)

        def on_surplus(timestamp: int, position: int) -> None:
            # Not a method, or clock and translation would wait for the garbage collector
            if not g711_rate and decoder.codec in G711_DECODERS:
                real_rate.mark(timestamp, position)

        clock = SampleClock(codec.sample_rate, on_surplus)
        per_tick = codec.sample_rate // codec.clock_rate
        self._cutter = PacketCutter(clock, made.samples, array("h", [0]), made.encode, per_tick)
        self._header = header or AudioHeader()
        if self._header.body:
            with suppress(UnsuitableError):  # what follows it says so
                self.convert(self._header.body, 0)

    @property
    def packet_seconds(self) -> float:
        return self._encoder.samples / self._encoder.parts / self.codec.sample_rate

    @property
    def in_doubt(self) -> bool:
        return self._real_rate.in_doubt

    @property
    def transcodes(self) -> str:
        return f"{self._decoder.codec or 'unknown'} > {self.codec.name}"

    def convert(self, tag: bytes, timestamp: int) -> list[Packet]:
        samples = self._decoder.decode(tag)
        if not samples:
            self._header.put(tag)
            return []
        return self._cutter.put(samples, timestamp)

    def flush(self) -> list[Packet]:
        return self._cutter.flush()
