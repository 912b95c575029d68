"""The codecs of one audio or video message, by names that people know.

Own design: probes and logs name a codec as FLV 10.1 §E.4.2.1 and FLV 10.1 §E.4.3.1 do, or by its
FourCC (E-RTMP v2 §"Enhanced Video").

    >>> codecs_of(9, bytes.fromhex("1701"))
    [('AVC', 0, 2)]
"""

from typing import Final

from rtmplite.errors import RemoteError
from rtmplite.flv.audio import SoundFormat
from rtmplite.flv.enhanced import four_cc_text
from rtmplite.flv.enhanced_audio import ExAudioTag
from rtmplite.flv.enhanced_video import ExVideoTag
from rtmplite.flv.tag import TagType
from rtmplite.flv.video import CodecId

_EXTENDED: Final = 0x80  # of video: E-RTMP v2 §"Enhanced Video"
_SOUNDS: Final = {int(each): each.name for each in SoundFormat}
_PICTURES: Final = {int(each): each.name for each in CodecId}


def codecs_of(type_id: int, payload: bytes) -> list[tuple[str, int, int]]:
    """Give codec, track id and size of each part of a message of type 8 or 9.

    A message that is empty or cannot be parsed has no parts.
    """
    if not payload:
        return []
    first, is_audio = payload[0], type_id == TagType.AUDIO
    if is_audio and first >> 4 != SoundFormat.EXTENDED:
        return [(_SOUNDS.get(first >> 4, f"codec {first >> 4}"), 0, len(payload))]
    if not is_audio and not first & _EXTENDED:
        return [(_PICTURES.get(first & 0x0F, f"codec {first & 0x0F}"), 0, len(payload))]
    try:
        tag = (ExAudioTag if is_audio else ExVideoTag).parse(payload)
    except RemoteError:
        return []
    return [(four_cc_text(part.four_cc), part.track_id, len(part.data)) for part in tag.tracks]
