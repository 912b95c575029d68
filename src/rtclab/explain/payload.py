"""Payloads of RTP by their formats: telephone events, redundancy, noise, pictures and sound.

Own design: see `explain.fields.field`.  A format's name comes from the session description, from
`--rtpmap`, or for static payload types from RFC 3551 §6.

    >>> field = events(Span.all(bytes.fromhex("0b8a0320")), Context())
    >>> [f"{each.name} {each.value} {each.meaning}" for each in field.children[0].children]
    ['event 11 key #', 'end 1 ', 'reserved 0 ', 'volume 10 -dBm0', 'duration 800 ticks']
    >>> field = opus(Span.all(bytes([0x79, 1, 2, 3, 4])), Context())
    >>> [f"{each.name} {each.value}" for each in field.children]
    ['configuration 15', 'stereo 0', 'code 1', 'frame ', 'frame ']
    >>> [each.name for each in h264(Span.all(bytes.fromhex("7c8500")), Context()).children]
    ['F', 'NRI', 'type', 'start', 'end', 'reserved', 'NAL unit type', 'fragment']
"""

from collections.abc import Mapping
from typing import Final

from p2psip.errors import SipError
from p2psip.rtp.payload import speex
from p2psip.rtp.payload.aac import read_aac
from p2psip.rtp.payload.comfort_noise import ComfortNoise
from p2psip.rtp.payload.dtmf import TelephoneEvent, digit_of, parse_events
from p2psip.rtp.payload.h264 import FU_A, STAP_A, H264Fragment, aggregate, read_h264
from p2psip.rtp.payload.opus import OpusPacket
from p2psip.rtp.payload.red import RedundantBlock, RedundantPayload
from p2psip.rtp.payload.vp8 import Vp8Descriptor
from rtclab.explain import avc
from rtclab.explain.fields.context import Context, Describer
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.fields.layout import Layout, explained

_H264_KINDS: Final = {STAP_A: "STAP-A, several NAL units", FU_A: "FU-A, a part of one"}
_DEEPEST: Final = 2  # redundancy within redundancy is of no use


def payload(span: Span, kind: int, marker: bool, context: Context, depth: int = 0) -> Field:
    """Describe a payload by its type."""
    known = context.rtpmaps.get(kind)
    name = known.encoding.lower() if known else ""
    if name == "red" and depth < _DEEPEST:
        return redundant(span, context, depth)
    describe = _FORMATS.get(name)
    if describe is None or not len(span):
        said = str(known).partition(" ")[2] if known else ""
        return Field("payload", span.start, span.end, meaning=said)
    return describe(span, context)


def events(span: Span, context: Context) -> Field:
    """Describe telephone events, which follow each other."""

    def walk(layout: Layout) -> None:
        while layout.left:
            inner = layout.take(min(4, layout.left))
            layout.add(explained("event", inner, TelephoneEvent.parse, _event, TelephoneEvent))

    return explained("telephone-event", span, parse_events, walk, parse_events)


def _event(layout: Layout) -> None:
    layout.number("event", 1, lambda code: f"key {key}" if (key := digit_of(code)) else "")
    layout.bits(1, ("end", 1), ("reserved", 1), ("volume", 6, "-dBm0"))
    layout.number("duration", 2, "ticks")


def redundant(span: Span, context: Context, depth: int = 0) -> Field:
    """Describe a payload, and the older ones that stand before it."""

    def walk(layout: Layout) -> None:
        blocks: list[tuple[int, int]] = []
        while layout.left and span.data[layout.at] & 0x80:
            start = layout.at
            inner = Layout("header", layout.take(min(4, layout.left)), RedundantBlock)
            _, kind, _, length = inner.bits(
                4, ("more", 1), ("payload type", 7), ("offset", 14, "ticks"), ("length", 10)
            )
            layout.at = start
            layout.add(inner.done())
            blocks.append((kind, length))
        _, kind = layout.bits(1, ("more", 1), ("payload type", 7))
        for older, length in blocks:
            layout.add(payload(layout.take(length), older, False, context, depth + 1))
        layout.add(payload(layout.take(layout.left), kind, False, context, depth + 1))

    return explained("red", span, RedundantPayload.parse, walk, RedundantPayload)


def noise(span: Span, context: Context) -> Field:
    """Describe comfort noise."""

    def walk(layout: Layout) -> None:
        layout.bits(1, ("reserved", 1), ("level", 7, "-dBov"))
        while layout.left:
            layout.number("reflection coefficient", 1, "quantized")

    return explained("comfort noise", span, ComfortNoise.parse, walk, ComfortNoise)


