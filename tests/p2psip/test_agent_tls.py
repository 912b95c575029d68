"""Agents that reach each other by TLS."""

import socket

import pytest
from support.certificates import certificate
from support.sip.phones import answering, wait_for

from p2psip.agent import Agent
from p2psip.errors import RemoteError
from p2psip.net.tls import TlsContexts, client_context, server_context


def test_a_call_by_tls_and_one_that_nobody_vouches_for(tmp_path):
    """Covers RFC 3261 §26.2.2: with its re-use of the connection for what the callee asks."""
    made = certificate(tmp_path / "made")
    serving = server_context(made.file, made.key)
    trusting, strange = (client_context(ca) for ca in (made.file, None))
    with (
        Agent(user="alice", tls=TlsContexts(trusting)) as alice,
        Agent(user="bob", tls=TlsContexts(trusting, serving)) as bob,
        Agent(user="eve", tls=TlsContexts(strange)) as eve,
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


def test_the_port_for_tls_may_be_chosen():
    """Covers RFC 3261 §18.2.1: a port that is taken shows which one was asked for."""
    tls = TlsContexts(client_context())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"TLS at 127.0.0.1:{port}: "):
            Agent(tls=tls, tls_port=port)
