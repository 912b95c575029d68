"""Our agent and SIPp: reliable progress, new offers, session timers, subscriptions, REFER.

Each of SIPp's scenarios checks what it receives, and fails at the first message that is not as the
RFC has it.  They repeat nothing for ten seconds: loopback loses nothing, and the copy of an answer
would be an unexpected message.
"""

import pytest
from support.peers.peers import Sipp
from support.peers.process import wait_until

from p2psip.agent import Agent
from p2psip.dialog import session_timer, subscription
from p2psip.net.phone.settings import Account
from p2psip.ua import session_refresh

CODEC = "PCMU/8000"
PATIENCE = 20  # s
pytestmark = pytest.mark.needs("sipp")
BOTH = pytest.mark.parametrize("transport", ["udp", "tcp"])


@pytest.fixture
def agent():
    with Agent(Account("bob")) as found:
        yield found


@pytest.fixture
def sipp(start, agent):
    """`sipp(scenario, transport)` calls the agent, or is called if the scenario waits for that."""

    def run(scenario, transport, *, calls=True, **keys):
        host, port = agent.address
        words = ("-m", "1", "-s", "bob", "-t", f"{transport[0]}1", "-timeout", "60s")
        target = f"{host}:{port}" if calls else ""
        return start(Sipp, scenario, target, codec=CODEC, options=words, **keys)

    return run


def uri(peer, transport):
    return f"sip:sipp@127.0.0.1:{peer.port};transport={transport}"


def until(condition, what):
    wait_until(condition, what=what, timeout=PATIENCE)


def answered(agent):
    """Have the agent answer its calls once its ringing is acknowledged; they are in the list."""
    calls = []

    def on_call(call):
        calls.append(call)
        until(lambda: call._signalling._reliable.deadline is None, "a PRACK")
        call.answer()

    agent.on_call = on_call
    return calls


@BOTH
def test_a_caller_that_requires_100rel_and_makes_offers(agent, sipp, transport):
    """Covers RFC 3262 §3 and RFC 3311 §5.2 with a peer's requests."""
    calls = answered(agent)
    sipp("offers_uac", transport).expect_success()
    [call] = calls
    assert call.wait_ended(PATIENCE) and call.reason == "BYE"


@BOTH
def test_a_called_side_that_sends_reliable_progress_and_makes_offers(agent, sipp, transport):
    """Covers RFC 3262 §4 and RFC 3311 §5.2 with a peer's responses and offers."""
    peer = sipp("offers_uas", transport, calls=False)
    call = agent.call(uri(peer, transport), timeout=PATIENCE)
    peer.expect_success()
    assert call.wait_ended(PATIENCE) and call.reason == "BYE" and not call.is_held


def test_session_timers(agent, sipp, monkeypatch):
    """Covers RFC 4028 §7.4, §9 and §10: refreshed by UPDATE and by INVITE, asked for more, ended.

    The least interval is 90 s where nobody changes it, and so is the margin larger.
    """
    monkeypatch.setattr(session_refresh, "LEAST", 2)
    monkeypatch.setattr(session_timer, "MARGIN", 0.5)
    agent._ua.core.session_interval = 2
    calls = answered(agent)
    peers, ours = [sipp("timer_uac", "tcp")], []
    for refresh, transport in (("update", "udp"), ("invite", "tcp")):
        peers.append(sipp(f"timer_uas_{refresh}", transport, calls=False))
        ours.append(agent.call(uri(peers[-1], transport), timeout=PATIENCE))
    for peer in peers:
        peer.expect_success()
    assert all(call.wait_ended(PATIENCE) for call in (*calls, *ours))
    assert [call.reason for call in (*calls, *ours)] == ["session expired", "BYE", "BYE"]


@BOTH
def test_subscriptions(agent, sipp, transport, monkeypatch):
    """Covers RFC 6665 §4.1.2.2, §4.1.2.3 and §4.2.1 with a peer at either side."""
    monkeypatch.setattr(subscription, "REFRESH_AT", 0.1)
    notifier = sipp("notifier", transport, calls=False)
    heard = []
    watch = agent.subscribe(
        uri(notifier, transport),
        "presence",
        lambda *told: heard.append(told),
        PATIENCE,
        expires=600,
    )
    agent.serving.may_watch = lambda package, sender: sender.uri.user == "sipp"
    agent.mailbox(1)
    watcher = sipp("watcher", transport)
    until(lambda: agent.serving._served, "the watcher")
    agent.mailbox(2, 8)
    watcher.expect_success()
    until(lambda: len(heard) == 3, "the states")
    assert watch.close(PATIENCE) and watch.reason == "timeout"
    notifier.expect_success()
    assert heard == [("text/plain", b"state %d\r\n" % number) for number in (1, 2, 3, 4)]
    until(lambda: not agent.serving._served, "the end")


@BOTH
def test_a_wish_for_a_call_from_outside_of_any_call(agent, sipp, transport):
    """Covers RFC 3515 §2.4.2 and §2.4.4 with a peer that asks."""
    agent.on_refer = lambda target, sender: True
    up = []
    agent.on_referred = up.append
    with Agent(Account("carol")) as carol:
        carol.on_call = lambda call: call.answer(PATIENCE)
        place = "sip:carol@{}:{}".format(*carol.address)
        sipp("referrer", transport, refer_to=f"{place};transport={transport}").expect_success()
        until(lambda: up, "the call")
        assert up[0].remote.uri.user == "carol"
        up[0].hangup()
