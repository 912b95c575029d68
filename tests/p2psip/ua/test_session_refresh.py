"""The session timer of a call: its terms, its refreshes, and a phone that is gone."""

import pytest
from support.sip.elements import Phone, Script
from support.sip.flows import (
    A,
    B,
    C,
    accept,
    ack,
    called,
    calling,
    established,
    names,
    phones,
    pick_up,
    settle,
    within,
)

from p2psip.sip.build import response_to
from p2psip.sip.message import Request, parse_message
from p2psip.ua.requests.extensions import Extensions
from p2psip.ua.ua import CallState

DAY = 86_400.0


def requests(link, method):
    sent = [parse_message(data) for *_, (_, data) in link.sent]
    return [m for m in sent if isinstance(m, Request) and m.method == method]


def test_a_day_of_refreshes():
    """Covers RFC 4028 §7.1 [says-it-supports] [leaves-the-refresher-open] and §4 [half-an-hour]
    and §7.4 [by-update] [update-without-offer] [terms-in-force]
    and §7.2 [looks-for-the-terms] [refresher-as-told].
    """
    link, alice, bob = phones()
    call = alice.dial(B, 0.0)
    link.run(until=1.0)
    [invite] = requests(link, "INVITE")
    assert invite.headers["Session-Expires"] == "1800" and "Min-SE" not in invite.headers
    assert "timer" in invite.headers["Supported"]
    link.run(until=DAY)
    updates = requests(link, "UPDATE")
    assert 95 <= len(updates) <= 96 and {m.body for m in updates} == {b""}
    assert {m.headers["Session-Expires"] for m in updates} == {"1800;refresher=uac"}
    assert {names(link)[-2:][0][0]} == {"A"}  # the caller refreshes
    assert call.is_up and bob.calls[0].is_up and not alice.events().count("ended")
    settle(link, alice, bob)


def test_the_side_that_does_not_refresh_keeps_the_terms_too():
    """Covers RFC 4028 §7.4 [terms-in-force] [keeps-the-interval] [keeps-the-refresher]."""
    link, alice, bob, _, other = established()
    other.reinvite(b"hold", link.now)
    link.run(until=3.0)
    [invite] = requests(link, "INVITE")
    assert invite.headers["Session-Expires"] == "1800;refresher=uas"
    settle(link, alice, bob)


@pytest.mark.parametrize("gone", ["alice", "bob"])
def test_a_phone_that_is_gone_is_noticed_by_either_side(gone):
    """Covers RFC 4028 §10 [bye-without-a-refresh]."""
    link, alice, bob, _call, _other = established()
    lost, left = (alice, bob) if gone == "alice" else (bob, alice)
    link.weather = lambda parcel, source, destination: ()
    link.run(until=2000.0)
    [about] = left.calls
    assert about.state is CallState.ENDED
    why = [event[2] for event in left.log if event[0] == "ended"]
    assert why in (["session expired"], ["408 Not Reachable"], ["408 Request Timeout"]), why
    assert lost.calls[0].state is CallState.ENDED


def test_a_refresh_moves_the_target():
    """Covers RFC 3261 §12.2.1.1 [refresh-has-a-contact] [same-contact] and §12.2.1.2
    [2xx-moves-the-target].

    Covers RFC 4028 §7.4 [keeps-the-interval]: that of the answer, not the one we asked for.
    """
    link, alice, script, call, invite = calling()
    answer = accept(invite)
    terms = [("Session-Expires", "100;refresher=uac"), ("Allow", "UPDATE"), ("Require", "timer")]
    for field in terms:
        answer = answer.replace(headers=answer.headers.append(*field))
    script.say(answer, A)
    moved = Script(link, C)
    link.run(until=link.now + 51)
    update = script.heard[-1]
    assert update.headers["Session-Expires"] == "100;refresher=uac"
    assert update.method == "UPDATE" and [each.uri for each in update.contacts] == [alice.contact]
    script.say(accept(update, contact=C, body=b""), A)
    call.bye(link.now)
    link.run(until=link.now + 0.1)
    assert [each.method for each in moved.heard] == ["BYE"]
    settle(link, alice)


def test_a_peer_without_update_is_asked_by_a_new_invite():
    """Covers RFC 4028 §7.4 [says-nothing-changed]."""
    link, alice, bob = phones()
    bob.agent.core.extensions = Extensions(methods=("INVITE", "ACK", "CANCEL", "BYE"))
    alice.dial(B, 0.0)
    link.run(until=1000.0)
    first, again = requests(link, "INVITE")
    assert not requests(link, "UPDATE") and again.body == first.body == b"offer"
    assert again.headers["Session-Expires"] == "1800;refresher=uac"
    settle(link, alice, bob)


def test_an_interval_too_short_is_refused_and_asked_for_again():
    """Covers RFC 4028 §9 [422-with-min-se] [no-less-than-90] and §7.3 [same-call-next-number]
    and §7.4 [repeats-min-se-of-422] and §7.1 [no-less-than-min-se].
    """
    link, alice, bob = phones()
    alice.agent.core.session_interval = 60
    call = alice.dial(B, 0.0)
    link.run(until=1.0)
    assert names(link)[:4] == ["A INVITE", "B 422 INVITE", "A ACK", "A INVITE"]
    first, second = requests(link, "INVITE")
    assert second.call_id == first.call_id and second.cseq.number == first.cseq.number + 1
    assert (second.from_, second.to) == (first.from_, first.to)
    assert (second.headers["Session-Expires"], second.headers["Min-SE"]) == ("90", "90")
    assert call.is_up
    link.run(until=50.0)
    [update] = requests(link, "UPDATE")
    assert update.headers["Min-SE"] == "90"
    settle(link, alice, bob)


