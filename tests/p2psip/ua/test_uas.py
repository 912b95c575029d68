"""Calls that we receive: the wait for the user, for the ACK, and what cannot be a call."""

import pytest
from support.rtmfp.link import Link
from support.sip.elements import Phone, Script, random_source
from support.sip.flows import (
    A,
    B,
    ack,
    called,
    drop,
    established,
    first_request,
    names,
    phones,
    ring,
    settle,
    within,
)
from support.sip.stacks import sent

from p2psip.dialog.dialog import DialogId
from p2psip.errors import LocalError
from p2psip.sip.address import Address
from p2psip.sip.message import parse_message
from p2psip.sip.uri import Uri
from p2psip.stack.causes import NO_ANSWER
from p2psip.stack.stack import Flow, Listener, Stack
from p2psip.ua.ua import CallHandler, CallState, UserAgent


def test_nobody_picks_up_in_time():
    """Covers RFC 3261 §13.3.1.1 [every-minute] [one-dialog]."""
    link, alice, bob = phones(ring, answer_timeout=100.0)
    bob.agent.core.answer_timeout = 90.0
    call = alice.dial(B, 0.0)
    link.run(until=95.0)
    assert names(link)[:3] == ["A INVITE", "B 180 INVITE", "B 180 INVITE"]  # again every minute
    assert bob.log == [("rejected", bob.calls[0], 480)] and alice.log[-1] == ("rejected", call, 480)
    answers = [parse_message(data) for _, source, _, (_, data) in link.sent if source == B]
    assert len({DialogId.at_client(each) for each in answers if each.status < 200}) == 1
    settle(link, alice, bob)


def test_the_callers_own_limit_is_kept():
    """Covers RFC 3261 §13.3.1 [487-when-expired]."""
    link, alice, bob = phones(ring)
    call = alice.dial(B, 0.0, headers=[("Expires", "5")])
    link.run(until=6.0)
    assert alice.log[-1] == ("rejected", call, 487) and bob.events() == ["cancelled"]
    call = alice.dial(B, 6.0, headers=[("Expires", "500")])
    link.run(until=70.0)
    assert alice.log[-1] == ("rejected", call, 480)  # ours is nearer
    settle(link, alice, bob)


def test_a_lost_200_and_a_lost_ack_are_made_good():
    """Covers RFC 3261 §17.1.1.3 [2xx-ack-by-core]."""
    link, alice, bob = phones(weather=drop("SIP/2.0 200", "ACK"))
    alice.dial(B, 0.0)
    link.run(until=5.0)
    sent = [name for name in names(link) if name != "A INVITE"]
    assert sent == ["B 200 INVITE", "B 200 INVITE", "A ACK", "B 200 INVITE", "A ACK"]
    assert alice.events() == bob.events() == ["accepted"]
    settle(link, alice, bob)


def test_without_any_ack_the_callee_hangs_up():
    """Covers RFC 3261 §13.3.1.4 [ends-without-an-ack], §14.2 [bye-without-an-ack]."""
    link, alice, bob = phones(weather=drop(*["ACK"] * 99))
    call = alice.dial(B, 0.0)
    link.run(until=40.0)
    assert bob.log == [("ended", bob.calls[0], "no ACK")] and bob.calls[0].local_sdp == b"answer"
    assert alice.log == [("accepted", call, b"answer"), ("ended", call, "BYE")]
    assert names(link).count("B 200 INVITE") == 11
    settle(link, alice, bob)


def test_a_callee_who_hangs_up_before_the_ack_waits_for_it():
    """Covers RFC 3261 §15 [bye-waits-for-the-ack]."""
    link, alice, bob = phones(weather=drop("ACK"))
    alice.dial(B, 0.0)
    link.run(until=0.1)
    bob.calls[0].bye(link.now)
    assert bob.calls[0].state is CallState.ENDING
    link.run(until=0.4)
    assert "B BYE" not in names(link)
    link.run(until=1.0)
    assert names(link)[-3:] == ["A ACK", "B BYE", "A 200 BYE"] and bob.events() == []
    settle(link, alice, bob)


def test_a_bye_before_the_answer_cancels():
    """A caller may end an early dialog by BYE (RFC 3261 §15).

    Covers RFC 3261 §15.1.2 [2xx-for-the-bye] [pending-are-answered] [487-for-pending].
    """
    link, script, bob, invite, ringing = called(ring)
    answer = script.say(within(invite, ringing, "BYE", 2), B)
    statuses = {message.cseq.method: message.status for message in script.heard[1:]}
    assert statuses == {"BYE": 200, "INVITE": 487} and answer.status == 487
    assert bob.events() == ["cancelled"]
    settle(link, bob)


