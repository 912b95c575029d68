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
from siprtmp.media.translate.conversion import AudioHeader, Packet, UnsuitableError
from siprtmp.media.translate.real_rate import G711_RATE, RealRate
from siprtmp.media.translate.timebase import SampleClock


class TranscodedToRtp:
    """Makes the audio of one publisher into packets for one phone: RFC 3551 §4.2.

    It is used like `FlvToRtp`.  `fmtp` is what the phone says of the codec; `header` is the
    publisher's, and kept up to date; `g711_rate` the real rate of its G.711, 0 if not yet known.
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
        self._decoder = AudioDecoder(codec.sample_rate, g711_rate or G711_RATE)
        self._encoder = encoder(codec, ptime, fmtp)
        self._real_rate = RealRate(codec.sample_rate)
        surplus = None if g711_rate else _Surplus(self._decoder, self._real_rate)
        self._clock = SampleClock(codec.sample_rate, surplus)
        self._samples_per_tick = codec.sample_rate // codec.clock_rate
        self._rest = array("h")  # short of a packet
        self._marker = True
        self._header = header or AudioHeader()
        if self._header.body:
            with suppress(UnsuitableError):  # what follows it says so
                self.convert(self._header.body, 0)

    @property
    def packet_seconds(self) -> float:
        """The seconds of audio in a packet: RFC 3551 §4.2."""
        return self._encoder.samples / self._encoder.parts / self.codec.sample_rate

    @property
    def in_doubt(self) -> bool:
        """Whether the publisher's G.711 may be of another rate: see `RealRate`."""
        return self._real_rate.in_doubt

    @property
    def transcodes(self) -> str:
        """The publisher's codec, as ffmpeg names it, and the phone's: FLV 10.1 §E.4.2.1."""
        return f"{self._decoder.codec or 'unknown'} > {self.codec.name}"

    def convert(self, tag: bytes, timestamp: int) -> list[Packet]:
        """The packets that are complete with this tag body of RTMP time `timestamp` (ms).

        FLV 10.1 §E.4.2.1.  None for a header.  Raises UnsuitableError for what cannot be decoded,
        and OtherRateError for G.711 that is not of the rate in use.
        """
        samples = self._decoder.decode(tag)
        if not samples:
            self._header.put(tag)
            return []
        out = self._skip(timestamp)
        rest, size = self._rest + samples, self._encoder.samples
        whole = len(rest) - len(rest) % size
        for start in range(0, whole, size):
            out += self._packets(rest[start : start + size])
        self._rest = rest[whole:]
        return out

    def flush(self) -> list[Packet]:
        """The last packet, filled up with silence, when the publisher ends: RFC 3551 §4.2."""
        if not self._rest:
            return []
        rest, self._rest = self._rest, array("h")
        return self._packets(rest + _silence(self._encoder.samples - len(rest)))

    def _skip(self, timestamp: int) -> list[Packet]:
        """Skip a gap in the publisher's time; a partial packet before it is filled up and sent."""
        pending, size = len(self._rest), self._encoder.samples
        missing = self._clock.gap(timestamp, pending)
        if not missing:
            return []
        if pending and pending + missing <= size:  # it ends in the packet it began in
            self._rest += _silence(missing)
            return []
        out = self.flush()
        self._clock.position += missing - (len(out) and size - pending)
        self._marker = True  # RFC 3551 §4.1 [marker-opens-talkspurt]
        return out

    def _packets(self, samples: "array[int]") -> list[Packet]:
        """One packet time, which is several packets where the encoder cuts a frame."""
        clock, out = self._clock, []
        for payload in self._encoder.encode(samples):
            # RFC 3550 §5.1 [clock-is-even]
            ticks = clock.position // self._samples_per_tick
            out.append(Packet(ticks, payload, self._marker))
            clock.position += len(samples) // self._encoder.parts
            self._marker = False  # RFC 3551 §4.1 [else-no-marker]
        return out


class _Surplus:
    """What a clock says of more audio than time: another rate, if it is G.711.

    Own design: it does not refer to the translation, or both would wait for the garbage collector.
    """

    def __init__(self, decoder: AudioDecoder, real_rate: RealRate) -> None:
        self._decoder, self._real_rate = decoder, real_rate

    def __call__(self, timestamp: int, position: int) -> None:
        if self._decoder.codec in G711_DECODERS:
            self._real_rate.mark(timestamp, position)


def _silence(samples: int) -> "array[int]":
    return array("h", bytes(2 * samples))
