"""The names of the codecs in a message, for people: in logs and in the report of a probe.

Own design: the enumerations of FLV have names already, a FourCC is one.
"""

from collections.abc import Mapping
from typing import Final

from rtmplite.flv.audio import SoundFormat
from rtmplite.flv.enhanced import four_cc_text
from rtmplite.flv.enhanced_raw import AUDIO_MULTITRACK, VIDEO_MULTITRACK, codecs
from rtmplite.flv.tag import TagType
from rtmplite.flv.video import CODEC_NAMES

PEEK: Final = 16  # bytes of a message that name the codec of its first track

AUDIO_NAMES: Final = {each.value: each.name for each in SoundFormat}
_EXTENDED: Final = 0x80  # of video: E-RTMP v2 §"Enhanced Video"


def codec_names(type_id: int, payload: bytes) -> list[str]:
    """The codecs of an audio or video message, or of its beginning, in the order of its tracks.

    FLV 10.1 §E.4.2.1 and §E.4.3.1 number them, E-RTMP v2 §"Enhanced Audio" and §"Enhanced Video"
    name them.

        >>> codec_names(9, b"\\x17\\x00"), codec_names(8, b"\\x90Opus"), codec_names(18, b"\\x02")
        (['AVC'], ['Opus'], [])
    """
    if not payload or type_id not in (TagType.AUDIO, TagType.VIDEO):
        return []
    is_audio = type_id == TagType.AUDIO
    if is_audio and payload[0] >> 4 != SoundFormat.EXTENDED:
        return [legacy_name(AUDIO_NAMES, payload[0] >> 4)]
    if not is_audio and not payload[0] & _EXTENDED:
        return [legacy_name(CODEC_NAMES, payload[0] & 0x0F)]
    found = codecs(payload, AUDIO_MULTITRACK if is_audio else VIDEO_MULTITRACK)
    return [four_cc_text(each) for each in found.values()]


def legacy_name(names: Mapping[int, str], number: int) -> str:
    """The name of a codec that has a number in FLV 10.1 §E.4.2.1 or §E.4.3.1."""
    return names.get(number, f"codec {number}")
