"""Whose names take calls: not those of others, neither for publishing nor for playing."""

import pytest
from support.gateway.gateway_world import AUDIO, Desk, GatewayWorld
from support.sip.homes import CAROL, PASSWORD, Member, request, store

from p2psip.sip.auth import ha1
from p2psip.sip.uri import Uri
from rtmplite.auth.credentials import Users
from siprtmp.settings.trunks import TrunkSettings

BAD_NAME, FAILED = "NetStream.Publish.BadName", "NetStream.Play.Failed"
STARTED = {"publish": "NetStream.Publish.Start", "play": "NetStream.Play.Start"}
PROOF = f"?user=bob&pass={PASSWORD}"
NUMBER = "4930123"


def begun(tool, how, name):
    """The code that a tool is answered by when it plays or publishes a name."""
    getattr(tool, how)(name)
    return next(code for code in tool.codes() if code != "NetStream.Play.Reset")


def refused(world):
    """What the log has of the last refusal."""
    what, values = next(line for line in reversed(world.gateway.log.lines) if "refused" in line[0])
    return what, values.get("wants"), values.get("name"), values["reason"]


@pytest.fixture
def secured():
    """A gateway with the users bob and eve."""
    return GatewayWorld(users=store("bob", "eve"))


@pytest.mark.parametrize("how", ["publish", "play"])
@pytest.mark.parametrize("query", ["", f"?user=eve&pass={PASSWORD}", "?user=bob&pass=guess"])
def test_a_users_name_is_for_that_user(secured, how, query):
    """Covers RFC 3261 §26.1.1: else the next call to bob were the intruder's."""
    tool = secured.tool()
    wrong = {"publish": BAD_NAME, "play": FAILED}[how]
    assert begun(tool, how, f"bob{query}") == wrong
    assert "password" in tool.statuses()[-1][1]
    assert refused(secured) == ("refused", how, "bob", "this identity needs a password")
    assert len(secured.gateway.call) == 0
    assert begun(secured.tool(), how, f"bob{PROOF}") == STARTED[how]
    assert begun(secured.tool(), how, "studio") == STARTED[how]
    assert secured.is_clean()


def test_both_sides_of_a_call_are_for_its_user(secured):
    """Covers RTMP 1.0 §7.2.2.1: `mixed` of bob's name, and of any name that another holds."""
    intruder, bob = secured.tool("mixed"), secured.tool("mixed")
    assert begun(intruder, "play", "bob") == FAILED
    assert begun(bob, "play", f"bob{PROOF}") == STARTED["play"]
    assert begun(secured.tool(), "publish", f"show{PROOF}") == STARTED["publish"]
    assert begun(intruder, "play", f"show?user=eve&pass={PASSWORD}") == FAILED
    assert begun(bob, "play", f"show{PROOF}") == STARTED["play"]
    assert secured.is_clean()


def test_a_user_of_one_domain_gets_no_calls_of_another(secured):
    """Covers RFC 3261 §16.5: bob of a and bob of b are two, though their name is one."""
    lines = [
        ("bob", "a", ha1("bob", "a", "of a", "MD5")),
        ("bob", "b", ha1("bob", "b", "of b", "MD5")),
    ]
    rights = secured.gateway.rights
    secured.gateway.admission.renew(type(store("bob"))(lines), Users(lines))
    secured.gateway.domains.names = ("a", "b")
    secured.gateway.domains._distinct = True
    holder = rights.admission.holder("", "", "user=bob&pass=of a", 0.0)
    assert rights.of_stream("bob", holder) == ""
    at_a, at_b = (rights.is_for(Uri("sip", "bob", host=host), holder) for host in "ab")
    assert at_a and not at_b and not rights.is_for(Uri("sip", "bob", host="a"), None)
    names = secured.gateway.call
    names.open("bob", secured.registry).holder = holder
    assert names.find(request(uri="sip:bob@a")) and names.find(request(uri="sip:bob@b")) is None


