"""What is carried joins the diagrams of its call or connection, as if nothing were around it."""

import pytest
from support.lint.carried_cases import (
    BROWSER,
    CLIENT,
    GATEWAY,
    SERVER,
    allocated,
    bind,
    bound,
    frame,
    framed,
    head,
    in_parts,
    post,
    relayed_call,
    sent,
    tunnelled,
    web_call,
)
from support.lint.media_cases import FROM_A, TO_B, rtp, sound
from support.lint.rtmp_cases import connected
from support.lint.scene import Scene
from support.lint.sip_cases import A, B, call, request, sdp

from p2psip.nat.stun import BINDING, StunClass, StunMessage, StunType

HERE, THERE = "192.0.2.1:61000", "192.0.2.2:62000"  # in no description


def diagrams(scene):
    return {
        each.kind: [row.label for row in each.arrows] for each in scene.judged().ladder.diagrams
    }


@pytest.mark.parametrize("carry", [None, in_parts])
def test_a_call_by_websocket_is_drawn_as_any_other(carry):
    """In frames whole or in parts: RFC 6455 §5.4."""
    [diagram] = web_call(carry).judged().ladder.diagrams
    assert [row.label for row in diagram.arrows] == diagrams(call())["call"]
    assert diagram.ends == [BROWSER, GATEWAY]


def test_octets_without_frames_are_no_call():
    assert "call" not in diagrams(web_call(lambda data, is_ours: [data]))


def test_a_frame_says_how_long_its_message_is():
    data = request("OPTIONS", 1, 1, to_tag="", via="WS a.invalid", drop=("Content-Length",))
    scene = framed(frame(data))
    assert diagrams(scene) == {"call": ["OPTIONS"]} and not list(scene.judged().findings)


@pytest.mark.parametrize(
    ("scene", "note"),
    [
        (framed(b"?", more=["Sec-WebSocket-Extensions: permessage-deflate"]), "an extension"),
        (framed(frame(b"?"), asked="chat", said="chat"), "no protocol that is judged"),
        (framed(b"\x82\xff" + bytes((127,)) * 8), "what cannot be read"),
        (Scene().tcp(BROWSER, GATEWAY, head("GET / HTTP/1.1")), "nothing that is judged"),
        (Scene().tcp(GATEWAY, BROWSER, head("HTTP/1.1 200 OK")), "the beginning of an HTTP"),
        (Scene().tcp(BROWSER, GATEWAY, post("/send/7f/3")), "the opening of an RTMP tunnel"),
    ],
)
def test_what_is_not_read_is_noted(scene, note):
    judge = scene.judged()
    assert [note in each for each in judge.notes] == [True] and list(judge.findings) == []


def test_a_relayed_stream_is_in_the_diagram_of_its_call():
    judge = sent(relayed_call(bound()), *sound(20)).judged()
    [diagram] = judge.ladder.diagrams
    assert diagram.arrows[-1].label.startswith("RTP PCMU/8000, 20 packets by TURN")
    assert (diagram.arrows[-1].source, diagram.arrows[-1].target) == (A, B)


def test_a_stream_that_is_captured_before_and_behind_the_relay_comes_once_each():
    scene = relayed_call(bound())
    for number in range(1, 20):
        sent(scene, rtp(number)).udp("192.0.2.7:49152", TO_B, rtp(number))
    judge = scene.judged()
    assert list(judge.findings) == [] and [each.packets for each in judge.streams()] == [19, 19]


def test_relayed_data_without_the_allocation_have_the_address_of_the_client():
    packets = sent(bound(), *sound(20)).packets[2:]
    scene = Scene()
    scene.packets = packets
    [stream] = scene.judged().streams()
    assert stream.way == ("192.0.2.1:40000", TO_B)
    scene.packets = sent(allocated(), *sound(20)).packets[2:]  # nothing says that it is TURN
    assert scene.judged().streams() == []


def test_old_channels_are_read_where_the_server_agrees():
    """RFC 5766 had more of them, and programs of its time are still there."""
    old = 0x57D9
    scene = bind(allocated(), old)
    for each in sound(20):
        scene.udp(CLIENT, SERVER, old.to_bytes(2) + len(each).to_bytes(2) + each)
    judge = scene.judged()
    assert {each.rule for each in judge.findings} == {"turn-channel"}
    assert [each.packets for each in judge.streams()] == [20]


def test_a_tunnel_is_drawn_as_a_connection():
    assert diagrams(tunnelled())["rtmp"] == diagrams(connected())["rtmp"]


def hidden(host, name):
    """A description that has no address, and user names of ICE."""
    more = f"a=ice-ufrag:{name}\r\na=rtcp-mux\r\n".encode()
    place = b"192.0.2.%d\r\nt=" % host
    return sdp(host, port=9, formats="0", more=more).replace(place, b"0.0.0.0\r\nt=")


def test_checks_of_ice_tell_whose_media_these_are():
    changes = {"invite": {"body": hidden(1, "aa")}, "ok": {"body": hidden(2, "bb")}}
    scene = call(only=("invite", "ringing", "ok", "ack"), **changes)
    name = StunType.USERNAME, b"bb:aa"
    check = StunMessage.write(StunClass.REQUEST, BINDING, bytes(12), [name]).data
    scene.udp(HERE, THERE, check).udp(HERE, THERE, b"\x16\xfe\xfd" + bytes(20))  # and DTLS
    scene.udp(HERE, THERE, *sound(20), step=0.02).udp(THERE, HERE, *sound(20, ssrc=9), step=0.02)
    judge = scene.judged()
    assert list(judge.findings) == []
    [diagram] = judge.ladder.diagrams
    assert [(row.source, row.target) for row in diagram.arrows[-2:]] == [(A, B), (B, A)]
    assert FROM_A not in {each.first.source for each in judge.streams()}
