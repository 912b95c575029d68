"""Audio tags: the first byte has codec, rate, bits and channels, AAC needs a second one.

Implements FLV 10.1 §E.4.2.1.  A media path that never looks deeper has `is_sequence_header`,
which works on the raw payload.

    >>> AudioTag.parse(bytes.fromhex("b2 3689"))
    AudioTag(sound_format=11, sound_rate=0, sound_size=1, sound_type=0, aac_packet_type=None, \
data=b'6\\x89')
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Self

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv.enhanced_raw import audio_packet_type


class SoundFormat(IntEnum):
    """The codecs: §E.4.2.1 [sound-formats]."""

    LINEAR_PCM_PLATFORM_ENDIAN = 0
    ADPCM = 1
    MP3 = 2
    LINEAR_PCM_LITTLE_ENDIAN = 3
    NELLYMOSER_16_KHZ_MONO = 4
    NELLYMOSER_8_KHZ_MONO = 5
    NELLYMOSER = 6
    G711_A_LAW = 7
    G711_MU_LAW = 8
    EXTENDED = 9  # reserved there; a FourCC follows: E-RTMP v2 §"Enhanced Audio"
    AAC = 10
    SPEEX = 11
    MP3_8_KHZ = 14
    DEVICE_SPECIFIC = 15


class SoundRate(IntEnum):
    """The sampling rates that two bits can name: §E.4.2.1 [sound-rates]."""

    KHZ_5_5 = 0
    KHZ_11 = 1
    KHZ_22 = 2
    KHZ_44 = 3


class SoundSize(IntEnum):
    """Bits a sample, of no meaning for compressed formats: §E.4.2.1 [sound-sizes]."""

    BITS_8 = 0
    BITS_16 = 1


class SoundType(IntEnum):
    """One channel or two: §E.4.2.1 [sound-types]."""

    MONO = 0
    STEREO = 1


class AacPacketType(IntEnum):
    """The contents of an AAC tag, configuration or frame: §E.4.2.1 [aac-packet-type]."""

    SEQUENCE_HEADER = 0
    RAW = 1


# Source: §E.4.2.1 [speex-fixed], the one setting of a Speex tag, whatever its real rate.
SPEEX_HEADER: Final = bytes((SoundFormat.SPEEX << 4 | SoundSize.BITS_16 << 1,))

# Plain numbers: looking up a member of an enumeration takes longer than all the rest.
_AAC: Final = int(SoundFormat.AAC)
_AAC_SEQUENCE_HEADER: Final = int(AacPacketType.SEQUENCE_HEADER)
_EXTENDED: Final = int(SoundFormat.EXTENDED)
_EXTENDED_SEQUENCE_START: Final = 0  # E-RTMP v2 §"Enhanced Audio"
_EMPTY_MP4A: Final = b"\x90mp4a"


@dataclass(frozen=True, slots=True)
class AudioTag:
    """The body of an audio tag or message: §E.4.2.1.

    The four fields are numbers as on the wire, the enumerations of this module name them;
    `aac_packet_type` is None unless the format is AAC; `data` is the codec's own.
    """

    sound_format: int
    sound_rate: int
    sound_size: int
    sound_type: int
    aac_packet_type: int | None
    data: bytes

    @classmethod
    def parse(cls, payload: bytes | memoryview) -> Self:
        """Read an audio payload without FourCC: §E.4.2.1.  RemoteError if it is cut off."""
        if not payload:
            raise RemoteError("an empty audio tag")
        first, packet_type, start = payload[0], None, 1
        sound_format = first >> 4  # §E.4.2.1 [header-bits]
        if sound_format == SoundFormat.EXTENDED:
            raise RemoteError("enhanced audio has no AudioTagHeader")
        if sound_format == SoundFormat.AAC:
            if len(payload) < 2:
                raise RemoteError("an AAC tag of one byte")
            packet_type, start = payload[1], 2  # §E.4.2.1 [aac-packet-type]
        return cls(
            sound_format,
            first >> 2 & 3,  # §E.4.2.1 [header-bits]
            first >> 1 & 1,
            first & 1,
            packet_type,
            bytes(payload[start:]),
        )

    def __bytes__(self) -> bytes:
        first = (  # §E.4.2.1 [header-bits]
            self.sound_format << 4 | self.sound_rate << 2 | self.sound_size << 1 | self.sound_type
        )
        if (self.sound_format == SoundFormat.AAC) != (self.aac_packet_type is not None):
            raise LocalError("AAC, and nothing else, has an AACPacketType")
        if self.aac_packet_type is None:
            return bytes((first,)) + self.data
        return bytes((first, self.aac_packet_type)) + self.data


def is_sequence_header(payload: bytes | memoryview) -> bool:
    """Tell whether a decoder needs this before any frame: §E.4.2.1 for AAC.

    For codecs named by FourCC, in one track or several: E-RTMP v2 §"Enhanced Audio".
    Own design: an empty one of AAC is none, see `is_empty_header`.
    """
    if len(payload) < 2 or is_empty_header(payload):
        return False
    if payload[0] >> 4 == _AAC:
        return payload[1] == _AAC_SEQUENCE_HEADER
    if payload[0] >> 4 == _EXTENDED:
        return audio_packet_type(payload) == _EXTENDED_SEQUENCE_START
    return False


def is_empty_header(payload: bytes | memoryview) -> bool:
    """Tell whether a header of AAC lacks its configuration, as encoders send first: §E.4.2.1."""
    if len(payload) == 2:
        return payload[0] >> 4 == _AAC and payload[1] == _AAC_SEQUENCE_HEADER
    return payload == _EMPTY_MP4A
