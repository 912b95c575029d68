"""From FLV audio tags to RTP payloads, one direction of a call.

Implements RFC 3551 §4.2 (one packet time a packet) and RFC 5574 §3.3 (Speex frames), from
tags as FLV 10.1 §E.4.2.1 lays them out.

Pure: tags in, packets out.  A publisher cuts its audio as it likes (ffmpeg puts 170 to 186
octets of G.711 in a tag, others put several Speex frames); a phone wants one packet time in
each packet, so audio is re-cut here and its time is counted in samples.
"""

from array import array
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from p2psip.errors import RemoteError
from p2psip.rtp.payload import g711, speex
from p2psip.rtp.payload.speex import one_frame
from siprtmp.media.translate.audio_formats import ALAW, SPEEX, ULAW, AudioCodec
from siprtmp.media.translate.conversion import AudioToRtp, Cutting, Packet, UnsuitableError
from siprtmp.media.translate.rtp_to_flv import Check
from siprtmp.media.translate.timebase import SampleClock

DEFAULT_PTIME: Final = 20  # ms: RFC 3551 §4.2
MAX_PTIME: Final = 200  # ms, what an answerer may ask of us: RFC 3551 §4.2

_HEADER: Final = ord("S")  # how a Speex header begins: see `speex.is_header`
G711_RATE: Final = 8000  # Source: FLV 10.1 §E.4.2.1
FACTOR: Final = 1.3  # more audio than time from here on is another rate, not a clock that is fast
MARKS: Final = 3  # steps backwards within a second each, before that is sure
SPAN_MS: Final = 60
# Octets a second that are likely, of one channel and two
RATES: Final = (11025, 16000, 22050, 24000, 32000, 44100, 48000, 64000, 88200, 96000)
MAX_RATE: Final = 192_000

AudioT = TypeVar("AudioT", bytes, "array[int]")


class OtherRateError(UnsuitableError):
    """The publisher's G.711 has `rate` octets a second; 0 for another codec, whose header tells."""

    def __init__(self, rate: int) -> None:
        super().__init__(f"G.711 of {rate} octets a second")
        self.rate = rate


class RealRate:
    """Notices G.711 that is not of 8 kHz, by the time that the publisher itself gives it.

    `clock_rate` is what the clock of samples counts in a second of audio at 8 kHz.

    Own design: ffmpeg publishes u-law of any rate and number of channels under the same flags,
    which would last eleven times too long at 44.1 kHz in stereo.  Its RTMP time tells the real
    rate.  Two channels need no care: octets of both in turn, at the rate of both, are heard as
    their sum.
    """

    def __init__(self, clock_rate: int) -> None:
        self._clock_rate = clock_rate
        self._since: tuple[int, int] | None = None  # RTMP time and position of the first mark
        self._at = self._marks = 0

    @property
    def in_doubt(self) -> bool:
        """Whether more audio than time has passed, and the reason is not decided."""
        return self._since is not None

    def mark(self, timestamp: int, position: int) -> None:
        """Take RTMP time (ms) and position of early audio; OtherRateError once that is the rule."""
        if self._since is None or not 0 <= timestamp - self._at <= 1000:
            self._since, self._at, self._marks = (timestamp, position), timestamp, 0
            return
        self._at, self._marks = timestamp, self._marks + 1
        span = timestamp - self._since[0]
        if self._marks < MARKS or span < SPAN_MS:
            return
        factor = (position - self._since[1]) * 1000 / span / self._clock_rate
        if factor > FACTOR:
            raise OtherRateError(_likely(min(round(G711_RATE * factor), MAX_RATE)))


