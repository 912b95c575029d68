"""From FLV audio tags to RTP payloads, one direction of a call.

Implements RFC 3551 §4.2 (one packet time a packet) and RFC 5574 §3.3 (Speex frames), from
tags as FLV 10.1 §E.4.2.1 lays them out.

Pure: tags in, packets out.  A publisher cuts its audio as it likes (ffmpeg puts 170 to 186
octets of G.711 in a tag, others put several Speex frames); a phone wants one packet time in
each packet, so audio is re-cut here and its time is counted in samples.
"""

from typing import Final

from p2psip.errors import RemoteError
from p2psip.rtp.payload import g711, speex
from p2psip.rtp.payload.speex import one_frame
from siprtmp.media.translate.audio_formats import ALAW, SPEEX, ULAW, AudioCodec
from siprtmp.media.translate.conversion import Packet, UnsuitableError
from siprtmp.media.translate.real_rate import RealRate
from siprtmp.media.translate.timebase import SampleClock

DEFAULT_PTIME: Final = 20  # ms: RFC 3551 §4.2
MAX_PTIME: Final = 200  # ms, what an answerer may ask of us: RFC 3551 §4.2

_HEADER: Final = ord("S")  # how a Speex header begins: see `speex.is_header`


class FlvToRtp:
    """Re-frames the audio of one publisher for one phone.

    RFC 3551 §4.2 for `ptime` (milliseconds); FLV 10.1 §E.4.2.1 for the tags.
    """

    transcodes = ""  # it passes

    def __init__(self, codec: AudioCodec, ptime: int = DEFAULT_PTIME) -> None:
        self.codec = codec
        self._clock = SampleClock(codec.clock_rate)
        self._marker = True
        self._real_rate = RealRate(codec.clock_rate)
        if codec.is_g711:
            self._clock.on_surplus = self._real_rate.mark
            self._size = codec.clock_rate * max(10, min(ptime, MAX_PTIME)) // 1000
            self._silence = g711.ULAW_SILENCE if codec.sound_format == ULAW else g711.ALAW_SILENCE
        self._frame_ticks = round(codec.clock_rate * speex.FRAME_SECONDS)
        self._wideband = codec.clock_rate > 8000
        self._rest = b""  # G.711 short of a packet
        self._is_speex = codec.sound_format == SPEEX

    @property
    def packet_seconds(self) -> float:
        """The seconds of audio in a packet: RFC 3551 §4.2; one frame of Speex: RFC 5574 §3.3."""
        return self._size / self.codec.clock_rate if self.codec.is_g711 else speex.FRAME_SECONDS

    @property
    def in_doubt(self) -> bool:
        """Whether the G.711 may be of another rate: see `RealRate`.  FLV 10.1 §E.4.2.1."""
        return self._real_rate.in_doubt

    def suits(self, sound_format: int) -> bool:
        """Whether tags of this SoundFormat can be sent in this codec: FLV 10.1 §E.4.2.1."""
        return sound_format == self.codec.sound_format or (
            self.codec.is_g711 and sound_format in (ALAW, ULAW)
        )

    def convert(self, tag: bytes, timestamp: int) -> list[Packet]:
        """The packets that are complete with this tag body of RTMP time `timestamp` (ms).

        FLV 10.1 §E.4.2.1.  Raises UnsuitableError for another codec's audio, for what is not a
        Speex frame, and for Speex's header and comment packets, and OtherRateError for G.711 that
        is not of 8 kHz.
        """
        if len(tag) < 2 or not (tag[0] >> 4 == self.codec.sound_format or self.suits(tag[0] >> 4)):
            raise UnsuitableError(f"SoundFormat {tag[0] >> 4 if tag else None}")
        if self._is_speex:
            return self._speex(tag[1:], timestamp)
        audio = tag[1:]
        if tag[0] >> 4 != self.codec.sound_format:
            convert = g711.ulaw_to_alaw if tag[0] >> 4 == ULAW else g711.alaw_to_ulaw
            audio = convert(audio)
        return self._g711(audio, timestamp)

    def flush(self) -> list[Packet]:
        """The last G.711 packet, filled up with silence, when the publisher ends.

        RFC 3551 §4.2: a packet holds a whole packet time.
        """
        if not self._rest:
            return []
        rest, self._rest = self._rest, b""
        return [self._packet(rest.ljust(self._size, bytes([self._silence])), self._size)]

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

    def _g711(self, audio: bytes, timestamp: int) -> list[Packet]:
        out = self._skip(timestamp, len(self._rest))
        audio, size = self._rest + audio, self._size
        whole = len(audio) - len(audio) % size
        self._rest = audio[whole:]
        out += [self._packet(audio[at : at + size], size) for at in range(0, whole, size)]
        return out

    def _skip(self, timestamp: int, pending: int) -> list[Packet]:
        """Skip a gap in the publisher's time; a partial packet before it is filled up and sent."""
        missing = self._clock.gap(timestamp, pending)
        if not missing:
            return []
        if pending and pending + missing <= self._size:  # it ends in the packet it began in
            self._rest += bytes([self._silence]) * missing
            return []
        out = self.flush()
        self._clock.position += missing - (len(out) and self._size - pending)
        self._marker = True  # RFC 3551 §4.1 [marker-opens-talkspurt]
        return out

    def _packet(self, payload: bytes, ticks: int) -> Packet:
        clock = self._clock
        # RFC 3550 §5.1 [clock-is-even]
        packet = Packet(clock.position, payload, self._marker)
        clock.position += ticks
        self._marker = False  # RFC 3551 §4.1 [else-no-marker]
        return packet
