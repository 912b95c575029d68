"""FLV bodies, tags and files.

Own design, over the tables of FLV 10.1 §E.2 to §E.4.
"""

from functools import cache

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from rtmplite.amf import amf0
from rtmplite.amf.values import EcmaArray
from rtmplite.flv import file
from rtmplite.flv.audio import AudioTag, SoundFormat
from rtmplite.flv.tag import Tag, TagType
from rtmplite.flv.video import CodecId, FrameType, VideoTag
from rtmplite.strategies import amf

_DATA = st.binary(max_size=64)
_TIMES = st.integers(-(1 << 31), (1 << 31) - 1)
_BIT = st.integers(0, 1)
_CLASSIC = [each for each in SoundFormat if each not in (SoundFormat.EXTENDED, SoundFormat.AAC)]


@cache
def audio_tags() -> SearchStrategy[AudioTag]:
    """Audio in every format that has an AudioTagHeader: FLV 10.1 §E.4.2.1."""
    rate = st.integers(0, 3)
    aac = st.builds(
        AudioTag, st.just(SoundFormat.AAC), rate, _BIT, _BIT, st.integers(0, 255), _DATA
    )
    other = st.builds(AudioTag, st.sampled_from(_CLASSIC), rate, _BIT, _BIT, st.none(), _DATA)
    return aac | other


@cache
def video_tags() -> SearchStrategy[VideoTag]:
    """Video in every codec that has a VideoTagHeader: FLV 10.1 §E.4.3.1."""
    times = st.integers(-(1 << 23), (1 << 23) - 1)
    pictures = st.sampled_from([each for each in FrameType if each != FrameType.INFO_OR_COMMAND])
    others = st.sampled_from([each for each in CodecId if each != CodecId.AVC])
    avc = st.builds(VideoTag, pictures, st.just(CodecId.AVC), st.integers(0, 255), times, _DATA)
    other = st.builds(VideoTag, pictures, others, st.none(), st.just(0), _DATA)
    info = st.builds(
        VideoTag,
        st.just(FrameType.INFO_OR_COMMAND),
        st.sampled_from(CodecId),
        st.none(),
        st.just(0),
        st.binary(min_size=1, max_size=1),
    )
    return avc | other | info


@cache
def tags() -> SearchStrategy[Tag]:
    """Tags of any type, with proper bodies where that is one of the three: FLV 10.1 §E.4.1."""
    return proper_tags() | reserved_tags()


@cache
def proper_tags() -> SearchStrategy[Tag]:
    """Tags of the three types, with proper bodies and any time: FLV 10.1 §E.4.1."""
    return (
        st.builds(Tag, st.just(TagType.AUDIO), _TIMES, audio_tags().map(bytes))
        | st.builds(Tag, st.just(TagType.VIDEO), _TIMES, video_tags().map(bytes))
        | st.builds(Tag, st.just(TagType.SCRIPT), _TIMES, amf.encoded())
    )


@cache
def reserved_tags() -> SearchStrategy[Tag]:
    """Tags of a reserved type, of a stream that is not 0, or neither: FLV 10.1 §E.4.1."""
    streams = st.integers(0, 0xFFFFFF)
    return st.builds(Tag, st.integers(0, 31), _TIMES, _DATA, streams, st.booleans())


@cache
def descriptions() -> SearchStrategy[bytes]:
    """Data of scripts, mostly descriptions: FLV 10.1 §E.5, Field §"@setDataFrame"."""
    members = st.dictionaries(
        st.sampled_from(["width", "duration", "a"]), amf.scalars(), max_size=3
    )
    described = (members | members.map(EcmaArray)).map(lambda each: amf0.encode("onMetaData", each))
    wrapped = described.map(amf0.encode("@setDataFrame").__add__)
    return described | wrapped | amf.encoded()


@cache
def files() -> SearchStrategy[bytes]:
    """Whole files: FLV 10.1 §E.3."""
    return st.lists(tags(), max_size=5).map(file.write_flv)


@cache
def damaged() -> SearchStrategy[tuple[list[Tag], bytes]]:
    """Tags, and a file of them as writers leave it that crash or count wrongly: FLV 10.1 §E.3."""
    kinds = st.sampled_from([TagType.AUDIO, TagType.VIDEO])
    plain = st.builds(Tag, kinds, st.integers(0, 10_000), st.binary(min_size=1, max_size=64))

    some = st.lists(plain, max_size=6)
    ends = st.none() | st.binary(min_size=4, max_size=4)

    @st.composite
    def build(draw: st.DrawFn) -> tuple[list[Tag], bytes]:
        kept = draw(some)
        parts = [file.start(True, True)]
        for tag in kept:
            wrong = draw(ends)
            parts.append(file.framed(tag) if wrong is None else bytes(tag) + wrong)
        last = bytes(draw(plain))
        parts.append(last[: draw(st.integers(0, len(last) - 1))])
        return kept, b"".join(parts)

    return build()
