"""A phone with outbound asks its registrar whether the flow is still good, and believes it."""

import os

import pytest
from support.sip.cores import TakesAll
from support.sip.phones import wait_for

from p2psip.agent import Agent
from p2psip.nat import stun_server
from p2psip.net import udp
from p2psip.net.driver import SipDriver, SipPorts
from p2psip.net.phone.settings import Account, NetworkSettings
from p2psip.stack.stack import Stack
from p2psip.ua.registering import keep_alive, registration


class Registrar(TakesAll):
    """Grants every registration, with outbound."""

    def __init__(self, host):
        ports = SipPorts(host, 0)
        stack = Stack(random=os.urandom, listeners=ports.listeners)
        self.flows, self.methods, stack.core = [], [], self
        self.driver = SipDriver(stack, ports)
        self.port = ports.address[1]

    def on_request(self, server, request, now):
        self.flows.append(server.flow)
        self.methods.append(request.method)
        headers = [("Require", "outbound"), *(("Contact", each) for each in request.contacts)]
        server.reply(200, now, headers=headers)


@pytest.fixture
def run():
    running = []

    def run(host):
        running.append(Registrar(host))
        return running[-1]

    yield run
    for each in running:
        each.driver.close()


@pytest.mark.sources
def test_a_phone_whose_address_changes_registers_anew(run, monkeypatch):
    """Covers RFC 5626 §4.4.2: by the second family of its addresses too."""
    registrar, seen = run("::1"), []

    def answer(data, source):
        said = stun_server.answer(data, source)
        if said is not None:
            seen.append(source)
        return stun_server.answer(data, (source[0], 9)) if len(seen) == 2 else said

    # the module of the listener alone: it answers for the registrar
    monkeypatch.setattr(udp, "stun_server", type("Server", (), {"answer": staticmethod(answer)}))
    monkeypatch.setattr(keep_alive, "DATAGRAM_SECONDS", (0.02, 0.03))
    with Agent(Account("bob", f"[::1]:{registrar.port}"), NetworkSettings(also=("::1", 0))) as bob:
        bob.register(timeout=20)
        wait_for(lambda: len(registrar.flows) >= 2)
    assert len(seen) >= 2 and {host for host, _ in seen} == {"::1"}


def test_a_phone_gives_up_a_connection_that_does_not_answer(run, monkeypatch):
    """Covers RFC 5626 §4.4.1 and §4.5: it registers by another one."""
    registrar, asked = run("127.0.0.1"), []
    registrar.driver.on_pong = lambda flow, data, now: asked.append(flow) or True  # says nothing
    monkeypatch.setattr(keep_alive, "STREAM_SECONDS", (0.02, 0.03))
    monkeypatch.setattr(keep_alive, "PONG_SECONDS", 0.02)
    monkeypatch.setattr(registration, "retry_delay", lambda failures, random, **more: 0.0)
    server = f"sip:127.0.0.1:{registrar.port};transport=tcp"
    with Agent(Account("bob", "example.com", registrar=server)) as bob:
        bob.register(timeout=20)
        wait_for(lambda: len(set(registrar.flows)) >= 2)
    assert asked and {flow.transport for flow in registrar.flows} == {"TCP"}


def test_a_phone_with_two_proxies_goes_on_by_the_second(run):
    """Covers RFC 5626 §4.2.1 [registers-by-two]: requests go by the flow that stands."""
    first, second = run("127.0.0.1"), run("127.0.0.1")
    servers = [f"sip:127.0.0.1:{each.port};transport=tcp" for each in (first, second)]
    with Agent(Account("bob", "example.com", registrar=servers)) as bob:
        bob.register(timeout=20)
        registered = bob._registration
        wait_for(lambda: all(flow.stands for flow in registered._current.flows))
        assert bob.options("alice@example.com", timeout=20).status == 200
        first.driver.close()
        wait_for(lambda: registered.route[0].port == second.port)
        assert bob.options("alice@example.com", timeout=20).status == 200 and bob.registered
    assert first.methods[:2] == ["REGISTER", "OPTIONS"]
    assert second.methods[:2] == ["REGISTER", "OPTIONS"]