@pytest.mark.parametrize("how", ["publish", "play"])
def test_a_trunks_number_is_for_the_user_that_its_table_names(secured, how):
    rights = secured.gateway.rights
    number = Uri.parse(f"sip:{NUMBER}@provider.example")
    rights.trunks = [TrunkSettings("berlin", number, ("*",))]
    assert begun(secured.tool(), how, NUMBER + PROOF) in (BAD_NAME, FAILED)
    assert refused(secured)[3] == "it is the number of a trunk that names no user"
    for identity in (f"{NUMBER}@provider.example", f"{NUMBER}@home"):
        client = secured.rich(identity)
        assert client.connected is False and "403 Forbidden" in client.refusal["description"]
    rights.trunks = [TrunkSettings("berlin", number, ("*",), user="bob")]
    assert begun(secured.tool(), how, f"{NUMBER}?user=eve&pass={PASSWORD}") in (BAD_NAME, FAILED)
    assert begun(secured.tool(), how, NUMBER + PROOF) == STARTED[how]
    held = rights.holder(secured.tool().server.client, PROOF[1:], 0.0)
    called, others = Uri("sip", NUMBER, host="home"), frozenset({"eve@home"})
    assert rights.is_for(called, held) and not rights.is_for(called, others)
    assert secured.is_clean()


def test_a_phones_name_is_not_taken_over_where_nobody_can_prove_anything(world, desk):
    """Covers RFC 3261 §26.1.1."""
    bob = Member(world.link, CAROL, "bob")
    bob.register(world.now)
    world.wait()
    for app, how, code in (
        ("call", "publish", BAD_NAME),
        ("call", "play", FAILED),
        ("mixed", "play", FAILED),
    ):
        assert begun(world.tool(app), how, "bob") == code
        assert refused(world)[1:3] == (how, "bob")
    for password in ((), ("bob", "any")):
        client = world.rich("bob@home", *password)
        assert client.connected is False and "a phone has" in client.refusal["description"]
    assert begun(world.tool(), "publish", "carol") == STARTED["publish"]
    desk.ring("bob", world.now)
    world.wait()
    assert len(bob.calls) == 1


def test_a_held_name_stays_with_its_holder(world):
    """Another program of the same machine is the same holder, as in the tutorials."""
    first, beside, far = world.tool(), world.tool(), world.tool()
    for tool in (first, beside):
        tool.server.transport.peer_address = ("127.0.0.1", 1)
    far.server.transport.peer_address = ("192.0.2.9", 1)
    assert begun(first, "publish", "studio") == STARTED["publish"]
    assert begun(beside, "play", "studio") == STARTED["play"]
    assert begun(far, "play", "studio") == FAILED
    assert refused(world)[3] == "another client holds this name"
    client = world.rich("studio@home")
    assert client.connected is False and "holds this name" in client.refusal["description"]
    assert world.rich("team@home").connected is False  # a room of the configuration
    assert world.is_clean()


@pytest.mark.parametrize("app", ["call", "mixed"])
def test_a_dialled_call_is_not_heard_by_others_that_waited_for_it(secured, app):
    """Nor do they keep its address from being called: they are turned out."""
    desk = Desk(secured.link)
    eve, bob = secured.tool(app), secured.tool()
    address = f"user@{desk.address}"
    assert begun(eve, "play", f"{address}?user=eve&pass={PASSWORD}") == STARTED["play"]
    bob.publish(address + PROOF)
    secured.wait()
    assert bob.codes() == [STARTED["publish"]] and eve.codes()[-1] == FAILED
    header = b"\x80\x00\0\x01" + bytes(8)
    secured.gateway.audio.on_rtp(header + b"p" * 160, secured.now)
    secured.run()
    assert not [each for each in eve.media() if each[0] == AUDIO]
    assert begun(eve, "play", f"{address}?user=eve&pass={PASSWORD}") == STARTED["play"]
    assert eve.codes()[-1] == FAILED
    assert secured.is_clean()


@pytest.mark.parametrize("proven", [False, True])
def test_a_line_that_has_proved_itself_is_not_replaced_by_one_that_has_not(secured, proven):
    """Covers RFC 3261 §26.1.1: at a registrar elsewhere, too."""
    lines = secured.gateway.sip
    first = secured.rich("dora@elsewhere.example")
    line = lines._lines["dora", "elsewhere.example", None]
    if proven:
        line.account = type(line.account)(line.account.identity, "dora", "word")
    second = secured.rich("dora@elsewhere.example")
    assert (first.closed, second.closed) == ((False, True) if proven else (True, False))
    if not proven:
        last = lines._lines["dora", "elsewhere.example", None]
        last.holder = frozenset({"192.0.2.9"})
        assert secured.rich("dora@elsewhere.example").connected is False
