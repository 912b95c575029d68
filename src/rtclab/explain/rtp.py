"""RTP packets: the header, its extension, and the payload by its format.

Own design: see `explain.fields.field`.

    >>> from p2psip.rtp.packet import RtpPacket
    >>> data = bytes(RtpPacket(0, sequence=7, timestamp=160, ssrc=0xCAFE, payload=b"sound"))
    >>> field = packet(Span.all(data), Context())
    >>> [f"{each.name} {each.value}" for each in field.children[4:]]
    ['marker 0', 'payload type 0', 'sequence 7', 'timestamp 160', 'SSRC 0x0000cafe', 'payload ']
    >>> field.children[-1].meaning
    'PCMU/8000'
"""

from p2psip.rtp.packet import Extension, RtpPacket
from rtclab.explain import payload
from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.fields.layout import Layout, explained


def packet(span: Span, context: Context) -> Field:
    """Describe a datagram of RTP."""

    def walk(layout: Layout) -> None:
        padded, marker, kind = header(layout, context)
        padding = span.data[span.end - 1] if padded and layout.left else 0
        inner = layout.take(max(layout.left - padding, 0))
        layout.add(payload.payload(inner, kind, bool(marker), context))
        if padding and layout.left:
            layout.octets("padding", meaning="the last octet counts them all")

    return explained("RTP", span, RtpPacket.parse, walk, RtpPacket)


def header(layout: Layout, context: Context) -> tuple[int, int, int]:
    """Describe what stands before the payload; the padding bit, the marker and the payload type."""

    def named(kind: int) -> str:
        known = context.rtpmaps.get(kind)
        return "" if known is None else str(known).partition(" ")[2]

    _, padded, extended, count = layout.bits(
        1, ("version", 2), ("padding", 1), ("extension", 1), ("CSRC count", 4)
    )
    marker, kind = layout.bits(1, ("marker", 1), ("payload type", 7, named))
    layout.number("sequence", 2)
    layout.number("timestamp", 4, "ticks of the format's clock")
    layout.number("SSRC", 4, show="#010x")
    for _ in range(count):
        layout.number("CSRC", 4, show="#010x")
    if extended:
        layout.add(_extension(layout))
    return padded, marker, kind


def _extension(layout: Layout) -> Field:
    head = bytes(layout.span.part(layout.at, layout.at + 4))
    size = 4 + 4 * int.from_bytes(head[2:], "big")
    span = layout.span.part(layout.at, min(layout.at + size, layout.span.end))

    def walk(inner: Layout) -> None:
        inner.number("profile", 2, show="#06x")
        inner.number("length", 2, "words of four octets")
        inner.octets("data", size - 4)

    return explained("extension", span, None, walk, Extension)
