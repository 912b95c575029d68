"""Calls to numbers leave by trunks: the first that matches, and the next one if that fails."""

from functools import partial

import pytest
from support.gateway.gateway_world import DESK, PCMU, SPEEX, Desk, sdp
from support.sip.homes import HOME

from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from siprtmp.calls.trunks import LINE_PARAM, Trunk, Trunks, is_worth_another
from siprtmp.settings.trunks import TrunkSettings

SECOND = "10.0.0.4"
START, REJECTED = "NetStream.Publish.Start", "NetStream.Publish.Rejected"


def trunk(world, name, host, *numbers):
    settings = TrunkSettings(
        name, Uri.parse(f"sip:me@{host}"), numbers, password=f"of-{name}", register=False
    )
    contact = partial(world.gateway.contact, "me", name)
    return Trunk(settings, contact, name, world.gateway.log)


@pytest.fixture
def trunks(world):
    """One for Germany, one for all numbers, at two providers."""
    gateway = world.gateway
    gateway.context.trunks = Trunks(
        [trunk(world, "one", DESK, "+49*"), trunk(world, "two", SECOND, "+*", "bob")],
        gateway.domains,
        lambda uri, now: gateway.sip.host(uri) is not None,
    )
    return gateway.context.trunks


@pytest.fixture
def second(world):
    """The provider behind the second trunk."""
    return Desk(world.link, SECOND)


def invites(phone):
    return [call.invite for call in phone.calls]


@pytest.mark.parametrize("name", ["tel:+49-30-(1)23", "+4930.123@home"])
def test_a_number_leaves_by_the_first_trunk_that_matches(world, desk, second, trunks, name):
    """Covers RFC 3966 §5.1.1 [separators-are-not-dialled]."""
    tool = world.tool()
    tool.publish(name)
    world.wait()
    assert tool.codes() == [START]
    [invite] = invites(desk)
    assert str(invite.uri) == f"sip:+4930123@{DESK};user=phone"
    assert str(invite.from_.uri) == f"sip:me@{DESK}"
    assert invites(second) == []
    [call] = world.gateway.context.calls
    [line] = [values for what, values in world.gateway.log.lines if what == "call-start"]
    assert line["trunk"] == call.trunk_name == "one"
    assert call.dialling.trunk_name == "one" and call.origin.callee.startswith("sip:+4930")
    assert world.is_clean()


@pytest.mark.parametrize("status", [500, 503, 408])
def test_the_next_trunk_is_called_when_one_fails(world, desk, second, trunks, status):
    """Own design: with the same Call-ID and another From."""
    desk.answers = status
    tool = world.tool()
    tool.publish("tel:+4930123")
    world.wait()
    assert tool.codes() == [START]
    [first], [then] = invites(desk), invites(second)
    assert first.call_id == then.call_id and str(then.from_.uri) == f"sip:me@{SECOND}"
    [line] = [values for what, values in world.gateway.log.lines if what == "trunk-next"]
    assert (line["trunk"], line["next"]) == ("one", "two")
    assert line["reason"].startswith(str(status))
    assert world.is_clean()


def test_a_server_that_is_silent_has_its_time_and_then_the_next_is_called(world, second, trunks):
    """Covers RFC 3261 §17.1.1.2: no phone is at the first trunk's address."""
    tool = world.tool()
    tool.publish("tel:+4930123")
    world.wait(31.0)
    assert invites(second) == []
    world.wait(2.0)
    assert tool.codes() == [START] and len(invites(second)) == 1
    assert world.is_clean()


@pytest.mark.parametrize("status", [486, 603, 404])
def test_an_answer_about_the_callee_is_final(world, desk, second, trunks, status):
    """No other way would lead to another callee."""
    desk.answers = status
    tool = world.tool()
    tool.publish("tel:+4930123")
    world.wait()
    assert tool.codes() == [REJECTED] and invites(second) == []
    assert world.is_clean()


def test_when_all_fail_the_last_reason_is_told(world, desk, second, trunks):
    desk.answers, second.answers = 503, 500
    tool = world.tool()
    tool.publish("tel:+4930123")
    world.wait()
    information = [e.command.args[0] for e in tool.events if hasattr(e, "command")][-1]
    assert information["description"].startswith("500")
    assert world.is_clean()


def test_a_trunk_that_is_down_comes_last(world, desk, second, trunks, monkeypatch):
    monkeypatch.setattr(Trunk, "is_down", property(lambda self: self.settings.name == "one"))
    world.tool().publish("tel:+4930123")
    world.wait()
    assert invites(desk) == [] and len(invites(second)) == 1
    assert world.is_clean()


def test_giving_up_while_the_second_rings_cancels_it(world, desk, second, trunks):
    """Covers RFC 3261 §9.1."""
    desk.answers, second.answers = 503, b""
    tool = world.tool()
    stream = tool.publish("tel:+4930123")
    world.wait()
    tool.send("deleteStream", float(stream))
    world.wait()
    assert second.events()[-1] == "cancelled"
    assert world.is_clean()


