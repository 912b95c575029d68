"""Whose address a call's media goes to, as INVITEs, answers and ACKs tell it."""

import pytest
from support.gateway.gateway_world import AUDIO, BOB, DESK, PCMU, Desk, GatewayWorld, sdp
from support.sip.homes import Member

from p2psip.ua.requests.extensions import Extensions

VICTIM = "203.0.113.1"
SOUND = b"\x82" + bytes(160)


def without_acks(parcel, source, destination):
    return () if parcel[1].startswith(b"ACK") else (0.01,)


def speaking(world, seconds, stream, tool):
    """Somebody publishes for so long; what the only call sent meanwhile."""
    wire, before = world.gateway.media, len(world.gateway.media.sent)
    for number in range(int(seconds * 10)):
        tool.write(AUDIO, int(world.now * 1000), stream, SOUND)
        world.wait(0.1)
        assert number >= 0
    return len(wire.sent) - before


def studio(**options):
    """A waiting name with a publisher, and a phone that may call it."""
    world = GatewayWorld(**options)
    desk, tool = Desk(world.link), world.tool()
    return world, desk, tool, tool.publish("studio")


@pytest.mark.parametrize("at", [DESK, VICTIM])
def test_an_invite_alone_draws_no_media(at):
    """Own design: not even to its source, which may be forged; nor a report, nor a goodbye."""
    world, desk, tool, stream = studio(weather=without_acks)
    desk.ring("studio", world.now, sdp(PCMU, at=at))
    world.wait(0.1)
    wire = world.gateway.media
    assert speaking(world, 30.0, stream, tool) == 0
    world.wait(10.0)  # it was given up
    assert not wire.sent and not wire.reports and world.gateway.log.ends() == ["no ACK"]
    assert world.is_clean()


def test_after_the_ack_the_caller_is_sent_to_and_a_third_party_tried():
    """Own design: five packets, and everything once it was heard."""
    for at, enough in ((DESK, range(90, 101)), (VICTIM, range(5, 6))):
        world, desk, tool, stream = studio()
        desk.ring("studio", world.now, sdp(PCMU, at=at))
        world.wait(0.1)
        assert speaking(world, 10.0, stream, tool) in enough
        world.gateway.audio.on_rtp(b"\x80" + bytes(171), world.now)
        assert speaking(world, 10.0, stream, tool) in range(90, 101)
        assert world.gateway.media.reports
        desk.calls[0].bye(world.now)
        assert world.is_clean()


@pytest.mark.parametrize("acknowledged", [False, True])
def test_a_re_invite_moves_media_to_nobody_before_its_ack(acknowledged):
    """Covers RFC 3264 §8.3.1, with the same rule as for the first offer."""
    lost = []
    world, desk, tool, stream = studio(
        weather=lambda parcel, *ends: () if lost and parcel[1].startswith(b"ACK") else (0.01,)
    )
    desk.ring("studio", world.now)
    world.wait(0.1)
    assert speaking(world, 1.0, stream, tool) > 5
    lost += [] if acknowledged else [True]
    desk.calls[0].reinvite(sdp(PCMU, at=VICTIM), world.now)
    world.wait(0.1)
    assert world.gateway.media.remote == (VICTIM, 5004)
    assert speaking(world, 10.0, stream, tool) == (5 if acknowledged else 0)
    del lost[:]
    desk.calls[0].bye(world.now)
    assert world.is_clean()


@pytest.mark.parametrize(("at", "early"), [(DESK, range(90, 101)), (VICTIM, range(1))])
def test_early_media_goes_to_the_host_that_rings_alone(at, early):
    """Covers RFC 3960 §3; the answer then lets a third party be tried."""
    world = GatewayWorld()
    desk, alice = Desk(world.link, answers=b""), world.rich("alice@home")
    desk.agent.core.extensions = Extensions(options=())  # a 183 without PRACK is no answer yet
    desk.answer = lambda call, now: call.ring(now, 183, sdp(PCMU, at=at))
    alice.call("invite", BOB, "pcmu")
    local = alice.peer.publish("local")
    world.wait(0.1)
    assert speaking(world, 10.0, local, alice.peer) in early
    desk.calls[0].accept(sdp(PCMU, at=VICTIM), world.now)
    world.wait(0.1)
    assert speaking(world, 10.0, local, alice.peer) == 5
    assert world.is_clean()


def test_a_reliable_183_is_the_answer_and_no_other_counts():
    """Covers RFC 3262 §5: a third party that only the 200 names gets nothing."""
    world = GatewayWorld()
    desk, alice = Desk(world.link, answers=b""), world.rich("alice@home")
    desk.answer = lambda call, now: call.ring(now, 183, sdp(PCMU, at=DESK))
    alice.call("invite", BOB, "pcmu")
    local = alice.peer.publish("local")
    world.wait(0.1)
    desk.calls[0].accept(sdp(PCMU, at=VICTIM), world.now)
    world.wait(0.1)
    assert world.gateway.media.remote[0] == DESK
    assert speaking(world, 10.0, local, alice.peer) > 90
    assert world.is_clean()


def test_a_registered_phone_is_no_third_party_to_those_it_is_called_by():
    """Own design: its answer comes through ourselves, which says nothing of where it is."""
    world = GatewayWorld()
    bob = Member(world.link, DESK, "bob", answer=lambda call, now: call.accept(sdp(PCMU), now))
    bob.register(world.now)
    world.wait(0.5)
    alice = world.rich("alice@home")
    alice.call("invite", "bob@home", "pcmu")
    world.wait(0.5)
    local = alice.peer.publish("local")
    assert speaking(world, 5.0, local, alice.peer) > 40
    assert world.gateway.media.hosts == (world.gateway.edge.media_host, DESK)
    assert world.is_clean()


def test_two_users_of_one_gateway_hear_each_other_at_once():
    """Own design: their media is on our own host, and so is their signalling."""
    world = GatewayWorld()
    alice, bob = world.rich("alice@home"), world.rich("bob@home")
    alice.call("invite", "bob@home", "pcmu")
    world.wait(0.1)
    bob.call("accept", "pcmu")
    world.wait(0.1)
    local = alice.peer.publish("local")
    for number in range(50):
        alice.peer.write(AUDIO, 20 * number, local, SOUND)
        world.wait(0.02)
    assert max(len(wire.sent) for wire in world.gateway.audios.values()) > 40
    assert world.is_clean()
