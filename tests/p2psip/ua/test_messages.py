"""Instant messages: alone, one after the other, within a call, and those that are refused."""

import pytest
from support.sip.elements import Phone, Script
from support.sip.flows import (
    SDP,
    A,
    B,
    ack,
    called,
    first_request,
    names,
    phones,
    settle,
    within,
)

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.address import Address
from p2psip.sip.build import response_to
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.ua.messages import TEXT, Messages, answer
from p2psip.ua.outside import outside_request
from p2psip.ua.requests.extensions import Extensions
from p2psip.ua.requests.request_validation import CALL_METHODS

BOB = Address(Uri("sip", "bob", None, B))
WITH_MESSAGE = Extensions(methods=(*CALL_METHODS, "MESSAGE"))


class Reader(Phone):
    """A phone that takes messages outside of calls."""

    def on_request(self, server, request, now):
        if request.method == "MESSAGE" and request.to.tag is None:
            answer(server, request, self.log.append, self.agent.extensions, now)
        else:
            super().on_request(server, request, now)


def writer(peer=Reader):
    link, alice, _ = phones()
    messages, heard = Messages(alice.agent.core), []
    other = peer(link, B)

    def send(text, to=BOB):
        me = Address(Uri("sip", "alice", None, A))
        request = outside_request(
            alice.random, "MESSAGE", to, me, body=text.encode(), content_type=TEXT
        )
        messages.send(request, lambda response, now: heard.append(response.status), link.now)
        return request

    return link, other, messages, heard, send


def test_a_message_arrives_as_it_was_written():
    """Covers RFC 3428 §4 [plain-text] [no-contact] and §7 [answers-at-once] [no-body]
    [no-contact] [takes-plain-text], §9 [has-a-body].
    """
    link, bob, messages, heard, send = writer()
    request = send("Grüße")
    link.run(until=1.0)
    assert "Contact" not in request.headers and request.content_type == TEXT
    [message] = bob.log
    assert message.text == "Grüße" and message.sender.uri.user == "alice" and heard == [200]
    assert messages.pending == 0
    [answered] = [data for _, source, _, (_, data) in link.sent if source == B]
    assert answered.endswith(b"\r\n\r\n") and b"Contact" not in answered
    routed = outside_request(bytes, "MESSAGE", BOB, BOB, route=[BOB.uri])
    assert [name for name, _ in routed.headers] == [
        *("Route", "Max-Forwards", "From", "To", "Call-ID", "CSeq")
    ]


def test_messages_to_one_user_follow_each_other():
    """Covers RFC 3428 §8 [one-at-a-time]."""
    link, script, messages, heard, send = writer(Script)
    for text in ("one", "two"):
        send(text)
    send("aside", Address(Uri("sip", "carol", None, B)))
    link.run(until=0.1)
    bodies = [m.body for m in script.heard if isinstance(m, Request)]
    assert sorted(set(bodies)) == [b"aside", b"one"] and messages.pending == 3
    first = next(m for m in script.heard if m.body == b"one")
    script.say(response_to(first, 100), A)
    assert messages.pending == 3
    script.say(response_to(first, 404, to_tag="t"), A)
    assert heard == [404] and script.heard[-1].body == b"two"
    link.run()
    assert heard == [404, 408, 408] and messages.pending == 0


def test_a_message_that_is_too_large_is_not_sent():
    """Covers RFC 3428 §8 [no-more-than-1300]."""
    link, _bob, messages, _heard, send = writer()
    with pytest.raises(LocalError):
        send("x" * 1000)
    link.run(until=1.0)
    assert names(link) == [] and messages.pending == 0
    send("x" * 1000, Address(BOB.uri.with_params(transport="tcp")))


def test_too_many_that_wait_are_refused():
    _link, _script, messages, _heard, send = writer(Script)
    for _ in range(100):
        send("x")
    with pytest.raises(LocalError):
        send("x")
    assert messages.pending == 100