def test_rich_clients_call_numbers_too(world, desk, trunks):
    desk.answers = SPEEX
    alice = world.rich("alice@home", "", "", "Alice")
    alice.call("invite", "tel:+49-30-123")
    world.wait()
    assert [name for name, *_ in alice.heard()] == ["accepted"]
    [invite] = invites(desk)
    assert invite.from_.display == "Alice" and str(invite.from_.uri) == f"sip:me@{DESK}"
    assert world.is_clean()


def test_a_user_of_ours_is_not_called_by_a_trunk(world, desk, trunks):
    """Own design: +491 is a client here."""
    world.rich("+491@home")
    tool = world.tool()
    tool.publish("+491@home")
    world.wait()
    assert invites(desk) == []
    assert world.is_clean()


def test_the_trunks_own_domain_is_called_by_it(world, second, trunks):
    """Also a name that is no number, if a pattern has it; nobody else there is."""
    second.answers = 486
    for name in ("bob", "carol"):
        world.tool().publish(f"{name}@{SECOND}")
        world.wait()
    bob, carol = invites(second)
    assert str(bob.from_.uri) == f"sip:me@{SECOND}" and str(carol.from_.uri) == "sip:call@home"
    assert world.is_clean()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tel:112", "404 No Trunk For This Number"),
        ("tel:+49;m-x=1", "416"),
        ("tel:12;phone-context=elsewhere", "404 Unknown Phone Context"),
        ("tel:12;phone-context=home", "404 No Trunk For This Number"),
        ("tel:", "400"),
        ("tel:hello", "400"),
    ],
)
@pytest.mark.parametrize("has_trunks", [True, False])
def test_numbers_that_cannot_be_called(world, trunks, name, said, has_trunks):
    """Covers RFC 3966 §5.4 [unknown-mandatory-refused]."""
    if not has_trunks:
        world.gateway.context.trunks = Trunks()
        said = "400" if name == "tel:" else "416"
    tool = world.tool()
    tool.publish(name)
    world.wait()
    information = [e.command.args[0] for e in tool.events if hasattr(e, "command")][-1]
    assert information["description"].startswith(said)
    assert world.is_clean()


def test_the_limits_of_calls_hold_and_the_patterns_are_leave_enough(world, desk, trunks):
    """Own design: an operator who writes a pattern for a trunk need not repeat it."""
    asked = []
    begin = world.gateway.tolls.begin
    world.gateway.tolls.begin = lambda payer, uri, now: (
        asked.append(str(uri)),
        begin(payer, uri, now),
    )[1]
    world.tool().publish(f"+4930123@{DESK}")
    world.wait()
    assert asked == ["sip:+4930123@home"] and len(invites(desk)) == 1
    assert world.is_clean()


def test_what_says_nothing_about_the_callee():
    worth = [status for status in range(300, 700) if is_worth_another(status)]
    assert worth == [408, *range(500, 600)]


def test_a_trunk_by_another_server_goes_by_a_route(world):
    """Covers RFC 3261 §8.1.2: and its password is for that server."""
    settings = TrunkSettings(
        "t", Uri.parse("sip:me@far"), ("*",), "secret", "auth", Uri.parse(f"sip:{DESK}"), False
    )
    one = Trunk(settings, partial(world.gateway.contact, "me", "t"), "t", world.gateway.log)
    assert [str(each) for each in one.route] == [f"sip:{DESK};lr"]
    assert one.login.user == "auth" and one.login.belongs_to(Uri.parse(f"sip:{DESK}"))
    assert not one.login.belongs_to(Uri.parse("sip:far"))
    assert one.state == "unregistered" and not one.is_down
    assert Trunks([one]).named("t") is one and Trunks([one]).named("") is None


def test_sound_crosses_a_call_by_a_trunk(world, desk, trunks):
    tool = world.tool()
    stream = tool.publish("tel:+4930123")
    world.wait()
    tool.write(8, 0, stream, b"\x82" + b"s" * 160)
    assert world.gateway.media.sent[0][1].endswith(b"s" * 160)
    assert world.is_clean()


def test_a_call_that_comes_by_a_trunk_has_its_name_in_the_log(world, second, trunks):
    """Own design: as one that leaves by it; any other call names none."""
    world.tool().publish("studio")
    world.wait()
    for token in ("two", "unknown"):
        to = Address(Uri("sip", "studio", host=HOME).with_params(**{LINE_PARAM: token}))
        me = Address(Uri("sip", "+4940", host=SECOND))
        call = second.agent.invite(to, me, second.contact, sdp(PCMU), second, world.now)
        world.wait()
        rows = [each.trunk_name for each in world.gateway.context.calls]
        call.bye(world.now)
        world.wait()
        [*_, line] = [values for what, values in world.gateway.log.lines if what == "call-start"]
        assert [line.get("trunk")] == rows == ["two" if token == "two" else None]
