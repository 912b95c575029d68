"""The configuration of AAC: what a decoder begins with, and which plain ones packets may have.

Own design: the syntax is that of ISO 14496-3 (AudioSpecificConfig, clause 1.6.2.1), which is not in
the catalogue; FLV 10.1 §E.4.2.1 and RFC 3640 §4.1 both carry it as it is.

    >>> config_for(44100, 2).hex(), is_plain(bytes.fromhex("121056e500"), 44100, 2)
    ('1210', True)
    >>> is_plain(bytes.fromhex("2b8a0800"), 44100, 2)  # with a doubled rate
    False
"""

from typing import Final

from siprtmp.media.translate.audio_formats import AudioCodec

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
