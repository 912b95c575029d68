"""Requests outside of calls that are redirected: followed as INVITEs are, where it is wanted."""

import pytest
from support.rtmfp.link import Link, calm
from support.sip.elements import Phone, Script
from support.sip.flows import A, B, C
from support.sip.homes import BOB, HOME, Member
from support.sip.watchers import Watcher

from p2psip.dialog.subscription import State
from p2psip.sip.address import Address
from p2psip.sip.auth import Challenge
from p2psip.sip.build import response_to
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.ua.messages import TEXT, Messages
from p2psip.ua.outside import outside_request
from p2psip.ua.requests.authenticated_request import AuthenticatedRequest
from p2psip.ua.requests.digest_client import DigestClient, Login

BOB_AT_B = Address(Uri("sip", "bob", host=B))


def moved(request, *contacts, status=302):
    headers = [("Contact", each) for each in contacts]
    return response_to(request, status, to_tag="t", headers=headers)


def last(script, method="MESSAGE"):
    return [m for m in script.heard if isinstance(m, Request) and m.method == method][-1]


def writing(most):
    """A message to a peer that is played by the test, and what its sender hears of it."""
    link = Link()
    alice, script, heard = Phone(link, A), Script(link, B), []
    alice.agent.core.max_redirects = most
    messages, me = Messages(alice.agent.core), Address(Uri("sip", "alice", host=A))

    def send(text):
        request = outside_request(
            alice.random, "MESSAGE", BOB_AT_B, me, body=text, content_type=TEXT
        )
        messages.send(request, lambda response, now: heard.append(response.status), link.now)

    send(b"one"), send(b"two")
    link.run(until=0.1)
    return script, heard, messages


def test_a_message_goes_where_its_reader_is():
    """Covers RFC 3261 §8.1.3.4 [recurses] [same-call] [same-in-all-else] and RFC 3428 §8
    [one-at-a-time]: the next one waits until the first has found its reader.
    """
    script, heard, messages = writing(5)
    first = last(script)
    script.say(moved(first, f"<sip:low@{B}>;q=0.1", f"<sip:high@{B}?Subject=x>;q=0.9"), A)
    second = last(script)
    assert str(second.uri) == f"sip:high@{B}" and second.body == first.body == b"one"
    assert (second.from_, second.to, second.call_id) == (first.from_, first.to, first.call_id)
    assert second.cseq.number == 2 and second.content_type == TEXT
    script.say(response_to(second, 404, to_tag="u"), A)
    third = last(script)
    assert str(third.uri) == f"sip:low@{B}" and third.cseq.number == 3 and heard == []
    script.say(response_to(third, 200, to_tag="v"), A)
    assert heard == [200] and last(script).body == b"two" and messages.pending == 1
    assert str(last(script).uri) == f"sip:bob@{B}"


@pytest.mark.parametrize(("most", "followed"), [(0, 0), (2, 2), (5, 4)])
def test_there_is_a_bound_and_no_circle(most, followed):
    """Covers RFC 3261 §8.1.3.4 [never-twice]."""
    script, heard, _ = writing(most)
    for number in range(5):
        if not heard:
            script.say(moved(last(script), f"<sip:next{min(number, 3)}@{B}>"), A)
    assert heard[:1] == [302]
    ones = {str(m.uri) for m in script.heard if isinstance(m, Request) and m.body == b"one"}
    assert len(ones) == 1 + followed


def test_a_subscription_begins_where_its_notifier_is():
    """Covers RFC 3261 §8.1.3.4 [recurses]."""
    link = Link()
    alice, script, bob = Watcher(link, A), Script(link, B), Watcher(link, C)
    alice.agent.core.max_redirects = 5
    watch = alice.subscribe(B, 0.0)
    link.run(until=0.1)
    script.say(moved(last(script, "SUBSCRIBE"), f"<sip:bob@{C}>"), A)
    link.run(until=5.0)
    assert watch.state is State.ACTIVE and alice.heard == [b"state 1"]
    watch.end(link.now)
    link.run()
    assert alice.idle and bob.idle and not bob.served


def test_a_registrar_may_name_another():
    """Covers RFC 3261 §8.1.3.4 [recurses]; each REGISTER begins at the first one again."""
    link = Link(calm())
    script, bob = Script(link, HOME), Member(link, BOB, "bob")
    registration = bob.register(link.now, expires=100, max_redirects=1)
    link.run(until=0.1)
    for at in (0, 1):
        first = last(script, "REGISTER")
        assert str(first.uri) == "sip:home"
        script.say(moved(first, "<sip:home;line=2>"), BOB)
        second = last(script, "REGISTER")
        assert str(second.uri) == "sip:home;line=2" and second.contacts == first.contacts
        script.say(response_to(second, 200, headers=[("Expires", 100)]), BOB)
        assert bob.heard == [100] and not registration.pending
        link.run(until=85.0 * (at + 1))


def test_the_password_stays_with_its_server():
    """Own design: whoever may redirect, a proof that words can be tried on is for one server."""
    link, heard = Link(), []
    alice, script, other = Phone(link, A), Script(link, B), Script(link, C)
    digest_client = DigestClient(Login("alice", "zanzibar", server=Uri("sip", None, host=B)), bytes)
    me = Address(Uri("sip", "alice", host=A))

    class Asker:
        def on_response(self, exchange, response, now):
            heard.append(response.status)

    numbers = iter(range(2, 9)).__next__
    exchange = AuthenticatedRequest(alice.stack, Asker(), numbers, digest_client, max_redirects=5)
    exchange.send(outside_request(alice.random, "OPTIONS", BOB_AT_B, me), 0.0)
    link.run(until=0.1)
    challenge = ("WWW-Authenticate", Challenge.digest("r", nonce="n"))
    script.say(response_to(last(script, "OPTIONS"), 401, to_tag="t", headers=[challenge]), A)
    asked = last(script, "OPTIONS")
    assert "Authorization" in asked.headers
    script.say(moved(asked, f"<sip:bob@{C}>"), A)
    assert "Authorization" not in last(other, "OPTIONS").headers
    refusal = response_to(last(other, "OPTIONS"), 401, to_tag="t", headers=[challenge])
    other.say(refusal, A)
    assert heard == [401] and len([m for m in other.heard if isinstance(m, Request)]) == 1
