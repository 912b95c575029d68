"""A phone whose registrar names a service route: all that it asks of others goes that way."""

import os

import pytest
from support.sip.cores import TakesAll

from p2psip.agent import Agent
from p2psip.errors import RemoteError
from p2psip.net.driver import SipDriver, SipPorts
from p2psip.net.phone.settings import Account
from p2psip.stack.stack import Stack


class Registrar(TakesAll):
    """Grants every registration, with a service route by itself; refuses what else has a dialog."""

    def __init__(self):
        ports = SipPorts("127.0.0.1", 0)
        stack = Stack(random=os.urandom, listeners=ports.listeners)
        self.heard, stack.core = [], self
        self.driver = SipDriver(stack, ports)
        self.address = "{}:{}".format(*ports.address)
        self.route = f"<sip:orig@{self.address};lr>"

    def on_request(self, server, request, now):
        self.heard.append(request)
        headers = [("Service-Route", self.route)] if request.method == "REGISTER" else []
        if request.method == "REGISTER":
            headers += [("Contact", each) for each in request.contacts]
        server.reply(403 if request.method in ("SUBSCRIBE", "REFER") else 200, now, headers=headers)

    def on_ack(self, request, flow, now):
        """Take no calls."""


@pytest.fixture
def registrar():
    running = Registrar()
    yield running
    running.driver.close()


def test_requests_outside_of_calls_follow_it(registrar):
    """Covers RFC 3608 §6.1 [route-is-used]."""
    with Agent(Account("bob", registrar.address)) as bob:
        bob.options("alice", timeout=20)
        bob.register(timeout=20)
        bob.options("alice", timeout=20)
        bob.message("alice", "hello", timeout=20)
        for ask in (
            lambda: bob.subscribe("alice", "dialog", lambda *_: None, timeout=20),
            lambda: bob.refer("alice", "carol", timeout=20),
        ):
            with pytest.raises(RemoteError):
                ask()
    routes = [(each.method, list(each.headers.values("Route"))) for each in registrar.heard]
    way = [registrar.route]
    assert routes[:6] == [
        ("OPTIONS", []), ("REGISTER", []), ("OPTIONS", way), ("MESSAGE", way),
        ("SUBSCRIBE", way), ("REFER", way),
    ]  # fmt: skip
