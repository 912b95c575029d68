"""Who may be whom: accounts, logins, and which line a call is for."""

import pytest
from gateway_world import Desk, GatewayWorld
from homes import PASSWORD, request, store

from p2psip.sip.auth import Challenge


@pytest.fixture
def world():
    return GatewayWorld(users=store("alice", "bob"))


def test_registers_before_anything_is_answered(world):
    """Covers RFC 3261 §10.2 and §22.2."""
    alice = world.rich("alice@home", "alice", PASSWORD, "Alice", "narrowband")
    assert alice.connected and world.gateway.registrar.count(world.now) == 1
    world.drop(alice.peer)
    world.wait(1.0)
    assert world.gateway.registrar.count(world.now) == 0 and world.is_clean()


def test_the_registration_has_the_name_to_display(world):
    """Covers RFC 3261 §20.39."""
    seen, pass_on = [], world.gateway.registrar.on_register
    world.gateway.registrar.on_register = lambda server, request, now: (
        seen.append(request),
        pass_on(server, request, now),
    )
    alice = world.rich("alice@home", "alice", PASSWORD, "Alice A.")
    assert alice.connected
    assert {str(each.to) for each in seen} == {'"Alice A." <sip:alice@home>'}
    assert all(each.from_.display == "Alice A." for each in seen) and world.is_clean()


@pytest.mark.parametrize(("password", "status"), [("wrong", "40"), ("", "403")])
def test_a_stranger_is_turned_away_and_the_line_stays(world, password, status):
    """Own design: nobody loses a line to who cannot prove to be the same."""
    alice = world.rich("alice@home", "alice", PASSWORD)
    eve = world.rich("alice@home", "alice", password)
    assert eve.connected is False and eve.closed
    assert eve.refusal["code"] == "NetConnection.Connect.Rejected"
    assert eve.refusal["description"].startswith(status)
    split = world.client("rtmp://host/sip", args=("alice", password))
    split.publish("alice@home/local")
    world.wait(1.0)
    assert split.server.closed
    assert not alice.closed and len(world.gateway.sip) == 1
    assert world.is_clean()


def test_a_second_login_closes_the_first(world):
    """Own design: one line for one identity, under any name of its domain."""
    first = world.rich("alice@home", "alice", PASSWORD)
    second = world.rich("alice@10.0.0.1", "alice", PASSWORD)
    world.wait(1.0)
    assert first.closed and second.connected and not second.closed
    assert "NetConnection.Connect.Closed" in first.peer.codes()
    assert world.gateway.registrar.count(world.now) == 1 and world.is_clean()


def test_or_is_turned_away_if_so_configured():
    world = GatewayWorld(users=store("alice"), keep_first=True)
    first = world.rich("alice@home", "alice", PASSWORD)
    second = world.rich("alice@home", "alice", PASSWORD)
    world.wait(1.0)
    assert second.closed and second.connected is False and not first.closed
    assert world.is_clean()


@pytest.mark.parametrize(
    "identity",
    ["alice", "@home", "alice@", "alice@home/x y", "alice@[::1", "a b@home", "alice:word@home"],
)
def test_what_is_no_identity(world, identity):
    """Covers RFC 3261 §19.1.1."""
    refused = world.rich(identity)
    assert refused.connected is False and refused.closed
    assert "word" not in refused.refusal["description"]


def test_an_identity_may_be_a_uri(world):
    """Covers RFC 3261 §19.1.1."""
    alice = world.rich("sip:alice@home", "alice", PASSWORD)
    assert alice.connected and list(world.gateway.sip._lines) == [("alice", "home", None)]


def test_calls_by_contact_by_name_and_by_what_a_foreign_registrar_left_of_it(world):
    """Covers RFC 3261 §16.5."""
    alice = world.rich("alice@home", "alice", PASSWORD)
    line = world.gateway.sip._lines["alice", "home", None]
    find = world.gateway.sip.find
    assert find(request(uri="sip:alice@10.0.0.1")) == line.incoming
    assert find(request(uri=str(line.contact))) == line.incoming
    assert find(request(uri="sip:bob@home")) is None
    world.rich("dora@elsewhere.example:5070")
    dora = world.gateway.sip._lines["dora", "elsewhere.example", 5070]
    bare = request("INVITE", "sip:dora@10.0.0.1", ("To", "<sip:dora@elsewhere.example:5070>"))
    assert find(bare) == dora.incoming
    forwarded = request("INVITE", "sip:bob@home", ("To", "<sip:alice@home>"))
    assert find(forwarded) is None  # alice's calls may be forwarded to bob
    assert alice.connected


def test_a_proxy_that_asks_within_a_call_is_answered(world):
    """Covers RFC 3261 §22.3: also by who was called, or the call would stay up over there."""
    desk = Desk(world.link)
    alice = world.rich("alice@home", "alice", PASSWORD)
    call = desk.ring("alice", world.now)
    world.wait()
    alice.call("accept", "pcmu")
    world.wait()
    challenge = Challenge.digest("desk", nonce="n")
    take, asked = desk.on_request, []

    def on_request(server, request, now):
        asked.append(request)
        if "Proxy-Authorization" in request.headers:
            take(server, request, now)
        else:
            server.reply(407, now, headers=[("Proxy-Authenticate", challenge)])

    desk.on_request = on_request
    alice.call("bye")
    world.wait(1.0)
    assert [each.method for each in asked] == ["BYE", "BYE"]
    assert desk.events(call)[-1] == "ended" and world.is_clean()


def test_a_login_name_forges_no_header(world):
    """Covers RFC 3261 §7.3.1."""
    eve = world.rich("alice@home", "alice\r\nX-Evil: 1", PASSWORD)
    assert eve.connected is False and eve.refusal["description"].startswith("400")
    assert world.is_clean()
