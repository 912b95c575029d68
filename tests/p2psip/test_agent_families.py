"""A phone with an address of each family: each peer finds it, and its sound, by the own one."""

import pytest
from support.sip.phones import FRAMES, answering, talk, uri, wait_for

from p2psip.errors import LocalError, RemoteError
from p2psip.net.dns import Config, Resolver
from p2psip.stack.stack import Recipient

V4, V6 = ("127.0.0.1", 0), ("::1", 0)


@pytest.fixture
def both(make):
    """A phone that listens on both."""
    return make("both", listen=V4, also=V6)


def at(agent, host):
    """The URI of an agent at one of its hosts, in brackets where that is IPv6."""
    port = next(each.port for each in agent._driver.ports.listeners if each.host == host)
    return f"sip:{agent.user}@{f'[{host}]' if ':' in host else host}:{port}"


@pytest.mark.parametrize("place", [V4, V6])
def test_it_is_called_by_either(make, both, place):
    """Covers RFC 6157 §4 [both-families]: Contact and sound are of the caller's family."""
    caller, heard = make("caller", listen=place), []
    taken = answering(both, heard)
    call = caller.call(at(both, place[0]), timeout=20)
    wait_for(lambda: taken)
    assert call.is_ready and call._signalling.dialog.target.host.strip("[]") == place[0]
    assert call._audio._transport._port.remote[0] == place[0]
    talk(call)
    wait_for(lambda: len(heard) == len(FRAMES))
    taken[0].hold()
    wait_for(lambda: call.is_held)
    call.hangup()
    assert not call.is_ready


@pytest.mark.parametrize("place", [V4, V6])
def test_it_calls_and_asks_by_either(make, both, place):
    """Covers RFC 6157 §4 [both-families]: the caller picks its own address by the callee's."""
    callee, heard, said = make("callee", listen=place), [], []
    taken = answering(callee, heard)
    callee.on_message = said.append
    where = at(callee, place[0])
    call = both.call(where, timeout=20)
    wait_for(lambda: taken)
    assert taken[0]._signalling.dialog.target.host.strip("[]") == place[0]
    talk(call)
    wait_for(lambda: len(heard) == len(FRAMES))
    assert both.options(where, timeout=20).status == both.message(where, "hello", 20).status == 200
    assert said[0].body == b"hello"


def named(agent, *others):
    """Have agents find six.example at ::1, and nowhere else."""
    for each in (agent, *others):
        each._driver._locate.__self__._resolver = Resolver(Config(hosts={"six.example": ("::1",)}))


def test_a_name_is_of_the_family_of_its_address(make, both):
    """Covers RFC 6157 §4 [both-families]: of a name that has AAAA alone."""
    callee, caller, heard = make("callee", listen=V6), make("caller", listen=V6), []
    named(both)
    taken = answering(callee, heard)
    where = at(callee, "::1").replace("[::1]", "six.example")
    call = both.call(where, timeout=20)
    wait_for(lambda: taken)
    assert taken[0]._signalling.dialog.target.host == "::1"
    talk(call)
    wait_for(lambda: len(heard) == len(FRAMES))
    taken.clear()
    both.on_refer = lambda target, sender: True
    both.on_referred = lambda call: None
    caller.refer(at(both, "::1"), where, timeout=20)
    wait_for(lambda: taken)
    assert taken[0]._signalling.dialog.target.host == "::1"


@pytest.mark.parametrize("is_proxy", [False, True])
def test_a_registrar_that_is_named_hears_of_the_right_family(make, monkeypatch, is_proxy):
    """Covers RFC 6157 §4 [both-families]: of the domain, or of the server before it."""
    registrar, asked = make("registrar", listen=V6), []

    def refuse(server, request, now):
        asked.append(request)
        server.reply(403, now)

    monkeypatch.setattr(registrar._stack.core, "recipient", lambda *asked: Recipient(refuse))
    name = f"six.example:{registrar.address[1]}"
    places = {"domain": "else.example", "registrar": name} if is_proxy else {"domain": name}
    phone = make("bob", listen=V4, also=V6, **places)
    named(phone)
    with pytest.raises(RemoteError, match="Forbidden"):
        phone.register(timeout=20)
    assert (asked[0].contacts[0].uri.host, asked[0].via.host) == ("::1", "::1")


def test_a_family_has_one_address(make):
    with pytest.raises(LocalError, match="name one address"):
        make("bob", listen=V4, also=("::", 0))


def test_one_family_stays_as_it_was(make):
    plain = make("plain")
    assert {each.host for each in plain._driver.ports.listeners} == {V4[0]} and uri(plain)
