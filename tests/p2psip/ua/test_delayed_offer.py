"""Calls that we make without an offer: the callee makes it, and our acknowledgement answers."""

import pytest
from support.rtmfp.link import Link
from support.sip.conversation import sdp
from support.sip.elements import Phone, Script
from support.sip.flows import (
    A,
    B,
    C,
    accept,
    drop,
    early,
    phones,
    pick_up,
    pracks,
    provisional,
    settle,
)

from p2psip.errors import RemoteError
from p2psip.sdp.session import SessionDescription
from p2psip.sip.build import response_to
from p2psip.sip.message import parse_message
from p2psip.ua.ua import CallState
from rtclab.oracle.referee.referee import referee
from rtclab.oracle.referee.traced import Traced

OFFER = sdp(2, media=("audio 5004 RTP/AVP 0", "video 5006 RTP/AVP 34")).encode()
REFUSED = RemoteError("Not Acceptable Here", 488)


def asked(reply=b"our answer"):
    """A phone that calls a script without an offer: the INVITE has arrived."""
    link = Link()
    alice, script = Phone(link, A), Script(link, B)
    alice.reply_to_offer = reply
    call = alice.dial(B, 0.0, b"")
    link.run(until=0.1)
    [invite] = script.heard
    assert not invite.body and "Content-Type" not in invite.headers
    return link, alice, script, call, invite


def bodies(link, start):
    return {data.partition(b"\r\n\r\n")[2] for *_, (_, data) in link.sent if data.startswith(start)}


def declines(body):
    """Whether a description has no line of the offer."""
    lines = SessionDescription.parse(body).media
    return [(line.kind, line.port) for line in lines] == [("audio", 0), ("video", 0)]


@pytest.mark.parametrize("lost", [(), ("SIP/2.0 183",), ("PRACK",), ("SIP/2.0 200", "PRACK")])
def test_the_offer_of_a_reliable_response_is_answered_in_its_prack(lost):
    """Covers RFC 3262 §5 [answers-in-the-prack].

    Covers RFC 3261 §13.2.1 [answer-is-acknowledgement], RFC 6337 §5.2.4 [answers-as-if-called].
    """
    link, alice, bob = phones(early, weather=drop(*lost))
    call = alice.dial(B, 0.0, b"")
    link.run(until=3.0)
    [other] = bob.calls
    assert bodies(link, b"PRACK") == {b"new answer"}
    assert (call.local_sdp, call.remote_sdp) == (b"new answer", b"answer")
    assert (other.local_sdp, other.remote_sdp) == (b"answer", b"new answer")
    assert alice.log == [("offer", call, b"answer"), ("ringing", call, 183, b"answer")]
    other.accept(b"never sent", link.now)
    link.run(until=5.0)
    assert call.is_up and other.is_up and bodies(link, b"ACK") == {b""}
    assert alice.log[2:] == [("accepted", call, b"")] and alice.events().count("offer") == 1
    settle(link, alice, bob)


@pytest.mark.parametrize("lost", [(), ("SIP/2.0 200",), ("ACK",)])
def test_the_offer_of_a_200_is_answered_in_its_ack(lost):
    """Covers RFC 3261 §13.2.2.4 [answers-in-the-ack] [ack-again].

    Covers RFC 3261 §13.2.1 [answer-is-acknowledgement] [takes-both-exchanges].
    """
    link, alice, bob = phones(pick_up, weather=drop(*lost))
    call = alice.dial(B, 0.0, b"")
    link.run(until=3.0)
    [other] = bob.calls
    assert bodies(link, b"ACK") == {b"new answer"} and call.is_up and other.is_up
    assert (call.local_sdp, call.remote_sdp) == (b"new answer", b"answer")
    assert (other.local_sdp, other.remote_sdp) == (b"answer", b"new answer")
    assert alice.log == [("offer", call, b"answer"), ("accepted", call, b"answer")]
    settle(link, alice, bob)


def test_a_description_that_is_not_acknowledged_is_no_offer():
    """RFC 3262 §5: progress without RSeq shows what may come."""
    link, alice, script, call, invite = asked()
    script.say(accept(invite, "t", 183, OFFER), A)
    assert not pracks(script) and alice.events() == ["ringing"]
    script.say(accept(invite, "t", 200, OFFER), A)
    assert script.heard[-1].body == b"our answer" and call.remote_sdp == OFFER
    settle(link, alice)


def test_a_callee_that_makes_no_offer_has_a_call_without_a_session():
    link, alice, script, call, invite = asked()
    script.say(provisional(invite, 5, 180, b""), A)
    script.say(accept(invite, "t", 200, b""), A)
    assert [message.body for message in script.heard[1:]] == [b"", b""] and call.is_up
    assert alice.events() == ["ringing", "accepted"] and call.remote_sdp is None
    settle(link, alice)


