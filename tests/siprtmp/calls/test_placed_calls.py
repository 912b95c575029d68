"""Calls that somebody else places: for a name of `call`, or between two phones."""

from array import array

import pytest
from support.gateway.gateway_world import AUDIO, DESK, PCMU, Desk, GatewayWorld, sdp

from p2psip.errors import RemoteError
from p2psip.server.users import UserStore
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from rtmplite.auth.credentials import user_lines
from siprtmp.calls.anchored.joined_call import JoinedCall
from siprtmp.media.transcode.to_flv import RATE, AacTags

OTHER = "10.0.0.4"
SOUND = b"\x82" + b"s" * 160


def at(host):
    return Address(Uri("sip", "user", None, host))


@pytest.fixture
def events(world):
    """What all calls have told: (callee, event, text)."""
    told = []

    def tell(call, event, text, now):
        told.append((call.origin.callee, event.value, text))
        return False

    world.gateway.context.on_event = tell
    return told


@pytest.fixture
def other(world):
    return Desk(world.link, OTHER)


def place_by_name(world, name="studio", payer="ann@home"):
    named = world.gateway.call.open(name, world.registry)
    return named.place(Address(Uri("sip", name, host="home")), at(DESK), payer, world.now)


def say(world, wire, count=3):
    """A phone sends packets of PCMU."""
    [stream] = [one for one, its in world.gateway.audios.items() if its is wire]
    for i in range(count):
        header = b"\x80\x00" + i.to_bytes(2, "big") + (160 * i).to_bytes(4, "big") + bytes(4)
        stream.on_rtp(header + b"p" * 160, world.now)
    world.wait()


def test_a_name_calls_and_is_heard_and_hears(world, desk, events):
    """Covers RFC 3261 §13.2.1."""
    tool, player = world.tool(), world.tool()
    stream = tool.publish("studio")
    player.play("studio")
    call = place_by_name(world)
    world.wait()
    assert call.up_at is not None
    tool.write(AUDIO, 0, stream, SOUND)
    assert world.gateway.media.sent[0][1].endswith(SOUND[1:])
    say(world, world.gateway.media)
    assert [body for kind, _, body in player.media() if kind == AUDIO] == [b"\x82" + b"p" * 160] * 3
    with pytest.raises(RemoteError, match="has a call"):
        place_by_name(world)
    desk.calls[0].bye(world.now)
    world.wait()
    assert not tool.server.closed  # it waits again
    callee = f"sip:user@{DESK}"
    assert [each[1] for each in events] == ["begun", "answered", "ended"]
    assert {each[0] for each in events} == {callee}
    assert world.is_clean()


def test_a_placed_call_counts_for_who_has_placed_it():
    world = GatewayWorld(max_user_calls=1)
    Desk(world.link)
    call = place_by_name(world)
    world.wait()
    with pytest.raises(RemoteError) as refused:
        place_by_name(world, "attic2")
    assert refused.value.status == 403
    place_by_name(world, "cellar", "bob@home")
    call.drop(world.now)
    place_by_name(world, "attic2")
    assert len(world.gateway.call) == 2  # the one that was refused is forgotten
    for each in list(world.gateway.context.calls):
        each.drop(world.now)
    world.wait()
    assert world.is_clean()


def test_what_a_phone_presses_and_writes_is_told(world, desk, events):
    """Covers RFC 6086 §4.2.2 and RFC 3428 §4: a message that nobody else reads is still refused."""
    desk.answers = b""
    place_by_name(world)
    world.wait()
    desk.calls[0].accept(sdp(PCMU), world.now)
    world.wait()
    desk.calls[0].info("application/dtmf-relay", b"Signal=5\r\nDuration=100\r\n", world.now)
    desk.calls[0].message("hello", world.now)
    desk.calls[0].reinvite(sdp(PCMU, more=["sendonly"]), world.now)
    world.wait()
    desk.calls[0].bye(world.now)
    world.wait()
    assert [each[1:] for each in events] == [
        ("begun", ""),
        ("ringing", ""),
        ("answered", ""),
        ("digit", "5"),
        ("message", "hello"),
        ("held", ""),
        ("ended", "BYE"),
    ]
    assert world.is_clean()


