"""SIPp's built-in scenarios as they are, with our agent, or with another SIPp behind our proxy.

Not here: `branchs`, which wants the REGISTER and the INVITE of its peer under one Call-ID; only
`branchc` makes them so, and a registrar keeps the first of the two.  And `regexp` calls no agent,
since it wants a user name in the `o=` of a session description, where ours have a "-".
"""

import os
from pathlib import Path

import pytest
from interop.phones.test_registrar import Place
from support.peers.peers import Sipp
from support.peers.process import free_port, wait_until
from support.peers.sip_server import SipServer

from p2psip import Account, Agent, CallSettings, Recording

PCAPS = Path("/usr/share/sip-tester")  # of uac_pcap, which sends raw packets
PATIENCE = 20  # s
pytestmark = pytest.mark.needs("sipp")


@pytest.fixture
def sipp(start):
    """`sipp(name, user, target)` begins one call; without a target it waits for one."""

    def run(name, *words, user="service", target="", calls=1, **place):
        options = ("-m", str(calls), "-s", user, "-timeout", "60s", *words)
        title = f"{name}-{user}"
        return start(Sipp, f"-sn {name}", target, options=options, name=title, **place)

    return run


@pytest.fixture
def agent():
    """An agent that answers, with the sound and the keys that it hears."""
    with Agent(Account("bob"), calls=CallSettings(codecs=["PCMA", "PCMU"])) as found:
        found.ended, found.keys = [], []

        def on_call(call):
            call.heard = Recording("PCMA")
            call.on_audio = call.heard.add
            call.on_digit = lambda key, seconds: seconds is None and found.keys.append(key)
            call.answer(PATIENCE)
            call.wait_ended()
            found.ended.append(call)

        found.on_call = on_call
        yield found


def controllers(sipp, target, first, second):
    """Both halves of a 3PCC controller, which calls one user and then connects another one."""
    joint = f"127.0.0.1:{free_port()}"
    callee = sipp("3pcc-C-B", "-3pcc", joint, user=second, target=target)
    return callee, sipp("3pcc-C-A", "-3pcc", joint, user=first, target=target)


def calling_the_agent(sipp, agent, folder):
    """The scenarios with the agent at the other end; uac_pcap needs the right to send raw packets.

    Covers RFC 3261 §13.2.1 and §13.3.1: early and late offers.
    """
    target = "{}:{}".format(*agent.address)
    running = [sipp("uac", user="bob", target=target)]
    running += controllers(sipp, target, "bob", "bob")
    if os.geteuid() == 0 and PCAPS.is_dir():
        folder.mkdir()
        (folder / "pcap").symlink_to(PCAPS)
        running.append(sipp("uac_pcap", user="bob", target=target))
    return running


def calling_through_the_proxy(sipp, server):
    """The scenarios with SIPp at both ends, or an agent that is registered as ua2.

    Covers RFC 3261 §16, and §10.3 with a Contact without brackets.
    """
    callees = {"uas": sipp("uas", calls=2), "3pcc-A": sipp("3pcc-A"), "3pcc-B": sipp("3pcc-B")}
    registrar = Place(server)
    for name, callee in callees.items():
        assert registrar.register(f"<sip:{name}@127.0.0.1:{callee.port}>", name)[0] == 200
    running = [sipp(name, user="uas", target=server.sip) for name in ("uac", "regexp")]
    port = int(server.sip.partition(":")[2])  # of the domains, and so of the names that it uses
    running.append(sipp("branchc", target=server.sip, host="127.0.0.2", port=port))
    running += controllers(sipp, server.sip, "3pcc-A", "3pcc-B")
    return [*running, *callees.values()]


def test_all_find_what_they_expect(start, sipp, agent, tmp_path):
    """They run at once, since some pause for seconds."""
    server = start(SipServer, "127.0.0.1", "nnl.cym", "ca.cym.com")
    with Agent(Account("ua2", "ca.cym.com", registrar=server.sip)) as ua2:
        ua2.on_call = lambda call: call.answer(PATIENCE)
        ua2.register(PATIENCE)
        through = calling_through_the_proxy(sipp, server)
        callers = calling_the_agent(sipp, agent, tmp_path / "uac_pcap-bob")
        callee = sipp("uas", user="x")
        call = agent.call(f"sip:x@127.0.0.1:{callee.port}", PATIENCE)
        call.hangup()
        for each in (*through, *callers, callee):
            each.expect_success()
    wait_until(lambda: len(agent.ended) == len(callers), what="the ends", timeout=PATIENCE)
    assert {call.reason for call in agent.ended} == {"BYE"}
    if len(callers) == 4:  # the last one to end has played a capture, and pressed a key
        assert len(agent.ended[-1].heard.samples) > 16_000 and agent.keys == ["1"]
