"""RTCP: the packets of a datagram, each with its header and what its type has.

Own design: see `explain.fields.field`.

    >>> from p2psip.rtp.rtcp import ReceiverReport
    >>> field = compound(Span.all(bytes(ReceiverReport(7))), Context())
    >>> field.children[0].name, [each.name for each in field.children[0].children]
    ('receiver report', ['version', 'padding', 'count', 'packet type', 'length', 'SSRC'])
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from p2psip.rtp import rtcp_frame
from p2psip.rtp.extended_report import VOIP_METRICS, ExtendedReport, OtherBlock, VoipMetrics
from p2psip.rtp.feedback import Fir, Nack, OtherFeedback, Pli, RateLimit, Tmmb
from p2psip.rtp.rtcp import (
    App,
    Bye,
    ReceiverReport,
    ReportBlock,
    SenderReport,
    UnknownPacket,
    parse_compound,
    unix_time,
)
from p2psip.rtp.source_description import SdesChunk, SourceDescription
from p2psip.rtp.transport_feedback import TransportFeedback
from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.fields.layout import Layout, explained

# Source: RFC 3550 §12.2
_ITEMS: Final = ("END", "CNAME", "NAME", "EMAIL", "PHONE", "LOC", "TOOL", "NOTE", "PRIV")
# Source: RFC 3611 §4.7, the fields of the block in its order, and their octets
_VOIP: Final = (
    *(("loss rate", 1), ("discard rate", 1), ("burst density", 1), ("gap density", 1)),
    *(("burst duration", 2), ("gap duration", 2), ("round trip", 2), ("end system delay", 2)),
    *(("signal level", -1), ("noise level", -1), ("echo return loss", 1), ("Gmin", 1)),
    *(("R factor", 1), ("external R factor", 1), ("MOS-LQ", 1), ("MOS-CQ", 1)),
    *(("receiver configuration", 1), ("reserved", 1), ("jitter buffer nominal", 2)),
    *(("jitter buffer maximum", 2), ("jitter buffer absolute maximum", 2)),
)


def compound(span: Span, context: Context) -> Field:
    """Describe a datagram of RTCP."""

    def walk(layout: Layout) -> None:
        while layout.left:
            head = bytes(span.part(layout.at, layout.at + 4))
            size = 4 + 4 * int.from_bytes(head[2:], "big")
            layout.add(_packet(layout.take(min(max(size, 4), layout.left))))

    return explained("RTCP", span, parse_compound, walk, parse_compound)


class _Kind(NamedTuple):
    name: str
    of: object
    walk: Callable[[Layout, int], None]


def _packet(span: Span) -> Field:
    data = bytes(span)
    kind = _kind(data[1] if len(data) > 1 else 0, data[0] & 0x1F)

    def walk(layout: Layout) -> None:
        _, padded, count = layout.bits(1, ("version", 2), ("padding", 1), ("count", 5))
        layout.number("packet type", 1, kind.name)
        layout.number("length", 2, "words behind the first")
        padding = data[-1] if padded and 0 < data[-1] <= layout.left else 0
        inner = Layout("", span.part(layout.at, span.end - padding))
        inner.at = layout.at
        try:
            kind.walk(inner, count)
        finally:
            layout.fields += inner.fields
            layout.at = inner.at
        if padding and layout.left >= padding:
            if layout.left > padding:
                layout.octets("extension", layout.left - padding)
            layout.octets("padding")

    return explained(kind.name, span, parse_compound, walk, kind.of)


def _ssrc(layout: Layout, name: str = "SSRC") -> None:
    layout.number(name, 4, show="#010x")


def _sender(layout: Layout, count: int) -> None:
    _ssrc(layout)
    layout.number("NTP time", 8, lambda ntp: f"Unix time {unix_time(ntp):.3f}", show="#x")
    layout.number("RTP timestamp", 4)
    layout.number("packets", 4)
    layout.number("octets", 4)
    _blocks(layout, count)


def _receiver(layout: Layout, count: int) -> None:
    _ssrc(layout)
    _blocks(layout, count)


def _blocks(layout: Layout, count: int) -> None:
    for _ in range(count):
        layout.add(
            explained("report block", layout.take(24), ReportBlock.parse, _block, ReportBlock)
        )
    if layout.left:
        layout.octets("extension", meaning="of a profile")


def _block(layout: Layout) -> None:
    _ssrc(layout)
    layout.number("fraction lost", 1, lambda part: f"{part / 2.56:.1f} %")
    layout.number("lost", 3, "packets since the start", signed=True)
    layout.number("highest sequence", 4, lambda high: f"{high >> 16} cycles, {high & 0xFFFF}")
    layout.number("jitter", 4, "ticks")
    layout.number("last SR", 4, "the middle of its NTP time", show="#010x")
    layout.number("delay", 4, lambda delay: f"{delay / 65.536:.1f} ms since the last SR")


def _sdes(layout: Layout, count: int) -> None:
    for _ in range(count):
        start = layout.at
        chunk = Layout("chunk", layout.span.part(start), SdesChunk)
        _ssrc(chunk)
        while chunk.left and chunk.span.data[chunk.at]:
            item = Layout("item", chunk.span.part(chunk.at))
            kind = item.number("type", 1)
            name = _ITEMS[kind] if kind < len(_ITEMS) else f"item {kind}"
            size = item.number("length", 1)
            text = item.text("text", size)
            item.span, item.name = item.span.part(item.span.start, item.at), name
            chunk.add(item.done(text))
        zeros = min(chunk.left, 4 - (chunk.at - start) % 4)
        if zeros:
            chunk.octets("end", zeros, meaning="zeros up to a whole word")
        chunk.span = chunk.span.part(start, chunk.at)
        layout.add(chunk.done())


def _bye(layout: Layout, count: int) -> None:
    for _ in range(count):
        _ssrc(layout)
    if layout.left:
        layout.text("reason", layout.number("length", 1))
    if layout.left:
        layout.octets("fill", meaning="up to a whole word")


def _app(layout: Layout, count: int) -> None:
    _ssrc(layout)
    layout.text("name", 4)
    if layout.left:
        layout.octets("data")


def _nack(layout: Layout, count: int) -> None:
    _sources(layout)
    while layout.left:
        layout.number("packet id", 2)
        layout.number("bit mask", 2, "lost packets behind it", show="#06x")


def _arrivals(layout: Layout, count: int) -> None:
    _sources(layout)
    layout.number("base sequence", 2)
    layout.number("packet status count", 2)
    layout.number("reference time", 3, "times 64 ms")
    layout.number("message", 1)
    layout.octets("statuses and deltas")


def _sources(layout: Layout, count: int = 0) -> None:
    _ssrc(layout, "sender SSRC")
    _ssrc(layout, "media SSRC")


def _other(layout: Layout, count: int) -> None:
    _sources(layout)
    if layout.left:
        layout.octets("FCI")


def _fir(layout: Layout, count: int) -> None:
    _sources(layout)
    while layout.left:
        _ssrc(layout)
        layout.number("command number", 1)
        layout.octets("reserved", 3)


def _rate(layout: Layout, count: int) -> None:
    _sources(layout)
    while layout.left:
        inner = Layout("limit", layout.take(8), RateLimit)
        _ssrc(inner)
        exponent, mantissa, _ = inner.bits(4, ("exponent", 6), ("mantissa", 17), ("overhead", 9))
        layout.add(inner.done(f"{mantissa << exponent} bit/s"))


def _extended(layout: Layout, count: int) -> None:
    _ssrc(layout)
    while layout.left:
        head = bytes(layout.span.part(layout.at, layout.at + 4))
        size = 4 + 4 * int.from_bytes(head[2:], "big")
        is_voip = head[:1] == bytes((VOIP_METRICS,)) and size == 36
        span = layout.take(min(max(size, 4), layout.left))
        of = VoipMetrics if is_voip else OtherBlock
        layout.add(explained("block", span, None, _voip if is_voip else _any_block, of))


def _voip(layout: Layout) -> None:
    layout.number("block type", 1)
    layout.number("reserved", 1)
    layout.number("length", 2, "words behind the first")
    _ssrc(layout)
    for name, size in _VOIP:
        layout.number(name, abs(size), signed=size < 0)


def _any_block(layout: Layout) -> None:
    layout.number("block type", 1)
    layout.number("type-specific", 1)
    layout.number("length", 2, "words behind the first")
    if layout.left:
        layout.octets("content")


def _unknown(layout: Layout, count: int) -> None:
    if layout.left:
        layout.octets("body")


_KINDS: Final[Mapping[int, _Kind]] = {
    rtcp_frame.SR: _Kind("sender report", SenderReport, _sender),
    rtcp_frame.RR: _Kind("receiver report", ReceiverReport, _receiver),
    rtcp_frame.SDES: _Kind("source description", SourceDescription, _sdes),
    rtcp_frame.BYE: _Kind("bye", Bye, _bye),
    rtcp_frame.APP: _Kind("app", App, _app),
    rtcp_frame.XR: _Kind("extended report", ExtendedReport, _extended),
}
_FEEDBACK: Final[Mapping[tuple[int, int], _Kind]] = {
    (rtcp_frame.RTPFB, 1): _Kind("NACK", Nack, _nack),
    (rtcp_frame.RTPFB, 3): _Kind("TMMBR", Tmmb, _rate),
    (rtcp_frame.RTPFB, 4): _Kind("TMMBN", Tmmb, _rate),
    (rtcp_frame.RTPFB, 15): _Kind("transport feedback", TransportFeedback, _arrivals),
    (rtcp_frame.PSFB, 1): _Kind("PLI", Pli, _sources),
    (rtcp_frame.PSFB, 4): _Kind("FIR", Fir, _fir),
}


def _kind(packet_type: int, count: int) -> _Kind:
    if packet_type in (rtcp_frame.RTPFB, rtcp_frame.PSFB):
        other = _Kind("feedback", OtherFeedback, _other)
        return _FEEDBACK.get((packet_type, count), other)
    return _KINDS.get(packet_type, _Kind("packet", UnknownPacket, _unknown))