def test_a_muted_call_sends_no_audio(world, desk):
    tool = world.tool()
    stream = tool.publish("studio")
    call = place_by_name(world)
    world.wait()
    call.mute(True)
    tool.write(AUDIO, 0, stream, SOUND)
    assert call.is_muted and not world.gateway.media.sent
    call.mute(False)
    for i in range(1, 5):
        world.wait(0.02)
        tool.write(AUDIO, 20 * i, stream, SOUND)
    world.wait()
    assert world.gateway.media.sent[0][1].endswith(SOUND[1:])
    call.drop(world.now)
    assert world.is_clean()


def test_two_phones_are_called_one_after_the_other_and_hear_each_other(world, desk, other):
    """Covers RFC 3261 §13.2.1 and §15."""
    desk.answers = b""
    joined = JoinedCall(world.gateway.core, "ann@home", "HTTP:127.0.0.1")
    call = joined.place(at(DESK), at(OTHER), world.now)
    world.wait()
    assert len(desk.calls) == 1 and not other.calls and call.up_at is None
    desk.calls[0].accept(sdp(PCMU), world.now)
    world.wait()
    first, second = world.gateway.audios.values()
    say(world, first)
    assert [data[12:] for _, data in second.sent] == [b"p" * 160] * 3
    say(world, second)
    assert [data[12:] for _, data in first.sent] == [b"p" * 160] * 3
    assert {each.origin.source for each in world.gateway.context.calls} == {"HTTP:127.0.0.1"}
    other.calls[0].bye(world.now)
    world.wait()
    assert desk.events()[-1] == "ended" and not world.gateway.context.calls
    assert world.is_clean()


def test_what_the_first_phone_sends_before_the_second_answers_is_no_loss():
    """Covers FLV 10.1 §E.4.2.1: AAC, which is made of its codec, has one header, at the begin."""
    pytest.importorskip("av")
    world = GatewayWorld(transcode=True)
    Desk(world.link)
    other = Desk(world.link, OTHER, answers=b"")
    joined = JoinedCall(world.gateway.core, "ann@home", "HTTP:127.0.0.1")
    joined.place(at(DESK), at(OTHER), world.now)
    world.wait()
    samples = array("h", ([6000] * 60 + [-6000] * 60) * 200)
    tags = AacTags().encode(samples, RATE, 0)
    first, second = joined._first, joined._second
    first.on_tag(AUDIO, 0, tags[0][1], world.now)
    other.calls[0].accept(sdp(PCMU, at=OTHER), world.now)
    world.wait()
    for time, body in tags[1:]:
        first.on_tag(AUDIO, time, body, world.now)
    world.wait(1.0)
    assert second.call.statistics.sent > 10
    other.calls[0].bye(world.now)
    world.wait()


def test_the_first_phone_is_let_go_if_the_second_refuses(world, desk, other):
    other.answers = 486
    JoinedCall(world.gateway.core, "ann@home", "").place(at(DESK), at(OTHER), world.now)
    world.wait()
    assert desk.events()[-1] == "ended" and not world.gateway.context.calls
    assert world.gateway.log.ends() == ["486 Busy Here", "486 Busy Here"]
    assert world.is_clean()


def test_neither_is_called_where_the_limits_forbid_it():
    world = GatewayWorld(max_user_calls=1)
    desk, other = Desk(world.link), Desk(world.link, OTHER)
    JoinedCall(world.gateway.core, "ann@home", "").place(at(DESK), at(OTHER), world.now)
    world.wait()  # the second would be her second call at once
    assert desk.events()[-1] == "ended" and not other.calls
    assert world.is_clean()


def test_a_user_calls_in_its_own_name_and_nobody_else_does_while_it_calls():
    """Covers RFC 3261 §22.3: it has proved its password to whoever has the call placed."""
    lines = [*user_lines("ann", "home", "secret"), *user_lines("bob", "home", "other")]
    world = GatewayWorld(users=UserStore.parse("\n".join(lines)))
    world.gateway.call.has_page = lambda uri: uri.user in ("bob", "carol")
    named = world.gateway.call.open("ann", world.registry)
    ann, bob = (Address(Uri("sip", user, host="home")) for user in ("ann", "bob"))
    call = named.place(ann, bob, "ann@home", world.now)
    world.wait()
    rings = [each for each in world.gateway.context.calls if each is not call]
    assert [each.origin.caller for each in rings] == ["sip:ann@home"]  # bob's page can call back
    forger = world.tool()
    forger.publish("carol@home?sip-user=ann&sip-pass=wrong")
    world.wait()
    assert len(world.gateway.context.calls) == 2 and forger.server.closed
    assert not any("carol" in each.origin.callee for each in world.gateway.context.calls)
    call.drop(world.now)
    world.wait()
    assert world.is_clean()
