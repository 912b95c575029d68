"""Who may be whom: accounts, logins, and which line a call is for."""

import pytest
from support.gateway.gateway_world import DESK, PCMU, Desk, GatewayWorld, sdp
from support.sip.homes import HOME, PASSWORD, request, store

from p2psip.sip.address import Address
from p2psip.sip.auth import Challenge
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Recipient


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


@pytest.mark.sources
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
    world = GatewayWorld(users=store("alice"), keep_first_line=True)
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


def test_calls_by_contact_and_by_name_whatever_to_says(world):
    """Covers RFC 3261 §16.5: the Request-URI names the target, and To is for the reader."""
    alice = world.rich("alice@home", "alice", PASSWORD)
    line = world.gateway.sip._lines["alice", "home", None]
    find = world.gateway.sip.find
    assert find(request(uri="sip:alice@10.0.0.1")) == line.incoming
    assert find(request(uri=str(line.contact))) == line.incoming
    assert find(request(uri="sip:bob@home")) is None
    world.rich("dora@elsewhere.example:5070")
    dora = world.gateway.sip._lines["dora", "elsewhere.example", 5070]
    bare = request("INVITE", "sip:dora@10.0.0.1", ("To", "<sip:dora@elsewhere.example:5070>"))
    assert find(bare) is None and find(request(uri=str(dora.contact))) == dora.incoming
    forwarded = request("INVITE", "sip:bob@home", ("To", "<sip:alice@home>"))
    assert find(forwarded) is None  # alice's calls may be forwarded to bob
    assert alice.connected


class Asking(Desk):
    """A desk that is a registrar too, and wants a password with all that it is sent."""

    def __init__(self, link):
        self.asked, self.answered = [], []
        super().__init__(link)

    def recipient(self, request, flow, now):
        return Recipient(self.on_request)

    def on_request(self, server, request, now):
        if request.to.tag is None and request.method != "REGISTER":
            super().on_request(server, request, now)
            return
        self.asked.append(request)
        if "Proxy-Authorization" not in request.headers:
            challenge = Challenge.digest("desk", nonce="n")
            server.reply(407, now, headers=[("Proxy-Authenticate", challenge)])
            return
        self.answered.append(request.method)
        if request.method == "REGISTER":
            server.reply(200, now, headers=[("Contact", request.headers.get("Contact"))])
        else:
            super().recipient(request, server.flow, now).take(server, request, now)

    def calls_and_is_left(self, rich, to):
        """Call a rich client, who answers and then hangs up; how the call went over here."""
        me = Address(self.contact)
        call = self.agent.invite(Address(to), me, self.contact, sdp(PCMU), self, self.now)
        self.calls.append(call)
        rich.world.wait()
        rich.call("accept", "pcmu")
        rich.world.wait()
        rich.call("bye")
        rich.world.wait(1.0)
        return self.events(call)[-1]


def test_a_server_that_asks_within_a_call_is_answered(world):
    """Covers RFC 3261 §22.2: also by who was called, or the call would stay up over there."""
    desk = Asking(world.link)
    alice = world.rich(f"alice@{DESK}", "alice", PASSWORD)
    world.wait()
    assert alice.connected
    assert desk.calls_and_is_left(alice, desk.asked[0].contacts[0].uri) == "ended"
    assert [each.method for each in desk.asked] == ["REGISTER"] * 2 + ["BYE"] * 2
    world.drop(alice.peer)
    assert world.is_clean()


def test_a_caller_who_asks_within_a_call_gets_nothing_to_guess_a_password_by(world):
    """Own design: whoever may call could ask."""
    desk = Asking(world.link)
    alice = world.rich("alice@home", "alice", PASSWORD)
    assert desk.calls_and_is_left(alice, Uri("sip", "alice", None, HOME)) != "ended"
    assert [each.method for each in desk.asked] == ["BYE"] and not desk.answered
    desk.calls[0].bye(world.now)
    assert world.is_clean()


def test_a_login_name_forges_no_header(world):
    """Covers RFC 3261 §7.3.1."""
    eve = world.rich("alice@home", "alice\r\nX-Evil: 1", PASSWORD)
    assert eve.connected is False and eve.refusal["description"].startswith("400")
    assert world.is_clean()
