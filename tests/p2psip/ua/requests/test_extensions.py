"""What a user agent announces, and how it meets what it does not know."""

import pytest
from support.sip.flows import (
    B,
    ack,
    called,
    established,
    first_request,
    names,
    phones,
    pick_up,
    ring,
    settle,
    within,
)
from support.sip.stacks import lone_stack

from p2psip.errors import LocalError, RemoteError
from p2psip.net.phone.phone_core import user_agent_of
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request, Response, parse_message
from p2psip.ua.requests.extensions import Extensions, listed
from p2psip.ua.requests.request_validation import CALL_METHODS, RefusalError


def test_an_unknown_option_is_refused_by_name():
    ours = Extensions(options=("100rel", "timer"))
    ours.refuse_unknown(first_request(Require="100rel"))
    with pytest.raises(RefusalError) as refusal:
        ours.refuse_unknown(first_request(Require="100rel, teleport, fold"))
    assert refusal.value.headers == [("Unsupported", "teleport, fold")]


def test_extensions_are_of_the_standards_track():
    """Covers RFC 3261 §8.1.1.9 [standard-extensions], RFC 3891 §6.2 [says-replaces]."""
    # Source: RFC 3262, RFC 4028, RFC 3891 and RFC 5627, all of them proposed standards
    standard = {"100rel", "timer", "replaces", "gruu"}
    phone = user_agent_of(lone_stack(), answer_timeout=30.0).extensions
    told = {*Extensions().headers(), *phone.headers()}
    lists = [value.split(", ") for name, value in told if name == "Supported"]
    assert set().union(*lists) == standard


def test_a_call_names_what_its_callee_has_to_know():
    """Covers RFC 3261 §8.1.1.9 [insists-by-require], RFC 3262 §4 [only-in-invite]."""
    link, alice, bob = phones()
    alice.agent.core.extensions = Extensions(required=("100rel",))
    call = alice.dial(B, link.now)
    link.run(until=1.0)
    assert call.is_up and bob.calls[0].invite.headers.all("Require") == ("100rel",)
    settle(link, alice, bob)
    requests = [parse_message(data) for *_, (_, data) in link.sent if not data.startswith(b"SIP")]
    assert {each.method for each in requests if "Require" in each.headers} == {"INVITE"}


def test_a_callee_that_lacks_what_is_required_is_not_called_again():
    link, alice, bob = phones()
    alice.agent.core.extensions = Extensions(required=("100rel",))
    bob.agent.core.extensions = Extensions(options=("timer",))
    alice.dial(B, link.now)
    link.run(until=1.0)
    assert names(link) == ["A INVITE", "B 420 INVITE", "A ACK"] and alice.log[-1][2] == 420
    settle(link, alice, bob)


def test_no_extension_is_required_twice():
    """Covers RFC 3261 §8.1.1.9 [insists-by-require]."""
    assert Extensions().require("timer", "100rel", "timer") == [("Require", "timer, 100rel")]
    assert Extensions().require() == []


def test_allow_has_every_method_that_is_taken():
    """Covers RFC 3261 §13.1 [calls-end-too], §20.5 [allow-lists-all]."""
    link, script, bob, invite, response = called()
    bob.agent.core.extensions = Extensions(methods=(*CALL_METHODS, "MESSAGE"))
    of_calls = ("INVITE", "ACK", "CANCEL", "BYE", "OPTIONS", "INFO", "UPDATE", "PRACK")
    assert of_calls == CALL_METHODS
    assert set(bob.agent.extensions.allow.split(", ")) == {*CALL_METHODS, "MESSAGE"}
    assert {"ACK", "CANCEL", "BYE"} < set(response.headers.all("Allow"))
    script.say(ack(invite, response), B)
    answer = script.say(within(invite, response, "OPTIONS", 2), B)
    assert set(answer.headers.all("Allow")) == {*CALL_METHODS, "MESSAGE"}
    settle(link, bob)


def test_a_peer_that_says_nothing_of_its_methods_keeps_them():
    """Covers RFC 3261 §20.5 [no-allow-says-nothing]."""
    link, alice, bob, call, _ = established()
    assert call.leg.allows("UPDATE")
    call.leg.learn(Response(200, "OK"))
    assert call.leg.allows("UPDATE")
    call.leg.learn(Response(200, "OK", Headers([("Allow", "INVITE")])))
    assert not call.leg.allows("UPDATE")
    settle(link, alice, bob)


