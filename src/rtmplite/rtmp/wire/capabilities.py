"""The capabilities of enhanced RTMP that both ends tell at connect: codecs, tracks, reconnecting.

Implements E-RTMP v2 §"Enhancing NetConnection connect Command"; E-RTMP v1 §"Extending
NetConnection connect Command" had the list of codecs alone.

    >>> Capabilities.parse({"fourCcList": ["hvc1", "*"]}).supports("av01")
    True
    >>> RELAY.video_ability("av01")
    <Ability.CAN_FORWARD: 4>
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Final, Self, TypeVar

from rtmplite.amf.values import Value, is_number

ANY: Final = "*"  # in place of a FourCC: §"Enhancing NetConnection connect Command"

_LIST: Final = "fourCcList"
_VIDEO: Final = "videoFourCcInfoMap"
_AUDIO: Final = "audioFourCcInfoMap"
_EXTRAS: Final = "capsEx"


class Ability(IntFlag):
    """An end's abilities with a codec: the bits of the FourCC maps.

    §"Enhancing NetConnection connect Command" [info-maps].
    """

    CAN_DECODE = 1
    CAN_ENCODE = 2
    CAN_FORWARD = 4


class Extra(IntFlag):
    """An end's other abilities: the bits of capsEx.

    §"Enhancing NetConnection connect Command" [caps-ex].
    """

    RECONNECT = 1
    MULTITRACK = 2
    MOD_EX = 4
    TIMESTAMP_NANO_OFFSET = 8


class VideoFunction(IntFlag):
    """A client's abilities with video: E-RTMP v2 §"Metadata Frame" [video-function].

    RTMP 1.0 §7.2.1.1 has the first alone.
    """

    SEEK = 1
    HDR = 2
    METADATA = 4
    LARGE_SCALE_TILE = 8


NOTHING: Final = Extra(0)

_Flags = TypeVar("_Flags", bound=IntFlag)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of one end: §"Enhancing NetConnection connect Command".

    `codecs` is fourCcList; `video` and `audio` are the maps from FourCC, or `ANY`, to abilities.
    An end that says nothing of all this does not speak enhanced RTMP: `is_enhanced` is false.
    """

    codecs: tuple[str, ...] = ()
    video: Mapping[str, Ability] = field(default_factory=dict)
    audio: Mapping[str, Ability] = field(default_factory=dict)
    extras: Extra = NOTHING

    @classmethod
    def parse(cls, properties: Mapping[str, Value]) -> Self:
        """Read them from a command object or an answer to connect; ignore what is wrong."""
        listed = properties.get(_LIST)
        codecs = listed if isinstance(listed, list) else []
        # §"Enhancing NetConnection connect Command" [both-ways] [four-cc-list]
        return cls(
            tuple(each for each in codecs if isinstance(each, str)),
            _abilities(properties.get(_VIDEO)),
            _abilities(properties.get(_AUDIO)),
            _flags(Extra, properties.get(_EXTRAS)),
        )

    def properties(self) -> dict[str, Value]:
        """Write them as members of a command object, or of an answer."""
        return {
            # §"Enhancing NetConnection connect Command" [four-cc-list], E-RTMP v1
            # §"Extending NetConnection connect Command" [four-cc-list]
            _LIST: list(self.codecs),
            # §"Enhancing NetConnection connect Command" [maps-preferred] [info-maps]
            _VIDEO: {codec: float(ability) for codec, ability in self.video.items()},
            _AUDIO: {codec: float(ability) for codec, ability in self.audio.items()},
            _EXTRAS: float(self.extras),
        }

    @property
    def is_enhanced(self) -> bool:
        """Whether there are any.  Own design: an end that tells none is told none."""
        return bool(self.codecs or self.video or self.audio or self.extras)

    def video_ability(self, codec: str) -> Ability:
        """Its abilities with a video codec, by FourCC; the entry for all codecs counts for each."""
        # §"Enhancing NetConnection connect Command" [wildcard]
        return self.video.get(codec, Ability(0)) | self.video.get(ANY, Ability(0))

    def audio_ability(self, codec: str) -> Ability:
        """Its abilities with an audio codec, by FourCC."""
        # §"Enhancing NetConnection connect Command" [wildcard]
        return self.audio.get(codec, Ability(0)) | self.audio.get(ANY, Ability(0))

    def supports(self, codec: str) -> bool:
        """Whether it can do anything with a codec, as either list says."""
        # §"Enhancing NetConnection connect Command" [four-cc-list]
        listed = codec in self.codecs or ANY in self.codecs
        # §"Enhancing NetConnection connect Command" [both-ways]
        return listed or bool(self.video_ability(codec) or self.audio_ability(codec))


def _abilities(value: Value) -> dict[str, Ability]:
    if not isinstance(value, dict):
        return {}
    return {codec: _flags(Ability, number) for codec, number in value.items()}


def _flags(kind: type[_Flags], value: Value) -> _Flags:
    """The known bits of a value, which may be no number."""
    if not is_number(value) or not 0 <= value < 1 << 32:  # no NaN is
        return kind(0)
    known = sum(kind)
    return kind(int(value) & known)


# Whatever it is called, it is passed on as it came: E-RTMP v2 §"Enhanced Video"
# [codecs-signaled], E-RTMP v2 §"Enhanced Audio" [codecs-signaled], E-RTMP v2 §"Conventions"
# [plays-multitrack].
RELAY: Final = Capabilities(
    (ANY,),
    {ANY: Ability.CAN_FORWARD},
    {ANY: Ability.CAN_FORWARD},
    Extra.RECONNECT | Extra.MULTITRACK | Extra.MOD_EX | Extra.TIMESTAMP_NANO_OFFSET,
)
