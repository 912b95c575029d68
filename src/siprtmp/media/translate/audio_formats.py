"""The audio codecs both worlds have: their names in SDP, in FLV, and in the client's API.

Implements RFC 3551 §6, for the static payload types, and RFC 5574 §4.1 for Speex; the FLV
side is FLV 10.1 §E.4.2.1.

Own design: a codec passes through unchanged, so both sides need to agree on this table alone.
Numbers above 95 are those that the original gateway's peers know.
"""

from dataclasses import dataclass
from typing import Final

SPEEX: Final = 11  # SoundFormat: FLV 10.1 §E.4.2.1
ALAW: Final = 7
ULAW: Final = 8

DTMF_PAYLOAD_TYPE: Final = 101
X_FLV_PAYLOAD_TYPE: Final = 97


@dataclass(frozen=True, slots=True)
class AudioCodec:
    """One audio format on both sides.

    `name` is the word of the client's API, `reported` what it is called in `accepted`;
    `encoding`, `clock_rate` (ticks and samples a second) and `payload_type` are for SDP
    (RFC 3551 §6); `sound_format` and `tag_byte` for FLV (FLV 10.1 §E.4.2.1).
    """

    name: str
    reported: str
    encoding: str
    clock_rate: int
    payload_type: int
    sound_format: int
    tag_byte: int

    @property
    def is_g711(self) -> bool:
        """Whether samples are octets of either law, which a table converts: RFC 3551 §4.5.14."""
        return self.sound_format in (ALAW, ULAW)


# Flash and ffmpeg mark both rates of Speex as 0xB2 and G.711 as 16-bit mono at "5.5 kHz".
# RFC 5574 §4.1.1 [clock-rates], RFC 3551 §4.1 [usual-rates]
WIDEBAND: Final = AudioCodec("wideband", "speex", "speex", 16000, 96, SPEEX, 0xB2)
NARROWBAND: Final = AudioCodec("narrowband", "speex", "speex", 8000, 98, SPEEX, 0xB2)
PCMU: Final = AudioCodec("pcmu", "pcmu", "PCMU", 8000, 0, ULAW, 0x82)  # RFC 3551 §4.1 [usual-rates]
PCMA: Final = AudioCodec("pcma", "pcma", "PCMA", 8000, 8, ALAW, 0x72)

AUDIO_CODECS: Final = {codec.name: codec for codec in (WIDEBAND, NARROWBAND, PCMU, PCMA)}


def find(encoding: str, clock_rate: int) -> AudioCodec | None:
    """The codec of an rtpmap, whose name ignores case: RFC 8866 §6.6."""
    for codec in AUDIO_CODECS.values():
        if codec.encoding.lower() == encoding.lower() and codec.clock_rate == clock_rate:
            return codec
    return None
