"""Phones with two flows to the registrar, and phones behind a proxy that names itself in a Path."""

import pytest
from interop.phones.test_registrar import Place
from support.gateway.accounts import PASSWORD, users_file
from support.peers.baresip import Baresip
from support.peers.peers import KamailioEdge

import p2psip


@pytest.mark.needs("baresip")
def test_a_phone_with_two_flows_rings_once(start, gateway):
    """baresip registers by UDP and by TCP at once; a call takes one flow, and its refusal stands.

    Covers RFC 5626 §6 and §7 with a phone of others.
    """
    server = gateway("--allow-anonymous")
    account = f';sipnat=outbound;outbound2="sip:{server.sip};transport=tcp"'
    bob = start(Baresip, "bob", registrar=server.sip, answer="manual", account=account, name="bob")
    server.wait_status({"registrations": 2})
    caller = Place(server)
    caller.say(
        f"INVITE sip:bob@127.0.0.1 SIP/2.0\r\n"
        f"Via: SIP/2.0/UDP {caller.address};branch=z9hG4bKtwo;rport\r\n"
        f"From: <sip:x@elsewhere.invalid>;tag=two\r\nTo: <sip:bob@127.0.0.1>\r\n"
        f"Call-ID: two-flows\r\nCSeq: 1 INVITE\r\nMax-Forwards: 70\r\n"
        f"Contact: <sip:x@{caller.address}>\r\nContent-Length: 0\r\n\r\n".encode()
    )
    bob.wait_event("CALL_INCOMING")
    bob.hangup()
    caller.await_(rb"SIP/2.0 486 ")
    assert not [each for each in bob.events if each["type"] == "CALL_INCOMING"]


@pytest.mark.needs("kamailio")
def test_a_phone_behind_a_proxy_is_called_through_it(start, gateway, tmp_path):
    """Covers RFC 3327 §5.3 and §5.4 with a proxy of others, which has no outbound (439)."""
    server = gateway("--users", users_file(tmp_path, "alice", "bob"))
    edge = start(KamailioEdge, f"sip:{server.sip}")
    with (
        p2psip.Agent(
            p2psip.Account("bob", server.sip, password=PASSWORD, registrar=edge.address)
        ) as bob,
        p2psip.Agent(p2psip.Account("alice", server.sip, password=PASSWORD)) as alice,
    ):
        bob.on_call = lambda call: call.answer()
        assert bob.register(timeout=20.0)
        alice.register(timeout=20.0)
        call = alice.call("bob", timeout=20.0)
        assert call.is_up
        call.hangup()
    assert "passes REGISTER" in edge.output and "passes INVITE" in edge.output
