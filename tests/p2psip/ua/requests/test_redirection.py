"""Calls that are redirected: once, in order, never in a circle, and only where it is wanted."""

import pytest
from support.rtmfp.link import Link
from support.sip.elements import Phone, Script
from support.sip.flows import A, B, accept, names, settle

from p2psip.sip.build import response_to
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.ua.requests.redirection import Redirection
from p2psip.ua.ua import CallState


def moved(invite, *contacts, status=302):
    return response_to(invite, status, to_tag="t", headers=[("Contact", each) for each in contacts])


def calling(most):
    link = Link()
    alice, script = Phone(link, A), Script(link, B)
    alice.agent.core.max_redirects = most
    call = alice.dial(B, 0.0, headers=[("Subject", "lunch")])
    link.run(until=0.1)
    return link, alice, script, call


def last_invite(script):
    return [m for m in script.heard if isinstance(m, Request) and m.method == "INVITE"][-1]


def test_the_addresses_of_a_redirection_are_called_in_order():
    """Covers RFC 3261 §8.1.3.4 [recurses] [same-call] [same-in-all-else] [tries-the-next]
    [whole-uri].
    """
    link, alice, script, call = calling(5)
    first = last_invite(script)
    low, high = f"<sip:low@{B};x=y>;q=0.1", f"<sip:high@{B};method=BYE?Subject=dinner>;q=0.9"
    script.say(moved(first, low, high), A)
    second = last_invite(script)
    assert str(second.uri) == f"sip:high@{B}" and second.headers["Subject"] == "lunch"
    assert (second.from_, second.to, second.call_id) == (first.from_, first.to, first.call_id)
    assert second.cseq.number == 2 and second.body == first.body
    assert second.via.branch != first.via.branch
    script.say(response_to(second, 486, to_tag="u"), A)
    third = last_invite(script)
    assert str(third.uri) == f"sip:low@{B};x=y" and alice.log == []
    script.say(accept(third), A)
    assert call.is_up and alice.events() == ["accepted"]
    settle(link, alice)


def test_a_circle_ends():
    """Covers RFC 3261 §8.1.3.4 [never-twice]."""
    link, alice, script, call = calling(5)
    script.say(moved(last_invite(script), f"<sip:user@{B}>", f"<sip:one@{B}>"), A)
    script.say(moved(last_invite(script), f"<sip:user@{B}>", f"<sip:one@{B}>"), A)
    assert alice.log == [("rejected", call, 302)] and call.state is CallState.ENDED
    assert names(link).count("A INVITE") == 2


def test_there_is_a_bound():
    _link, alice, script, call = calling(2)
    for number in range(3):
        script.say(moved(last_invite(script), f"<sip:next{number}@{B}>"), A)
    assert alice.log == [("rejected", call, 302)]


@pytest.mark.parametrize("status", [300, 301, 302, 399])
def test_what_is_followed(status):
    """Covers RFC 3261 §8.1.3.2 [unknown-is-x00] [knows-x00]: any other 3xx counts as a 300.

    And §21.3.1 [tries-a-choice], §21.3.2 [301-is-followed], §21.3.3 [302-is-followed]
    [not-remembered].
    """
    link, alice, script, _call = calling(5)
    script.say(moved(last_invite(script), f"<sip:other@{B}>", status=status), A)
    assert str(last_invite(script).uri) == f"sip:other@{B}" and alice.log == []
    alice.dial(B, link.now)
    link.run(until=link.now + 0.1)
    assert str(last_invite(script).uri) == f"sip:user@{B}"


@pytest.mark.parametrize(("most", "status"), [(0, 302), (5, 305), (5, 380), (5, 400), (5, 603)])
def test_what_is_not_followed(most, status):
    """Covers RFC 3261 §8.1.3.2 [unknown-is-x00] [knows-x00]: but two, and what is no 3xx."""
    _link, alice, script, call = calling(most)
    script.say(moved(last_invite(script), f"<sip:other@{B}>", status=status), A)
    assert alice.log == [("rejected", call, status)]


def test_a_global_failure_ends_it():
    _link, alice, script, call = calling(5)
    script.say(moved(last_invite(script), f"<sip:one@{B}>", f"<sip:two@{B}>"), A)
    script.say(response_to(last_invite(script), 603, to_tag="u"), A)
    assert alice.log == [("rejected", call, 603)]


def test_a_caller_that_gave_up_is_not_sent_elsewhere():
    link, _alice, script, call = calling(5)
    invite = last_invite(script)
    script.say(response_to(invite, 180, to_tag="t"), A)
    call.bye(link.now)
    link.run(until=link.now + 0.1)
    script.say(moved(invite, f"<sip:one@{B}>"), A)
    assert call.state is CallState.ENDED and names(link).count("A INVITE") == 1


@pytest.mark.parametrize(
    ("contact", "found"),
    [
        ("*", None),
        ("<tel:1>", None),
        ("<sips:x@b>", None),
        ("<sip:x@b>;q=2", "sip:x@b"),
        ("<sip:x@b>;q=x", "sip:x@b"),
    ],
)
def test_addresses_of_other_kinds(contact, found):
    """Covers RFC 5630 §5.1.1 [sips-stays-sips]."""
    _link, _alice, script, _call = calling(0)
    target = Redirection(Uri("sip", "a", host="b"), 5).next(moved(last_invite(script), contact))
    assert (None if target is None else str(target)) == found


@pytest.mark.parametrize(("status", "target"), [(416, None), (480, None), (302, "sip:bob@b")])
def test_a_refusal_by_its_scheme_offers_no_other_address(status, target):
    """Covers RFC 5630 §5.1.1 [refusal-is-no-leave]."""
    headers = [("Warning", '380 b "SIPS Not Allowed"'), ("Contact", "<sip:bob@b>")]
    refusal = response_to(calling(0)[3].invite, status, to_tag="t", headers=headers)
    found = Redirection(Uri.parse("sips:bob@b"), 5).next(refusal)
    assert (None if found is None else str(found)) == target
