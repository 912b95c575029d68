"""What is offered, answered, changed and refused in a call, as its SDP tells."""

import pytest
from support.gateway.gateway_world import AUDIO, BOB, DESK, PCMA, PCMU, Desk, GatewayWorld, sdp

from p2psip.sdp.session import SessionDescription


def offered(desk):
    """The audio and video lines of the offer in the last INVITE."""
    return SessionDescription.parse(desk.calls[-1].remote_sdp).media


def test_an_origin_has_numbers_that_any_peer_can_hold(world, desk):
    """Covers RFC 3264 §5 [numbers-of-64-bits] [version-below-2-62]."""
    desk.answers = b""
    world.rich("alice@home").call("invite", BOB)
    world.wait()
    origin = SessionDescription.parse(desk.calls[-1].remote_sdp).origin
    assert 0 < origin.session_id == origin.version < 2**62 - 1


TUNNEL = ("video", ("97",), ["97 x-flv/90000"])


@pytest.mark.parametrize(
    ("args", "names", "lines"),
    [
        (
            (),
            (),
            [
                (
                    "audio",
                    ("96", "101", "103"),
                    ["96 speex/16000", "101 telephone-event/8000", "103 telephone-event/16000"],
                ),
                TUNNEL,
            ],
        ),
        (
            ("", "", "", "narrowband"),
            (),
            [("audio", ("96", "101"), ["96 speex/8000", "101 telephone-event/8000"]), TUNNEL],
        ),
        (
            (),
            ("pcma", "narrowband", "dtmf", "pcmu", "wideband"),
            [
                (
                    "audio",
                    ("8", "98", "101", "0", "96", "103"),
                    [
                        *("98 speex/8000", "101 telephone-event/8000", "96 speex/16000"),
                        "103 telephone-event/16000",
                    ],
                )
            ],
        ),
        (
            (),
            ("pcmu", "flv", "g729", "pcmu"),
            [("audio", ("0",), []), TUNNEL],
        ),
    ],
)
def test_offers_are_those_the_original_made(world, desk, args, names, lines):
    """Covers RFC 3264 §5: payload type numbers, in the client's order.

    The original had events of 8000 ticks alone: Field §"Events by one clock or the other".
    """
    desk.answers = b""  # it rings on
    alice = world.rich("alice@home", *args)
    alice.call("invite", BOB, *names)
    world.wait()
    media = offered(desk)
    static = {"0 PCMU/8000", "8 PCMA/8000"}
    assert [
        (
            line.kind,
            line.formats,
            [a.value for a in line.attributes if a.name == "rtpmap" and a.value not in static],
        )
        for line in media
    ] == lines
    assert all(line.protocol == "RTP/AVP" for line in media)
    assert len({line.port for line in media}) == len(media) == len(world.gateway.ports)
    assert world.is_clean()


def test_a_video_line_is_answered_with_port_0(world, desk, alice):
    """Covers RFC 3264 §6."""
    offer = sdp(PCMU) + b"m=video 5006 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\n"
    desk.ring("alice", world.now, offer)
    world.wait()
    alice.call("accept", "pcmu")
    world.wait()
    audio, video = SessionDescription.parse(desk.calls[-1].remote_sdp).media
    assert audio.port and video.port == 0
    assert alice.heard()[-1] == ("accepted", "pcmu", None)


def test_no_ports_are_503_both_ways(world, desk):
    """Covers RFC 3261 §21.5.4."""
    world.gateway.edge.room = 0
    alice = world.rich("alice@home")
    alice.call("invite", BOB)
    assert alice.heard() == [("rejected", "503 No Media Port")]
    desk.ring("alice", world.now)
    world.wait()
    assert desk.log[-1][2] == 503 and alice.heard() == []
    world.gateway.edge.room = 1
    alice.call("invite", BOB, "pcmu", "flv")  # room for one of two
    world.wait()
    assert alice.heard() == [("accepted", "pcmu", None)] and len(offered(desk)) == 1
    assert world.is_clean()


def answer_in_ack(desk, body):
    """Have the desk's ACKs carry an answer."""
    send = desk.stack.send_ack

    def send_ack(ack, now, flows=None):
        headers = ack.headers.append("Content-Type", "application/sdp")
        send(ack.replace(headers=headers, body=body), now, flows)

    desk.stack.send_ack = send_ack


@pytest.mark.sources
def test_an_offerless_invite_gets_our_offer(world, desk, alice):
    """Covers RFC 3264 §5 and RFC 3261 §13.3.1.4."""
    answer_in_ack(desk, sdp(PCMA))
    desk.ring("alice", world.now, b"")
    world.wait()
    alice.call("accept", "pcmu", "pcma")
    world.wait()
    assert alice.heard()[1:] == [("accepted", "pcma", None)]
    assert offered(desk)[0].formats == ("0", "8")
    assert world.gateway.media.remote == (DESK, 5004) and world.is_clean()