def test_a_refused_offer_is_explained():
    """Covers RFC 3261 §13.3.1.3 [warning-says-why]."""
    link, _, bob, _, response = called(lambda call, now: call.reject(488, "Not Acceptable", now))
    assert (response.status, response.reason) == (488, "Not Acceptable")
    assert response.headers["Warning"].startswith('399 p2psip "')
    settle(link, bob)


def test_a_callee_who_has_not_answered_refuses_and_sends_no_bye():
    """Covers RFC 3261 §15 [no-bye-of-an-early-callee]."""
    link, alice, bob = phones(ring)
    call = alice.dial(B, 0.0)
    link.run(until=1.0)
    bob.calls[0].bye(link.now)
    link.run(until=2.0)
    assert names(link) == ["A INVITE", "B 180 INVITE", "B 603 INVITE", "A ACK"]
    assert alice.log[-1] == ("rejected", call, 603) and bob.log == []
    assert any(data.startswith(b"SIP/2.0 603 Decline\r\n") for *_, (_, data) in link.sent)
    settle(link, alice, bob)


def test_an_offer_of_the_callee_is_answered_in_the_ack():
    """Covers RFC 3261 §13.2.1 [offer-comes-first] [takes-both-exchanges].

    Covers RFC 3261 §13.3.1 [offers-if-asked] and §13.3.1.4 [offer-in-the-2xx].
    """
    link, script, bob, invite, response = called(body=b"")
    assert response.body == b"answer" and bob.log == []  # here it is the offer
    assert script.say(within(invite, response, "INVITE", 2, b"x"), B).status == 491
    script.say(ack(invite, response, 1, b"the answer"), B)
    assert bob.log == [("accepted", bob.calls[0], b"the answer")]
    script.say(ack(invite, response, 1, b"the answer"), B)
    assert len(bob.log) == 1
    # The same within the call.
    response = script.say(within(invite, response, "INVITE", 3), B)
    assert response.body == b"new answer" and bob.log[1] == ("offer", bob.calls[0], None)
    script.say(ack(invite, response, 3, b"again"), B)
    assert bob.log[2] == ("answer", bob.calls[0], b"again")
    assert bob.calls[0].remote_sdp == b"again"
    settle(link, bob)


def test_a_second_invite_while_the_first_is_open():
    """Covers RFC 3261 §14.2 [500-for-a-second] [retry-after]."""
    link, script, bob, invite, response = called(ring)
    again = script.say(within(invite, response, "INVITE", 2, b"x"), B)
    assert again.status == 500 and 0 <= int(again.headers["Retry-After"]) <= 10
    update = script.say(within(invite, response, "UPDATE", 3, b"x"), B)
    assert update.status == 500 and "Retry-After" in update.headers
    settle(link, bob)


def test_what_a_200_says():
    """Covers RFC 3261 §12.1.1 [adds-a-contact] [contact-serves-outside], §13.3.1.4
    [2xx-says-what-we-can] [answer-in-the-2xx], §13.2.1 [answer-is-reliable] [takes-both-exchanges].

    Covers RFC 3311 §4 [2xx-allows-update].
    """
    link, script, bob, invite, response = called()
    assert response.body == b"answer" and bob.calls[0].remote_sdp == b"offer"
    assert "INVITE" in response.headers.all("Allow") and "100rel" in response.headers["Supported"]
    [contact] = response.contacts
    script.say(ack(invite, response), B)
    other = first_request("OPTIONS", b"", "9", Call_ID="other").replace(uri=contact.uri)
    assert bob.stack.is_ours(contact.uri) and script.say(other, B).status == 481  # there, as asked
    settle(link, bob)


class Owner(CallHandler):
    """The owner of a call, which does nothing."""


@pytest.mark.parametrize(
    ("uri", "route", "contact", "secure"),
    [
        ("sip:bob@x", "", "<sip:a@h>", False),
        ("sips:bob@x", "", "<sip:a@h>", True),
        ("sip:bob@x", "<sips:p;lr>, <sip:q;lr>", "<sip:a@h>", True),
        ("sip:bob@x", "<sip:q;lr>, <sips:p;lr>", "<sips:a@h>", False),
        ("sip:bob@x", "", "<sips:a@h>", True),
    ],
)
def test_a_secure_call_has_a_secure_contact(uri, route, contact, secure):
    """Covers RFC 3261 §12.1.1 [sips-for-sips], RFC 5630 §5.1.2 [sips-contact-for-sips]
    [refresh-stays-sips].
    """
    stack = Stack(random=random_source(B), listeners=[Listener("TLS", B, 5061)])
    agent = UserAgent(stack, random=random_source(B))
    invite = first_request(Contact=contact, Record_Route=route or None)
    invite = invite.replace(uri=Uri.parse(uri))
    flow = Flow("TLS", (A, 5061))
    server = stack._servers.open(invite, flow, 1000)
    call = agent.incoming(server, stack.contact("bob"), Owner(), 0.0)
    assert call.contact.scheme == ("sips" if secure else "sip") and stack.is_ours(call.contact)
    call.accept(b"answer", 0.0)
    [answer] = [message for message, _ in sent(stack)]
    agent.on_ack(ack(invite, answer), flow, 0.1)
    call.reinvite(b"hold", 0.2)
    [locate] = stack.take_orders()
    stack.located(locate.token, [flow], 0.2)
    [again] = [message for message, _ in sent(stack)]
    assert [each.uri for each in again.contacts] == [call.contact]


