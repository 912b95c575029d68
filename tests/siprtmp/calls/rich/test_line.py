"""The rich client's API, call by call, between a client, the gateway and a phone."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.gateway.gateway_world import AUDIO, BOB, CALLER, PCMU, SPEEX, Desk, GatewayWorld, sdp
from support.sip.homes import store

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmp.wire.command import Command
from siprtmp.calls.named_call import CallStatus
from siprtmp.calls.rich.line import _COMMANDS


def test_what_connect_is_answered_with():
    """Covers RTMP 1.0 §7.2.1.1: the window's size before the result, which has number 1."""
    world = GatewayWorld()
    seen = []

    connection = world.server()
    connection.transport.send_control = lambda message: seen.append(type(message).__name__)
    connection.send_command = lambda command: seen.append(command)
    connection.on_command(Command("connect", 1.0, {"app": "sip/alice@home"}, ()), 0, 0.0)
    result = seen.pop()
    assert (result.name, result.transaction_id) == ("_result", 1.0)
    assert "WindowAcknowledgementSize" in seen


def test_what_calls_look_like_on_the_wire():
    """Covers RTMP 1.0 §7.2.1.2: as the original's clients know them, on stream 0 all of them."""
    world, seen = GatewayWorld(), []
    connection = world.server()
    send = connection.send_command
    connection.send_command = lambda *args, **options: (seen.append((args, options)), send(*args))
    for name, number, *args in (
        ("connect", 1.0),
        ("invite", 2.0, "nobody@home"),
        ("invite", 3.0, "nobody@home"),
    ):
        about = {"app": "sip/alice@home"} if name == "connect" else None
        connection.on_command(Command(name, number, about, tuple(args)), 0, 0.0)
        world.wait()
    said = [(command.name, command.transaction_id, command.object, command.args)
            for (command,), options in seen[1:] if not options]  # fmt: skip
    refusal = ("480 Not Registered",)
    assert said == [
        ("_result", 2.0, None, ()),
        ("rejected", 2, None, refusal),
        ("_result", 3.0, None, ()),
        ("rejected", 3, None, refusal),
    ]


def test_a_call_out_and_its_end_by_either_side(world, desk, alice):
    """Covers RFC 3261 §13.2.1, §15.1.1 and §15.1.2."""
    alice.call("invite", f"sip:{BOB}", "pcmu", "dtmf")
    world.wait()
    assert alice.heard() == [("accepted", "pcmu", None)]
    alice.call("bye")
    world.wait()
    assert alice.heard() == [] and desk.events()[-1] == "ended" and not world.gateway.audios
    desk.answers = SPEEX
    alice.call("invite", BOB)
    world.wait()
    assert alice.heard() == [("accepted",)]
    desk.calls[-1].bye(world.now)
    world.wait()
    assert alice.heard() == [("byed",)]
    assert world.gateway.log.ends() == ["client hung up", "BYE"]
    assert world.is_clean()


def test_a_call_in_is_announced_with_both_addresses(world, desk, alice):
    """Covers RFC 3261 §13.3.1.1 and §13.3.1.4."""
    desk.ring("alice", world.now)
    world.wait()
    assert alice.heard() == [("invited", CALLER, "<sip:alice@10.0.0.1>")]
    assert desk.events() == ["ringing"]
    alice.call("accept", "pcma", "pcmu")
    world.wait()
    assert alice.heard() == [("accepted", "pcmu", None)]
    assert desk.events() == ["ringing", "accepted"]
    desk.calls[-1].bye(world.now)
    world.wait()
    assert alice.heard() == [("byed",)] and world.is_clean()


@pytest.mark.parametrize(
    "offer", [sdp("18"), sdp("101"), b"v=0\r\nnonsense\r\n", sdp(PCMU, port=0)]
)
def test_nothing_in_common_is_refused_and_nobody_alerted(world, desk, alice, offer):
    """Covers RFC 3264 §6: 488, or 400 for what is no offer."""
    desk.ring("alice", world.now, offer)
    world.wait()
    assert alice.heard() == [] and desk.log[-1][2] in (488, 400)
    desk.ring("alice", world.now)  # the line is free
    world.wait()
    assert alice.heard()[0][0] == "invited" and world.is_clean()


def test_accepting_codecs_that_the_offer_lacks_is_488_and_byed(world, desk, alice):
    """Covers RFC 3264 §6."""
    desk.ring("alice", world.now)
    world.wait()
    alice.call("accept", "pcma")
    world.wait()
    assert [name for name, *_ in alice.heard()] == ["invited", "byed"]
    assert desk.log[-1][2] == 488 and world.is_clean()


