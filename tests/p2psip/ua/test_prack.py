"""Provisional responses that are acknowledged: early media that counts, and its losses."""

import pytest
from support.rtmfp.link import Link
from support.sip.elements import Phone, Script
from support.sip.flows import (
    A,
    B,
    accept,
    ack,
    called,
    calling,
    drop,
    early,
    first_request,
    names,
    phones,
    pracks,
    provisional,
    ring,
    settle,
    within,
)

from p2psip.sip.build import response_to
from p2psip.sip.message import Request, parse_message
from p2psip.stack.address_validation import FACTOR
from p2psip.ua.requests.extensions import Extensions
from p2psip.ua.ua import CallState


@pytest.mark.parametrize("lost", [(), ("SIP/2.0 183",), ("PRACK",), ("SIP/2.0 183", "PRACK")])
def test_early_media_counts_and_the_answer_need_not_come_again(lost):
    """Covers RFC 3261 §8.2.4 [says-what-it-applied].

    Covers RFC 3262 §3 [requires-100rel] [2xx-for-a-match] and §4 [prack-follows]
    [says-it-supports] and §5 [early-session].

    Covers RFC 3261 §13.2.1 [answer-is-reliable] [no-offer-after-the-answer].
    """
    link, alice, bob = phones(early, weather=drop(*lost))
    call = alice.dial(B, 0.0)
    link.run(until=3.0)
    [other] = bob.calls
    assert call.state is CallState.CALLING and other.state is CallState.RINGING
    assert (call.local_sdp, call.remote_sdp) == (b"offer", b"answer")
    assert (other.local_sdp, other.remote_sdp) == (b"answer", b"offer")
    assert call.leg.session.is_settled and other.leg.session.is_settled
    assert alice.log == [("ringing", call, 183, b"answer")]
    other.accept(b"never sent", link.now)
    link.run(until=5.0)
    assert call.is_up and other.is_up
    assert (call.remote_sdp, other.local_sdp) == (b"answer", b"answer")
    final = [parse_message(d) for *_, (_, d) in link.sent if b" 200 OK" in d and b"INVITE\r" in d]
    assert final and not any(message.body for message in final)
    settle(link, alice, bob)


def test_a_200_waits_for_the_prack_of_early_media():
    """Covers RFC 3262 §5 [2xx-waits] and §3 [2xx-waits]."""
    link, alice, bob = phones(early, weather=drop("PRACK", "PRACK"))
    alice.dial(B, 0.0)
    link.run(until=0.1)
    bob.calls[0].accept(b"answer", link.now)
    link.run(until=0.4)
    assert "B 200 INVITE" not in names(link)
    link.run(until=4.0)
    sent = names(link)
    assert sent.index("B 200 PRACK") < sent.index("B 200 INVITE") and alice.calls[0].is_up
    settle(link, alice, bob)


def test_a_caller_that_cancels_while_the_200_waits_is_heard():
    link, alice, bob = phones(early, weather=drop(*["PRACK"] * 5))
    call = alice.dial(B, 0.0)
    link.run(until=0.1)
    bob.calls[0].accept(b"answer", link.now)
    call.bye(link.now)
    link.run(until=1.0)
    assert "B 487 INVITE" in names(link) and bob.events() == ["cancelled"]
    settle(link, alice, bob)


def waiting():
    """A call that was accepted while its early media still waits for the PRACK."""
    link, script, bob, invite, response = called(early, Supported="100rel")
    bob.calls[0].accept(b"answer", link.now)
    return link, script, bob, invite, response


def answers(script):
    """The final responses that a script has heard, by method; all but repetitions."""
    heard = [each for each in script.heard if not isinstance(each, Request) and each.status >= 200]
    return {each.cseq.method: each.status for each in heard}


def test_a_caller_that_hangs_up_while_the_200_waits_is_answered():
    """Covers RFC 3261 §15.1.2 [2xx-for-the-bye] [pending-are-answered] [487-for-pending]."""
    link, script, bob, invite, response = waiting()
    script.say(within(invite, response, "BYE", 2), B)
    assert answers(script) == {"BYE": 200, "INVITE": 487} and bob.events() == ["cancelled"]
    settle(link, bob)


def test_a_callee_that_hangs_up_while_the_200_waits_refuses():
    """Covers RFC 3261 §15 [no-bye-of-an-early-callee]."""
    link, script, bob, *_ = waiting()
    bob.calls[0].bye(link.now)
    link.run(until=link.now + 0.1)
    assert answers(script) == {"INVITE": 603} and bob.log == []
    settle(link, bob)