def _speex(span: Span, context: Context) -> Field:
    def walk(layout: Layout) -> str:
        count = speex.count(bytes(span))
        layout.octets("frames", meaning=f"{count} of 20 ms")
        return str(count)

    return explained("speex", span, speex.count, walk, speex.split)


def h264(span: Span, context: Context) -> Field:
    """Describe a payload of H.264."""
    kind = span.data[span.start] & 0x1F if len(span) else 0

    def walk(layout: Layout) -> None:
        if kind not in _H264_KINDS:
            avc.unit_walk(layout)
            return
        layout.bits(1, ("F", 1), ("NRI", 2), ("type", 5, _H264_KINDS[kind]))
        if kind == FU_A:
            layout.bits(
                1, ("start", 1), ("end", 1), ("reserved", 1), ("NAL unit type", 5, avc.kind_name)
            )
            layout.octets("fragment")
        while layout.left:
            size = layout.number("size", 2)
            layout.add(avc.unit(layout.take(size)))

    of = {STAP_A: aggregate, FU_A: H264Fragment}.get(kind, read_h264)
    return explained("H.264", span, read_h264, walk, of)


def vp8(span: Span, context: Context) -> Field:
    """Describe a payload of VP8: its descriptor, and the part of the frame."""

    def walk(layout: Layout) -> None:
        extended, *_ = layout.bits(
            *(1, ("extended", 1), ("reserved", 1), ("non-reference", 1), ("start", 1)),
            *(("reserved", 1), ("partition", 3)),
        )
        picture = base = layer = key = 0
        if extended:
            picture, base, layer, key, _ = layout.bits(
                *(1, ("picture id follows", 1), ("base follows", 1), ("layer follows", 1)),
                *(("key index follows", 1), ("reserved", 4)),
            )
        if picture:
            size = 2 if layout.left and span.data[layout.at] & 0x80 else 1
            layout.bits(size, ("long", 1), ("picture id", 8 * size - 1))
        if base:
            layout.number("base of layer 0", 1)
        if layer or key:
            layout.bits(1, ("layer", 2), ("sync", 1), ("key index", 5))
        if layout.left:
            layout.octets("frame")

    return explained("VP8", span, Vp8Descriptor.parse, walk, Vp8Descriptor)


def opus(span: Span, context: Context) -> Field:
    """Describe a packet of Opus: its first octet, the lengths, and the frames."""

    def walk(layout: Layout) -> str:
        packet = _opus(bytes(span))
        shown = f"{packet.bandwidth}, frames of {packet.frame_ticks / 48:g} ms" if packet else ""
        layout.bits(1, ("configuration", 5, shown), ("stereo", 1), ("code", 2))
        if packet is None:
            return ""
        if span.data[span.start] & 3 == 3:
            layout.bits(1, ("lengths differ", 1), ("padding", 1), ("frames", 6))
        _frames(layout, packet)
        return f"{packet.ticks / 48:g} ms"

    return explained("Opus", span, OpusPacket.parse, walk, OpusPacket)


def _opus(data: bytes) -> OpusPacket | None:
    try:
        return OpusPacket.parse(data)
    except SipError:
        return None


def _frames(layout: Layout, packet: OpusPacket) -> None:
    """Place the frames: their octets, of which nothing else is made, stand at the end."""
    data = bytes(layout.span.part(layout.at))
    frames = b"".join(packet.frames)
    # the padding counts its own length octets, which stand in front
    tail = 0
    if packet.padding:
        octets, at = 1, 0
        while data[at] == 255:
            octets, at = octets + 1, at + 1
        tail = packet.padding - octets
    head = len(data) - tail - len(frames)
    if head > 0:
        layout.octets("lengths", head, meaning="of the frames, and of the padding")
    for each in packet.frames:
        layout.octets("frame", len(each))
    if tail:
        layout.octets("padding", tail)


def aac(span: Span, context: Context) -> Field:
    """Describe a payload of AAC: the headers' length, the headers, the frames."""

    def walk(layout: Layout) -> None:
        bits = layout.number("AU headers length", 2, "bits")
        sizes = []
        for _ in range(bits // 16):
            size, _ = layout.bits(2, ("size", 13, "octets of the frame"), ("index", 3))
            sizes.append(size)
        for size in sizes:
            layout.octets("frame", min(size, layout.left) if len(sizes) == 1 else size)

    return explained("AAC", span, read_aac, walk, read_aac)


_FORMATS: Final[Mapping[str, Describer]] = {
    "telephone-event": events,
    "cn": noise,
    "speex": _speex,
    "h264": h264,
    "vp8": vp8,
    "opus": opus,
    "mpeg4-generic": aac,
}
