"""Within a call: BYE, INFO, UPDATE, and what a peer may not ask."""

from types import SimpleNamespace

import pytest
from support.rtmfp.link import Link
from support.sip.elements import Phone, Script
from support.sip.flows import (
    A,
    B,
    C,
    ack,
    called,
    drop,
    established,
    names,
    pick_up,
    settle,
    within,
)

from p2psip.errors import RemoteError
from p2psip.sip.message import Request
from p2psip.ua.requests.extensions import CALL_METHODS, Extensions
from p2psip.ua.ua import CallState


def test_two_byes_that_cross_end_one_call():
    link, alice, bob, call, other = established()
    call.bye(link.now)
    other.bye(link.now)
    link.run(until=2.0)
    assert sorted(names(link)) == ["A 200 BYE", "A BYE", "B 200 BYE", "B BYE"]
    assert alice.log == bob.log == []
    settle(link, alice, bob)


def test_what_a_peer_can_ask_at_any_time():
    """Covers RFC 3261 §8.2.6.1 [final-at-once], §11 [takes-options], §11.2 [lists-abilities]
    [options-without-a-body].

    And RFC 3261 §8.2 [in-this-order], §8.2.1 [looks-at-the-method] [405-for-others]
    [405-says-allow] [allow-is-what-it-takes].
    """
    link, script, bob, invite, response = called()
    script.say(ack(invite, response), B)
    told = script.say(within(invite, response, "OPTIONS", 2), B)
    assert (told.status, told.cseq.method, told.body) == (200, "OPTIONS", b"")
    for name in ("Allow", "Accept", "Accept-Encoding", "Accept-Language", "Supported"):
        assert len(told.headers.values(name)) == 1, name
    assert told.headers.all("Allow") == bob.agent.extensions.methods
    refused = script.say(within(invite, response, "PUBLISH", 3, Require="nothing"), B)
    assert refused.status == 405 and refused.headers.all("Allow") == CALL_METHODS
    assert script.say(within(invite, response, "INFO", 4, Require="nothing"), B).status == 420
    assert script.say(within(invite, response, "BYE", 5), B).status == 200
    settle(link, bob)


def test_a_bye_before_the_ack_of_a_new_offer_is_sent_once():
    link, alice, bob, call, other = established()
    link.weather = drop("ACK")
    call.reinvite(b"hold", link.now)
    link.run(until=1.1)
    link.weather = drop("BYE", "BYE")
    other.bye(link.now)
    link.run(until=3.0)
    byes = [data for _, _, _, (_, data) in link.sent if data.startswith(b"BYE")]
    assert len(byes) == 3 and len(set(byes)) == 1 and names(link).count("A ACK") == 2
    settle(link, alice, bob)


def test_info_arrives_and_its_refusal_says_why():
    link, alice, bob, call, other = established()
    other.info("application/dtmf-relay", b"Signal=5", link.now)
    link.run(until=2.0)
    assert alice.log == [("info", call, "application/dtmf-relay", b"Signal=5")]
    assert names(link) == ["B INFO", "A 200 INFO"]

    def refuse(*_):
        raise RemoteError("Unsupported Media Type", 415)

    alice.on_info = refuse
    other.info("text/plain", b"", link.now)
    link.run(until=3.0)
    assert names(link)[-1] == "A 415 INFO" and other.state is CallState.UP
    settle(link, alice, bob)


def test_a_request_to_a_call_long_gone_ends_it():
    """Covers RFC 3261 §15.1.1 [gone-is-over]."""
    link, alice, bob, call, other = established()
    other._set_state(CallState.ENDED)
    call.info("text/plain", b"hello?", link.now)
    link.run(until=5.0)
    assert alice.log == [("ended", call, "481 Call/Transaction Does Not Exist")]
    assert names(link)[-2:] == ["A BYE", "B 481 BYE"] and call.state is CallState.ENDED
    settle(link, alice, bob)


@pytest.mark.parametrize("method", ["INFO", "MESSAGE", "REFER"])
def test_a_call_that_has_ended_tells_nothing_more(method):
    """Covers RFC 3261 §15.1.1 [over-with-our-bye]: what crosses our BYE comes too late."""
    link, script, bob, invite, response = called()
    bob.agent.core.extensions = Extensions(methods=(*CALL_METHODS, "MESSAGE", "REFER"))
    script.say(ack(invite, response), B)
    bob.calls[0].bye(link.now)
    log = list(bob.log)
    late = within(invite, response, method, 2, b"x", **{"Refer-To": f"<sip:{C}>"})
    assert script.say(late, B).status == 481 and bob.log == log
    settle(link, bob)