def test_a_second_invite_while_the_200_waits_is_put_off():
    """Covers RFC 3261 §14.2 [500-for-a-second] [retry-after]."""
    link, script, bob, invite, response = waiting()
    again = script.say(within(invite, response, "INVITE", 2, b"x"), B)
    assert again.status == 500 and 0 <= int(again.headers["Retry-After"]) <= 10
    assert bob.calls[0].remote_sdp == b"offer" and bob.log == []
    settle(link, bob)


def test_without_a_prack_the_call_is_refused():
    """Covers RFC 3262 §3 [5xx-without-prack] and RFC 3261 §20.32 [standard-tags-only]."""
    link, script, bob, _invite, response = called(early, Supported="100rel")
    assert response.status == 183 and response.headers["Require"] == "100rel"
    assert 1 <= int(response.headers["RSeq"]) < 2**31
    link.run(until=40.0)
    repeats = [m.headers["RSeq"] for m in script.heard if m.status == 183]
    assert len(repeats) == 7 and len(set(repeats)) == 1
    assert script.heard[-1].status == 504 and bob.events() == ["rejected"]
    settle(link, bob)


@pytest.mark.parametrize("answer", [early, ring])
@pytest.mark.parametrize("option", ["Require", "Supported"])
@pytest.mark.parametrize("padding", [0, 700])
@pytest.mark.parametrize("told", [1, 3])
def test_a_forged_source_is_sent_no_train_of_reliable_responses(answer, option, padding, told):
    """Covers RFC 3262 §3 and departs from it: an address that hears us asks again, and pays.

    A peer that is heard gets them all: see `test_without_a_prack_the_call_is_refused`.
    """
    link = Link()
    script, bob = Script(link, A), Phone(link, B, answer, trusting=False)
    invite = first_request(Subject="x" * padding, **{option: "100rel"})
    for _ in range(told):
        script.say(invite, B)
    link.run(until=100.0)
    said = [len(data) for *_, source, _, (_, data) in link.sent if source == B]
    assert 0 < len(said) < FACTOR * told and sum(said) < FACTOR * told * len(bytes(invite))
    settle(link, bob)


@pytest.mark.parametrize(
    ("changes", "answer", "reliable"),
    [
        ({}, early, False),
        ({"Supported": "timer"}, early, False),
        ({"Supported": "100rel"}, early, True),
        ({"Supported": "100rel"}, ring, False),  # nothing in it that would count
        ({"Require": "100rel"}, ring, True),
    ],
)
def test_when_a_response_is_reliable(changes, answer, reliable):
    """Covers RFC 3261 §8.2.4 [only-what-it-supports] [else-as-usual].

    And RFC 3262 §3 [required-is-done] [unasked-is-not-done].
    Covers RFC 3311 §4 [reliable-allows-update].
    """
    link, _script, bob, _invite, response = called(answer, **changes)
    assert ("RSeq" in response.headers) is reliable
    assert not reliable or "UPDATE" in response.headers.all("Allow")
    settle(link, bob)


def test_an_agent_without_the_extension_refuses_it():
    """Covers RFC 3262 §3 [420-if-unwilling]."""
    link = Link()
    bob = Phone(link, B, ring)
    bob.agent.core.extensions = Extensions(options=())
    other = Script(link, A)
    answer = other.say(first_request(Require="100rel"), B)
    assert answer.status == 420 and answer.headers["Unsupported"] == "100rel"


@pytest.mark.parametrize(
    ("octets", "first"), [("00000000", 1), ("7ffffffe", 2**31 - 1), ("7fffffff", 1)]
)
def test_the_first_number_is_any_of_those_allowed(octets, first):
    """Covers RFC 3262 §3 [first-below-2-31] [first-at-random]."""
    link = Link()
    script, bob = Script(link, A), Phone(link, B, early)
    bob.agent.core.random = lambda size: bytes.fromhex(octets)[:size]
    response = script.say(first_request(Supported="100rel", Require="100rel"), B)
    assert int(response.headers["RSeq"]) == first


def test_responses_follow_each_other_by_one_and_wait_for_each_other():
    """Covers RFC 3262 §3 [one-higher] [waits-for-the-first] [waits-for-each] [481-for-others]
    [first-below-2-31] [first-at-random].

    Covers RFC 3261 §13.2.1 [no-offer-after-the-answer].
    """
    link, script, bob, invite, first = called(early, Supported="100rel", Require="100rel")
    bob.calls[0].ring(link.now, 180, b"another")
    link.run(until=link.now + 0.1)
    rseq = int(first.headers["RSeq"])
    assert {m.headers["RSeq"] for m in script.heard} == {str(rseq)}
    wrong = within(invite, first, "PRACK", 2, RAck=f"{rseq + 1} 1 INVITE")
    assert script.say(wrong, B).status == 481
    assert script.say(within(invite, first, "PRACK", 3, RAck=f"{rseq} 2 INVITE"), B).status == 481
    script.heard.clear()
    script.say(within(invite, first, "PRACK", 4, RAck=f"{rseq} 1 INVITE"), B)
    assert [m.status for m in script.heard] == [200, 180]
    assert int(script.heard[-1].headers["RSeq"]) == rseq + 1 and not script.heard[-1].body
    bob.calls[0].accept(b"x", link.now)
    link.run(until=link.now + 0.1)
    assert script.heard[-1].status == 200  # the 180 holds nothing that the 200 must wait for
    script.heard.clear()
    late = within(invite, first, "PRACK", 5, RAck=f"{rseq + 1} 1 INVITE")
    script.say(late, B)  # RFC 3262 §3 [final-ends-repeats]
    assert [m.status for m in script.heard if m.cseq.method == "PRACK"] == [200]
    script.say(ack(invite, first), B)
    settle(link, bob)


