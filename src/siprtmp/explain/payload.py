"""Payloads of RTP by their formats: telephone events, redundancy, noise, pictures and sound.

Own design: see `siprtmp.explain.field`.  A format's name comes from the session description, from
`--rtpmap`, or for static payload types from RFC 3551 §6.

    >>> field = events(Span.all(bytes.fromhex("0b8a0320")), Context())
    >>> [f"{each.name} {each.value} {each.meaning}" for each in field.children[0].children]
    ['event 11 key #', 'end 1 ', 'reserved 0 ', 'volume 10 -dBm0', 'duration 800 ticks']
"""

from collections.abc import Mapping
from typing import Final

from p2psip.rtp.payload import speex
from p2psip.rtp.payload.comfort_noise import ComfortNoise
from p2psip.rtp.payload.dtmf import TelephoneEvent, digit_of, parse_events
from p2psip.rtp.payload.red import RedundantBlock, RedundantPayload
from siprtmp.explain import media_payload
from siprtmp.explain.context import Context, Describer
from siprtmp.explain.field import Field, Span
from siprtmp.explain.layout import Layout, explained

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


_FORMATS: Final[Mapping[str, Describer]] = {
    "telephone-event": events,
    "cn": noise,
    "speex": _speex,
    "h264": media_payload.h264,
    "vp8": media_payload.vp8,
    "opus": media_payload.opus,
    "mpeg4-generic": media_payload.aac,
}