def test_a_new_offer_proves_that_the_200_arrived():
    link, script, bob, invite, response = called()
    answer = script.say(within(invite, response, "INVITE", 2, b"hold"), B)
    assert answer.status == 200 and bob.events() == ["accepted", "offer"]
    script.say(ack(invite, response, 1), B)  # too late to mean anything
    script.say(ack(invite, response, 2), B)
    assert bob.calls[0].state is CallState.UP
    script.heard.clear()
    link.run(until=link.now + 9)
    assert script.heard == []
    settle(link, bob)


@pytest.mark.parametrize(
    ("method", "changes", "status", "header"),
    [
        ("OPTIONS", {}, 200, "Accept"),
        ("UPDATE", {}, 200, "Contact"),
        ("UPDATE", {"body": b"offer 2"}, 200, "Content-Type"),
        ("SUBSCRIBE", {}, 405, "Allow"),
        ("DANCE", {}, 405, "Allow"),
        ("INVITE", {"body": b"x", "Content_Type": "text/plain"}, 415, "Accept"),
        ("INFO", {"Require": "teleport"}, 420, "Unsupported"),
        ("INFO", {"Info_Package": "weather"}, 469, "Recv-Info"),
        ("BYE", {"CSeq": "0 BYE"}, 500, "Allow"),
        ("BYE", {"To": "<sip:bob@b.com>;tag=other"}, 481, "To"),
    ],
)
def test_requests_within_a_call(method, changes, status, header):
    """Covers RFC 3311 §5.2 [answers-in-the-2xx], RFC 3261 §15.1.2 [bye-in-its-order]."""
    link, script, bob, invite, response = called()
    script.say(ack(invite, response), B)
    answer = script.say(within(invite, response, method, 2, **changes), B)
    assert answer.status == status and header in answer.headers
    assert bob.calls[0].state is CallState.UP
    if changes.get("body") == b"offer 2":
        assert answer.body == b"new answer" and bob.calls[0].remote_sdp == b"offer 2"
    settle(link, bob)


def test_a_peer_that_moves_is_followed():
    """Covers RFC 3261 §12.2.2 [contact-moves-the-target]: of a re-INVITE or UPDATE."""
    for method, body in (("INVITE", b"x"), ("UPDATE", b"")):
        link, script, bob, invite, response = called()
        moved = Script(link, C)
        script.say(ack(invite, response), B)
        answer = script.say(within(invite, response, method, 2, body, Contact=f"<sip:{C}>"), B)
        assert answer.status == 200
        bob.calls[0].bye(link.now)
        link.run(until=link.now + 0.1)
        assert [message.method for message in moved.heard] == ["BYE"]
        settle(link, bob)


def test_a_dialog_lasts_as_long_as_any_use_of_it():
    """Covers RFC 3261 §12.1.1 [kept-for-the-dialog], §12.1.2 [kept-for-the-dialog]."""
    link, alice, bob, call, other = established()
    other_use = SimpleNamespace(takes=lambda request: False, on_alive=lambda now: None)
    call.leg.shared.attach(other_use)
    link.run(until=600.0)
    assert (alice.agent.dialogs, bob.agent.dialogs) == (1, 1)
    other.bye(link.now)
    link.run(until=link.now + 0.1)
    assert call.state is CallState.ENDED and (alice.agent.dialogs, bob.agent.dialogs) == (1, 0)
    call.leg.shared.detach(other_use)
    assert alice.agent.dialogs == 0
    settle(link, alice, bob)


def test_a_call_that_ends_takes_no_new_offers():
    link, script, bob, invite, response = called()
    bob.calls[0].bye(link.now)
    answer = script.say(within(invite, response, "INVITE", 2, b"x"), B)
    assert answer.status == 481
    script.say(ack(invite, response), B)
    assert [m.method for m in script.heard if isinstance(m, Request)][-1] == "BYE"
    assert script.say(within(invite, response, "UPDATE", 3, b"x"), B).status == 491
    settle(link, bob)


def test_a_call_to_ourselves_needs_no_network():
    link = Link()
    alice = Phone(link, A, pick_up)
    call = alice.dial(A, 0.0)
    link.run(until=1.0)
    other = alice.calls[1]
    assert call.state is other.state is CallState.UP and alice.agent.dialogs == 2
    call.reinvite(b"hold", link.now)
    link.run(until=2.0)
    assert other.remote_sdp == b"hold"
    other.bye(link.now)
    settle(link, alice)
    assert link.sent == []