@pytest.mark.parametrize("offer", [OFFER, b"nothing that can be read"])
def test_an_offer_in_a_183_that_is_refused_is_answered_and_the_call_cancelled(offer):
    """Covers RFC 3262 §5 [answers-in-the-prack], since no message refuses it.

    Covers RFC 6337 §5.2.4 [refuses-all-by-zeros].
    """
    link, alice, script, call, invite = asked(REFUSED)
    script.say(provisional(invite, 5, 183, offer), A)
    [prack, cancel] = script.heard[1:]
    assert (prack.method, cancel.method) == ("PRACK", "CANCEL")
    assert declines(prack.body) if offer == OFFER else not prack.body
    assert alice.log == [("offer", call, offer), ("rejected", call, 488)]
    script.say(response_to(prack, 200), A)
    script.say(response_to(cancel, 200), A)
    script.say(response_to(invite, 487, to_tag="t"), A)
    assert call.state is CallState.ENDED and alice.events() == ["offer", "rejected"]
    settle(link, alice)


def test_an_offer_in_a_200_that_is_refused_is_answered_and_a_bye_follows():
    """Covers RFC 3261 §13.2.2.4 [answers-the-unwanted] [bye-if-unwanted]."""
    link, alice, script, call, invite = asked(REFUSED)
    script.say(accept(invite, "t", 200, OFFER), A)
    [ack, bye] = script.heard[1:]
    assert (ack.method, bye.method) == ("ACK", "BYE") and declines(ack.body)
    assert alice.log == [("offer", call, OFFER), ("rejected", call, 488)]
    script.say(response_to(bye, 200), A)
    assert call.state is CallState.ENDED
    settle(link, alice)


def test_an_offer_that_crosses_our_cancel_is_answered_without_asking():
    """Covers RFC 3261 §13.2.2.4 [answers-the-unwanted]."""
    link, alice, script, call, invite = asked()
    script.say(accept(invite, "t", 180, b""), A)
    call.bye(link.now)
    script.say(accept(invite, "t", 200, OFFER), A)
    assert [each.method for each in script.heard[1:4]] == ["CANCEL", "ACK", "BYE"]
    assert declines(script.heard[2].body) and alice.events() == ["ringing"]
    settle(link, alice)


def test_the_offer_of_a_second_phone_that_is_picked_up_is_declined():
    """Covers RFC 3261 §13.2.2.4 [answers-the-unwanted]."""
    link, alice, script, call, invite = asked()
    other = Script(link, C)
    script.say(accept(invite, "one", 200, OFFER), A)
    script.say(accept(invite, "two", 200, OFFER, C), A)
    assert script.heard[-1].body == b"our answer" and call.is_up
    assert [each.method for each in other.heard[:2]] == ["ACK", "BYE"]
    assert declines(other.heard[0].body) and alice.events() == ["offer", "accepted"]
    settle(link, alice)


def test_each_phone_that_rings_has_its_answer():
    """Covers RFC 3262 §5 [answers-in-the-prack]: a session for each dialog."""
    link, alice, script, call, invite = asked()
    script.say(provisional(invite, 5, 183, OFFER, tag="one"), A)
    alice.reply_to_offer = b"another answer"
    script.say(provisional(invite, 9, 183, OFFER, tag="two"), A)
    found = {prack.to.tag: prack.body for prack in pracks(script)}
    assert found == {"one": b"our answer", "two": b"another answer"}
    script.say(accept(invite, "one", 200, b""), A)
    assert call.is_up and call.local_sdp == b"our answer"
    settle(link, alice)


def test_a_caller_that_hangs_up_when_it_is_asked_is_heard():
    link, alice, script, _call, invite = asked()

    def hang_up(call, offer, now):
        call.bye(now)
        return b"our answer"

    alice.on_offer = hang_up
    script.say(provisional(invite, 5, 183, OFFER), A)
    assert {each.method for each in script.heard[1:]} == {"PRACK", "CANCEL"} and not alice.log
    settle(link, alice)


def test_our_next_offer_waits_for_the_answer_to_the_prack():
    """It could overtake the PRACK, and would be refused."""
    link, alice, script, call, invite = asked()
    early_offer = provisional(invite, 5, 183, OFFER)
    early_offer = early_offer.replace(headers=early_offer.headers.append("Allow", "UPDATE"))
    script.say(early_offer, A)
    call.reinvite(b"wanted", link.now)
    link.run(until=link.now + 0.1)
    [prack] = pracks(script)
    assert [each.method for each in script.heard[1:]] == ["PRACK"]
    script.say(response_to(prack, 200), A)
    assert [each.method for each in script.heard[1:]] == ["PRACK", "UPDATE"]
    assert script.heard[-1].body == b"wanted"
    settle(link, alice)


def described(call, now):
    call.ring(now, 183, OFFER)


@pytest.mark.parametrize(
    "reply", [sdp(1, media=("audio 5004 RTP/AVP 0", "video 0 RTP/AVP 34")).encode(), REFUSED]
)
@pytest.mark.parametrize("react", [described, lambda call, now: call.accept(OFFER, now)])
def test_a_referee_finds_nothing(react, reply):
    """Covers RFC 3262 §5 [answers-in-the-prack], RFC 3261 §13.2.2.4 [answers-in-the-ack]."""
    link, alice, bob = phones(react)
    alice.reply_to_offer = reply
    alice.dial(B, 0.0, b"")
    link.run(until=1.0)
    if bob.calls[0].state is CallState.RINGING:
        bob.calls[0].accept(b"never sent", link.now)
    settle(link, alice, bob)
    trace = [
        Traced(at, f"{source}:5060", f"{to}:5060", transport, parse_message(data))
        for at, source, to, (transport, data) in link.sent
    ]
    assert [str(each) for each in referee(trace)] == []
