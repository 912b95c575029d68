"""A client puts its phone on hold and takes it off again, and both may do so at a time."""

import pytest
from support.gateway.gateway_world import AUDIO, BOB, PCMU, sdp

from p2psip.errors import RemoteError
from p2psip.sdp.session import SessionDescription

ULAW = b"\x82" + bytes(160)


def answered(direction):
    """The answer of a phone to an offer on hold."""
    return sdp(PCMU, more=(direction,))


def directions(desk):
    """The direction of each line of the last offer to the phone."""
    offer = next(each[2] for each in reversed(desk.log) if each[0] == "offer")
    words = {"sendrecv", "sendonly", "recvonly", "inactive"}
    return [
        next((each.name for each in line.attributes if each.name in words), "sendrecv")
        for line in SessionDescription.parse(offer).media
    ]


@pytest.fixture
def local(world, desk, alice):
    """A call that is up, with sound; the number of the published stream."""
    desk.reply_to_offer = answered("recvonly")
    alice.call("invite", BOB, "pcmu")
    world.wait()
    assert alice.heard() == [("accepted", "pcmu", None)]
    local = alice.peer.publish("local")
    alice.peer.write(AUDIO, 0, local, ULAW)
    assert len(world.gateway.media.sent) == 1
    return local


def test_the_client_holds_and_comes_back(world, desk, alice, local):
    """Covers RFC 3264 §8.4: the offer says so, and nothing is heard of the publisher meanwhile.

    Covers RFC 6337 §5.3 [hold-says-sendonly] [else-both-ways].
    """
    alice.call("hold", True)
    alice.peer.write(AUDIO, 20, local, ULAW)  # before the phone has answered
    world.wait()
    assert directions(desk) == ["sendonly"]
    alice.call("hold", True)  # it is already
    alice.peer.write(AUDIO, 100, local, ULAW)
    world.wait(40.0)
    assert len(world.gateway.media.sent) == 1 and desk.events().count("offer") == 1
    desk.reply_to_offer = answered("sendrecv")
    alice.call("hold", False)
    world.wait()
    assert directions(desk) == ["sendrecv"]
    alice.peer.write(AUDIO, 40_200, local, ULAW)
    assert len(world.gateway.media.sent) == 2
    assert alice.heard() == [] and world.is_clean()


def test_both_hold_and_the_client_comes_back_first(world, desk, alice, local):
    """Covers RFC 3264 §8.4, RFC 6337 §5.3 [hold-is-our-own-wish] [their-hold-is-not-ours]
    [own-wish-in-each-offer] [else-both-ways].
    """
    alice.call("hold", True)
    world.wait()
    desk.calls[-1].reinvite(answered("sendonly"), world.now)
    world.wait()
    assert alice.heard() == [("holded", True)]
    assert b"a=inactive" in desk.log[-1][2]
    desk.reply_to_offer = answered("sendonly")
    alice.call("hold", False)
    world.wait()
    assert directions(desk) == ["sendrecv"] and alice.heard() == []
    desk.calls[-1].reinvite(sdp(PCMU), world.now)
    world.wait()
    assert alice.heard() == [("holded", False)] and world.is_clean()


def test_a_phone_that_asks_for_our_offer_hears_that_it_is_on_hold(world, desk, alice, local):
    """Covers RFC 6337 §5.3 [held-stays-held] [own-wish-in-each-offer]: our wish is still that."""
    alice.call("hold", True)
    world.wait()
    desk.calls[-1].reinvite(b"", world.now)
    world.wait()
    assert b"a=sendonly" in desk.log[-1][2] and world.is_clean()


def test_a_hold_that_the_phone_refuses_is_told(world, desk, alice, local):
    """Covers RFC 3261 §14.1: the session stays, and the publisher is silent all the same."""
    desk.reply_to_offer = RemoteError("Not Acceptable Here", 488)
    alice.call("hold", True)
    world.wait()
    assert alice.failures() == ["hold: 488 Not Acceptable Here"] and alice.heard() == []
    alice.peer.write(AUDIO, 100, local, ULAW)
    assert len(world.gateway.media.sent) == 1 and world.is_clean()


def test_hold_and_back_before_the_phone_answers(world, desk, alice, local):
    """Covers RFC 3261 §14.1: the second offer waits for the answer to the first."""
    alice.call("hold", True)
    desk.reply_to_offer = sdp(PCMU)
    alice.call("hold", False)
    world.wait(1.0)
    assert directions(desk) == ["sendrecv"] and desk.events().count("offer") == 2
    alice.peer.write(AUDIO, 1000, local, ULAW)
    assert len(world.gateway.media.sent) == 2 and world.is_clean()


def test_holds_that_cross(world, desk, alice, local):
    """Covers RFC 3261 §14.1: both are refused with 491, and both are made in the end."""
    desk.reply_to_offer = answered("inactive")
    desk.calls[-1].reinvite(answered("sendonly"), world.now)
    alice.call("hold", True)
    world.wait(10.0)
    assert alice.heard()[-1] == ("holded", True)
    assert directions(desk) == ["sendonly"] and world.is_clean()


def test_pictures_stop_on_hold(world, desk, alice):
    """Covers RFC 3264 §8.4: the line of pictures is inactive, both in offers and in answers."""
    more = b"m=video 5006 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\n"
    more += b"a=fmtp:99 profile-level-id=42e01f\r\n"
    desk.answers = sdp(PCMU) + more
    alice.call("invite", BOB, "pcmu", "h264")
    world.wait()
    assert alice.heard() == [("accepted", "pcmu", "h264")]
    desk.reply_to_offer = answered("recvonly") + more + b"a=inactive\r\n"
    alice.call("hold", True)
    world.wait()
    assert directions(desk) == ["sendonly", "inactive"]
    desk.calls[-1].reinvite(sdp(PCMU) + more, world.now)
    world.wait()
    assert desk.log[-1][2].count(b"a=inactive") == 1 and b"a=sendonly" in desk.log[-1][2]
    assert world.is_clean()


def test_there_is_nothing_to_hold(world, desk, alice):
    """Own design: without a call that is up the command does nothing."""
    alice.call("hold", True)
    desk.answers = b""
    alice.call("invite", BOB, "pcmu")
    world.wait()
    alice.call("hold")
    world.wait(1.0)
    assert "offer" not in desk.events() and world.is_clean()