@pytest.mark.parametrize(
    ("said", "status", "reason"),
    [
        ((), 603, "Decline"),
        (("486 Busy Here",), 486, "Busy Here"),
        (("486",), 486, "Busy Here"),
        (("302 Elsewhere",), 302, "Elsewhere"),
        (("200 OK",), 603, "Decline"),
        (("no",), 603, "Decline"),
        ((None,), 603, "Decline"),
        (("486 Not\r\nX: y",), 486, "NotX: y"),
    ],
)
def test_reject_says_what_it_is_told(world, desk, alice, said, status, reason):
    """Covers RFC 3261 §13.3.1.3."""
    desk.ring("alice", world.now)
    world.wait()
    alice.call("reject", *said)
    world.wait()
    assert desk.log[-1][0] == "rejected" and desk.log[-1][2] == status
    assert world.gateway.log.ends() == [f"{status} {reason}"] and world.is_clean()


def test_a_caller_who_gives_up_is_cancelled(world, desk, alice):
    """Covers RFC 3261 §9.2."""
    call = desk.ring("alice", world.now)
    world.wait()
    call.bye(world.now)
    world.wait()
    assert alice.heard()[-1] == ("cancelled", CALLER, "<sip:alice@10.0.0.1>")
    alice.call("accept")
    alice.call("reject")
    alice.call("bye")
    assert alice.heard() == [] and world.is_clean()


def test_who_is_hung_up_on_by_the_gateway_is_told(world, desk, alice):
    """Own design: when it shuts down, the client hears what it hears of a phone's BYE."""
    alice.call("invite", BOB, "pcmu")
    world.wait()
    [call] = world.gateway.context.calls
    for _ in range(2):
        call.drop(world.now, "shutdown")
        world.wait()
    assert alice.heard() == [("accepted", "pcmu", None), ("byed",)] and desk.events()[-1] == "ended"
    assert world.gateway.log.ends() == ["shutdown"] and world.is_clean()


def test_nobody_answers_for_a_minute(world, desk, alice):
    """Covers RFC 3261 §13.3.1: 480, and the client's phone stops ringing."""
    desk.agent.core.answer_timeout = 120.0
    desk.ring("alice", world.now)
    world.wait(59.0)
    assert desk.events() == ["ringing"]
    world.wait(2.0)
    assert desk.log[-1][0] == "rejected" and desk.log[-1][2] == 480
    assert [name for name, *_ in alice.heard()] == ["invited", "cancelled"] and world.is_clean()


def test_nobody_answers_our_call_for_a_minute(world, desk, alice):
    """Covers RFC 3261 §9.1: given up with CANCEL, and told as 480."""
    desk.answers = b""
    desk.agent.core.answer_timeout = 120.0
    alice.call("invite", BOB)
    world.wait(59.0)
    assert alice.heard() == [("ringing", "180 Ringing")]
    world.wait(2.0)
    assert alice.heard() == [("rejected", "480 No Answer")]
    assert desk.events() == ["cancelled"] and world.is_clean()


@pytest.mark.parametrize(
    ("dest", "status"),
    [
        ("", "400"),
        (None, "400"),
        (7.0, "400"),
        ("tel:+15551234", "416"),
        ("http://example.com", "416"),
        ("sips:bob@home", "480"),
        ("<sip:bob@home", "400"),
        ("bob@home\r\nX-Evil: 1", "400"),
        ("nobody@home", "480"),
        ("bob@nowhere.invalid", "503"),
    ],
)
def test_destinations_that_cannot_be_called(world, alice, dest, status):
    """Covers RFC 3261 §21.4.1, §21.4.14 and §21.5.4."""
    alice.call("invite", dest)
    world.wait(1.0)
    [(name, text)] = alice.heard()
    assert (name, text[:3]) == ("rejected", status)
    assert world.is_clean()


@pytest.mark.parametrize(
    ("identity", "dest", "called"),
    [
        ("alice@far.example:5070", "bob@far.example", "sip:bob@far.example:5070"),
        ("alice@far.example:5070", "bob@FAR.example:5080", "sip:bob@far.example:5080"),
        ("alice@far.example:5070", "bob@near.example", "sip:bob@near.example"),
        ("alice@10.0.0.1:5070", "bob@10.0.0.1", "sip:bob@10.0.0.1"),  # which is ours
    ],
)
def test_the_port_of_the_domain_is_that_of_its_users(world, identity, dest, called):
    """Covers RFC 3261 §19.1.1: a domain is where `connect` said, unless it is ours."""
    client = world.rich(identity)
    client.call("invite", dest)
    [start] = [values for what, values in world.gateway.log.lines if what == "call-start"]
    assert start["callee"] == called


@pytest.mark.parametrize(("names", "status"), [(("g729",), "488"), (("dtmf",), "488")])
def test_codecs_that_cannot_be_offered(world, desk, alice, names, status):
    """Covers RFC 3264 §5."""
    alice.call("invite", BOB, *names)
    world.wait()
    assert alice.heard()[0][1].startswith(status) and not desk.calls and world.is_clean()


def test_one_call_at_a_time(world, desk, alice):
    """Covers RFC 3261 §21.4.24 and §13.3.1.3 [486-when-busy]."""
    alice.call("invite", BOB, "pcmu")
    world.wait()
    alice.call("invite", BOB)
    assert alice.heard()[-1] == ("rejected", "486 Busy Here")
    desk.ring("alice", world.now)
    world.wait()
    assert desk.log[-1][0] == "rejected" and desk.log[-1][2] == 486
    assert alice.heard() == [] and len(world.gateway.context.calls) == 1
    assert world.is_clean()


