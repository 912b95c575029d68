"""AAC as it is, between publishers or players and peers that have it by RTP: other gateways.

Implements RFC 3640 §3.3.6 beside FLV 10.1 §E.4.2.1: one frame in a tag, and in an RTP packet.

Own design: plain AAC of the usual rates alone, so that either end knows the configuration from the
codec that was agreed on, before the other has begun to send.  Everything else is transcoded.  The
syntax of configurations is that of ISO 14496-3 (AudioSpecificConfig, clause 1.6.2.1), which is not
in the catalogue.

    >>> config_for(44100, 2).hex(), is_plain(bytes.fromhex("121056e500"), 44100, 2)
    ('1210', True)
    >>> is_plain(bytes.fromhex("2b8a0800"), 44100, 2)  # with a doubled rate
    False
"""

from typing import Final

from p2psip.errors import RemoteError as RtpError
from p2psip.rtp.payload.aac import FMTP, FRAME_TICKS, MAX_FRAME_OCTETS, pack_aac, read_aac
from p2psip.sdp.attributes import parameters
from rtmplite.flv.audio import AacPacketType
from siprtmp.media.translate.audio_formats import AAC, AudioCodec
from siprtmp.media.translate.conversion import (
    AudioHeader,
    AudioToFlv,
    AudioToRtp,
    Packet,
    Tag,
    UnsuitableError,
)
from siprtmp.media.translate.flv_to_rtp import OtherRateError
from siprtmp.media.translate.flv_to_video import MAX_OCTETS
from siprtmp.media.translate.timebase import SampleClock

_FIRST = 0xAF  # FLV 10.1 §E.4.2.1: of AAC the byte is always the same
HEADER = bytes((_FIRST, AacPacketType.SEQUENCE_HEADER))
LEVEL = 41  # AAC profile, level 2: two channels of up to 48 kHz
FRAME = bytes((_FIRST, AacPacketType.RAW))
_LOW_COMPLEXITY: Final = 2  # the type of what everybody sends
_DOUBLED: Final = 5  # of a stream whose upper half is told apart, HE-AAC
_RATES: Final = (
    *(96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050),
    *(16000, 12000, 11025, 8000, 7350),
)
_SYNC: Final = 0x2B7  # before an extension


def config_for(rate: int, channels: int) -> bytes:
    """The two octets of plain AAC at a rate of the table."""
    return (_LOW_COMPLEXITY << 11 | _RATES.index(rate) << 7 | channels << 3).to_bytes(2, "big")


def codec_config(codec: AudioCodec) -> bytes:
    """The octets of one of our codecs."""
    return config_for(codec.clock_rate, codec.channels)


def is_plain(config: bytes, rate: int, channels: int) -> bool:
    """Whether a configuration means plain AAC of this rate, frames of 1024 samples."""
    if config[:2] != config_for(rate, channels):
        return False
    bits = int.from_bytes(config[2:5].ljust(3, b"\0"), "big")
    is_doubled = bits >> 13 == _SYNC and bits >> 8 & 0x1F == _DOUBLED and bits >> 7 & 1
    return not is_doubled


def aac_fmtp(codec: AudioCodec) -> str:
    """The parameters of one of our codecs of AAC: RFC 3640 §4.1."""
    return f"{FMTP};profile-level-id={LEVEL};config={codec_config(codec).hex()}"


def sends(codec: AudioCodec, header: bytes) -> bool:
    """Whether a publisher of this header (a tag body) sends one of our codecs of AAC."""
    is_header = header[:1] and header[0] >> 4 == AAC and header[1:2] == HEADER[1:]
    return bool(is_header) and is_plain(header[2:], codec.clock_rate, codec.channels)


def suits(codec: AudioCodec, fmtp: str) -> bool:
    """Whether a peer means what we do by a codec of AAC: RFC 3640 §4.1, `config`."""
    text = parameters(fmtp).get("config", "").strip('"')
    try:
        config = bytes.fromhex(text)
    except ValueError:
        return False
    return not config or is_plain(config, codec.clock_rate, codec.channels)


class AacToRtp(AudioToRtp):
    """Passes one publisher's AAC on: RFC 3640 §3.3.6."""

    def __init__(self, codec: AudioCodec, header: AudioHeader) -> None:
        self.codec = codec
        self._clock, self._header = SampleClock(codec.clock_rate), header

    @property
    def packet_seconds(self) -> float:
        """Those of a frame: RFC 3640 §4.1."""
        return FRAME_TICKS / self.codec.clock_rate

    def convert(self, tag: bytes, timestamp: int) -> list[Packet]:
        """As `AudioToRtp.convert`; a frame that is too long goes in several packets."""
        if len(tag) < 2 or tag[0] >> 4 != AAC:
            raise UnsuitableError("not AAC")
        if tag[1] != AacPacketType.RAW:
            self._header.put(tag)
            if not sends(self.codec, tag):
                raise OtherRateError(0)
            return []
        frame = tag[2:]
        if not 0 < len(frame) <= MAX_FRAME_OCTETS:
            raise UnsuitableError(f"a frame of AAC of {len(frame)} octets")
        clock = self._clock
        clock.position += clock.gap(timestamp, 0)
        ticks = clock.position
        clock.position += FRAME_TICKS
        return [Packet(ticks, payload, last) for payload, last in pack_aac([frame], MAX_OCTETS)]


class AacToFlv(AudioToFlv):
    """Turns a peer's AAC into tags, the first behind the header: FLV 10.1 §E.4.2.1."""

    _announced = False
    _part, _part_at = b"", 0  # of a frame in several packets, and its RTP time

    @property
    def audio_format(self) -> tuple[int, int]:
        return AAC, self.codec.clock_rate

    def convert(self, payload: bytes, timestamp: int, ssrc: int, arrival_ms: int) -> list[Tag]:
        if ssrc != self._ssrc:
            self._restart(ssrc)
            self._part = b""
        frames = self._frames(payload, timestamp)
        if not frames:
            return []
        at = self.clock.milliseconds(timestamp, arrival_ms)
        step = FRAME_TICKS * 1000 / self.codec.clock_rate
        tags = [(at + int(place * step), FRAME + each) for place, each in enumerate(frames)]
        if not self._announced:
            self._announced = True
            tags.insert(0, (at, HEADER + codec_config(self.codec)))
        return tags

    def _frames(self, payload: bytes, timestamp: int) -> list[bytes]:
        """The frames that are whole with this payload: RFC 3640 §3.2.3.1."""
        try:
            frames = read_aac(payload)
        except RtpError:
            return []
        size, data = frames[0]
        if len(data) == size:
            return [frame for _, frame in frames]
        part = data if timestamp != self._part_at else self._part + data
        self._part, self._part_at = part, timestamp
        if len(part) != size:
            return []
        self._part = b""
        return [part]
