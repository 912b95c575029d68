"""Payload headers of pictures and sound in RTP: H.264, VP8, Opus and AAC.

Own design: see `siprtmp.explain.field`.

    >>> field = opus(Span.all(bytes([0x79, 1, 2, 3, 4])), Context())
    >>> [f"{each.name} {each.value}" for each in field.children]
    ['configuration 15', 'stereo 0', 'code 1', 'frame ', 'frame ']
    >>> [each.name for each in h264(Span.all(bytes.fromhex("7c8500")), Context()).children]
    ['F', 'NRI', 'type', 'start', 'end', 'reserved', 'NAL unit type', 'fragment']
"""

from p2psip.errors import SipError
from p2psip.rtp.payload.aac import read_aac
from p2psip.rtp.payload.h264 import FU_A, STAP_A, H264Fragment, aggregate, read_h264
from p2psip.rtp.payload.opus import OpusPacket
from p2psip.rtp.payload.vp8 import Vp8Descriptor
from siprtmp.explain import avc
from siprtmp.explain.context import Context
from siprtmp.explain.field import Field, Span
from siprtmp.explain.layout import Layout, explained

_KINDS = {STAP_A: "STAP-A, several NAL units", FU_A: "FU-A, a part of one"}


def h264(span: Span, context: Context) -> Field:
    """Describe a payload of H.264."""
    kind = span.data[span.start] & 0x1F if len(span) else 0

    def walk(layout: Layout) -> None:
        if kind not in _KINDS:
            avc.unit_walk(layout)
            return
        layout.bits(1, ("F", 1), ("NRI", 2), ("type", 5, _KINDS[kind]))
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
