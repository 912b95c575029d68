"""Phones on loopback whose registrar gives them GRUUs: they are called and referred to by those."""

import os

import pytest
from support.sip.cores import TakesAll
from support.sip.phones import FRAMES, answering, talk, wait_for

from p2psip.agent import Agent
from p2psip.errors import RemoteError
from p2psip.net.driver import SipDriver, SipPorts
from p2psip.net.phone.settings import Account
from p2psip.server.domain_server import DomainServer, DomainSettings
from p2psip.server.users import UserStore
from p2psip.sip.auth import ha1

DOMAIN, PASSWORD = "example.com", "zanzibar"


class Server(TakesAll):
    """A registrar and proxy of example.com; `heard` are the requests that it has received."""

    def __init__(self):
        ports = SipPorts("127.0.0.1", 0)
        names = ("alice", "bob", "carol")
        users = UserStore((name, DOMAIN, ha1(name, DOMAIN, PASSWORD)) for name in names)
        settings = DomainSettings(listeners=ports.listeners, domains=[DOMAIN], distinct=True)
        server = DomainServer(settings, os.urandom, users=users)
        self.element, self.heard = server.element, []
        server.stack.core = self
        self.driver = SipDriver(server.stack, ports)
        self.driver.serve(server)
        self.address = "{}:{}".format(*ports.address)

    def on_request(self, server, request, now):
        self.heard.append(request)
        self.element.recipient(request, server.flow, now).take(server, request, now)

    def on_ack(self, request, flow, now):
        self.element.on_ack(request, flow, now)

    def contacts(self, method):
        """The Contacts of its requests of this method, the last one of each sender."""
        mine = [each for each in self.heard if each.method == method and each.contacts]
        return {each.from_.uri.user: str(each.contacts[0].uri) for each in mine}


@pytest.fixture
def server():
    running = Server()
    yield running
    running.driver.close()


@pytest.fixture
def phones(server):
    """Alice, Bob and Carol, who have registered; what the latter two take is in `taken`."""
    found = []
    for name in ("alice", "bob", "carol"):
        options = {"password": PASSWORD, "registrar": server.address, "uses_gruus": True}
        found.append(Agent(Account(name, DOMAIN, **options)))
        found[-1].heard = []
        found[-1].taken = answering(found[-1], found[-1].heard)
        assert found[-1].gruu is None
        found[-1].register(20)
    yield found
    for agent in found:
        agent.close(timeout=0.5)


def test_a_call_to_a_gruu_has_gruus_on_both_sides(server, phones):
    """Covers RFC 5627 §4.4 [contact-is-a-gruu] [says-gruu]."""
    alice, bob, _ = phones
    gruu = str(bob.gruu)
    assert gruu.startswith(f"sip:bob@{DOMAIN};gr=urn:uuid:")
    call = alice.call(gruu, timeout=20)
    assert str(call._signalling.dialog.target) == gruu
    assert server.contacts("INVITE")["alice"] == str(alice.gruu)
    assert "gruu" in server.heard[-1].headers.all("Supported") or server.heard[-1].method == "ACK"
    talk(call)
    wait_for(lambda: len(bob.heard) == len(FRAMES))
    call.hangup()
    wait_for(lambda: bob.taken and bob.taken[0].is_over)
    assert bob.taken[0].reason != "hung up"
    bob.unregister(20)
    assert bob.gruu is None
    with pytest.raises(RemoteError, match="480"):
        alice.call(gruu, timeout=20)


def test_the_callee_ends_a_call_whose_caller_has_a_gruu(phones):
    """Covers RFC 5627 §4.4 [contact-is-a-gruu]: its BYE reaches the caller."""
    alice, bob, _ = phones
    call = alice.call("bob", timeout=20)
    wait_for(lambda: bob.taken)
    bob.taken[0].hangup()
    assert call.wait_ended(20) and call.reason == "BYE"


def test_a_private_call_shows_a_temporary_one(server, phones):
    """Covers RFC 5627 §4.4 [anonymous-is-temporary]."""
    alice, bob, _ = phones
    bob.call("alice", timeout=20)
    seen = []
    alice.on_call = lambda call: seen.append(call) or call.answer(timeout=20)
    call = bob.call(str(alice.gruu), timeout=20, private=True)
    shown = server.heard[-1]
    [invite] = [each for each in server.heard if each.from_.uri.user == "anonymous"][:1]
    assert invite.contacts[0].uri.user.startswith("tgruu.") and "bob" not in str(invite.contacts[0])
    assert shown is not None and seen
    seen[0].hangup()
    assert call.wait_ended(20)


def test_a_refer_to_a_gruu_reaches_that_very_phone(phones):
    """Covers RFC 5627 §4.4 [contact-is-a-gruu]: outside of a call, and as a target of transfers."""
    alice, bob, carol = phones
    bob.on_refer = lambda target, sender: True
    alice.refer(str(bob.gruu), str(carol.gruu), timeout=20)
    wait_for(lambda: carol.taken)
    assert carol.taken[0].remote.uri.user == "bob"
