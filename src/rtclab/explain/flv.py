"""FLV: the file's header, its tags, and the headers of sound and pictures within them.

Own design: see `explain.fields.field`.

    >>> from rtmplite.flv.file import write_flv
    >>> from rtmplite.flv.tag import Tag, TagType
    >>> data = write_flv([Tag(TagType.AUDIO, 0, bytes.fromhex("b236"))])
    >>> field = file(Span.all(data), Context())
    >>> [each.name for each in field.children]
    ['header', 'previous tag size', 'audio tag', 'previous tag size']
    >>> [f"{each.name} {each.meaning}" for each in field.children[2].children[-1].children][:2]
    ['format speex', 'rate khz 5 5']
"""

from collections.abc import Mapping
from contextlib import suppress
from enum import IntEnum
from typing import Final

from rtclab.explain import aac, amf, avc
from rtclab.explain.fields.context import Context, Describer
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.fields.layout import Layout, Meaning, explained
from rtmplite.errors import RtmpError
from rtmplite.flv.audio import (
    AacPacketType,
    AudioTag,
    SoundFormat,
    SoundRate,
    SoundSize,
    SoundType,
)
from rtmplite.flv.avc import AvcConfig
from rtmplite.flv.enhanced import four_cc_text
from rtmplite.flv.enhanced_audio import AudioPacketType, ExAudioTag
from rtmplite.flv.enhanced_video import ExVideoTag, VideoPacketType, has_composition_time
from rtmplite.flv.file import FlvHeader
from rtmplite.flv.tag import HEADER_SIZE, Tag, TagType, as_script, data_size
from rtmplite.flv.video import (
    CODEC_NAMES,
    AvcPacketType,
    CodecId,
    FieldCodecId,
    FrameType,
    VideoTag,
)

_FLAG: Final = 0x80  # of enhanced video


def named(names: type[IntEnum]) -> Meaning:
    """Give the name of a number in an enumeration."""

    def name(number: int) -> str:
        return names(number).name.lower().replace("_", " ") if number in tuple(names) else ""

    return name


def file(span: Span, context: Context) -> Field:
    """Describe a whole file."""

    def walk(layout: Layout) -> None:
        header = bytes(span)[:9]
        size = int.from_bytes(header[5:9], "big") if len(header) == 9 else len(header)
        inner = layout.take(min(max(size, 9), layout.left))
        layout.add(explained("header", inner, FlvHeader.parse, _header, FlvHeader))
        layout.number("previous tag size", 4)
        while layout.left:
            size = HEADER_SIZE + _size(layout)
            layout.add(tag(layout.take(min(size, layout.left)), context))
            if layout.left:
                layout.number("previous tag size", 4)

    return explained("FLV file", span, None, walk, FlvHeader)


def _header(layout: Layout) -> None:
    layout.text("signature", 3)
    layout.number("version", 1)
    layout.bits(1, ("reserved", 5), ("audio", 1), ("reserved", 1), ("video", 1))
    layout.number("header size", 4)
    if layout.left:
        layout.octets("more")


def _size(layout: Layout) -> int:
    try:
        return data_size(bytes(layout.span.part(layout.at, layout.at + HEADER_SIZE)))
    except RtmpError:
        return layout.left


def tag(span: Span, context: Context) -> Field:
    """Describe one tag."""
    kind = span.data[span.start] & 0x1F if len(span) else 0

    def walk(layout: Layout) -> str:
        _, filtered, _ = layout.bits(1, ("reserved", 2), ("filter", 1), ("type", 5, named(TagType)))
        layout.number("size", 3)
        low = layout.number("timestamp", 3, "ms, the lower 24 bits")
        high = layout.number("timestamp extended", 1, "the upper 8 bits", signed=True)
        layout.number("stream id", 3)
        inner = layout.take(layout.left)
        if filtered:
            layout.at = inner.start
            layout.octets("data", meaning="encrypted")
        elif len(inner):
            layout.add(body(inner, kind, context))
        return f"at {((high << 24) + low) / 1000:g} s"

    names = {TagType.AUDIO: "audio tag", TagType.VIDEO: "video tag"}
    name = names.get(TagType(kind), "script tag") if kind in tuple(TagType) else "tag"
    return explained(name, span, Tag.parse, walk, Tag)


def body(span: Span, kind: int, context: Context) -> Field:
    """Describe the data of a tag, which are the payload of a message of that type in RTMP."""
    describe = _BODIES.get(kind)
    if describe is None:
        return Field("data", span.start, span.end)
    return describe(span, context)


def script(span: Span, context: Context) -> Field:
    """Describe script data."""
    return amf.values(span, context)


def _script_amf3(span: Span, context: Context) -> Field:
    """Describe script data whose first octet is a format."""

    def walk(layout: Layout) -> None:
        layout.number("format", 1)
        if layout.left:
            layout.add(amf.values(layout.take(layout.left), context))

    return explained("script", span, None, walk, as_script)