def test_answering_twice_and_thinking_better_of_it(world, desk, alice):
    """Covers RFC 3261 §15: a BYE waits for the ACK of our 200."""
    desk.ring("alice", world.now)
    world.wait()
    alice.call("accept", "pcmu")  # the ACK is still on its way
    alice.call("accept", "pcmu")
    alice.call("reject", "486 Too Late")
    alice.call("bye")
    world.wait()
    assert [name for name, *_ in alice.heard()] == ["invited"]
    assert desk.events()[-2:] == ["accepted", "ended"] and world.is_clean()


def test_publishing_again_takes_the_place_of_the_first(world, desk, alice):
    """Own design: any published stream counts as `local`, the last of several."""
    alice.call("invite", BOB, "pcmu")
    world.wait()
    first = alice.peer.publish("local")
    second = alice.peer.publish("local")
    alice.peer.write(AUDIO, 0, first, b"\x82" + bytes(160))
    assert not world.gateway.media.sent
    alice.peer.write(AUDIO, 0, second, b"\x82" + bytes(160))
    assert len(world.gateway.media.sent) == 1
    assert "NetStream.Unpublish.Success" in alice.peer.codes()
    alice.peer.send("deleteStream", float(second))
    world.wait()
    assert alice.heard() == [("accepted", "pcmu", None)]  # the call goes on
    third = alice.peer.publish("local")
    alice.peer.write(AUDIO, 0, third, b"\x82" + bytes(160))
    assert len(world.gateway.media.sent) == 2 and world.is_clean()


def test_streams_may_be_made_before_the_call_and_outlive_it(world, desk, alice):
    """Own design: the original dropped a connection that created them before `accepted`."""
    local, remote = alice.peer.publish("local"), alice.peer.play("remote")
    assert local != remote
    for at in (0, 20):
        alice.peer.write(AUDIO, at, local, b"\x82" + bytes(160))
    for _ in range(2):
        alice.call("invite", BOB, "pcmu")
        world.wait()
        leg = world.gateway.audio
        for i in range(3):
            leg.on_rtp(b"\x80\x00" + i.to_bytes(2, "big") + bytes(8) + b"s" * 160, world.now)
        world.run()
        alice.call("bye")
        world.wait()
    tags = [payload for type_id, _, payload in alice.peer.media() if type_id == AUDIO]
    assert tags == [b"\x82" + b"s" * 160] * 6
    codes = alice.peer.codes()
    assert codes.count("NetStream.Play.UnpublishNotify") == 2 and world.is_clean()


def test_commands_that_are_none(world, alice):
    """Covers RTMP 1.0 §7.2.1.2: an error, not silence."""
    with pytest.raises(RemoteError, match="No such call"):
        alice.peer.call("sing", "loudly")
    nobody = world.client("rtmp://host/sip")
    with pytest.raises(RemoteError, match="No identity"):
        nobody.call("invite", BOB)


def test_the_reference_has_all_commands_and_states():
    """Own design: a client's author reads one page."""
    page = (Path(__file__).parents[4] / "docs/5-reference/client-api.md").read_text()
    assert all(f"| `{name}` |" in page for name in _COMMANDS)
    assert all(f"`{status}`" in page for status in CallStatus)


VALUES = st.none() | st.booleans() | st.floats() | st.text(max_size=20)
ODD = st.text(max_size=30) | st.sampled_from(
    [
        '"\\" <sip:bob@home>',
        "bob@home;x=\ud800",
        "sip:bob@home?a=b\r\nc",
        "bob@[::1]",
        "bob@" + "h" * 5000,
    ]
)


@given(
    st.lists(VALUES | ODD, max_size=5),
    st.sampled_from(list(_COMMANDS)),
    st.lists(VALUES | ODD, max_size=4),
)
def test_any_arguments_are_taken_in(login, command, args):
    """Covers RTMP 1.0 §7.2.1.2: no values of a client's get more than a refusal."""
    world = GatewayWorld()
    desk = Desk(world.link)
    rich = world.rich("alice@home", *(["", "", *login[2:]]))
    desk.ring("alice", world.now)
    world.wait()
    if command == "invite":
        rich.call("bye")
    try:
        rich.call(command, *args)
        rich.call("bye")
    except LocalError:
        return  # our own client refused to send that
    assert not rich.closed and world.is_clean()


@given(st.lists(VALUES | ODD, min_size=2, max_size=5), ODD)
def test_any_account_is_let_in_or_turned_away(args, identity):
    """Covers RTMP 1.0 §7.2.1.1."""
    world = GatewayWorld(users=store("alice"))
    for who in ("alice@home", identity.replace("#", "").replace("?", "").replace("[", "")):
        try:
            rich = world.rich(who, *args)
        except LocalError:
            return
        world.wait(70.0)
        assert rich.connected is not None or rich.closed
    assert world.is_clean()
