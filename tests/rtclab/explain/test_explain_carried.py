"""What is carried by TURN or in a WebSocket is described inside of what carries it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lint.carried_cases import (
    BINARY,
    BROWSER,
    DATA,
    GATEWAY,
    OPTIONS,
    TEXT,
    channel_data,
    frame,
    framed,
    head,
    in_parts,
    peer,
    post,
    shaken,
    stun,
    tunnelled,
    web_call,
)
from support.lint.media_cases import rtp
from support.lint.scene import streamed
from support.mutations import mutations
from support.rtws import RtwsWorld

from p2psip.nat.stun import StunClass
from p2psip.nat.turn import TurnMethod, TurnType
from rtclab.explain.command import explain
from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.guess import stream
from rtclab.explain.rtws import Frames


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


@pytest.fixture(scope="module")
def page():
    """What a page and a server say by RTWebSocket, one frame each."""
    world = RtwsWorld()
    publisher = world.client()
    publisher.write(9, 40, publisher.publish("demo"), b"\x17\1\0\0\0" + bytes(3000))
    world.run()
    server, client = world.links[0].log[1], world.links[0].log[0]
    return server, client


def test_a_capture_of_a_page_has_its_calls(page):
    scene = shaken(asked="", said="")
    for index, ends in enumerate(((BROWSER, GATEWAY), (GATEWAY, BROWSER))):
        masked = index == 0
        scene.tcp(*ends, *(frame(each, opcode=BINARY, masked=masked) for each in page[index]))
    field = explain(streamed(scene), Context())
    assert not faults(field)
    inside = [each for each in field.walk() if each.name == "WebSocket frame"]
    assert len(inside) == len(page[0]) + len(page[1])
    assert all(names(each).count("kind") == 1 for each in inside)
    said = " ".join(each.value for each in field.walk())
    assert all(name in said for name in ("connect", "_result", "publish"))
    assert names(field).count("video message") == 1


def test_parts_are_joined_within_their_flow_until_they_are_abandoned():
    said = b"\x08\0\0\0\0sound"
    frames = [
        b"\x10\5TC\4\1",
        b"\x3d\5" + said[:3],
        b"\x3d\6" + said,
        b"\x1a\6",
        b"\x1d\5" + said[3:],
    ]
    reader = Frames(Context())
    *_, abandoned, last = [reader.describe(Span.all(each)) for each in frames]
    assert names(abandoned) == ["Abandon", "kind", "flow ID"]
    assert last.value == "flow 5" and "audio message" in names(last)
    other = reader.describe(Span.all(b"\x1d\6" + said[:3]))
    assert names(other) == ["Data", "kind", "flow ID", "data"]


def test_a_flow_of_another_kind_has_no_messages_that_are_known():
    reader = Frames(Context())
    for opening, inside in ((b"\x10\5other", "data"), (b"\x10\5TC\4\1", "flow message")):
        reader.describe(Span.all(opening))
        assert names(reader.describe(Span.all(b"\x1d\5\x08\0\0\0\0")))[-4:].count(inside) == 1


def test_messages_of_no_known_protocol_are_no_fault():
    """Own design: as those of a tree of resources."""
    told = frame(b'{"notify": "/calls"}'), frame(b"\xff\1", opcode=BINARY)
    field = explain(streamed(framed(*told, asked="", said="")), Context())
    assert not faults(field) and names(field).count("WebSocket frame") == 2


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
