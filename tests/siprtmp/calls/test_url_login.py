"""Stock tools that call with a password of their own."""

import pytest
from support.gateway.gateway_world import DESK, GatewayWorld
from support.sip.homes import PASSWORD, store

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from siprtmp.calls.named_call import caller_of

DEFAULT = Address(Uri("sip", "call", host="gw"))


def test_the_caller_is_the_user_of_the_callees_domain():
    """Covers RFC 3261 §22.1: and the password is for that server alone."""
    to = Uri.parse("sip:bob@far:5070;transport=tcp")
    caller, login = caller_of("a=1&sip-user=al%20ice&sip-pass=p%26w", to, DEFAULT)
    assert str(caller.uri) == "sip:al%20ice@far:5070"
    assert (login.user, login.password) == ("al ice", "p&w") and login.belongs_to(to)
    assert not login.belongs_to(Uri.parse("sip:bob@far")) and not login.belongs_to(
        Uri("sip", host="b")
    )


@pytest.mark.parametrize(
    ("query", "to"),
    [
        ("", "sip:bob@far"),
        ("sip-user=alice", "sip:bob@far"),
        ("sip-pass=secret", "sip:bob@far"),
        ("user=alice&pass=secret", "sip:bob@far"),
        ("sip-user=alice&sip-pass=secret", "tel:+49"),
    ],
)
def test_without_both_the_caller_is_the_usual_one(query, to):
    assert caller_of(query, Uri.parse(to), DEFAULT) == (DEFAULT, None)


def test_a_name_with_a_line_break_is_refused():
    """Covers RFC 3261 §7.3.1."""
    with pytest.raises(RemoteError):
        caller_of("sip-user=a%0d%0ab&sip-pass=c", Uri.parse("sip:bob@far"), DEFAULT)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (f"?sip-user=alice&sip-pass={PASSWORD}", "480 Not Registered"),
        ("?sip-user=alice&sip-pass=wrong", "407"),
        ("?sip-user=a%0ab&sip-pass=x", "400 Not a login name"),
    ],
)
def test_a_server_that_wants_a_password_gets_it(query, said):
    """Covers RFC 3261 §22.3: here it is the gateway's own proxy, which knows alice."""
    world = GatewayWorld(users=store("alice", "bob"))
    tool = world.tool()
    tool.publish(f"bob@home{query}")
    world.wait(1.0)
    information = [e.command.args[0] for e in tool.events if hasattr(e, "command")][-1]
    assert information["description"].startswith(said)
    assert world.is_clean()


def test_the_callee_sees_the_user(world, desk):
    world.tool().publish(f"user@{DESK}?sip-user=alice&sip-pass={PASSWORD}")
    world.wait()
    invite = desk.calls[0].invite
    assert str(invite.from_.uri) == f"sip:alice@{DESK}"
    assert "Authorization" not in invite.headers and PASSWORD not in str(bytes(invite))
    assert world.is_clean()
