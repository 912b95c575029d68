"""Valid input at the limits: the longest texts of a form, deep nesting, many items, many tracks.

Own design, apart from the other strategies, since each draw costs more.  A limit of a format comes
from its clause; depth and number of items are beyond any message in the field, and within what a
reader with bounded memory can allow.
"""

from functools import cache
from typing import Final, TypeAlias, cast

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from rtmplite.amf.values import EcmaArray, TypedObject, Value
from rtmplite.flv.enhanced import MAX_MOD_EX, MAX_TRACKS, ModEx, MultitrackType
from rtmplite.flv.enhanced_audio import AudioFourCc, AudioPacketType, AudioTrack, ExAudioTag
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType, VideoTrack
from rtmplite.flv.video import FrameType
from rtmplite.rtmp.wire.chunk_reader import BLOCK
from rtmplite.rtmp.wire.message import Message, MessageType

DEPTH: Final = 64  # containers in each other
ITEMS: Final = 1024  # of one array or object
LONG: Final = 0x10000  # bytes, one more than a short text of AMF0 holds: AMF0 §2.4
_COUNTS: Final = (1, MAX_TRACKS - 1, MAX_TRACKS)

MultitrackTag: TypeAlias = ExAudioTag | ExVideoTag


@cache
def values() -> SearchStrategy[Value]:
    """Values for AMF0 and AMF3: AMF0 §2.4, §2.14, AMF3 §1.3.2."""
    return cast(SearchStrategy[Value], st.one_of(texts(), deep(), wide()))


@cache
def texts() -> SearchStrategy[str]:
    """Texts on either side of 65535 bytes, where AMF0 changes the form: AMF0 §2.14.

    Also on either side of what one and two bytes of a length in AMF3 hold: AMF3 §1.3.1.
    """
    sizes = st.sampled_from([63, 64, 8191, 8192, LONG - 1, LONG])
    return st.builds(_text, sizes, st.sampled_from("aé€"))


def _text(size: int, letter: str) -> str:
    """A text of `size` bytes, all of them this letter but for some that fill it up."""
    count, rest = divmod(size, len(letter.encode()))
    return letter * count + "." * rest


@cache
def deep() -> SearchStrategy[Value]:
    """Containers in each other, one in each: AMF0 §2.5, §2.10 and §2.12."""
    return st.builds(_nested, st.sampled_from("loe"), st.sampled_from([2, DEPTH - 1, DEPTH]))


def _nested(kind: str, depth: int) -> Value:
    value: Value = None
    for _ in range(depth):
        match kind:
            case "l":
                value = [value]
            case "o":
                value = {"a": value}
            case _:
                value = EcmaArray({"a": value})
    return value


@cache
def wide() -> SearchStrategy[Value]:
    """Many items or members, or half as many containers: AMF0 §2.5, §2.12, §2.18."""
    items = st.sampled_from([None, 1.5, "a text"])
    return st.builds(_many, st.sampled_from("loct"), items)


def _many(kind: str, item: Value) -> Value:
    match kind:
        case "l":
            return [item] * ITEMS
        case "c":
            return [[item] for _ in range(ITEMS // 2)]
        case "o":
            return {f"member {number}": item for number in range(ITEMS)}
        case _:
            return TypedObject("T", {f"member {number}": item for number in range(ITEMS)})


@cache
def messages() -> SearchStrategy[Message]:
    """Messages of many chunks: RTMP 1.0 §5.3, §5.4.1."""
    sizes = st.sampled_from([BLOCK - 1, BLOCK, BLOCK + 1, LONG])
    payloads = sizes.map(lambda size: bytes(range(250)) * (size // 250) + bytes(size % 250))
    return st.builds(
        Message, st.just(MessageType.VIDEO), st.integers(0, 5000), st.just(1), payloads
    )


@cache
def tracks() -> SearchStrategy[MultitrackTag]:
    """As many tracks as ids: E-RTMP v2 §"Enhanced Audio", E-RTMP v2 §"Enhanced Video"."""
    layouts = st.sampled_from([MultitrackType.MANY_TRACKS, MultitrackType.MANY_TRACKS_MANY_CODECS])
    modifiers = st.sampled_from([0, 1, MAX_MOD_EX]).map(lambda count: (ModEx.offset(1),) * count)
    arguments = st.sampled_from(_COUNTS), layouts, modifiers, st.binary(max_size=4)
    return st.builds(_audio, *arguments) | st.builds(_video, *arguments)


def _audio(
    count: int, layout: MultitrackType, modifiers: tuple[ModEx, ...], data: bytes
) -> MultitrackTag:
    each = tuple(AudioTrack(AudioFourCc.OPUS, data, number) for number in range(count))
    return ExAudioTag(AudioPacketType.CODED_FRAMES, each, layout, modifiers)


def _video(
    count: int, layout: MultitrackType, modifiers: tuple[ModEx, ...], data: bytes
) -> MultitrackTag:
    each = tuple(VideoTrack(VideoFourCc.AV1, data, number) for number in range(count))
    kind = VideoPacketType.CODED_FRAMES
    return ExVideoTag(FrameType.KEY, kind, each, layout, None, modifiers)
