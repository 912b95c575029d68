"""Enhanced audio and video, with known and with unknown codecs and packet types.

Own design, over the tables of E-RTMP v2 §"Enhanced Audio", E-RTMP v2 §"Enhanced Video" and E-RTMP
v2 §"Metadata Frame".
"""

from functools import cache

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from rtmplite.flv.color_info import ColorInfo
from rtmplite.flv.enhanced import ModEx, ModExType, MultitrackType
from rtmplite.flv.enhanced_audio import (
    AudioFourCc,
    AudioPacketType,
    AudioTrack,
    Channel,
    ChannelOrder,
    ExAudioTag,
    MultichannelConfig,
    mask,
)
from rtmplite.flv.enhanced_video import (
    ExVideoTag,
    VideoFourCc,
    VideoPacketType,
    VideoTrack,
    has_composition_time,
)
from rtmplite.flv.video import FrameType
from rtmplite.strategies import amf

_DATA = st.binary(max_size=32)
_UI32 = st.integers(0, 0xFFFFFFFF)
_TIMES = st.integers(-(1 << 23), (1 << 23) - 1)
_LAYOUTS = st.none() | st.sampled_from(MultitrackType)
_MANY = (MultitrackType.MANY_TRACKS, MultitrackType.MANY_TRACKS_MANY_CODECS)
_VIDEO_KINDS = st.sampled_from(
    [each for each in VideoPacketType if each < VideoPacketType.MULTITRACK]
) | st.integers(8, 15)
_AUDIO_KINDS = st.sampled_from(
    [each for each in AudioPacketType if each < AudioPacketType.MULTITRACK]
) | st.integers(8, 15)
_VIDEO_CODECS, _AUDIO_CODECS = (
    st.sampled_from(all_) | _UI32 for all_ in (VideoFourCc, AudioFourCc)
)
_ANY_FRAMES = st.sampled_from(range(8))
_FRAMES = st.sampled_from([each for each in range(8) if each != FrameType.INFO_OR_COMMAND])


@cache
def mod_ex() -> SearchStrategy[ModEx]:
    """One modifier, of the known kind or another: E-RTMP v2 §"Enhanced Video"."""
    sizes = st.integers(1, 300).flatmap(lambda size: st.binary(min_size=size, max_size=size))
    offsets = st.integers(0, 999_999).map(ModEx.offset)
    unknown = st.integers(1, 15)
    longer = st.builds(
        ModEx, st.just(ModExType.TIMESTAMP_OFFSET_NANO), st.binary(min_size=3, max_size=9)
    )
    return offsets | longer | st.builds(ModEx, unknown, sizes)


@cache
def video_tags() -> SearchStrategy[ExVideoTag]:
    """Frames, headers, metadata and commands in any layout: E-RTMP v2 §"Enhanced Video"."""
    command = st.builds(
        ExVideoTag,
        st.just(FrameType.INFO_OR_COMMAND),
        st.integers(0, 15).filter(lambda kind: kind not in (4, 7)),
        command=st.integers(0, 255),
        mod_ex=_modifiers(),
    )
    return command | _pictures() | _metadata()


@cache
@st.composite
def _pictures(draw: st.DrawFn) -> ExVideoTag:
    kind = int(draw(_VIDEO_KINDS))
    frame_type = draw(_ANY_FRAMES if kind == 4 else _FRAMES)
    layout, shared = draw(_LAYOUTS), int(draw(_VIDEO_CODECS))
    tracks = []
    for number in draw(_ids(layout)):
        codec = int(draw(_VIDEO_CODECS)) if layout == _MANY[1] else shared
        time = draw(_TIMES) if has_composition_time(kind, codec) else 0
        tracks.append(VideoTrack(codec, draw(_DATA), number, time))
    return ExVideoTag(frame_type, kind, tuple(tracks), layout, None, draw(_modifiers()))