@pytest.mark.sources
@pytest.mark.parametrize("answer", [b"", b"nonsense", sdp("18")])
def test_without_a_usable_answer_in_the_ack_the_call_ends(world, desk, alice, answer):
    """Covers RFC 3261 §13.3.1.4 and RFC 3264 §7."""
    if answer:
        answer_in_ack(desk, answer)
    desk.ring("alice", world.now, b"")
    world.wait()
    alice.call("accept", "pcmu")
    world.wait()
    assert [name for name, *_ in alice.heard()] == ["invited", "byed"]
    assert desk.events()[-1] == "ended" and world.is_clean()


def test_a_phone_that_says_again_that_it_rings_is_heard_once():
    """Covers RFC 3261 §13.3.1.1 and §17.2.1; another word is another call of the user's."""
    world = GatewayWorld()
    desk = Desk(world.link, answers=b"")
    alice = world.rich("alice@home")
    desk.answer = lambda call, now: call.ring(now)
    alice.call("invite", BOB, "pcmu")
    world.wait()
    for status in (180, 183, 183, 180):
        desk.calls[-1].ring(world.now, status)
        world.wait()
    ringing, progress = ("ringing", "180 Ringing"), ("ringing", "183 Session Progress")
    assert alice.heard() == [ringing, progress, ringing]


def test_early_media_is_heard_and_its_silence_ends_nothing():
    """Covers RFC 3960 §3."""
    world = GatewayWorld(media_timeout=5.0)
    desk = Desk(world.link, answers=b"")
    alice = world.rich("alice@home")
    desk.answer = lambda call, now: call.ring(now, 183, sdp(PCMU))
    alice.call("invite", BOB, "pcmu")
    world.wait()
    assert alice.heard() == [("ringing", "183 Session Progress")]
    assert world.gateway.audio.plan
    world.wait(20.0)
    assert alice.heard() == []
    desk.calls[-1].accept(sdp(PCMU), world.now)
    world.wait()
    assert alice.heard() == [("accepted", "pcmu", None)]
    del world.link.nodes[DESK]
    world.wait(6.0)
    world.link.join(DESK, desk)
    world.wait(5.0)
    assert alice.heard() == [("byed",)] and world.gateway.log.ends() == ["media timeout"]
    [end] = [values for what, values in world.gateway.log.lines if what == "call-end"]
    assert isinstance(end["seconds"], float)  # a figure in JSON as well
    assert desk.events()[-1] == "ended" and world.is_clean()


HOLDS = {
    "address": sdp(PCMU, at="0.0.0.0"),
    "sendonly": sdp(PCMU, more=("sendonly",)),
    "inactive": sdp(PCMU, more=("inactive",)),
}


@pytest.mark.parametrize("how", HOLDS)
def test_the_phone_holds_and_comes_back(how):
    """Covers RFC 3264 §8.4."""
    world = GatewayWorld(media_timeout=30.0)
    desk, alice = Desk(world.link), world.rich("alice@home")
    alice.call("invite", BOB, "pcmu")
    world.wait()
    local = alice.peer.publish("local")
    alice.peer.write(AUDIO, 0, local, b"\x82" + bytes(160))
    wire = world.gateway.media
    assert len(wire.sent) == 1
    desk.calls[-1].reinvite(HOLDS[how], world.now)
    world.wait()
    assert alice.heard()[-1] == ("holded", True)
    alice.peer.write(AUDIO, 100, local, b"\x82" + bytes(160))
    world.wait(60.0)  # silence on hold ends nothing
    assert len(wire.sent) == 1 and alice.heard() == []
    desk.calls[-1].reinvite(sdp(PCMU, port=6000), world.now)
    world.wait()
    assert alice.heard() == [("holded", False)] and wire.remote == (DESK, 6000)
    alice.peer.write(AUDIO, 60_200, local, b"\x82" + bytes(160))
    assert len(wire.sent) == 2 and world.is_clean()


@pytest.mark.sources
def test_a_phone_that_asks_for_our_offer_comes_back_from_hold(world, desk, alice):
    """Covers RFC 6337 §5.3 and §5.1 [offers-its-own-wish]: all we have, under the numbers it had,
    and both ways.
    """
    alice.call("invite", BOB, "wideband", "pcmu", "narrowband")
    world.wait()
    phone = desk.calls[-1]
    offers = [SessionDescription.parse(phone.remote_sdp)]
    phone.reinvite(sdp(PCMU, more=("sendonly",)), world.now)
    world.wait()
    assert alice.heard()[-1] == ("holded", True)
    answer_in_ack(desk, sdp(PCMU, port=6000))
    phone.reinvite(b"", world.now)
    world.wait()
    assert alice.heard() == [("holded", False)]
    assert world.gateway.media.remote == (DESK, 6000)
    offers.append(SessionDescription.parse(desk.log[-1][2]))
    [first], [again] = (offer.media for offer in offers)
    assert again == first and "recvonly" not in str(again)
    assert offers[1].origin.version > offers[0].origin.version
    assert world.is_clean()


