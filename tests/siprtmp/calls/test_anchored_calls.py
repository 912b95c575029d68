"""Calls between two phones whose media pass through the gateway: `--anchor`."""

from types import SimpleNamespace

import pytest
from support.gateway.gateway_world import PCMU, GatewayWorld, sdp
from support.sip.homes import ALICE, BOB, Member, request, store

from p2psip.rtp.packet import RtpPacket
from p2psip.sip.address import Address
from p2psip.sip.headers import Headers
from siprtmp.calls.anchored.anchors import Anchors
from siprtmp.calls.neighbours import Phone

TALK = b"p" * 160
BROWSER = sdp("111").replace(b"RTP/AVP", b"UDP/TLS/RTP/SAVPF")


class Anchored(GatewayWorld):
    """A gateway that anchors, and two of its users by their phones."""

    def __init__(self, answer=None, users=("alice", "bob"), **options):
        super().__init__(anchor="always", users=store(*users), **options)
        answer = answer or (lambda call, now: call.accept(sdp(PCMU, at=BOB), now))
        self.alice = Member(self.link, ALICE, "alice")
        self.bob = Member(self.link, BOB, "bob", answer=answer)
        for each in (self.alice, self.bob):
            each.register(self.now)
        self.wait()

    def call(self, offer=None):
        """Alice calls Bob; her call."""
        alice, offer = self.alice, offer or sdp(PCMU, at=ALICE)
        to, me = (alice.home.replace(user=user) for user in ("bob", "alice"))
        call = alice.agent.invite(
            Address(to), Address(me), alice.contact, offer, alice, self.now,
            credentials=alice.login,
        )  # fmt: skip
        alice.calls.append(call)
        self.wait()
        return call

    def wires(self):
        """The wires of both sides, by the host that they send to."""
        return {wire.remote[0]: (audio, wire) for audio, wire in self.gateway.audios.items()}


def test_what_one_phone_says_the_other_hears_and_both_end_together():
    """RFC 3261 §13.2.1, §15: two calls, each with a phone that thinks it has called the other."""
    world = Anchored()
    world.call()
    assert world.alice.events() == ["accepted"]
    [bob] = world.bob.calls
    assert bob.remote.uri.user == "alice" and len(world.gateway.context.calls) == 2
    wires = world.wires()
    for here, there in ((ALICE, BOB), (BOB, ALICE)):
        audio, _ = wires[here]
        audio.on_rtp(bytes(RtpPacket(0, 1, 160, 7, TALK)), world.now)
        world.wait(1.0)
        [(_, sent)] = wires[there][1].sent
        assert sent.endswith(TALK)
    sources = {call.origin.source for call in world.gateway.context.calls}
    assert sources == {f"UDP:{ALICE}"}
    bob.bye(world.now)
    world.wait()
    assert world.alice.events()[-1] == "ended"
    assert sorted(world.gateway.log.ends()) == ["BYE", "other side"]
    assert not world.gateway.core.anchors._calls and world.is_clean()


def test_the_caller_hears_it_ring_and_may_give_up():
    """RFC 3261 §9.1: the callee stops ringing as well."""
    world = Anchored(answer=lambda call, now: call.ring(now))
    call = world.call()
    assert [each[2] for each in world.alice.log] == [180]
    call.bye(world.now)
    world.wait()
    assert "cancelled" in world.bob.events() and world.is_clean()


@pytest.mark.parametrize("status", [486, 603])
def test_a_callee_that_refuses_is_told_to_the_caller(status):
    """RFC 3261 §16.7: by the same status."""
    world = Anchored(answer=lambda call, now: call.reject(status, "No", now))
    world.call()
    assert [each[2] for each in world.alice.log] == [status]
    assert world.is_clean()


def test_a_hold_reaches_the_other_side_and_does_not_come_back():
    """RFC 3264 §8.4."""
    world = Anchored()
    call = world.call()
    world.bob.reply_to_offer = sdp(PCMU, at=BOB, more=("inactive",))
    call.reinvite(sdp(PCMU, at=ALICE, more=("sendonly",)), world.now)
    world.wait()
    offered = [each[2] for each in world.bob.log if each[0] == "offer"]
    assert [b"a=sendonly" in each for each in offered] == [True]
    world.bob.reply_to_offer = sdp(PCMU, at=BOB)
    call.reinvite(sdp(PCMU, at=ALICE), world.now)
    world.wait()
    offered = [each[2] for each in world.bob.log if each[0] == "offer"]
    assert [b"a=sendonly" in each for each in offered] == [True, False]
    assert "offer" not in world.alice.events()
    call.bye(world.now)
    world.wait()
    assert world.is_clean()


def test_a_client_cannot_call_in_the_name_of_a_caller():
    """RFC 3261 §22.3: the gateway vouches for the calls that it has anchored, and no others."""
    world = Anchored(answer=lambda call, now: call.ring(now))
    world.call()
    [call] = world.bob.calls
    element = world.gateway.core.server.element
    assert element.vouches(call.invite)
    guess = Headers([("Contact", Address.parse("<sip:alice@home;line=guess>"))])
    assert not element.vouches(call.invite.replace(headers=guess))
    assert not element.vouches(call.invite.replace(headers=Headers([])))


@pytest.mark.parametrize(
    ("word", "offer", "phones", "is_anchored"),
    [
        ("auto", "phone", ["UDP"], None),
        ("auto", "browser", ["WSS", "WS"], None),
        ("auto", "phone", ["WSS"], {True}),
        ("auto", "browser", ["TLS"], {False}),
        ("auto", "browser", ["TLS", "WS"], {True, False}),
        ("auto", "browser", [], None),
        ("always", "phone", ["UDP"], {False}),
        ("always", "browser", ["WS"], {True}),
        ("never", "browser", ["UDP"], None),
    ],
)
def test_calls_that_both_sides_can_do_alone_stay_with_the_proxy(word, offer, phones, is_anchored):
    """Own design: unless the operator says otherwise; a browser needs the port of --webrtc."""
    offer = {"phone": sdp(PCMU), "browser": BROWSER}[offer]
    invite = request("INVITE").replace(body=offer)
    bound = [Phone(transport, BOB, False) for transport in phones]
    for has_browsers in (True, False):
        context = SimpleNamespace(has_browsers=has_browsers)
        home = SimpleNamespace(context=context, is_local_domain=lambda uri: uri.host == "home")
        anchors = Anchors(home, word, lambda user, now: bound, lambda: 0.0)
        found = anchors.find(invite)
        lacks = not has_browsers and (True in (is_anchored or ()) or offer is BROWSER)
        assert (found and found.args[0]) == (None if lacks else is_anchored)
    assert anchors.find(invite.replace(body=b"")) is None
    assert anchors.find(request("MESSAGE").replace(body=offer)) is None
