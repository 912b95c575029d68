"""Agents that reach each other by TLS."""

import socket

import pytest
from support.certificates import certificate
from support.sip.phones import answering, wait_for

from p2psip.__main__ import _is_secure, _uri
from p2psip.agent import Agent
from p2psip.errors import LocalError, RemoteError
from p2psip.net.locator import destination, server_uri
from p2psip.net.phone.settings import Account, NetworkSettings
from p2psip.net.tls import TlsContexts, client_context, server_context


def test_a_call_by_tls_and_one_that_nobody_vouches_for(tmp_path):
    """Covers RFC 3261 §26.2.2: with its re-use of the connection for what the callee asks.

    Covers RFC 3261 §26.3.1 [opens-tls].
    """
    made = certificate(tmp_path / "made")
    serving = server_context(made.file, made.key)
    trusting, strange = (client_context(ca) for ca in (made.file, None))
    with (
        Agent(Account("alice"), NetworkSettings(tls=TlsContexts(trusting))) as alice,
        Agent(Account("bob"), NetworkSettings(tls=TlsContexts(trusting, serving))) as bob,
        Agent(Account("eve"), NetworkSettings(tls=TlsContexts(strange))) as eve,
    ):
        assert bob.contact.param("transport") == "tls"
        taken = answering(bob)
        call = alice.call(str(bob.contact), timeout=20)
        wait_for(lambda: taken)
        assert alice._driver.connections == bob._driver.connections == 1
        [(place, _)] = [key for each in bob._driver._streams for key in each.connections]
        assert place[1] == alice.contact.port  # by which proxies of others find the connection
        taken[0].hangup()  # by alice's own connection: she has no certificate to listen with
        assert call.wait_ended(20) and call.reason == "BYE"
        with pytest.raises(RemoteError) as refused:
            eve.call(str(bob.contact), timeout=20)
        assert refused.value.status == 503 and len(taken) == 1


def test_what_is_asked_of_a_sips_uri_goes_by_tls(tmp_path, monkeypatch):
    """Covers RFC 3261 §8.1.1.8 [sips-for-sips], §10.2, §26.2.2: with a Contact of that kind."""
    made = certificate(tmp_path / "made")
    tls = TlsContexts(client_context(made.file), server_context(made.file, made.key))
    with Agent(Account("bob"), NetworkSettings(tls=tls)) as bob:
        place, asked = f"127.0.0.1:{bob.contact.port}", []
        decide = bob._stack.core.recipient

        def recipient(request, flow, now):
            asked.append((flow.transport, request))
            return decide(request, flow, now)

        monkeypatch.setattr(bob._stack.core, "recipient", recipient)
        with Agent(Account("alice", f"sips:{place}"), NetworkSettings(tls=tls)) as alice:
            taken, said = answering(bob), []
            bob.on_message, bob.on_refer = said.append, lambda target, sender: True
            call = alice.call("bob", timeout=20)  # of the own domain, and so by its scheme
            wait_for(lambda: taken)
            taken[0].hangup()
            assert call.wait_ended(20) and call.reason == "BYE"
            alice.message(f"<sips:bob@{place}>", "hello", timeout=20)
            assert alice.options(f"sips:bob@{place}", timeout=20).status == 200
            with pytest.raises(RemoteError, match="404"):  # bob is asked to call nobody by sips
                alice.refer("bob", f"sips:nobody@{place}", timeout=20)
            with pytest.raises(RemoteError, match="Method Not Allowed"):
                alice.register(timeout=20)
        with Agent(
            Account("carol", "example.com", registrar=f"sips:{place}"), NetworkSettings(tls=tls)
        ) as carol:
            carol.options(f"sip:bob@{place}", timeout=20)
            carol.call(f"sip:bob@{place}", timeout=20).hangup()
    assert {transport for transport, _ in asked} == {"TLS", "LOCAL"} and len(said) == 1
    told = {(each.method, each.contacts[0].uri.scheme) for _, each in asked if each.contacts}
    methods = ("INVITE", "OPTIONS", "REFER", "REGISTER")
    assert told >= {(method, "sips") for method in methods}
    assert not told & {(method, "sip") for method in methods}


def test_without_tls_a_sips_uri_is_not_reached():
    """Covers RFC 3261 §26.2.2."""
    with Agent(Account("alice")) as alice, pytest.raises(RemoteError) as refused:
        alice.call("sips:bob@127.0.0.1", timeout=20)
    assert refused.value.status == 503


def test_the_command_line_takes_sips_for_tls():
    """Covers RFC 5630 §3.1."""
    assert [_is_secure(_uri(each)) for each in ("sips:a@b", "sip:a@b;transport=TLS", "a@b")] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("text", ["sip:bob@example.com", "http://example.com", "sips:"])
def test_what_is_no_server(text):
    """Covers RFC 3261 §10.2 [aor-is-sip]."""
    assert [str(server_uri(each)) for each in ("home", "sip:home", "SIPS:home")] == [
        "sip:home",
        "sip:home",
        "sips:home",
    ]
    with pytest.raises(LocalError, match="is not a SIP server"):
        server_uri(text)


@pytest.mark.parametrize("text", ["tel:+1555", "http://b.com", "sip:@home", "sip:", "<sip:bob@b"])
def test_what_cannot_be_called(text):
    """Covers RFC 3261 §19.1.5 [invalid-is-not-sent], RFC 3428 §5 [sip-uris]."""
    with pytest.raises(LocalError, match=r"is (not a SIP URI|not an address)"):
        destination(text, server_uri("home"))


def test_the_port_for_tls_may_be_chosen():
    """Covers RFC 3261 §18.2.1: a port that is taken shows which one was asked for."""
    tls = TlsContexts(client_context())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"TLS at 127.0.0.1:{port}: "):
            Agent(network=NetworkSettings(tls=tls, tls_port=port))
