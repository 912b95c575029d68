"""Stories of values and files: what our writers of AMF and FLV make of values, one by one."""

from base64 import b64decode

from story import Step, Story, told

from rtmplite.amf import amf0, amf3
from rtmplite.amf.values import UNDEFINED, Date, EcmaArray, TypedObject, Value
from rtmplite.flv.audio import AacPacketType, AudioTag, SoundFormat, SoundRate, SoundSize, SoundType
from rtmplite.flv.avc import AvcConfig, join_units
from rtmplite.flv.file import write_flv
from rtmplite.flv.metadata import build
from rtmplite.flv.tag import Tag, TagType
from rtmplite.flv.video import AvcPacketType, CodecId, FrameType, VideoTag

AMF0_VALUES: dict[str, Value] = {
    "number": 16000.0,
    "boolean": True,
    "string": "Ève",
    "null": None,
    "undefined": UNDEFINED,
    "object": {"app": "live", "fpad": False},
    "ecma-array": EcmaArray({"width": 640.0}),
    "strict-array": ["a", 1.0],
    "date": Date(1_000_000_000_000.0),
    "typed-object": TypedObject("Point", {"x": 2.0}),
}
AMF3_VALUES: dict[str, Value] = {
    "integer": 300,
    "double": 0.5,
    "string": "live",
    "array": ["live", "live"],
    "object": {"app": "live", "live": True},
    "bytes": b"\x00\x01\x02",
}
SETS = [b64decode(each) for each in ("Z0LADNoFB+wEQAAAAwBAAAADAGA8UKqA", "aM48gA==")]
IDR, INTER = bytes.fromhex("6588840a21"), bytes.fromhex("419a020a")
AAC_CONFIG, AAC_FRAME = bytes.fromhex("1408"), bytes.fromhex("21104500145005")


def values(protocol: str, written: dict[str, bytes]) -> Story:
    """Each value alone."""
    steps = [
        Step(name, 0.0, "writer", "reader", name, told(protocol, data), data)
        for name, data in written.items()
    ]
    return Story(("writer", "reader"), tuple(steps))


def in_amf0() -> Story:
    """Values of AMF0."""
    return values("amf0", {name: amf0.encode(each) for name, each in AMF0_VALUES.items()})


def in_amf3() -> Story:
    """Values of AMF3."""
    return values("amf3", {name: amf3.encode(each) for name, each in AMF3_VALUES.items()})


def sound(kind: AacPacketType, data: bytes) -> bytes:
    """The body of a tag of AAC."""
    how = SoundRate.KHZ_44, SoundSize.BITS_16, SoundType.STEREO
    return bytes(AudioTag(SoundFormat.AAC, *how, kind, data))


def picture(kind: AvcPacketType, frame: FrameType, data: bytes, delay: int = 0) -> bytes:
    """The body of a tag of AVC."""
    return bytes(VideoTag(frame, CodecId.AVC, kind, delay, data))


def flv() -> Story:
    """A file of seven tags: what it is, two headers, two frames of video, and two of audio."""
    config = bytes(AvcConfig.of(SETS[:1], SETS[1:]))
    about = build(width=320, height=240, video_codec_id=7, audio_codec_id=10, stereo=True)
    tags = {
        "metadata": Tag(TagType.SCRIPT, 0, about),
        "avc-header": Tag(
            TagType.VIDEO, 0, picture(AvcPacketType.SEQUENCE_HEADER, FrameType.KEY, config)
        ),
        "aac-header": Tag(TagType.AUDIO, 0, sound(AacPacketType.SEQUENCE_HEADER, AAC_CONFIG)),
        "key-frame": Tag(
            TagType.VIDEO, 0, picture(AvcPacketType.NALU, FrameType.KEY, join_units([IDR]))
        ),
        "sound": Tag(TagType.AUDIO, 0, sound(AacPacketType.RAW, AAC_FRAME)),
        "inter-frame": Tag(
            TagType.VIDEO, 40, picture(AvcPacketType.NALU, FrameType.INTER, join_units([INTER]), 40)
        ),
        "late-sound": Tag(TagType.AUDIO, 0x1000010, sound(AacPacketType.RAW, AAC_FRAME)),
    }
    data = write_flv(tags.values())
    whole = told("flv", data)
    steps = [Step("file", 0.0, "writer", "reader", "file", whole, data)]
    found = [each for each in whole.children if each.name.endswith("tag")]
    for (name, tag), field in zip(tags.items(), found, strict=True):
        steps.append(Step(name, tag.timestamp / 1000, "writer", "reader", name, field, data))
    return Story(("writer", "reader"), tuple(steps))
