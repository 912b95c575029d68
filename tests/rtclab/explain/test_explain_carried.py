"""What is carried by TURN or in a WebSocket is described inside of what carries it."""

from hypothesis import given, settings
from hypothesis import strategies as st
from support.lint.carried_cases import (
    BROWSER,
    DATA,
    OPTIONS,
    TEXT,
    channel_data,
    frame,
    framed,
    head,
    in_parts,
    peer,
    post,
    stun,
    tunnelled,
    web_call,
)
from support.lint.media_cases import rtp
from support.lint.scene import streamed
from support.mutations import mutations

from p2psip.nat.stun import StunClass
from p2psip.nat.turn import TurnMethod, TurnType
from rtclab.explain.command import explain
from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.guess import stream


def names(field: Field) -> list[str]:
    return [each.name for each in field.walk()]


def faults(field: Field) -> list[str]:
    return [each.reason for each in field.faults()]


def test_channel_data_hold_rtp():
    field = explain(channel_data(0x4000, rtp(1)), Context())
    assert names(field)[:5] == ["ChannelData", "channel", "length", "data", "RTP"]


def test_an_indication_holds_rtp():
    for data, is_known in ((rtp(1), True), (DATA[1], False)):
        indication = TurnMethod.SEND, peer(), (TurnType.DATA, data)
        field = explain(stun(StunClass.INDICATION, *indication), Context())
        assert ("RTP" in names(field)) == is_known


def test_a_capture_of_a_web_call_has_its_messages():
    for carry in (None, in_parts):
        field = explain(streamed(web_call(carry)), Context())
        found = names(field)
        assert found.count("WebSocket frame") == (6 if carry is None else 18)
        assert found.count("INVITE") == found.count("BYE") == 1 and not faults(field)


def test_a_frame_without_a_mask_has_a_fault():
    field = explain(streamed(framed(frame(OPTIONS, masked=False))), Context())
    assert faults(field) == ["a frame of a client without a mask"] and "OPTIONS" in names(field)


def test_a_tunnel_has_its_bodies():
    found = names(explain(streamed(tunnelled()), Context()))
    assert found.count("body") == 10


def octets_of(scene) -> bytes:
    return b"".join(each.data for each in scene.packets if each.source == BROWSER)


WHOLE = octets_of(web_call()), post("/open/1") * 2, head("GET / HTTP/1.1") + frame(b"", opcode=TEXT)


@given(mutations(st.sampled_from(WHOLE)))
@settings(max_examples=200, deadline=None)
def test_any_octets_are_described_without_a_crash(data):
    assert stream(Span.all(data), Context()).end == len(data)