@cache
def _metadata() -> SearchStrategy[ExVideoTag]:
    """Metadata of tracks, whatever type of frame comes with it: E-RTMP v2 §"Enhanced Video"."""
    track = st.builds(VideoTrack, st.just(VideoFourCc.AV1), _DATA, st.integers(0, 255))
    return st.builds(
        ExVideoTag,
        st.integers(0, 7),
        st.just(VideoPacketType.METADATA),
        st.tuples(track),
        st.sampled_from(MultitrackType),
    )


@cache
def _multichannel() -> SearchStrategy[bytes]:
    return multichannel_configs().map(bytes)


@cache
@st.composite
def audio_tags(draw: st.DrawFn) -> ExAudioTag:
    """Frames, headers and loudspeakers in any layout: E-RTMP v2 §"Enhanced Audio"."""
    kind = int(draw(_AUDIO_KINDS))
    layout, shared = draw(_LAYOUTS), int(draw(_AUDIO_CODECS))
    bodies = _multichannel() if kind == 4 else _DATA
    tracks = [
        AudioTrack(int(draw(_AUDIO_CODECS)) if layout == _MANY[1] else shared, draw(bodies), number)
        for number in draw(_ids(layout))
    ]
    return ExAudioTag(kind, tuple(tracks), layout, draw(_modifiers()))


@cache
def multichannel_configs() -> SearchStrategy[MultichannelConfig]:
    """Loudspeakers in all three orders: E-RTMP v2 §"Enhanced Audio"."""
    count = st.integers(0, 255)
    natural = st.sets(st.integers(0, 23))
    speakers = st.lists(st.sampled_from(Channel) | count, max_size=24)
    return (
        st.builds(MultichannelConfig, st.just(ChannelOrder.UNSPECIFIED), count)
        | natural.map(
            lambda found: MultichannelConfig(ChannelOrder.NATIVE, len(found), flags=mask(found))
        )
        | speakers.map(
            lambda found: MultichannelConfig(
                ChannelOrder.CUSTOM, len(found), tuple(map(int, found))
            )
        )
    )


@cache
def color_infos() -> SearchStrategy[ColorInfo]:
    """Colors within their bounds, and the reset: E-RTMP v2 §"Metadata Frame"."""
    index = st.integers(0, 255).map(float)
    light = st.floats(0.0001, 10000.0)
    point = st.integers(1, 7400).map(lambda number: number / 10000)
    config = st.fixed_dictionaries(
        {},
        optional={
            "bitDepth": st.sampled_from([8.0, 10.0, 12.0]),
            "colorPrimaries": index,
            "transferCharacteristics": index,
            "matrixCoefficients": index,
        },
    )
    names = ["redX", "redY", "greenX", "greenY", "blueX", "blueY", "whitePointX", "whitePointY"]
    mastering = st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(names, point)
        | {"maxLuminance": st.floats(5, 10000), "minLuminance": st.floats(0.0001, 5)},
    )
    levels = st.fixed_dictionaries({}, optional={"maxFall": light, "maxCLL": light})
    return st.builds(ColorInfo, config, levels, mastering)


@cache
def metadata() -> SearchStrategy[bytes]:
    """Metadata of a track, with colors or others: E-RTMP v2 §"Metadata Frame"."""
    return color_infos().map(bytes) | amf.encoded()


@cache
def payloads() -> SearchStrategy[tuple[int, bytes]]:
    """Message type and payload of either medium.  Own design: the input of a relay."""
    audio = audio_tags().map(lambda tag: (8, bytes(tag)))
    return audio | video_tags().map(lambda tag: (9, bytes(tag)))


@cache
def _modifiers() -> SearchStrategy[tuple[ModEx, ...]]:
    return st.just(()) | st.lists(mod_ex(), min_size=1, max_size=3).map(tuple)


def _ids(layout: int | None) -> SearchStrategy[list[int]]:
    if layout is None:
        return st.just([0])
    if layout == MultitrackType.ONE_TRACK:
        return st.lists(st.integers(0, 255), min_size=1, max_size=1)
    return st.lists(st.integers(0, 255), min_size=1, max_size=4, unique=True)
