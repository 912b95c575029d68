"""Two phones at the gateway's registrar, with digest: registered, called, and gone again."""

import gevent
import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.gateway.gateway import Gateway

from p2psip.agent import Agent
from p2psip.errors import RemoteError
from p2psip.net.phone.settings import Account


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phones")
    with Gateway(folder / "gateway", "--users", users_file(folder, "alice", "bob")) as gateway:
        yield gateway


def phone(server, user, password=PASSWORD):
    return Agent(Account(user, server.sip, password=password))


def test_a_phone_registers_by_digest_is_called_and_unregisters(server):
    """Covers RFC 3261 §10.2 and §22.2."""
    with phone(server, "alice") as alice, phone(server, "bob") as bob:
        assert bob.register() > 0 and bob.registered
        assert server.status()["registrations"] == 1
        heard = []
        bob.on_call = lambda call: call.answer()
        call = alice.call("bob", timeout=20, on_audio=heard.append)
        [taken] = bob.calls
        taken.wait_answered(20)
        assert taken.remote.uri.user == "alice"
        call.hangup()
        assert taken.wait_ended(20)
        assert bob.unregister() and not bob.registered
        assert server.status()["registrations"] == 0
        with pytest.raises(RemoteError) as refused:
            alice.call("bob", timeout=20)
        assert refused.value.status == 480


def test_closing_takes_the_registration_back(server):
    """Covers RFC 3261 §10.2.2."""
    with phone(server, "bob") as bob:
        bob.register()
    assert server.status()["registrations"] == 0


def test_a_registration_closed_before_it_was_granted_is_taken_back(server):
    with phone(server, "bob") as bob:
        registering = gevent.spawn(bob.register)
        gevent.sleep(0)
    gevent.joinall([registering], timeout=20)
    server.wait_status({"registrations": 0})


@pytest.mark.parametrize(("user", "password"), [("bob", "wrong"), ("bob", None), ("eve", "x")])
def test_a_wrong_login_is_refused(server, user, password):
    with phone(server, user, password) as stranger:
        with pytest.raises(RemoteError) as refused:
            stranger.register()
        assert refused.value.status in (401, 403)
        assert not stranger.registered
