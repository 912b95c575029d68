"""Who is asked for user and password, and has them in a URL: the way, and what is never said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rtmp.relay_world import RelayWorld
from support.rtmp.rtmp_world import Peer, World, counting

from rtmplite.auth.adobe import proven
from rtmplite.auth.credentials import FRESH, Users, UsersGuard, user_lines
from rtmplite.auth.guard import GuardedApplication
from rtmplite.errors import RemoteError
from rtmplite.relay.link import AGAIN, ReconnectBackoff, State
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import ClientConnection, Reply, Target
from rtmplite.rtmp.wire.message import MessageType

KEY = b"\x17\x01\0\0\0key"
NEED = "[ AccessManager.Reject ] : [ code=403 need auth; authmod=adobe ] : "


def guarded():
    lines = "\n".join(user_lines("ann", "example.org", "s3cret"))
    guard = UsersGuard(Users.parse(lines), counting(), for_all=True)
    return GuardedApplication(LiveApplication(), guard)


def attempts(url):
    """Connect until it is done; what the server was told each time, and whether it let us in."""
    world, target, told = World(guarded()), Target.parse(url, stream=False), []
    while True:
        client = ClientConnection(target, world.random, 0.0)
        peer = Peer(world, client, world.server())
        world.peers.append(peer)
        world.run()
        told.append(peer.server.properties)
        (reply,) = [event for event in peer.events if isinstance(event, Reply)]
        if reply.succeeded:
            return told, True
        again = proven(target, reply.values[-1]["description"], world.random)
        if again is None:
            return told, False
        target = again


@pytest.mark.parametrize("url", ["rtmp://ann:s3cret@host/live", "rtmp://%61nn:s3%63ret@host/live"])
def test_a_client_proves_who_it_is_in_three_steps(url):
    """Covers Field §"authmod=adobe": behind app and tcUrl, and the password is never said."""
    told, let_in = attempts(url)
    assert let_in and len(told) == 3
    queries = [said["tcUrl"].removeprefix("rtmp://host/live") for said in told]
    assert queries[:2] == ["", "?authmod=adobe&user=ann"]
    assert queries[2].startswith("?authmod=adobe&user=ann&challenge=")
    assert [said["app"] for said in told] == ["live" + query for query in queries]
    assert all(said["flashVer"].startswith("FMLE/") for said in told)
    assert "s3cret" not in str(told)


def test_a_query_that_is_there_stays():
    """Covers Field §"authmod=adobe": the proof goes behind it."""
    told, let_in = attempts("rtmp://ann:s3cret@host/live?key=k")
    assert let_in
    assert told[1]["app"] == "live?key=k&authmod=adobe&user=ann"


def test_a_wrong_password_is_one():
    """Own design: in words for people."""
    with pytest.raises(RemoteError, match="Wrong user or password"):
        attempts("rtmp://ann:guess@host/live")


@pytest.mark.parametrize("url", ["rtmp://host/live", "rtmp://ann@host/live", "rtmp://:x@host/live"])
def test_who_has_nothing_to_say_says_nothing(url):
    """Own design: the refusal is the answer, and plain clients look as they always did."""
    told, let_in = attempts(url)
    assert not let_in and len(told) == 1
    assert proven(Target.parse(url, stream=False), NEED, bytes) is None


def test_an_older_server_has_no_word_that_is_opaque():
    """Covers Field §"authmod=adobe": its challenge takes that place, as ffmpeg has it."""
    target = proven(Target.parse("rtmp://ann:s3cret@host/live"), NEED, bytes)
    asked = "authmod=adobe ] : ?reason=needauth&user=ann&salt=a1&challenge=b2"
    with_word = proven(target, f"{asked}&opaque=b2", bytes).proof
    assert with_word == f"{proven(target, asked, bytes).proof}&opaque=b2"


@given(st.text(alphabet="authmod=be?&reasn code403[]: d", max_size=80))
def test_whatever_a_server_says(words):
    """Own design: two steps at most, and no error but ours."""
    target, steps = Target.parse("rtmp://ann:s3cret@host/live"), 0
    for refusal in (words, NEED + words, f"authmod=adobe ?reason=needauth&{words}", words) * 2:
        try:
            again = proven(target, refusal, bytes)
        except RemoteError:
            return
        if again is not None:
            target, steps = again, steps + 1
    assert steps <= 2 and "s3cret" not in repr(target)


@pytest.mark.parametrize("kind", ["push", "pull"])
def test_a_relay_proves_who_it_is_each_time(kind):
    """Own design: a proof is good but once, so that who comes back begins anew."""
    world = RelayWorld(**{kind: ["live/*=rtmp://ann:s3cret@far/live/{name}"]})
    world.far.application = guarded()
    live = world.registry.open("live", "demo")
    if kind == "push":
        live.write(MessageType.VIDEO, 0, KEY, now=0.0)
    else:
        world.home.client().play("demo")
    world.run()
    assert world.states() == ["running"] and len(world.dials) == 3
    world.cut()
    world.wait(1.0)
    assert world.states() == ["running"] and len(world.dials) == 6


def test_a_relay_with_a_wrong_password_gives_up():
    """Own design: as it does with any refusal."""
    push = ["live/*=rtmp://ann:guess@far/live/{name}"]
    world = RelayWorld(push=push, backoff=ReconnectBackoff(attempts=2))
    world.far.application = guarded()
    world.registry.open("live", "demo").begin(0.0)
    world.wait(5.0)
    (link,) = world.relays.links
    assert link.state is State.GIVEN_UP and "Wrong user or password" in link.reason


def test_a_relay_that_cannot_move_yet_proves_it_anew():
    """Own design: the proof of the first attempt is of no use to the second."""
    world = RelayWorld(push=["live/*=rtmp://far/live/{name}"], others=["other"])
    world.others["other"].application = guarded()
    live = world.registry.open("live", "demo")
    live.write(MessageType.VIDEO, 0, KEY, now=0.0)
    world.run()
    taken = world.others["other"].registry.open("live", "demo")
    taken.begin(0.0)
    world.wires[0].far.request_reconnect("rtmp://ann:s3cret@other/live")
    world.run()
    (link,) = world.relays.links
    assert "BadName" in link.reason and link.where.host == "far"
    world.wait(FRESH + 1)
    taken.end(world.now)
    world.wait(AGAIN + 1)
    live.write(MessageType.VIDEO, 40, KEY, now=world.now)
    world.run()
    assert link.state is State.RUNNING and link.where.host == "other"


def test_a_relay_that_moves_proves_it_there():
    """Own design: asked to come back to the same place, or sent to another, as the same user."""
    push = ["live/*=rtmp://ann:s3cret@far/live/{name}"]
    world = RelayWorld(push=push, others=["other"])
    world.far.application = world.others["other"].application = guarded()
    live = world.registry.open("live", "demo")
    live.write(MessageType.VIDEO, 0, KEY, now=0.0)
    world.run()
    for asked, host in (("rtmp://other/live", "other"), (None, "other")):
        world.wires[-1].far.request_reconnect(asked)
        world.run()
        live.write(MessageType.VIDEO, 40, KEY, now=0.0)
        world.run()
        (link,) = world.relays.links
        assert link.state is State.RUNNING and link.where.host == host
    assert len(world.dials) == 9
