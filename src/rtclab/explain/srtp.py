"""SRTP and SRTCP: the packet within, where a key opens it, and what is wrong where none does.

Implements RFC 3711 §3.1 and §3.4 for whoever looks on.

Own design: see `explain.fields.field`.  The keys stay with `unwrap.srtp`, and no field has one.

    >>> from p2psip.srtp.srtp import SrtpSender
    >>> from rtclab.unwrap.key_log import PROFILES, SrtpMaster
    >>> context = Context()
    >>> context.srtp.add(SrtpMaster(PROFILES[1], bytes(16), bytes(14)))
    >>> packet = bytes.fromhex("80000001000000a00000cafe") + b"sound"
    >>> field = protected(Span.all(SrtpSender(bytes(16), bytes(14)).protect_rtp(packet)), context)
    >>> [(each.name, each.meaning) for each in field.children]
    [('RTP', 'decrypted'), ('tag', 'authentic')]
    >>> field.children[0].children[-1].meaning
    'PCMU/8000'
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from p2psip.srtp.srtp import SrtpReceiver, rtcp_octets
from p2psip.srtp.suites import SrtpSuite
from rtclab.explain import rtcp, rtp
from rtclab.explain.fields.context import Context, Describer
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.fields.layout import Layout, explained
from rtclab.explain.fields.source import fault_of, source_of
from rtclab.unwrap.srtp import OpenedSrtp

_RTCP_HEAD: Final = 8  # octets in the clear, Source: RFC 3711 §3.4
_WORD: Final = 4  # octets of the E flag and the index, Source: RFC 3711 §3.4


def opening(describe: Describer) -> Describer:
    """Describe a datagram as SRTP if a key opens it, and else by `describe`."""
    return lambda span, context: protected(span, context) or describe(span, context)


def protected(span: Span, context: Context) -> Field | None:
    """Describe a datagram of SRTP; None for one that is none, as far as the keys tell."""
    opened = context.srtp.opened(context.ends, bytes(span))
    if opened is None:
        return None
    name = "SRTCP" if opened.is_rtcp else "SRTP"
    method = SrtpReceiver.open_rtcp if opened.is_rtcp else SrtpReceiver.open_rtp
    if opened.plain is None:
        inner = _refused(span, opened, context)
    else:
        inner = tuple(_inside(span, opened, opened.plain, context))
    meaning = opened.suite.name
    return Field(name, span.start, span.end, "", meaning, source_of(method), inner)


def _inside(span: Span, opened: OpenedSrtp, plain: bytes, context: Context) -> Iterator[Field]:
    """Describe the packet within, and what protection has put behind it."""
    describe = rtcp.compound if opened.is_rtcp else rtp.packet
    behind = list(_behind(span, opened, "authentic"))
    read, end = describe(Span.all(plain), context), behind[0].start
    yield replace(read, start=span.start, end=end, meaning="decrypted", octets=plain)
    yield from behind


def _behind(span: Span, opened: OpenedSrtp, said: str) -> Iterator[Field]:
    """Describe the tag and, with RTCP, the index: RFC 3711 §3.4, RFC 7714 §9.1."""
    suite, end = opened.suite, span.end
    if not opened.is_rtcp:
        yield Field("tag", end - suite.tag_octets, end, meaning=said)
        return
    tag, start = suite.rtcp_tag_octets, end - rtcp_octets(suite)
    if suite.is_aead:  # whose tag is the end of what is encrypted
        yield Field("tag", start, start + tag, meaning=said)
        start += tag
    word = int.from_bytes(span.data[start : start + _WORD])
    yield Field("encrypted", start, start + 1, str(word >> 31), bits=(0, 1))
    yield Field("index", start, start + _WORD, str(word & 0x7FFFFFFF), bits=(1, 31))
    if not suite.is_aead:
        yield Field("tag", start + _WORD, end, meaning=said)


def _refused(span: Span, opened: OpenedSrtp, context: Context) -> tuple[Field, ...]:
    """Describe what is in the clear, and blame the tag, or the sequence number if it came before.

    A packet too short for a tag has but one field.
    """
    assert opened.refusal is not None
    fault = fault_of(opened.refusal)
    if len(span) < _least(opened.suite, is_rtcp=opened.is_rtcp):
        return (Field("octets", span.start, span.end, fault=fault),)
    said = "" if opened.is_replayed else "wrong"
    behind = list(_behind(span, opened, said))

    def walk(layout: Layout) -> None:
        if opened.is_rtcp:
            layout.bits(1, ("version", 2), ("padding", 1), ("count", 5))
            layout.number("packet type", 1)
            layout.number("length", 2, "words behind the first")
            layout.number("SSRC", 4, show="#010x")
        else:
            rtp.header(layout, context)
        if layout.left:
            layout.octets("encrypted", meaning="not opened")

    head = explained("packet", span.part(span.start, behind[0].start), None, walk)
    blamed = "packet" if opened.is_replayed else "tag"
    return tuple(
        replace(each, fault=fault) if each.name == blamed else each for each in (head, *behind)
    )


def _least(suite: SrtpSuite, *, is_rtcp: bool) -> int:
    return _RTCP_HEAD + rtcp_octets(suite) if is_rtcp else 12 + suite.tag_octets
