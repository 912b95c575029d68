"""Our agent and linphonec: hold, keys, messages, and attended transfers in each of the roles.

linphonec sends a message to the standard port, whatever address it is given: so the agents are at
that port, of loopback addresses of their own.
"""

import os

import pytest
from support.peers.linphone import Linphone
from support.peers.process import wait_until

from p2psip.agent import Agent

PATIENCE = 20  # s
SETTINGS = """\
100rel_support_level=2
session_expires_enabled=1
session_expires_value=300
session_expires_min_value=90
session_expires_refresher_value=1
"""
pytestmark = pytest.mark.needs("linphonec")
BOTH = pytest.mark.parametrize("transport", ["udp", "tcp"])


def until(condition, what):
    wait_until(condition, what=what, timeout=PATIENCE)


@pytest.fixture
def agents():
    """Bob and Carol, who answer, follow transfers, and let calls be replaced; see `taken`."""
    net = ".".join(str(1 + byte % 250) for byte in os.urandom(2))
    found = [Agent((f"127.{net}.{last}", 5060), user) for last, user in ((1, "bob"), (2, "carol"))]
    for agent in found:
        agent.taken, agent.keys, agent.messages = [], [], []
        agent.on_message = agent.messages.append
        agent.on_replace = lambda call, sender: True

        def on_call(call, agent=agent):
            follow(call, agent)
            call.answer(PATIENCE)
            agent.taken.append(call)

        agent.on_call = on_call
    yield found
    for agent in found:
        agent.close()


def follow(call, agent):
    """Have a call follow the wishes of its other side, into `agent.taken`."""
    call.on_digit = lambda digit, seconds: agent.keys.append((digit, seconds))
    call.on_transfer = lambda target: True
    call.on_transferred = agent.taken.append


@pytest.fixture
def phone(start, transport):
    found = start(Linphone, "alice", codec="PCMU/8000", transport=transport, sip=SETTINGS)
    found.command("ipv6 disable")  # it would offer the address by which it reaches the Internet
    found.wait_until(lambda: "ipv6 use disabled" in found.output, what="IPv4")
    return found


def uri(agent, transport):
    return f"sip:{agent.user}@{agent.address[0]};transport={transport}"


def ended(*calls):
    for call in calls:
        call.hangup()
        assert call.wait_ended(PATIENCE)


@BOTH
def test_a_call_with_all_that_a_phone_does_in_it(phone, agents, transport):
    """Covers RFC 3264 §8.4, RFC 4733 §2.5, RFC 3428 §7 and RFC 4028 §9 with a peer's phone."""
    bob, _ = agents
    phone.command(f"call {uri(bob, transport)}")
    phone.wait_for("LinphoneCallStreamsRunning", timeout=PATIENCE)
    until(lambda: bob.taken, "the call")
    [call] = bob.taken
    assert call._signalling.refresher.is_on
    phone.command("12#")
    until(lambda: len(bob.keys) == 6, "keys")
    assert [digit for digit, seconds in bob.keys if seconds is not None] == ["1", "2", "#"]
    phone.command("pause")
    phone.wait_for("LinphoneCallPaused", timeout=PATIENCE)
    until(lambda: call.is_held, "the hold")
    phone.command("resume")
    phone.wait_for("LinphoneCallStreamsRunning", 2, timeout=PATIENCE)
    until(lambda: not call.is_held, "the end of the hold")
    call.hold(timeout=PATIENCE)
    phone.wait_for("LinphoneCallPausedByRemote", timeout=PATIENCE)
    call.resume(timeout=PATIENCE)
    phone.wait_for("LinphoneCallStreamsRunning", 3, timeout=PATIENCE)
    assert call.send_digits("45*")
    assert bob.message(phone.uri, "good morning").status == 200
    phone.wait_until(lambda: "good morning" in phone.output, what="the message")
    phone.command(f"chat {uri(bob, transport)} good evening")
    until(lambda: bob.messages, "the answer")
    assert bob.messages[0].text == "good evening"
    phone.command("terminate")
    phone.wait_for("LinphoneCallReleased", timeout=PATIENCE)
    assert call.wait_ended(PATIENCE) and call.reason == "BYE"


@BOTH
def test_transfers_in_each_role(phone, agents, transport):
    """Covers RFC 3515 §2.4 and RFC 3891 §3 and §4 with a peer in each of the three roles."""
    bob, carol = agents
    # It asks bob to take its place at carol's.
    phone.command(f"call {uri(bob, transport)}")
    phone.wait_for("LinphoneCallStreamsRunning", timeout=PATIENCE)
    phone.command("pause")
    phone.wait_for("LinphoneCallPaused", timeout=PATIENCE)
    phone.command(f"call {uri(carol, transport)}")
    phone.wait_for("LinphoneCallStreamsRunning", 2, timeout=PATIENCE)
    phone.command("transfer 1 --to-call 2")
    until(lambda: len(bob.taken) == len(carol.taken) == 2, "the new call")
    assert bob.taken[1].remote.uri.user == "carol" and carol.taken[0].reason == "replaced"
    phone.wait_for("LinphoneCallReleased", 2, timeout=PATIENCE)
    ended(*bob.taken, *carol.taken)
    # It is asked to take bob's place at carol's.
    first = bob.call(phone.uri, PATIENCE)
    second = bob.call(uri(carol, transport), PATIENCE)
    first.transfer(second, PATIENCE)
    until(lambda: len(carol.taken) == 4 and second.is_over, "the phone's call")
    assert carol.taken[2].reason == "replaced"
    ended(first, second, *carol.taken)
    phone.wait_for("LinphoneCallReleased", 4, timeout=PATIENCE)  # it is busy until then
    # It is the one at which carol takes bob's place.
    first = bob.call(phone.uri, PATIENCE)
    second = bob.call(uri(carol, transport), PATIENCE)
    second.transfer(first, PATIENCE)
    assert first.wait_ended(PATIENCE)
    until(lambda: len(carol.taken) == 6, "carol's call")
    assert carol.taken[5].is_up
    ended(second, *carol.taken)
    phone.wait_for("LinphoneCallReleased", 6, timeout=PATIENCE)
    # It sends bob to carol, blind.
    first = bob.call(phone.uri, PATIENCE)
    follow(first, bob)
    phone.command(f"transfer {uri(carol, transport)}")
    until(lambda: len(bob.taken) == 3 and len(carol.taken) == 7, "bob's call")
    assert first.wait_ended(PATIENCE) and bob.taken[2].is_up