@pytest.mark.parametrize(
    ("changes", "status", "header"),
    [
        ({"Require": "teleport"}, 420, "Unsupported"),
        ({"Content_Type": "text/plain"}, 415, "Accept"),
        ({"Content_Encoding": "gzip"}, 415, "Accept-Encoding"),
        ({"Contact": None}, 400, "To"),
    ],
)
def test_an_invite_that_cannot_be_a_call(changes, status, header):
    """Covers RFC 3261 §8.2.3 [415-for-the-body] [415-says-accept] [415-says-encodings].

    And §20.12 [encoded-is-refused], §20.32 [require-is-heeded].
    """
    link, _script, bob, _invite, response = called(**changes)
    assert response.status == status and header in response.headers and response.to.tag
    assert bob.calls == []
    settle(link, bob)


@pytest.mark.parametrize(
    "changes",
    [{"Content_Type": "text/plain"}, {"Content_Encoding": "gzip"}],
)
def test_a_body_that_may_be_passed_over(changes):
    """Covers RFC 3261 §8.2.3: it is a call without an offer."""
    link, _script, bob, *_ = called(Content_Disposition="render;handling=optional", **changes)
    assert bob.calls[0].remote_sdp is None
    settle(link, bob)


def test_an_invite_that_comes_twice_on_two_paths():
    """Covers RFC 3261 §8.2.2.2 [looks-for-copies] [482-for-a-copy]."""
    link, script, bob, _invite, _response = called(ring)
    assert script.say(first_request(branch="2"), B).status == 482 and len(bob.calls) == 1
    for_carol = first_request(branch="3").replace(uri=Uri.parse(f"sip:carol@{B}"))
    assert script.say(for_carol, B).status == 180 and len(bob.calls) == 2  # a proxy rings both
    settle(link, bob)


def test_a_refusal_says_why():
    """Covers RFC 3261 §21.4.18 [480-tells-why] [480-by-the-user]."""
    link, _script, bob, _invite, response = called(
        lambda call, now: call.reject(480, "Gone Fishing", now)
    )
    assert (response.status, response.reason) == (480, "Gone Fishing")
    link, script, bob, *_ = called(ring)
    link.run(until=61.0)
    assert (script.heard[-1].status, script.heard[-1].reason) == (480, NO_ANSWER)
    settle(link, bob)


def test_a_bye_and_an_ack_for_nobody():
    """Covers RFC 3261 §15.1.2 [481-without-a-dialog], §12.2.2 [481-for-unknown]."""
    link = Link()
    script, bob = Script(link, A), Phone(link, B)
    stray = first_request("BYE", b"", To="<sip:bob@b.com>;tag=x")
    assert script.say(stray, B).status == 481
    script.say(first_request("ACK", b"", "2", To="<sip:bob@b.com>;tag=x"), B)
    assert len(script.heard) == 1
    settle(link, bob)


def test_who_calls_by_tcp_is_told_to_go_on_by_tcp():
    """Covers RFC 3261 §8.1.1.8: a Contact without a transport would mean UDP."""
    link = Link()
    script, bob = Script(link, A), Phone(link, B)
    for branch, transport, expected in (("1", "UDP", None), ("2", "TCP", "tcp")):
        invite = first_request(
            branch=branch, Call_ID=branch, Via=f"SIP/2.0/{transport} {A};branch=z9hG4bK{branch}"
        )
        script.out.append(((transport, bytes(invite)), B))
        link.run(until=link.now + 0.1)
        assert script.heard[-1].status == 200
        assert script.heard[-1].contacts[0].uri.param("transport") == expected
    to = Address(Uri.parse(f"sip:{A};transport=tcp"))
    call = bob.agent.invite(to, to, bob.contact, b"offer", bob, link.now)
    bob.calls.append(call)
    assert call.invite.contacts[0].uri.param("transport") == "tcp"
    settle(link, bob)


def test_only_a_ringing_call_can_be_accepted():
    link, alice, bob, _call, other = established()
    with pytest.raises(LocalError):
        other.accept(b"again", link.now)
    other.reject(486, "Busy Here", link.now)
    other.ring(link.now)
    link.run(until=3.0)
    assert names(link) == []
    settle(link, alice, bob)
    other.reinvite(b"after the end", link.now)
    other.info("text/plain", b"", link.now)
    link.run()
    assert alice.idle and bob.idle