def test_a_new_offer_we_cannot_have_leaves_the_call_as_it_was(world, desk, alice):
    """Covers RFC 3261 §14.2."""
    alice.call("invite", BOB, "pcmu")
    world.wait()
    for offer in (sdp("18"), sdp(PCMU, at="2001:db8::1"), b"nonsense", sdp(PCMU, port=0)):
        desk.calls[-1].reinvite(offer, world.now)
        world.wait()
        assert desk.log[-1][0] == "reoffer failed"
    assert alice.heard() == [("accepted", "pcmu", None)] and world.gateway.media.remote
    assert world.is_clean()


UNUSED = (
    *(b"m=video 0 RTP/AVP", b"m=image 0 udptl", b"m=video 0", b"m=video 5006 RTP/AVP"),
    *(b"m=video 5006 RTP/AVP 99\r\nc=IN", b"a=", b"a=:x", b"b=AS:", b"b=AS:64k", b"i=a\r\ni=b"),
    *(b"t=0 0", b"m=video 0 RTP/AVP\r\nm=image 0 udptl\r\nm=x 0 y"),
)


@pytest.mark.parametrize("line", UNUSED)
def test_what_the_sound_does_not_need_ends_no_call(world, desk, alice, line):
    """Covers RFC 8866 §5.8 and §5.13, Field §"Descriptions with something amiss".

    Whether the phone calls, answers, or makes a new offer.
    """
    odd = sdp(PCMU) + line + b"\r\n"
    desk.answers = odd
    alice.call("invite", BOB, "pcmu", "h264")
    world.wait()
    assert alice.heard() == [("accepted", "pcmu", None)]
    desk.calls[-1].reinvite(odd.replace(b"5004", b"6000"), world.now)
    world.wait()
    assert world.gateway.media.remote == (DESK, 6000)
    desk.calls[-1].bye(world.now)
    world.wait()
    desk.ring("alice", world.now, odd)
    world.wait()
    alice.call("accept", "pcmu")
    world.wait()
    assert alice.heard()[-1] == ("accepted", "pcmu", None)
    answered = SessionDescription.parse(desk.calls[-1].remote_sdp, strict=True)
    assert len(answered.media) == len(SessionDescription.parse(odd).media)
    assert world.is_clean()


def test_a_hold_with_a_space_behind_it_is_a_hold(world, desk, alice):
    """Covers RFC 3264 §8.4, Field §"Descriptions with something amiss"."""
    alice.call("invite", BOB, "pcmu")
    world.wait()
    desk.calls[-1].reinvite(sdp(PCMU, more=("sendonly ",)), world.now)
    world.wait()
    assert alice.heard()[-1] == ("holded", True) and world.is_clean()


def test_sound_that_cannot_be_read_is_told_clearly(world, desk, alice):
    """Covers RFC 8866 §5.7: what is needed and broken is named."""
    desk.ring("alice", world.now, sdp(PCMU).replace(b"c=IN IP4", b"c=IN"))
    world.wait()
    [end] = world.gateway.log.ends()
    assert desk.log[-1][2] == 400 and end == "400 Bad c= line" and alice.heard() == []
    desk.answers = sdp(PCMU).replace(b"5004", b"x")
    alice.call("invite", BOB, "pcmu")
    world.wait()
    assert alice.heard() == [("rejected", "400 Bad m= line")] and world.is_clean()


@pytest.mark.parametrize("name", ["phone.example", "localhost", "raspberrypi"])
def test_a_name_in_a_description_is_the_host_that_signals(world, desk, alice, name):
    """Own design: a name stands for where the INVITE comes from; nobody makes us ask the DNS."""
    desk.ring("alice", world.now, sdp(PCMU, at=name))
    world.wait()
    alice.call("accept", "pcmu")
    world.wait()
    assert alice.heard()[-1] == ("accepted", "pcmu", None)
    assert world.gateway.media.remote == (DESK, 5004)
    desk.calls[-1].reinvite(sdp(PCMU, at=name, port=6000), world.now)
    world.wait()
    assert world.gateway.media.remote == (DESK, 6000) and world.is_clean()


def test_a_name_in_an_answer_is_the_host_that_was_called(world, desk, alice):
    """Own design: a name stands for where the INVITE went to."""
    desk.answers = sdp(PCMU, at="phone.example")
    alice.call("invite", BOB, "pcmu")
    world.wait()
    assert alice.heard() == [("accepted", "pcmu", None)]
    assert world.gateway.media.remote == (DESK, 5004) and world.is_clean()


def test_an_answer_nobody_can_use_is_hung_up(world, desk, alice):
    """Covers RFC 3264 §7."""
    for answer in (sdp("18"), sdp(PCMU, at="300.1.1.1"), b"nonsense", sdp(PCMU, port=0)):
        desk.answers = answer
        alice.call("invite", BOB, "pcmu")
        world.wait()
        [(name, text)] = alice.heard()
        assert name == "rejected" and text[:3] in ("488", "400")
        assert desk.events()[-1] == "ended"
    assert world.is_clean()
