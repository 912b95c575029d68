"""The audio codecs of phones: their names in SDP, in FLV, and in the client's API.

Implements RFC 3551 §6, for the static payload types, RFC 5574 §4.1 for Speex and RFC 7587 §7 for
Opus; the FLV side is FLV 10.1 §E.4.2.1.

Own design: a codec that FLV has passes through unchanged, so both sides need to agree on this
table alone; the others are made by `transcode`.  Numbers above 95 are those that the original
gateway's peers know, and for Opus the one of browsers.
"""

from dataclasses import dataclass
from typing import Final

from rtmplite.flv.audio import SPEEX_HEADER

SPEEX: Final = 11  # SoundFormat: FLV 10.1 §E.4.2.1
ALAW: Final = 7
ULAW: Final = 8
AAC: Final = 10
NO_FORMAT: Final = -1  # of a codec that FLV does not have

DTMF_PAYLOAD_TYPE: Final = 101
X_FLV_PAYLOAD_TYPE: Final = 97


@dataclass(frozen=True, slots=True)
class AudioCodec:
    """One audio format on both sides.

    `name` is the word of the client's API, `reported` what it is called in `accepted`;
    `encoding`, `clock_rate` (ticks a second), `payload_type` and `channels` are for SDP
    (RFC 3551 §6); `sound_format` and `tag_byte` for FLV (FLV 10.1 §E.4.2.1).
    """

    name: str
    reported: str
    encoding: str
    clock_rate: int
    payload_type: int
    sound_format: int
    tag_byte: int
    channels: int = 1

    @property
    def is_aac(self) -> bool:
        """Whether it is AAC, which has a configuration: RFC 3640 §4.1."""
        return self.sound_format == AAC

    @property
    def passes(self) -> bool:
        """Whether FLV has this codec, so that it can pass as it is: FLV 10.1 §E.4.2.1."""
        return self.sound_format != NO_FORMAT

    @property
    def sample_rate(self) -> int:
        """Samples a second, which are twice the ticks of G.722: RFC 3551 §4.5.2 [g722-clock]."""
        return 2 * self.clock_rate if self.encoding == "G722" else self.clock_rate

    @property
    def is_g711(self) -> bool:
        """Whether samples are octets of either law, which a table converts: RFC 3551 §4.5.14."""
        return self.sound_format in (ALAW, ULAW)


# Flash and ffmpeg mark both rates of Speex as 0xB2 and G.711 as 16-bit mono at "5.5 kHz".
# RFC 5574 §4.1.1 [clock-rates], RFC 3551 §4.1 [usual-rates]
WIDEBAND: Final = AudioCodec("wideband", "speex", "speex", 16000, 96, SPEEX, SPEEX_HEADER[0])
NARROWBAND: Final = AudioCodec("narrowband", "speex", "speex", 8000, 98, SPEEX, SPEEX_HEADER[0])
PCMU: Final = AudioCodec("pcmu", "pcmu", "PCMU", 8000, 0, ULAW, 0x82)  # RFC 3551 §4.1 [usual-rates]
PCMA: Final = AudioCodec("pcma", "pcma", "PCMA", 8000, 8, ALAW, 0x72)

# Opus passes to clients that name it; of the others they are told that it is AAC on their side.
OPUS: Final = AudioCodec(
    "opus",
    "opus",
    "opus",
    48000,  # RFC 7587 §7 [clock-and-channels]
    111,
    NO_FORMAT,
    0,
    2,  # RFC 7587 §7 [clock-and-channels]
)
G722: Final = AudioCodec("g722", "aac", "G722", 8000, 9, NO_FORMAT, 0)
L16: Final = AudioCodec("l16", "aac", "L16", 16000, 112, NO_FORMAT, 0)
L16_44: Final = AudioCodec("l16-44", "aac", "L16", 44100, 11, NO_FORMAT, 0)

# RFC 3640 §4.1: a codec for each rate and number of channels; "aac" names all of them
AAC_CODECS: Final = tuple(
    AudioCodec(name, "aac", "mpeg4-generic", rate, 113 + at, AAC, 0xAF, channels)
    for at, (name, rate, channels) in enumerate(
        (
            ("aac", 44100, 2),
            ("aac-48", 48000, 2),
            ("aac-mono", 44100, 1),
            ("aac-48-mono", 48000, 1),
        )
    )
)

_ALL: Final = (WIDEBAND, NARROWBAND, PCMU, PCMA, OPUS, G722, L16, L16_44, *AAC_CODECS)
AUDIO_CODECS: Final = {codec.name: codec for codec in _ALL}
# Names by which a client that speaks Speex asks for a phone of G.711
SPEEX_TO_G711: Final = {"ulaw": PCMU, "alaw": PCMA}


def find(encoding: str, clock_rate: int, channels: int = 1) -> AudioCodec | None:
    """The codec of an rtpmap, whose name ignores case: RFC 8866 §6.6."""
    wanted = clock_rate, channels
    for codec in AUDIO_CODECS.values():
        if codec.encoding.lower() == encoding.lower() and wanted == (
            codec.clock_rate,
            codec.channels,
        ):
            return codec
    return None