def test_a_dialog_begins_with_the_list_of_info_packages():
    """Covers RFC 6086 §5.2.2 [lists-packages] [empty-list]."""
    link, script, bob, invite, response = called()
    assert response.headers.values("Recv-Info") == ("",)
    assert "INFO" in response.headers["Allow"]
    script.say(ack(invite, response), B)
    settle(link, bob)
    ours = Extensions(info_packages=("dtmf", "trickle-ice"))
    assert ("Recv-Info", "dtmf, trickle-ice") in ours.headers()


def test_both_sides_list_their_packages_in_each_message_that_makes_the_dialog():
    """Covers RFC 6086 §5.2.3 [invite-lists] [answer-lists] [same-list-throughout]."""
    link, alice, bob = phones(ring)
    bob.agent.core.extensions = Extensions(info_packages=("dtmf", "weather"))
    alice.dial(B, link.now)
    link.run(until=1.0)
    pick_up(bob.calls[0], link.now)
    link.run(until=2.0)
    sent = [parse_message(data) for *_, (_, data) in link.sent]
    [invite] = [each for each in sent if isinstance(each, Request) and each.method == "INVITE"]
    assert invite.headers.values("Recv-Info") == ("",)
    answers = {
        each.status: each.headers.values("Recv-Info") for each in sent if isinstance(each, Response)
    }
    assert answers[180] == answers[200] == ("dtmf, weather",)
    settle(link, alice, bob)


def test_a_refused_offer_leaves_the_list_of_packages():
    """Covers RFC 6086 §5.2.4 [refusal-keeps-the-list]."""
    link, alice, bob, call, other = established()
    alice.agent.core.extensions = Extensions(info_packages=("dtmf",))
    bob.reply_to_offer = RemoteError("Not Acceptable Here", 488)
    call.reinvite(b"hold", link.now)
    link.run(until=2.0)
    assert "B 488 INVITE" in names(link) and not other.leg.receives("dtmf")
    bob.reply_to_offer = b"held"
    call.reinvite(b"hold", link.now)
    link.run(until=3.0)
    assert other.leg.receives("dtmf")
    settle(link, alice, bob)


def test_an_info_of_an_unknown_package_is_refused_with_the_list():
    """Covers RFC 6086 §4.2.2 [469-lists-packages] [200-otherwise], §4.3.2
    [bodies-in-requests-only] and §5.2.2 [stays-prepared].
    """
    link, script, bob, invite, response = called()
    script.say(ack(invite, response), B)
    bob.agent.core.extensions = Extensions(info_packages=("dtmf",))
    answer = script.say(within(invite, response, "INFO", 2, Info_Package="fax"), B)
    assert (answer.status, answer.headers["Recv-Info"]) == (469, "dtmf")
    answer = script.say(within(invite, response, "INFO", 3, Info_Package="DTMF;x=1"), B)
    assert answer.status == 200 and bob.log[-1][0] == "info" and bob.log[-1][-1] == "dtmf"
    assert answer.body == b""
    assert [event for event in bob.events() if event == "info"] == ["info"]
    settle(link, bob)


def test_an_info_is_sent_for_packages_that_the_peer_receives():
    """Covers RFC 6086 §4.2.1 [names-its-package] [legacy-names-none] [no-recv-info]
    [only-in-a-call] [469-keeps-the-call] and §5.2.2 [waits-for-the-list].
    """
    ours = Extensions(info_packages=("dtmf",))
    link, alice, bob = phones()
    bob.agent.core.extensions = ours
    call = alice.dial(B, link.now)
    call.info("text/plain", b"too early", link.now)
    link.run(until=1.0)
    assert "A INFO" not in names(link)
    with pytest.raises(LocalError):
        call.info("text/plain", b"5", link.now, "fax")
    with pytest.raises(LocalError):  # alice receives none
        bob.calls[0].info("text/plain", b"5", link.now, "dtmf")
    call.info("text/plain", b"5", link.now, "dtmf")
    call.info("text/plain", b"6", link.now)
    link.run(until=2.0)
    infos = [parse_message(data) for *_, (_, data) in link.sent if data.startswith(b"INFO")]
    assert [each.headers.get("Info-Package") for each in infos] == ["dtmf", None]
    assert not any("Recv-Info" in each.headers for each in infos)
    bob.agent.core.extensions = Extensions()  # it changes its mind
    alive = []
    alice.on_alive = lambda call, now: alive.append(call)
    call.info("text/plain", b"7", link.now, "dtmf")
    link.run(until=3.0)
    assert names(link)[-1] == "B 469 INFO" and call.is_up and alive == [call]
    settle(link, alice, bob)


def test_a_list_is_read_in_any_case_and_on_any_number_of_lines():
    request = first_request(extra=[("Recv-Info", "A, b"), ("Recv-Info", "")])
    assert listed(request, "Recv-Info") == {"a", "b"}
    assert listed(request, "Supported") is None
