"""From any FLV audio to the payloads of a phone's codec, if that is not the publisher's.

Implements RFC 3551 §4.2 (one packet time a packet) between a decoder and an encoder, and RFC 3551
§4.5, RFC 7587 §4.2 and RFC 5574 §3.3: how much audio makes a payload.

Own design: the time of the packets is counted in samples, as `FlvToRtp` counts it.  So a gap in the
publisher's time is a gap in that of RTP, and clocks that drift apart are set right 40 ms at a time.
One packet time of samples is encoded at once, since the encoders of ffmpeg take frames of one size:
G.711 and L16 are made here, G.722 and Opus by PyAV, and Speex by libspeex.
"""

from array import array
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from p2psip.rtp.payload import g711, l16
from p2psip.sdp.opus_parameters import OpusParameters
from siprtmp.media.transcode import libspeex
from siprtmp.media.transcode.audio_decoder import G711_DECODERS, AudioDecoder
from siprtmp.media.transcode.resampler import as_frame, begun_alone, open_encoder
from siprtmp.media.translate.audio_formats import ALAW, G722, OPUS, SPEEX, ULAW, AudioCodec
from siprtmp.media.translate.conversion import AudioHeader, AudioToRtp, Packet, UnsuitableError
from siprtmp.media.translate.flv_to_rtp import G711_RATE, PacketCutter, RealRate
from siprtmp.media.translate.timebase import SampleClock

MIN_MS: Final = 10  # of a packet
MAX_MS: Final = 200  # Source: RFC 3551 §4.2, what a receiver takes
MAX_OCTETS: Final = 1400  # of a payload of L16, to fit a packet of any network
FRAME_MS: Final = 20  # of G.722, as ffmpeg cuts it, and of Speex
OPUS_MS: Final = (10, 20, 40, 60)  # Source: RFC 7587 §4.2
# A second: full-band music of one channel, RFC 7587 §3.1.1 and §3.1.2 [usual-bitrate]
OPUS_BITS: Final = 48_000
COMPLEXITY: Final = "5"  # of 0 to 10: a quarter less time than 10
# What ffmpeg has for the bandwidths of RFC 6716 §2, in Hz
_CUTOFF: Final = {"NB": 4000, "MB": 6000, "WB": 8000, "SWB": 12000, "FB": 20000}


class Encoder:
    """Makes packets of one codec: RFC 3551 §4.5.

    `encode` takes exactly `samples` samples and gives `parts` payloads of one length in time.
    """

    def __init__(
        self, samples: int, encode: Callable[["array[int]"], list[bytes]], parts: int = 1
    ) -> None:
        self.samples, self.encode, self.parts = samples, encode, parts


def encoder(codec: AudioCodec, ptime: int, fmtp: str) -> Encoder:
    """An encoder for a phone that wants packets of up to `ptime` ms: RFC 8866 §6.5.

    `fmtp` is what the phone says of the codec.
    """
    ms = max(MIN_MS, min(ptime, MAX_MS))
    if codec is OPUS:
        return _opus(max(each for each in OPUS_MS if each <= ms), fmtp)
    if codec is G722:
        return _g722(ms)
    if codec.sound_format == SPEEX:
        speex = libspeex.encoder(codec.sample_rate)
        return Encoder(codec.sample_rate * FRAME_MS // 1000, lambda samples: [speex(samples)])
    per_ms = codec.sample_rate // 100 / 10
    if codec.sound_format == ULAW:
        return Encoder(int(ms * per_ms), lambda samples: [g711.encode_ulaw(samples)])
    if codec.sound_format == ALAW:
        return Encoder(int(ms * per_ms), lambda samples: [g711.encode_alaw(samples)])
    ms = min(ms, int(MAX_OCTETS // (20 * per_ms)) * 10)
    # RFC 3551 §4.5.11 [network-order]
    return Encoder(int(ms * per_ms), lambda samples: [l16.encode_l16(samples)])


def can_encode(codec: AudioCodec) -> bool:
    """Whether there is an encoder for this codec: for Speex where libspeex is installed.

    Own design: of AAC none, since whoever takes it by RTP has other codecs of less delay.
    """
    return not codec.is_aac and (codec.sound_format != SPEEX or libspeex.is_available())


def _g722(ms: int) -> Encoder:
    """Frames of 20 ms, several in a packet or one in two packets: RFC 3551 §4.5.2."""
    frames, parts = max(1, ms // FRAME_MS), -(-FRAME_MS // ms)
    frame = _frames("g722", G722.sample_rate, {})
    size = G722.sample_rate * FRAME_MS // 1000

    def encode(samples: "array[int]") -> list[bytes]:
        starts = range(0, len(samples), size)
        octets = b"".join(frame(samples[start : start + size]) for start in starts)
        part = len(octets) // parts
        return [octets[start : start + part] for start in range(0, len(octets), part)]

    return Encoder(size * frames, encode, parts)


def _opus(ms: int, fmtp: str) -> Encoder:
    """One frame in a packet, as the phone's parameters allow: RFC 7587 §6.1."""
    theirs = OpusParameters.parse(fmtp)
    options = {
        "frame_duration": str(ms),
        "compression_level": COMPLEXITY,
        # RFC 7587 §7.1 [no-more-bits-than-said]
        "b": str(min(OPUS_BITS, theirs.maxaveragebitrate or OPUS_BITS)),
        # RFC 7587 §7.1 [no-more-bandwidth-than-played], §6.1 [no-more-bandwidth-than-said]
        "cutoff": str(_CUTOFF[theirs.bandwidth]),
        "vbr": "off" if theirs.cbr else "on",
    }
    frame = _frames("libopus", OPUS.sample_rate, options)
    size = OPUS.sample_rate * ms // 1000
    # RFC 7587 §4.2 [one-packet-in-a-payload]
    return Encoder(size, lambda samples: [frame(samples)])


def _frames(name: str, rate: int, options: dict[str, str]) -> "Callable[[array[int]], bytes]":
    """A function that encodes one frame, all of whose octets come at once."""
    encode = begun_alone(open_encoder(name, "s16", rate, options).encode)
    return lambda samples: b"".join(map(bytes, encode(as_frame(samples, rate))))


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
