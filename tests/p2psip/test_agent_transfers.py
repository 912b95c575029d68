"""Agents on loopback that transfer calls: blind, attended, refused; and one that is referred."""

import gevent
import pytest
from support.limits import patience

from p2psip.agent import Agent
from p2psip.errors import LocalError, RemoteError
from p2psip.net.media.port_pool import NoPortsError
from p2psip.net.phone.settings import Account
from p2psip.ua.event_bodies import MessageSummary


@pytest.fixture
def agents():
    """Alice, Bob and Carol; the latter two answer every call, and keep it in `taken`."""
    found = [Agent(Account(name)) for name in ("alice", "bob", "carol")]
    for agent in found[1:]:
        agent.taken = []

        def on_call(call, agent=agent):
            call.on_transfer = lambda target: True
            call.on_transferred = agent.taken.append
            call.answer(timeout=20)
            agent.taken.append(call)

        agent.on_call = on_call
    yield found
    for agent in found:
        agent.close(timeout=0.5)


def uri(agent):
    host, port = agent.address
    return f"sip:{agent.user}@{host}:{port}"


def wait_for(condition):
    with patience(20):
        while not condition():
            gevent.sleep(0.005)


def test_a_blind_transfer(agents):
    alice, bob, carol = agents
    call = alice.call(uri(bob))
    call.transfer(uri(carol), timeout=20)
    wait_for(lambda: len(bob.taken) == 2 and carol.taken)
    new = bob.taken[1]
    assert new.is_up and new.remote.uri.user == "carol" and carol.taken[0].remote.uri.user == "bob"
    assert call.is_up
    call.hangup()
    wait_for(lambda: bob.taken[0].is_over)
    assert new.is_up


def test_a_transfer_is_refused_unless_it_is_allowed(agents):
    alice, bob, carol = agents
    call = alice.call(uri(bob))
    wait_for(lambda: bob.taken)
    bob.taken[0].on_transfer = lambda target: False
    with pytest.raises(RemoteError, match="603"):
        call.transfer(uri(carol), timeout=20)
    assert call.is_up and not carol.taken
    with pytest.raises(LocalError):
        call.transfer("sip:<", timeout=20)
    carol.on_call = lambda call: call.reject(486, "Busy Here")
    bob.taken[0].on_transfer = lambda target: True
    with pytest.raises(RemoteError, match="486"):
        call.transfer(uri(carol), timeout=20)
    assert call.is_up


def test_an_attended_transfer(agents):
    alice, bob, carol = agents
    first, second = alice.call(uri(bob)), alice.call(uri(carol))
    wait_for(lambda: bob.taken and carol.taken)
    with pytest.raises(RemoteError, match="403"):  # nobody may take alice's place at carol's
        first.transfer(second, timeout=20)
    asked = []
    carol.on_replace = lambda call, sender: asked.append((call, sender.uri.user)) or True
    first.transfer(second, timeout=20)
    wait_for(lambda: len(carol.taken) == 2 and len(bob.taken) == 2)
    assert asked == [(carol.taken[0], "bob")]
    wait_for(lambda: second.is_over and carol.taken[0].is_over)
    assert carol.taken[0].reason == "replaced" and carol.taken[1].is_up and bob.taken[1].is_up
    first.hangup()
    with pytest.raises(LocalError):
        first.transfer(second)


def test_a_phone_is_asked_to_call_from_outside_of_any_call(agents):
    """Covers RFC 3515 §2 [outside-of-calls] [one-contact], §2.4.2 [asks-the-user]."""
    alice, bob, carol = agents
    with pytest.raises(RemoteError, match="603"):
        alice.refer(uri(bob), uri(carol), timeout=20)
    asked, told = [], []
    bob.on_refer = lambda target, sender: asked.append((target.uri.user, sender.uri.user)) or True
    bob.on_referred = bob.taken.append
    alice.refer(uri(bob), uri(carol), timeout=20, on_progress=lambda *what: told.append(what))
    assert asked == [("carol", "alice")] and told[-1] == (200, "OK")
    wait_for(lambda: bob.taken and carol.taken)
    assert bob.taken[0].is_up and bob.taken[0].referral.target.uri.user == "carol"
    carol.on_call = lambda call: call.reject(486, "Busy Here")
    with pytest.raises(RemoteError, match="486"):
        alice.refer(uri(bob), uri(carol), timeout=20)
    wait_for(lambda: bob._ua.dialogs == len(bob.calls) == 1)
    assert not bob._ua._subscriptions.used


def test_a_call_that_cannot_be_placed_is_told_to_who_asked_for_it(agents, monkeypatch):
    alice, bob, carol = agents
    bob.on_refer = lambda target, sender: True

    def no_ports(referral):
        raise NoPortsError("none")

    monkeypatch.setattr(bob, "_follow", no_ports)
    with pytest.raises(RemoteError, match="503"):
        alice.refer(uri(bob), uri(carol), timeout=20)


def test_a_subscription_is_refused_unless_it_is_allowed(agents):
    """Covers RFC 6665 §4.2.1.3 [403-without-leave]."""
    alice, bob, _carol = agents
    for event, status in (("presence", "489"), ("dialog", "403"), ("message-summary", "403")):
        with pytest.raises(RemoteError, match=status):
            alice.subscribe(uri(bob), event, lambda content_type, body: None, timeout=20)


def test_calls_and_messages_are_told_to_those_who_may_know(agents):
    """Covers RFC 6665 §3.1.2."""
    alice, bob, carol = agents
    asked, heard = [], []
    bob.serving.may_watch = lambda package, sender: asked.append((package, sender.uri.user)) or True
    bob.mailbox(1)
    watch = alice.subscribe(uri(bob), "message-summary", lambda *told: heard.append(told), 5)
    bob.mailbox(2, 8)
    wait_for(lambda: len(heard) == 2)
    assert [MessageSummary.parse(body).new for _, body in heard] == [1, 2]
    assert heard[0][0] == "application/simple-message-summary"
    assert watch.close() and watch.reason == "timeout"
    heard.clear()
    watch = alice.subscribe(uri(bob), "dialog", lambda *told: heard.append(told), 5)
    assert asked == [("message-summary", "alice"), ("dialog", "alice")]
    call = carol.call(uri(bob))
    wait_for(lambda: b"<state>confirmed</state>" in heard[-1][1])
    assert b'direction="recipient"' in heard[-1][1] and b"sip:carol@" in heard[-1][1]
    call.hangup()
    wait_for(lambda: b"<dialog " not in heard[-1][1])
    assert len({body for _, body in heard}) == len(heard)  # each has a version of its own
    bob.close(timeout=0.2)