@pytest.mark.parametrize(
    ("changes", "status", "header"),
    [
        ({"Content_Type": SDP}, 415, "Accept"),
        ({"Content_Type": TEXT, "Content_Encoding": "gzip"}, 415, "Accept-Encoding"),
        ({"Content_Type": TEXT, "Require": "x"}, 420, "Unsupported"),
        ({"Content_Type": TEXT}, 200, "To"),
    ],
)
def test_what_is_no_text_is_refused(changes, status, header):
    """Covers RFC 3261 §8.2.3 [415-for-the-body] [415-says-encodings]."""
    link, _alice, _ = phones()
    bob, script = Reader(link, B), Script(link, A)
    response = script.say(first_request("MESSAGE", b"hi", **changes), B)
    assert response.status == status and header in response.headers
    assert len(bob.log) == (status == 200)


def test_a_message_may_be_refused_by_its_reader():
    """Covers RFC 3261 §8.2.1 [405-says-allow], for the methods that are left."""
    link, _alice, _ = phones()
    bob, script = Reader(link, B), Script(link, A)

    def refuse(message):
        raise refusal

    bob.log = type("Log", (), {"append": staticmethod(refuse)})
    refusal = RemoteError("Decline", 603)
    assert script.say(first_request("MESSAGE", b"hi", Content_Type=TEXT), B).status == 603
    refusal = RemoteError("Method Not Allowed", 405)
    bob.agent.core.extensions = WITH_MESSAGE
    refused = script.say(first_request("MESSAGE", b"hi", "2", Content_Type=TEXT), B)
    assert refused.status == 405 and refused.headers.all("Allow") == CALL_METHODS


def test_a_message_within_a_call():
    link, script, bob, invite, response = called()
    message = within(invite, response, "MESSAGE", 2, b"hi", Content_Type=TEXT)
    assert script.say(message, B).status == 405  # not among its methods
    bob.agent.core.extensions = WITH_MESSAGE
    message = within(invite, response, "MESSAGE", 3, b"hi", Content_Type=TEXT)
    assert script.say(message, B).status == 405  # its owner does not read any
    bob.on_message = lambda call, message, now: bob.log.append(("message", call, message.text))
    message = within(invite, response, "MESSAGE", 4, b"hi", Content_Type=TEXT)
    assert script.say(message, B).status == 200 and bob.log[-1][2] == "hi"
    settle(link, bob)


def test_messages_within_a_call_follow_each_other():
    """Covers RFC 3428 §8 [one-at-a-time-within] [no-more-than-1300]."""
    link, script, bob, invite, response = called()
    script.say(ack(invite, response), B)
    [call], refused = bob.calls, []
    bob.on_refused = lambda call, request, answer, now: refused.append(
        (request.body, answer.status)
    )
    script.heard.clear()
    for text in ("one", "two", "three"):
        call.message(text, link.now)
    with pytest.raises(LocalError):
        call.message("x" * 1000, link.now)
    link.run(until=link.now + 0.1)
    [first] = script.heard
    script.say(response_to(first, 100), B)
    assert [each.body for each in script.heard] == [b"one"]
    script.say(response_to(first, 202), B)
    second = script.heard[-1]
    assert (second.body, second.cseq.number) == (b"two", first.cseq.number + 1)
    script.say(response_to(second, 480), B)
    assert script.heard[-1].body == b"three" and refused == [(b"two", 480)]
    settle(link, bob)


def test_messages_that_wait_end_with_their_call():
    link, script, bob, invite, response = called()
    script.say(ack(invite, response), B)
    [call] = bob.calls
    script.heard.clear()
    for _ in range(101):
        call.message("x", link.now)
    with pytest.raises(LocalError):
        call.message("x", link.now)
    link.run(until=link.now + 0.1)
    script.say(response_to(script.heard[0], 481), B)
    assert not call.is_up and {each.method for each in script.heard} == {"MESSAGE", "BYE"}
    assert len([each for each in script.heard if each.method == "MESSAGE"]) == 1
    settle(link, bob)
