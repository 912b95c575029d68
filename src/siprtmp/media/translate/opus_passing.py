"""Opus as it is, between phones and those who publish and play it by Enhanced RTMP.

Implements E-RTMP v2 §"Enhanced Audio" beside RFC 7587 §4: one Opus packet in a tag, and in an RTP
packet.  Neither side's packets are looked into, except for their length.
"""

from typing import Final

from p2psip.rtp.payload import opus
from p2psip.sdp.opus_parameters import OpusParameters
from rtmplite.errors import RemoteError
from rtmplite.flv.enhanced_audio import AudioFourCc, AudioPacketType, AudioTrack, ExAudioTag
from siprtmp.media.translate.audio_formats import OPUS
from siprtmp.media.translate.conversion import (
    AudioHeader,
    AudioToFlv,
    AudioToRtp,
    Cutting,
    Packet,
    Tag,
    UnsuitableError,
)
from siprtmp.media.translate.rtp_to_flv import Check, Passing
from siprtmp.media.translate.timebase import SampleClock

# What a decoder begins with: version 1, two channels, 6.5 ms of delay, 48 kHz.  It is the header of
# Opus in Ogg, which E-RTMP v2 §"Enhanced Audio" asks for.
HEAD: Final = b"OpusHead\x01\x02\x38\x01\x80\xbb\x00\x00\x00\x00\x00"
PACKET_SECONDS: Final = 0.02  # of most encoders


def is_opus(tag: bytes) -> bool:
    """Whether a tag body is Enhanced RTMP's Opus: E-RTMP v2 §"Enhanced Audio"."""
    try:
        tracks = ExAudioTag.parse(tag).tracks
    except RemoteError:
        return False
    return bool(tracks) and tracks[0].four_cc == AudioFourCc.OPUS


def suits(fmtp: str) -> bool:
    """Whether a phone takes any Opus, by its parameters: RFC 7587 §6.1.

    Departs from RFC 7587 §7.1 [mono-from-a-gateway]: audio of two channels passes to phones that
    would rather have one, which can decode it all the same; to encode it anew costs more.
    """
    theirs = OpusParameters.parse(fmtp)
    # RFC 7587 §7.1 [no-more-bandwidth-than-played] [no-more-bandwidth-from-a-gateway]
    # RFC 7587 §7.1 [no-more-bits-than-said]
    return theirs.bandwidth == "FB" and theirs.maxaveragebitrate is None and not theirs.cbr


class OpusToRtp(AudioToRtp):
    """Passes one publisher's Opus on to a phone: RFC 7587 §4.2."""

    packet_seconds = PACKET_SECONDS

    def __init__(self, header: AudioHeader) -> None:
        self.codec = OPUS
        self._clock, self._header, self._marker = SampleClock(OPUS.clock_rate), header, True

    def convert(self, tag: bytes, timestamp: int) -> list[Packet]:
        try:
            parsed = ExAudioTag.parse(tag)
        except RemoteError as error:
            raise UnsuitableError(str(error)) from None
        if not parsed.tracks or parsed.tracks[0].four_cc != AudioFourCc.OPUS:
            raise UnsuitableError("not Opus")
        if parsed.packet_type != AudioPacketType.CODED_FRAMES:
            self._header.put(tag)
            return []
        payload = parsed.tracks[0].data
        ticks = opus.total_ticks(payload)
        if not ticks:
            raise UnsuitableError("broken Opus")
        clock = self._clock
        if missing := clock.gap(timestamp, 0):
            clock.position += missing
            self._marker = True  # RFC 3551 §4.1 [marker-opens-talkspurt]
        # RFC 7587 §4.2 [one-packet-in-a-payload]
        packet = Packet(clock.position, payload, self._marker)
        clock.position += ticks
        self._marker = False  # RFC 3551 §4.1 [else-no-marker]
        return [packet]

    def cutting(self, tag: bytes) -> Cutting | None:
        head = _tag(AudioPacketType.CODED_FRAMES, b"")
        if self._marker or not tag.startswith(head):
            return None
        return Cutting(head, Check.OPUS, 0, True, 0, self._clock)


class OpusToFlv(AudioToFlv):
    """Turns a phone's Opus into tags, the first behind the header: E-RTMP v2 §"Enhanced Audio"."""

    audio_format: tuple[int, int] = AudioFourCc.OPUS, OPUS.clock_rate

    @property
    def passing(self) -> Passing:
        """How most packets become a tag: E-RTMP v2 §"Enhanced Audio"."""
        return Passing(_tag(AudioPacketType.CODED_FRAMES, b""), Check.OPUS)

    def convert(self, payload: bytes, timestamp: int, ssrc: int, arrival_ms: int) -> list[Tag]:
        if not opus.total_ticks(payload):
            return []
        is_first = self._ssrc is None
        if ssrc != self._ssrc:
            self._restart(ssrc)
        at = self.clock.milliseconds(timestamp, arrival_ms)
        tag = at, opus_tag(payload)
        return [(at, _tag(AudioPacketType.SEQUENCE_START, HEAD)), tag] if is_first else [tag]


def opus_tag(packet: bytes) -> bytes:
    """The tag body of an Opus packet: E-RTMP v2 §"Enhanced Audio"."""
    return _tag(AudioPacketType.CODED_FRAMES, packet)


def _tag(kind: AudioPacketType, data: bytes) -> bytes:
    return bytes(ExAudioTag(kind, (AudioTrack(AudioFourCc.OPUS, data),)))