def test_what_waits_for_a_prack_does_not_follow_the_200():
    """Covers RFC 3262 §3 [none-after-the-final]: the PRACK lets the 200 go, and nothing else."""
    link, script, bob, invite, first = called(early, Supported="100rel")
    bob.calls[0].ring(link.now, 183, b"another")
    bob.calls[0].accept(b"answer", link.now)
    rack = f"{first.headers['RSeq']} 1 INVITE"
    script.say(within(invite, first, "PRACK", 2, RAck=rack), B)
    script.say(ack(invite, first), B)
    link.run(until=link.now + 100)
    assert bob.calls[0].is_up and bob.events() == ["accepted"]
    settle(link, bob)


def test_nothing_reliable_follows_the_final_response():
    """Source: RFC 3262 §3, also when its PRACK is late."""
    link, script, bob, invite, first = called(ring, Require="100rel")
    bob.calls[0].ring(link.now, 183)
    bob.calls[0].accept(b"answer", link.now)
    link.run(until=link.now + 0.1)
    rseq = first.headers["RSeq"]
    script.say(within(invite, first, "PRACK", 2, RAck=f"{rseq} 1 INVITE"), B)
    assert 183 not in [m.status for m in script.heard if isinstance(m, type(first))]
    script.say(ack(invite, first), B)
    settle(link, bob)


def test_a_prack_may_hold_an_offer_or_the_answer():
    """Covers RFC 3262 §5 [answers-in-the-2xx], RFC 3261 §13.2.1 [offer-comes-first]."""
    link, script, bob, invite, first = called(early, Supported="100rel")
    rack = f"{first.headers['RSeq']} 1 INVITE"
    answer = script.say(within(invite, first, "PRACK", 2, b"offer 2", RAck=rack), B)
    assert (answer.status, answer.body) == (200, b"new answer")
    assert bob.calls[0].remote_sdp == b"offer 2" and bob.calls[0].local_sdp == b"new answer"
    settle(link, bob)
    link, script, bob, invite, first = called(early, Supported="100rel", body=b"")
    assert first.body == b"answer"  # which is an offer here
    rack = f"{first.headers['RSeq']} 1 INVITE"
    answer = script.say(within(invite, first, "PRACK", 2, b"ours", RAck=rack), B)
    assert (answer.status, answer.body) == (200, b"") and bob.calls[0].remote_sdp == b"ours"
    assert bob.log == [("answer", bob.calls[0], b"ours")]
    settle(link, bob)


def test_a_call_is_answered_though_a_prack_lacks_the_answer():
    """RFC 3262 §5 demands one to our offer; without it there is none to wait for either."""
    link, script, bob, invite, first = called(early, Supported="100rel", body=b"")
    rack = f"{first.headers['RSeq']} 1 INVITE"
    assert script.say(within(invite, first, "PRACK", 2, RAck=rack), B).status == 200
    [call] = bob.calls
    call.ring(link.now, 183, b"another")
    link.run(until=link.now + 0.1)
    call.accept(b"another", link.now)
    link.run(until=link.now + 0.1)
    last = [m for m in script.heard if not isinstance(m, Request)][-1]
    assert (last.status, last.body) == (200, b"")
    settle(link, bob)


def test_repeated_and_early_ones_are_dropped_by_the_caller():
    """Covers RFC 3262 §4 [prack-follows] [only-in-invite] [repeats-discarded] [gaps-ignored]."""
    link, alice, script, call, invite = calling()
    assert "100rel" in invite.headers["Supported"]
    for rseq in (7, 7, 9, 8):
        script.say(provisional(invite, rseq), A)
    found = pracks(script)
    assert [m.headers["RAck"] for m in found] == ["7 1 INVITE", "8 1 INVITE"]
    assert not any("Require" in m.headers for m in found)
    assert [about[2] for about in alice.log] == [183, 183]
    for each in found:
        script.say(response_to(each, 200), A)
    script.say(accept(invite, body=b""), A)
    assert call.is_up and call.remote_sdp == b"answer"
    settle(link, alice)