def audio(span: Span, context: Context) -> Field:
    """Describe the data of an audio tag."""
    first = span.data[span.start] if len(span) else 0
    if first >> 4 == SoundFormat.EXTENDED:
        return _enhanced_audio(span)

    def walk(layout: Layout) -> str:
        layout.bits(
            *(1, ("format", 4, named(SoundFormat)), ("rate", 2, named(SoundRate))),
            *(("size", 1, named(SoundSize)), ("type", 1, named(SoundType))),
        )
        if first >> 4 == SoundFormat.AAC:
            kind = layout.number("AAC packet type", 1, named(AacPacketType))
            if kind == AacPacketType.SEQUENCE_HEADER and layout.left:
                layout.add(aac.configuration(layout.take(layout.left)))
        if layout.left:
            layout.octets("sound")
        return str(_name(SoundFormat, first >> 4))

    return explained("audio", span, AudioTag.parse, walk, AudioTag)


def _name(names: type[IntEnum], number: int) -> str:
    return names(number).name if number in tuple(names) else str(number)


def _enhanced_audio(span: Span) -> Field:
    def walk(layout: Layout) -> str:
        _, kind = layout.bits(
            1, ("format", 4, named(SoundFormat)), ("packet type", 4, named(AudioPacketType))
        )
        if kind in (AudioPacketType.MULTITRACK, AudioPacketType.MOD_EX):
            layout.octets("tracks", meaning=_tracks(ExAudioTag.parse(bytes(span))))
            return ""
        codec = layout.text("FourCC", 4)
        if layout.left:
            layout.octets("sound")
        return codec

    return explained("enhanced audio", span, ExAudioTag.parse, walk, ExAudioTag)


def _tracks(read: ExAudioTag | ExVideoTag) -> str:
    """The tracks of a message of several in a word each."""
    return ", ".join(
        f"track {each.track_id} {four_cc_text(each.four_cc)} of {len(each.data)} octets"
        for each in read.tracks[:8]
    )


def video(span: Span, context: Context) -> Field:
    """Describe the data of a video tag."""
    first = span.data[span.start] if len(span) else 0
    if first & _FLAG:
        return _enhanced_video(span, context)

    def walk(layout: Layout) -> str:
        frame, codec = layout.bits(1, ("frame type", 4, named(FrameType)), ("codec", 4, _codec))
        is_packet = codec in (CodecId.AVC, *FieldCodecId) and frame != FrameType.INFO_OR_COMMAND
        if is_packet:
            kind = layout.number(f"{CODEC_NAMES[codec]} packet type", 1, named(AvcPacketType))
            layout.number("composition time", 3, "ms", signed=True)
            if codec == CodecId.AVC:
                _avc(layout, kind, context)
        if layout.left:
            layout.octets("picture")
        return CODEC_NAMES.get(codec, str(codec))

    return explained("video", span, VideoTag.parse, walk, VideoTag)


def _codec(number: int) -> str:
    return CODEC_NAMES.get(number, "").lower().replace("_", " ")


def _avc(layout: Layout, kind: int, context: Context) -> None:
    if not layout.left:
        return
    inner = layout.span.part(layout.at)
    if kind == AvcPacketType.SEQUENCE_HEADER:
        layout.add(avc.record(inner))
        with suppress(RtmpError):  # which the record's field has
            context.length_size = AvcConfig.parse(bytes(inner)).length_size
    elif kind == AvcPacketType.NALU:
        layout.add(avc.units(inner, context.length_size))


def _enhanced_video(span: Span, context: Context) -> Field:
    def walk(layout: Layout) -> str:
        _, frame, kind = layout.bits(
            *(1, ("enhanced", 1), ("frame type", 3, named(FrameType))),
            ("packet type", 4, named(VideoPacketType)),
        )
        if kind in (VideoPacketType.MULTITRACK, VideoPacketType.MOD_EX):
            layout.octets("tracks", meaning=_tracks(ExVideoTag.parse(bytes(span))))
            return ""
        if frame == FrameType.INFO_OR_COMMAND and kind != VideoPacketType.METADATA:
            layout.number("command", 1)
            return ""
        codec = layout.text("FourCC", 4)
        octets = codec.encode("utf-8", "surrogateescape")  # as `text` has read them
        if has_composition_time(kind, int.from_bytes(octets, "big")):
            layout.number("composition time", 3, "ms", signed=True)
        if layout.left and kind == VideoPacketType.METADATA:
            layout.add(amf.values(layout.take(layout.left), context))
        elif layout.left:
            layout.octets("picture")
        return codec

    return explained("enhanced video", span, ExVideoTag.parse, walk, ExVideoTag)


_BODIES: Final[Mapping[int, Describer]] = {
    TagType.AUDIO: audio,
    TagType.VIDEO: video,
    TagType.SCRIPT: script,
    TagType.SCRIPT_AMF3: _script_amf3,
}
