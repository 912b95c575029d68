"""Tells protocols apart by their first octets, or takes the operator's word.

Own design: the surest signs come first: a cookie, a text, a checksum.  RTP has but two bits.

    >>> guessed(Span.all(bytes.fromhex("80000007000000a00000cafe")), Context()).name
    'RTP'
    >>> guessed(Span.all(b"?"), Context()).fault.reason
    'no protocol that is known here'
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from p2psip.nat.stun import is_stun
from p2psip.nat.turn import read_channel_data
from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.rtcp import parse_compound
from rtclab.explain import (
    amf,
    dtls,
    flv,
    http,
    payload,
    rtcp,
    rtmfp,
    rtmp,
    rtp,
    rtws,
    sdp,
    sip,
    srtp,
    stun,
)
from rtclab.explain.fields.context import Context, Describer
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.fields.layout import refusal
from rtclab.explain.fields.source import Fault
from rtclab.explain.sip import SIP_START
from rtclab.unwrap.http import STARTS
from rtclab.unwrap.turn import is_old_channel
from rtmplite.amf import amf0
from rtmplite.errors import RtmpError
from rtmplite.flv.avc import LENGTH_SIZE
from rtmplite.rtmp.handshake import VERSION
from rtmplite.rtmp.wire.digest import PACKET_SIZE


def _relaying(describe: Describer) -> Describer:
    """Describe relayed data as a part of the TURN message around it."""

    def inside(field: Field, span: Span, context: Context, *, is_data: bool) -> Field:
        if is_data and not field.children and field.end > field.start:
            inner = datagram(Span(span.data, field.start, field.end), context)
            return field if inner.name == "octets" else replace(field, children=(inner,))
        names = ("data",) if field.name == "ChannelData" else ("value",)
        is_relayed = field.name in ("ChannelData", "DATA")
        found = (
            inside(each, span, context, is_data=is_relayed and each.name in names)
            for each in field.children
        )
        return replace(field, children=tuple(found))

    return lambda span, context: inside(describe(span, context), span, context, is_data=False)


# What `--as` takes.
PROTOCOLS: Final[Mapping[str, Describer]] = {
    "sip": sip.message,
    "sip-stream": sip.stream,
    "sdp": sdp.session,
    "rtp": srtp.opening(rtp.packet),
    "rtcp": srtp.opening(rtcp.compound),
    "stun": _relaying(stun.message),
    "channel-data": _relaying(stun.channel_data),
    "dtls": dtls.datagram,
    "rtmp": rtmp.stream,
    "rtmp-chunks": rtmp.chunks,
    "amf0": amf.values,
    "amf3": amf.amf3_values,
    "flv": flv.file,
    "rtmfp": rtmfp.datagram,
    "rtmfp-packet": rtmfp.packet,
    "rtws": rtws.frame,
    "telephone-event": payload.events,
    "red": payload.redundant,
    "comfort-noise": payload.noise,
    "h264": payload.h264,
    "vp8": payload.vp8,
    "opus": payload.opus,
    "aac": payload.aac,
}

_SDP: Final = re.compile(rb"v=0\r?\n")
_RTCP_TYPES: Final = range(192, 224)  # Source: RFC 5761 §4


def _is_channel_data(data: bytes) -> bool:
    return read_channel_data(data) is not None or is_old_channel(data)


def _is_rtcp(data: bytes) -> bool:
    return len(data) >= 8 and data[0] >> 6 == 2 and data[1] in _RTCP_TYPES


def _is_rtp(data: bytes) -> bool:
    return len(data) >= 12 and data[0] >> 6 == 2


def _is_rtmp(data: bytes) -> bool:
    return len(data) > PACKET_SIZE and data[0] == VERSION


def _is_command(data: bytes) -> bool:
    """Whether this is AMF0 that begins with a string, as commands and script data do."""
    try:
        return data[:1] == b"\x02" and bool(amf0.decode(data))
    except RtmpError:
        return False


Sign = Callable[[bytes], object]
_SURE: Final[tuple[tuple[Sign, str], ...]] = (
    (is_stun, "stun"),
    (SIP_START.match, "sip"),
    (_SDP.match, "sdp"),
    (rtmfp.is_startup, "rtmfp"),
    (dtls.is_dtls, "dtls"),
)
# Of the datagrams of a capture, many have these bits by chance: the codec must agree.
_DATAGRAMS: Final[tuple[tuple[Sign, str], ...]] = (
    *_SURE,
    (lambda data: _is_rtcp(data) and refusal(parse_compound, data) is None, "rtcp"),
    (lambda data: _is_rtp(data) and refusal(RtpPacket.parse, data) is None, "rtp"),
    (_is_channel_data, "channel-data"),
)
_STREAMS: Final[tuple[tuple[Sign, Describer], ...]] = (
    (is_stun, _relaying(stun.stream)),
    (SIP_START.match, sip.stream),
    (_is_rtmp, rtmp.stream),
    (lambda data: data.startswith(STARTS), http.stream),
)
_FILES: Final[tuple[tuple[Sign, str], ...]] = (
    (lambda data: data[:3] == b"FLV", "flv"),
    (_is_rtmp, "rtmp"),
    *_SURE,
    (_is_rtcp, "rtcp"),
    (_is_rtp, "rtp"),
    (_is_channel_data, "channel-data"),
    (_is_command, "amf0"),
)


def guessed(span: Span, context: Context) -> Field:
    """Describe octets by the protocol that they look like."""
    return _first(_FILES, span, context) or _unknown(span)


def datagram(span: Span, context: Context) -> Field:
    """Describe the payload of a UDP datagram; a way that RTMFP took is RTMFP's from then on."""
    data = bytes(span)
    if context.way in context.rtmfp_ways and not is_stun(data):
        return rtmfp.datagram(span, context)
    if (protected := srtp.protected(span, context)) is not None:
        return protected
    field = _first(_DATAGRAMS, span, context)
    if field is not None and field.name == "RTMFP":
        context.rtmfp_ways.add(context.way)
        context.rtmfp_ways.add(" > ".join(reversed(context.way.split(" > "))))
    return field or Field("octets", span.start, span.end, meaning="of an unknown protocol")


def stream(span: Span, context: Context) -> Field:
    """Describe what one direction of a TCP connection carried."""
    data, context.length_size = bytes(span), LENGTH_SIZE
    for sign, describe in _STREAMS:
        if sign(data):
            return describe(span, context)
    return Field("octets", span.start, span.end, meaning="of an unknown protocol")


def _first(signs: tuple[tuple[Sign, str], ...], span: Span, context: Context) -> Field | None:
    data = bytes(span)
    name = next((name for sign, name in signs if sign(data)), None)
    return None if name is None else PROTOCOLS[name](span, context)


def _unknown(span: Span) -> Field:
    fault = Fault("no protocol that is known here")
    return Field("octets", span.start, span.end, fault=fault)