class PacketCutter(Generic[AudioT]):
    """Cuts a publisher's audio into packets of one time, which is counted in samples.

    `encode` makes the payloads of `size` samples, `silence` is one sample of that, and
    `per_tick` says how many samples a tick of RTP has.
    """

    def __init__(
        self,
        clock: SampleClock,
        size: int,
        silence: AudioT,
        encode: Callable[[AudioT], list[bytes]],
        per_tick: int = 1,
    ) -> None:
        self._clock, self._size, self._per_tick = clock, size, per_tick
        self._encode: Callable[[AudioT], list[bytes]] = encode
        self._silence: AudioT = silence
        self._rest: AudioT = silence[:0]  # what is short of a packet
        self._marker = True

    def put(self, audio: AudioT, timestamp: int) -> list[Packet]:
        """The packets that are complete with the audio of RTMP time `timestamp` (ms)."""
        size, missing = self._size, self._clock.gap(timestamp, len(self._rest))
        out = self._skip(missing) if missing else []
        audio = self._rest + audio
        whole = len(audio) - len(audio) % size
        for at in range(0, whole, size):
            out += self._packets(audio[at : at + size])
        self._rest = audio[whole:]
        return out

    @property
    def is_even(self) -> bool:
        """Whether audio of one packet would be the next packet, and in the midst of talk."""
        return not self._rest and not self._marker

    def flush(self) -> list[Packet]:
        """The last packet, filled up with silence: RFC 3551 §4.2, it holds a packet time."""
        rest, self._rest = self._rest, self._silence[:0]
        return self._packets(rest + self._silence * (self._size - len(rest))) if rest else []

    def _skip(self, missing: int) -> list[Packet]:
        """Skip a gap in the publisher's time; a partial packet before it is filled up and sent."""
        pending, size = len(self._rest), self._size
        if pending and pending + missing <= size:  # it ends in the packet it began in
            self._rest += self._silence * missing
            return []
        out = self.flush()
        self._clock.position += missing - (size - pending if pending else 0)
        self._marker = True  # RFC 3551 §4.1 [marker-opens-talkspurt]
        return out

    def _packets(self, audio: AudioT) -> list[Packet]:
        """One packet time, which is several packets where the encoder cuts a frame."""
        clock, payloads, out = self._clock, self._encode(audio), []
        step = len(audio) // len(payloads)
        for payload in payloads:
            # RFC 3550 §5.1 [clock-is-even]
            out.append(Packet(clock.position // self._per_tick, payload, self._marker))
            clock.position += step
            self._marker = False  # RFC 3551 §4.1 [else-no-marker]
        return out


class FlvToRtp(AudioToRtp):
    """Re-frames the audio of one publisher for one phone, for `ptime` in ms: RFC 3551 §4.2."""

    def __init__(self, codec: AudioCodec, ptime: int = DEFAULT_PTIME) -> None:
        self.codec = codec
        self._clock = SampleClock(codec.clock_rate)
        self._real_rate = RealRate(codec.clock_rate)
        self._size = codec.clock_rate * max(10, min(ptime, MAX_PTIME)) // 1000
        silence = g711.ULAW_SILENCE if codec.sound_format == ULAW else g711.ALAW_SILENCE
        self._g711 = PacketCutter(self._clock, self._size, bytes([silence]), lambda audio: [audio])
        if codec.is_g711:
            self._clock.on_surplus = self._real_rate.mark
        self._frame_ticks = round(codec.clock_rate * speex.FRAME_SECONDS)
        self._wideband, self._marker = codec.clock_rate > 8000, True  # of Speex
        self._is_speex = codec.sound_format == SPEEX

    @property
    def packet_seconds(self) -> float:
        """A packet time, or one frame of Speex: RFC 5574 §3.3."""
        return self._size / self.codec.clock_rate if self.codec.is_g711 else speex.FRAME_SECONDS

    @property
    def in_doubt(self) -> bool:
        return self._real_rate.in_doubt

    def convert(self, tag: bytes, timestamp: int) -> list[Packet]:
        """As `AudioToRtp.convert`: Speex's header and comment packets are no frames either."""
        codec, sound_format = self.codec, tag[0] >> 4 if len(tag) > 1 else None
        if sound_format == codec.sound_format:
            if self._is_speex:
                return self._speex(tag[1:], timestamp)
            return self._g711.put(tag[1:], timestamp)
        if not codec.is_g711 or sound_format not in (ALAW, ULAW):
            raise UnsuitableError(f"SoundFormat {sound_format}")
        convert = g711.ulaw_to_alaw if sound_format == ULAW else g711.alaw_to_ulaw
        return self._g711.put(convert(tag[1:]), timestamp)

    def cutting(self, tag: bytes) -> Cutting | None:
        clock, head = self._clock, tag[:1]
        if tag[0] >> 4 != self.codec.sound_format:
            return None
        if self._is_speex:
            ticks, layers = self._frame_ticks, self._wideband
            return Cutting(head, Check.SPEEX, 0, layers, ticks, clock) if not self._marker else None
        if not self._g711.is_even:
            return None
        return Cutting(head, Check.NONE, self._size, True, self._size, clock)

    def flush(self) -> list[Packet]:
        return self._g711.flush()

    def _speex(self, audio: bytes, timestamp: int) -> list[Packet]:
        narrow_end, has_layer = one_frame(audio)
        # The second half tells that no comment begins here: its length would be beyond the end.
        if (
            narrow_end
            and (self._wideband or not has_layer)
            and any(audio[2:4])
            and audio[0] != _HEADER
        ):
            frames = [audio]
        else:
            frames = self._frames(audio)
        clock = self._clock
        missing = clock.gap(timestamp, 0)
        if missing:
            clock.position += missing
            self._marker = True  # RFC 3551 §4.1 [marker-opens-talkspurt]
        out = []
        for frame in frames:
            # RFC 5574 §3.3 [frames-whole] [packet-within-mtu], RFC 3551 §4.4 [frames-whole]
            # RFC 3550 §5.1 [clock-is-even]
            out.append(Packet(clock.position, frame, self._marker))
            clock.position += self._frame_ticks
            self._marker = False  # RFC 3551 §4.1 [else-no-marker]
        return out

    def _frames(self, audio: bytes) -> list[bytes]:
        if len(audio) >= 8 and speex.is_metadata(audio):
            raise UnsuitableError("a Speex header or comment, not a frame")
        try:
            return speex.split(audio, self._wideband)
        except RemoteError as error:
            raise UnsuitableError(str(error)) from None


def _likely(rate: int) -> int:
    """The likely rate that is next, if it is within 4 %, as milliseconds are coarse."""
    best = min(RATES, key=lambda each: abs(each - rate))
    return best if abs(best - rate) < 0.04 * best else rate