@pytest.mark.parametrize("headers", [{"Min-SE": "much"}, {"Min-SE": "90"}])
def test_a_refusal_is_told_whatever_else_it_has(headers):
    """Own design: a header that cannot be read changes nothing of it."""
    link, alice, script, call, invite = calling()
    script.say(response_to(invite, 486, to_tag="t", headers=list(headers.items())), A)
    assert alice.log == [("rejected", call, 486)]
    settle(link, alice)


def test_terms_that_cannot_be_read_are_none():
    """Own design: of RFC 4028 §7.2, the call is up, without a timer."""
    link, _, script, call, invite = calling()
    contact = ("Contact", f"<sip:bob@{B}>")
    fine = response_to(invite, 200, to_tag="t", headers=[contact, ("Session-Expires", "soon")])
    script.say(fine.replace(body=b"answer"), A)
    assert call.is_up and not call.refresher.is_on
    call.bye(link.now)


def test_a_422_is_not_followed_beyond_reason():
    link, alice, script, call, invite = calling()
    for least in ("1801", "much", "3000"):
        invite = [m for m in script.heard if isinstance(m, Request) and m.method == "INVITE"][-1]
        script.say(response_to(invite, 422, to_tag="t", headers=[("Min-SE", least)]), A)
    assert alice.log == [("rejected", call, 422)]
    settle(link, alice)


@pytest.mark.parametrize(
    ("changes", "expected", "require"),
    [
        ({}, None, None),
        ({"Session_Expires": "300"}, "300;refresher=uas", None),
        ({"Session_Expires": "300", "Supported": "timer"}, "300;refresher=uac", "timer"),
        ({"Session_Expires": "300;refresher=uas", "Supported": "timer"}, "300;refresher=uas",
         "timer"),
        ({"Supported": "timer", "Min_SE": "2000"}, "2000;refresher=uas", "timer"),
    ],
)  # fmt: skip
def test_the_terms_in_our_answer(changes, expected, require):
    """Covers RFC 4028 §9 [requires-timer] [requires-timer-of-uas].

    And RFC 3261 §8.2.4 [only-what-it-supports] [says-what-it-applied].
    """
    link, _script, bob, _invite, response = called(**changes)
    assert response.headers.get("Session-Expires") == expected
    assert response.headers.get("Require") == require
    settle(link, bob)


def test_the_largest_min_se_is_kept():
    """Covers RFC 4028 §7.4 [repeats-min-se] [largest-min-se]."""
    terms = {"Session_Expires": "1200;refresher=uas", "Supported": "timer", "Min_SE": "1000"}
    link, script, bob, invite, response = called(Allow="UPDATE", **terms)
    script.say(ack(invite, response), B)
    update = within(invite, response, "UPDATE", 2, Session_Expires="1200", Min_SE="1100")
    script.say(update, B)
    again = within(invite, response, "UPDATE", 3, Session_Expires="1200;refresher=uas", Min_SE="95")
    script.say(again.replace(headers=again.headers.append("Supported", "timer")), B)
    link.run(until=link.now + 700)
    found = [m for m in script.heard if isinstance(m, Request) and m.method == "UPDATE"][-1]
    assert found.headers["Min-SE"] == "1100"
    settle(link, bob)


def test_a_timer_that_nobody_asked_for_is_heeded():
    """Covers RFC 4028 §7.2 [unasked-terms]."""
    link, alice, script, call, invite = calling()
    answer = accept(invite)
    headers = answer.headers.append("Session-Expires", "200;refresher=uas")
    script.say(answer.replace(headers=headers), A)
    assert call.refresher.is_on
    link.run(until=200.0)
    assert script.heard[-1].method == "BYE" and alice.log[-1][2] == "session expired"


@pytest.mark.parametrize("unknown", [405, 501])
def test_a_refusal_of_a_refresh_is_met_as_its_status_asks(unknown):
    """Covers RFC 4028 §10 [heeds-the-status], and Field §"Other words for a refusal"."""
    link, _alice, script, call, invite = calling()
    answer = accept(invite)
    headers = answer.headers.append("Session-Expires", "200;refresher=uac")
    headers = headers.append("Allow", "UPDATE")
    script.say(answer.replace(headers=headers), A)
    link.run(until=100.2)
    update = script.heard[-1]
    longer = response_to(update, 422, headers=[("Min-SE", "300")])
    update = script.say(longer, A)
    assert update.headers["Session-Expires"] == "300;refresher=uac"
    invite = script.say(response_to(update, unknown), A)
    assert invite.method == "INVITE" and invite.body == b"offer"
    script.say(response_to(invite, 500), A)
    assert call.is_up
    script.heard.clear()
    link.run(until=160.0)
    assert len({m.cseq.number for m in script.heard}) <= 2


def test_a_silent_phone_is_asked_by_a_refresh():
    link, alice, bob, call, _other = established()
    call.ask(link.now)
    link.run(until=2.0)
    assert names(link) == ["A UPDATE", "B 200 UPDATE"]
    link, alice, bob = phones(pick_up)
    bob.agent.core.extensions = Extensions(options=())
    alice.dial(B, 0.0)
    link.run(until=1.0)
    alice.calls[0].ask(link.now)
    link.run(until=2.0)
    assert names(link)[-2:] == ["A OPTIONS", "B 200 OPTIONS"]


def test_an_agent_without_the_option_has_no_timer():
    link, alice, bob = phones()
    assert isinstance(alice, Phone)
    alice.agent.core.session_interval = None
    call = alice.dial(B, 0.0)
    link.run(until=1.0)
    assert not any("Session-Expires" in m.headers for m in requests(link, "INVITE"))
    assert not call.refresher.is_on
    settle(link, alice, bob)
