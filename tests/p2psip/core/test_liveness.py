"""Whether the peer of a call is still there: asked, heard of, or given up."""

import pytest
from support.sip.elements import Script
from support.sip.flows import A, B, C, accept, ack, called, calling, established, settle, within

from p2psip.sip.build import response_to
from p2psip.ua.ua import CallState


def listening(phone):
    """When the owner of a phone's calls heard of life, and of what was confirmed."""
    alive, confirmed = [], []
    phone.on_alive = lambda call, now: alive.append(now)
    phone.on_confirmed = lambda call, now: confirmed.append(now)
    return alive, confirmed


def asked():
    """A call whose peer, a script, has just been asked."""
    link, alice, script, call, invite = calling()
    script.say(accept(invite), A)
    heard = listening(alice)
    script.heard.clear()
    call.ask(link.now)
    call.ask(link.now)
    link.run(until=link.now + 0.1)
    return link, alice, script, call, heard[0]


@pytest.mark.parametrize("status", [200, 405, 486, 501, 603])
def test_any_answer_of_the_peer_is_life(status):
    """Covers RFC 3261 §11 [asks-within-a-call], §11.1 [options-say-accept] and §12.2.1.2."""
    link, alice, script, call, alive = asked()
    [question] = script.heard
    assert question.method == "OPTIONS" and question.headers["Accept"] == "application/sdp"
    assert question.cseq.number == 2 and not alive
    script.say(response_to(question, status), A)
    assert len(alive) == 1 and call.state is CallState.UP
    call.ask(link.now)
    link.run(until=link.now + 0.1)
    assert script.heard[-1].cseq.number == 3
    settle(link, alice)


@pytest.mark.parametrize("status", [408, 481])
def test_a_peer_that_knows_nothing_of_the_call_ends_it(status):
    """Covers RFC 3261 §12.2.1.2 [gone-ends-the-dialog] and RFC 3326 §2 [any-status]."""
    link, alice, script, _, alive = asked()
    script.say(response_to(script.heard[0], status), A)
    assert alice.events()[-1] == "ended" and not alive
    assert script.heard[-1].method == "BYE"
    assert script.heard[-1].headers["Reason"] == f"SIP;cause={status}"
    settle(link, alice)


def test_silence_ends_the_call_and_a_broken_way_shows_no_life():
    """Covers RFC 3261 §8.1.3.1: our own 408 counts as the peer's, our own 503 as nothing.

    Covers RFC 3261 §12.2.1.2 [silence-ends-the-dialog].
    """
    link, alice, _, _, alive = asked()
    del link.nodes[B]
    link.run()
    assert alice.log[-1][0] == "ended" and alice.log[-1][2] == "408 Request Timeout" and not alive
    link, alice, script, call, alive = asked()
    script.say(response_to(script.heard[0], 503), A)
    assert not alive and call.state is CallState.UP
    settle(link, alice)


def test_only_a_call_that_is_up_asks():
    """Covers RFC 3261 §12.2.1: before the answer there is nobody to ask, and after the end."""
    link, alice, script, call, _ = calling()
    call.ask(link.now)
    call.bye(link.now)
    call.ask(link.now)
    link.run(until=link.now + 0.1)
    assert [message.method for message in script.heard] == ["INVITE"]
    script.say(response_to(script.heard[0], 487, to_tag="t"), A)
    settle(link, alice)


@pytest.mark.parametrize("method", ["OPTIONS", "INFO", "UPDATE", "SUBSCRIBE"])
def test_what_the_peer_asks_is_life_too(method):
    """Own design: whatever becomes of it; what is out of order could be anybody's copy."""
    link, script, bob, invite, response = called()
    script.say(ack(invite, response), B)
    alive, _ = listening(bob)
    script.say(within(invite, response, method, 2), B)
    assert len(alive) == 1
    script.say(within(invite, response, method, 1), B)
    assert len(alive) == 1
    settle(link, bob)


def test_a_new_offer_is_confirmed_by_its_ack_or_needs_none():
    """Covers RFC 3261 §14.2 and RFC 3311 §5.2."""
    link, script, bob, invite, response = called()
    script.say(ack(invite, response), B)
    _, confirmed = listening(bob)
    script.say(within(invite, response, "INVITE", 2, b"offer 2"), B)
    assert not confirmed
    script.say(ack(invite, response, 2), B)
    assert len(confirmed) == 1
    script.say(within(invite, response, "UPDATE", 3, b"offer 3"), B)
    assert len(confirmed) == 2
    settle(link, bob)


def test_the_ack_of_a_new_offer_goes_to_the_new_target():
    """Covers RFC 3261 §12.2.1.2 [2xx-moves-the-target], §13.2.2.4 [ack-for-each] [ack-again]."""
    link, alice, script, call, invite = calling()
    moved = Script(link, C)
    script.say(accept(invite), A)
    call.reinvite(b"hold", link.now)
    link.run(until=link.now + 0.1)
    again = script.heard[-1]
    script.heard.clear()
    for _ in "ab":
        script.say(accept(again, contact=C), A)
    assert [message.method for message in moved.heard] == ["ACK", "ACK"] and not script.heard
    assert moved.heard[0] == moved.heard[1] and moved.heard[0].uri.host == C
    settle(link, alice)


def test_where_a_calls_signalling_comes_from():
    """Covers RFC 3261 §18.2.1: also within one process."""
    link, alice, bob, call, other = established()
    assert (call.peer_host, other.peer_host) == (B, A)
    call = alice.dial(A, link.now)
    link.run(until=link.now + 1.0)
    assert call.peer_host is alice.calls[-1].peer_host is None
    settle(link, alice, bob)
