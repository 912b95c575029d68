"""Instant messages of a rich client and to it, within its call and outside."""

import pytest
from support.gateway.gateway_world import BOB, CALLER, DESK, GatewayWorld
from support.sip.homes import PASSWORD, store

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.ua.messages import Messages
from p2psip.ua.outside import outside_request


@pytest.fixture
def talking(world, desk, alice):
    """Alice's call to the phone, which takes messages."""
    heard = []
    desk.on_message = lambda call, message, now: heard.append(message.text)
    alice.call("invite", BOB, "pcmu")
    world.wait()
    assert alice.heard() == [("accepted", "pcmu", None)]
    return heard


def send(desk, uri, text, now, kind="text/plain"):
    """A message of the phone outside of any call; the statuses that answer it."""
    me = Address(Uri("sip", "user", None, DESK), "Bob")
    to, seen = Address(Uri.parse(uri)), []
    request = outside_request(desk.random, "MESSAGE", to, me, body=text, content_type=kind)
    Messages(desk.agent.core).send(request, lambda response, now: seen.append(response.status), now)
    return seen


def test_within_the_call(world, desk, alice, talking):
    """Covers RFC 3428 §4 and §7: both ways, and the call goes on."""
    alice.call("sendMessage", "good evening, \u017ditn\u00fd")
    desk.calls[-1].message("good morning", world.now)
    world.wait()
    assert talking == ["good evening, \u017ditn\u00fd"]
    assert alice.heard() == [("receivedMessage", CALLER, "good morning")]
    assert alice.failures() == [] and len(world.gateway.context.calls) == 1
    assert world.is_clean()


def test_to_somebody_else(world, desk, alice, talking):
    """Covers RFC 3428 §4: outside of the call, from the line's own name."""
    zoe = world.rich("zoe@home")
    alice.call("sendMessage", "hello", "zoe@home")
    world.wait()
    assert zoe.heard() == [("receivedMessage", "<sip:alice@home>", "hello")]
    assert talking == [] and alice.heard() == [] and world.is_clean()


def test_to_a_line_without_a_call(world, desk, alice):
    """Covers RFC 3428 §7: the sender is told at once, and the client sees who it was."""
    seen = send(desk, "sip:alice@10.0.0.1", b"hi", world.now)
    world.wait()
    assert seen == [200] and alice.heard() == [("receivedMessage", f'"Bob" {CALLER}', "hi")]
    refused = send(desk, "sip:alice@10.0.0.1", b"<b>hi</b>", world.now, "text/html")
    world.wait()
    assert refused == [415] and alice.heard() == [] and world.is_clean()


def test_a_name_that_waits_to_be_called_is_no_reader(world, desk):
    """Covers RFC 3428 §7: a stock tool cannot show it."""
    world.tool().publish("studio")
    seen = send(desk, "sip:studio@10.0.0.1", b"hi", world.now)
    world.wait()
    assert seen == [480] and world.is_clean()


def test_within_the_call_of_a_stock_tool(world, desk):
    """Covers RFC 3428 §7: refused, and the call goes on."""
    world.tool().publish(BOB)
    world.wait()
    desk.calls[-1].message("hi", world.now)
    world.wait()
    assert len(world.gateway.context.calls) == 1 and world.is_clean()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("hello",), "481 Call/Transaction Does Not Exist"),
        (("hello", "nobody@home"), "480 Not Registered"),
        (("hello", ""), "400 Bad destination"),
        (("hello", 7.0), "400 Bad destination"),
        (("hello", "tel:+123"), "416 Unsupported URI Scheme"),
        (("", BOB), "400 Empty Message"),
        ((), "400 Empty Message"),
        ((None, BOB), "400 Empty Message"),
        (("x" * 1300, BOB), "513 Message Too Large"),
    ],
)
def test_messages_that_cannot_be_sent(world, alice, args, told):
    """Own design: the command has had its empty result, so a status tells."""
    alice.call("sendMessage", *args)
    world.wait(1.0)
    assert alice.failures() == [f"sendMessage: {told}"] and world.is_clean()


def test_messages_that_the_phone_refuses(world, desk, alice, talking):
    """Covers RFC 3428 §7: the status is told; so it is for a message that is too long."""

    def refuse(call, message, now):
        raise RemoteError("Decline", 603)

    desk.on_message = refuse
    alice.call("sendMessage", "hello")
    alice.call("sendMessage", "x" * 1300)
    world.wait(1.0)
    told = sorted(alice.failures())
    assert told == ["sendMessage: 513 Message Too Large", "sendMessage: 603 Decline"]
    assert len(world.gateway.context.calls) == 1 and world.is_clean()


def test_keys_that_the_phone_refuses(world, desk, alice, talking):
    """Covers RFC 6086 §4.2.1: the user is told, and the call goes on."""

    def refuse(call, content_type, body, now, package):
        raise RemoteError("Unsupported Media Type", 415)

    desk.on_info = refuse
    alice.call("sendDTMF", "1")
    world.wait(1.0)
    assert alice.failures() == ["sendDTMF: 415 Unsupported Media Type"] and world.is_clean()


def test_messages_go_where_calls_may_go():
    """Own design: a stolen password reaches no more people by messages than by calls."""
    world = GatewayWorld(allow_targets=("*@10.0.0.9",))
    alice = world.rich("alice@home")
    alice.call("sendMessage", "hello", BOB)
    world.wait()
    assert alice.failures() == ["sendMessage: 403 Target Not Allowed"] and world.is_clean()


def test_the_password_of_a_line_signs_its_messages():
    """Covers RFC 3261 §22.2: its registrar asks who it is."""
    world = GatewayWorld(users=store("alice", "zoe"))
    alice, zoe = (world.rich(f"{name}@home", name, PASSWORD) for name in ("alice", "zoe"))
    world.wait()
    alice.call("sendMessage", "hello", "zoe@home")
    world.wait()
    assert zoe.heard() == [("receivedMessage", "<sip:alice@home>", "hello")] and world.is_clean()


def test_phones_are_told_that_they_may_write(world, desk, alice, talking):
    """Covers RFC 3261 §20.5."""
    assert desk.calls[-1].leg.allows("MESSAGE")
