"""Every describer, on what its strategies draw, on wounded copies of it, and on any octets."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.explained import bounded, gaps
from support.mutations import mutations

from p2psip.rtp.payload.aac import pack_aac
from p2psip.strategies import audio, faults, rtp_faults, sdp_faults, video
from p2psip.strategies import rtp as rtp_strategies
from p2psip.strategies import sdp as sdp_strategies
from p2psip.strategies import sip as sip_strategies
from p2psip.strategies import stun as stun_strategies
from rtclab.explain import avc, rtmp_message
from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Span
from rtclab.explain.guess import PROTOCOLS, guessed
from rtclab.explain.render import text_lines
from rtmplite.flv.avc import join_units
from rtmplite.flv.file import write_flv
from rtmplite.flv.tag import Tag, TagType
from rtmplite.rtmfp.crypto.cipher import default_cipher
from rtmplite.rtmfp.wire.packet import scramble
from rtmplite.strategies import amf as amf_strategies
from rtmplite.strategies import amf3 as amf3_strategies
from rtmplite.strategies import amf_faults, enhanced, rtmfp_faults, rtmp_faults, shared
from rtmplite.strategies import avc as avc_strategies
from rtmplite.strategies import flv as flv_strategies
from rtmplite.strategies import rtmfp as rtmfp_strategies
from rtmplite.strategies import rtmp as rtmp_strategies
from rtmplite.strategies import rtws as rtws_strategies
from rtmplite.strategies.faults import broken


def _record(span, context):
    return avc.record(span)


def _units(span, context):
    return avc.units(span)


def _aac():
    frames = st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=4)
    return frames.map(lambda each: pack_aac(each, 1400)[0][0])


def _sized(octets, size):
    return len(octets).to_bytes(size) + octets


@st.composite
def _dtls_records(draw):
    """A hello, a chain, a fragment, an alert, or something encrypted."""
    short = st.binary(max_size=20)
    profiles = _sized(b"\0\1\0\7", 2) + _sized(draw(short), 1)
    extensions = b"\0\x0e" + _sized(profiles, 2) + b"\0\x0a" + _sized(draw(short), 2)
    hello = b"\xfe\xfd" + bytes(32) + _sized(draw(short), 1) + _sized(draw(short), 1)
    client = hello + _sized(b"\xc0\x2b", 2) + _sized(b"\0", 1) + _sized(extensions, 2)
    chain = _sized(b"".join(_sized(each, 3) for each in draw(st.lists(short, max_size=2))), 3)
    kind, body = draw(st.sampled_from([(1, client), (11, chain), (14, b"")]))
    whole = bytes((kind,)) + len(body).to_bytes(3) + bytes(5) + _sized(body, 3)
    part = bytes((1, 0, 1, 0)) + bytes(5) + _sized(body, 3)
    content, inside, epoch = draw(
        st.sampled_from([(22, whole, 0), (22, part, 0), (21, b"\2\x28", 0), (23, body, 1)])
    )
    return bytes((content,)) + b"\xfe\xfd" + epoch.to_bytes(2) + bytes(6) + _sized(inside, 2)


# What is drawn for each protocol.
DRAWN = {
    "sip": sip_strategies.messages().map(bytes),
    "sip-stream": st.lists(sip_strategies.messages().map(bytes), max_size=2).map(b"\r\n".join),
    "sdp": sdp_strategies.sessions().map(bytes),
    "rtp": rtp_strategies.rtp_packets().map(bytes),
    "rtcp": rtp_strategies.compounds().map(lambda each: b"".join(map(bytes, each))),
    "stun": stun_strategies.messages().map(lambda each: each.data),
    "dtls": st.lists(_dtls_records(), min_size=1, max_size=3).map(b"".join),
    "amf0": amf_strategies.encoded(),
    "amf3": amf3_strategies.encoded(),
    "flv": flv_strategies.files(),
    "rtmp-chunks": rtmp_strategies.chunk_streams(
        rtmp_strategies.commands().map(lambda each: each.message())
    ).map(lambda drawn: drawn[0]),
    "rtmfp-packet": rtmfp_strategies.packets().map(lambda each: each.encode()),
    "rtmfp": rtmfp_strategies.packets().map(
        lambda each: scramble(5, default_cipher().seal(each.encode()))
    ),
    "rtws": rtws_strategies.any_frame().map(bytes),
    "telephone-event": rtp_strategies.telephone_events().map(bytes),
    "red": audio.redundant_payloads().map(bytes),
    "comfort-noise": audio.comfort_noises().map(bytes),
    "h264": video.h264_payloads(),
    "vp8": st.tuples(video.vp8_descriptors().map(bytes), st.binary(max_size=5)).map(b"".join),
    "opus": audio.opus_packets().map(bytes),
    "aac": _aac(),
    "avc-record": avc_strategies.avc_configs().map(bytes),
    "avc-units": st.lists(avc_strategies.avc_units(), max_size=4).map(join_units),
    "channel-data": stun_strategies.channel_messages.map(
        lambda drawn: drawn[0].to_bytes(2) + len(drawn[1]).to_bytes(2) + drawn[1]
    ),
    "enhanced": enhanced.payloads().map(lambda drawn: write_flv([Tag(drawn[0], 0, drawn[1])])),
    "rtmp": rtmp_strategies.chunk_streams().map(lambda drawn: b"\3" + bytes(3072) + drawn[0]),
}
DESCRIBERS = {**PROTOCOLS, "avc-record": _record, "avc-units": _units, "enhanced": PROTOCOLS["flv"]}
# In these some parts are random octets, which their own codecs may refuse.
WITH_ANYTHING = {
    *("rtmfp", "rtmfp-packet", "h264", "avc-record", "avc-units", "enhanced", "red", "flv"),
    *("rtmp", "rtws", "stun"),
}


def test_every_protocol_is_drawn():
    assert DRAWN.keys() == DESCRIBERS.keys()


@pytest.mark.parametrize("name", DRAWN)
@settings(max_examples=6)
@given(data=st.data())
def test_what_is_valid_is_explained_to_the_last_octet(name, data):
    """No error, nothing left over, and parts that lie within the whole side by side."""
    octets = data.draw(DRAWN[name])
    field = DESCRIBERS[name](Span.all(octets), Context())
    bounded(field, octets)
    if name not in WITH_ANYTHING:
        assert [fault.reason for fault in field.faults()] == []
        assert gaps(field) == []


@pytest.mark.parametrize("four_cc", [b"\x00\x00\x00\x80", b"c1hv", b"\xff\xfe\xfd\xfc"])
def test_any_four_octets_may_name_a_codec(four_cc):
    """Own design: FourCCs that are no text, or no codec that is known, are printed as they are."""
    octets = write_flv([Tag(TagType.VIDEO, 0, b"\x91" + four_cc + b"picture")])
    field = DESCRIBERS["enhanced"](Span.all(octets), Context())
    bounded(field, octets)
    assert gaps(field) == [] and "composition time" not in "\n".join(text_lines(field, octets))


@pytest.mark.parametrize("name", DRAWN)
@settings(max_examples=6)
@given(data=st.data())
def test_wounded_octets_crash_nothing(name, data):
    """Only output, never another error; and not much of it."""
    octets = data.draw(mutations(DRAWN[name]) | st.binary(max_size=200))
    bounded(DESCRIBERS[name](Span.all(octets), Context()), octets)
    guessed(Span.all(octets), Context())


@settings(max_examples=10)
@given(
    rtmp_strategies.controls().map(lambda each: each.message())
    | shared.messages().map(lambda each: each.message())
    | rtmp_strategies.commands().map(lambda each: each.message())
)
def test_messages_of_rtmp_are_explained_to_the_last_octet(whole):
    field = rtmp_message.message(Span.all(whole.payload), whole, Context())
    bounded(field, whole.payload)
    assert list(field.faults()) == [] and gaps(field) == []


# Strategies that break one rule at a time.
BROKEN = {
    "rtp": faults.broken(rtp_faults.RTP_FAULTS),
    "rtcp": faults.broken(rtp_faults.COMPOUND_FAULTS),
    "telephone-event": faults.broken(rtp_faults.EVENT_FAULTS),
    "amf0": broken(amf_faults.AMF0_FAULTS),
    "amf3": broken(amf_faults.AMF3_FAULTS),
    "rtmp-chunks": broken(rtmp_faults.CHUNK_FAULTS),
    "rtmfp-packet": broken(rtmfp_faults.PACKET_FAULTS),
    "rtws": broken(rtws_strategies.FRAME_FAULTS),
}


@pytest.mark.parametrize("name", BROKEN)
@settings(max_examples=6)
@given(data=st.data())
def test_what_breaks_a_rule_is_noticed_with_a_clause(name, data):
    _, octets = data.draw(BROKEN[name])
    field = DESCRIBERS[name](Span.all(octets), Context())
    bounded(field, octets)
    said = list(field.faults())
    assert said and all(each.citation and each.name for each in said)


@settings(max_examples=6)
@given(sdp_faults.broken_sessions())
def test_a_broken_description_is_noticed_with_a_clause(octets):
    said = list(DESCRIBERS["sdp"](Span.all(octets), Context()).faults())
    assert said and all(each.citation for each in said)
