"""Rules, and all links of a server: pulled on demand, pushed from beginning to end."""

import pytest
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.rtmp.relay_world import FRAME, KEY, SOUND, VIDEO_HEADER, RelayWorld

from rtmplite.errors import LocalError
from rtmplite.relay.link import State
from rtmplite.relay.rules import Rule, named

PULL = ["live/*=rtmp://far/live/{name}"]


@pytest.mark.parametrize(
    ("rule_", "stream", "port"),
    [
        ("live/demo=rtmp://far/live/x", "x", 1935),
        ("live/demo=rtmp://far/live", "demo", 1935),
        ("live/*=rtmps://far/live/{name}", "demo", 443),
        ("*/d*=rtmp://far:99/live/copy-of-{name}", "copy-of-demo", 99),
    ],
)
def test_rules_name_targets(rule_, stream, port):
    """The stream's own name where the URL has none."""
    target = Rule.parse(rule_).target("live", "demo")
    assert (target.stream, target.port) == (stream, port)
    assert Rule.parse(rule_).target("other/app", "no") is None


@pytest.mark.parametrize(
    "rule_",
    [
        "",
        "live/demo",
        "live=rtmp://far/live",
        "live/x=http://far/x",
        "live/*=rtmp://far/live/one",
    ],
)
def test_what_is_no_rule(rule_):
    """Said at once, not at the first stream."""
    with pytest.raises(LocalError):
        Rule.parse(rule_)


def test_a_pull_begins_with_the_first_player_and_ends_after_the_last():
    """Not a byte is fetched that nobody wants."""
    world = RelayWorld(pull=PULL)
    source = world.far.client()
    stream = source.publish("demo")
    world.run()
    assert not world.dials
    first, second = world.home.client(), world.home.client()
    playing = first.play("demo")
    second.play("demo")
    world.run()
    assert len(world.dials) == 1 and world.states() == ["running"]
    source.write(8, 5, stream, SOUND)
    world.run()
    assert first.media() == second.media() == [(8, 5, SOUND)]
    first.send("deleteStream", float(playing))
    world.run()
    assert world.states() == ["running"]
    second.server.transport.connection_lost(world.now)
    world.run()
    assert world.states() == [] and not world.wires and not list(world.registry)
    assert world.far.registry.get("live", "demo").players == 0


def test_who_publishes_here_is_not_pulled_from_there():
    """And when they go, the players get what is there."""
    world = RelayWorld(pull=PULL)
    near, far = world.home.client(), world.far.client()
    stream = near.publish("demo")
    there = far.publish("demo")
    viewer = world.home.client()
    viewer.play("demo")
    world.run()
    assert not world.dials
    near.send("deleteStream", float(stream))
    world.run()
    assert world.states() == ["running"]
    far.write(8, 5, there, SOUND)
    world.run()
    assert viewer.media() == [(8, 5, SOUND)]


def test_a_publisher_who_came_first_wins():
    """Between the request and the first message; afterwards the pull goes on."""
    world = RelayWorld(pull=PULL)
    far, viewer = world.far.client(), world.home.client()
    there = far.publish("demo")
    viewer.play("demo")
    world.run()
    near = world.home.client()
    here = near.publish("demo")
    far.write(8, 5, there, SOUND)
    world.run()
    assert world.states() == ["idle"] and viewer.media() == []
    near.write(8, 6, here, SOUND)
    near.send("deleteStream", float(here))
    world.run()
    assert world.states() == ["running"]
    far.write(8, 7, there, SOUND)
    world.run()
    assert [at for _, at, _ in viewer.media()] == [6, 7]


def test_a_publisher_there_may_come_and_go():
    """The link waits; the players are told as if it were here."""
    world = RelayWorld(pull=PULL)
    viewer, far = world.home.client(), world.far.client()
    viewer.play("demo")
    world.run()
    for time in (1, 2):
        stream = far.publish("demo")
        far.write(8, time, stream, SOUND)
        world.run()
        far.send("deleteStream", float(stream))
        world.run()
    assert [at for _, at, _ in viewer.media()] == [1, 2] and len(world.dials) == 1
    assert viewer.codes().count("NetStream.Play.UnpublishNotify") == 2


def test_what_is_pulled_is_pushed_on_and_ends_for_all():
    """A push is no reason to pull."""
    world = RelayWorld(pull=PULL, push=["live/demo=rtmp://far/live/copy"])
    far, viewer, last = world.far.client(), world.home.client(), world.far.client()
    stream = far.publish("demo")
    last.play("copy")
    viewer.play("demo")
    world.run()
    far.write(8, 1, stream, SOUND)
    world.run()
    far.write(8, 2, stream, SOUND)
    world.run()
    assert (8, 2, SOUND) in last.media() and sorted(world.states()) == ["running"] * 2
    viewer.server.transport.connection_lost(world.now)
    world.run()
    assert world.states() == [] and not world.wires and not list(world.registry)


def test_a_push_without_a_rule_begins_in_the_middle_and_ends_alone():
    """Covers FLV 10.1 §E.4.3.1: what a decoder needs goes first, from the last key frame on."""
    world, changes = RelayWorld(push=["live/demo=rtmp://far/live/ruled"]), []
    live, player = world.registry.open("live", "demo"), world.far.client()
    for at, payload in ((0, VIDEO_HEADER), (0, KEY), (40, FRAME)):
        live.write(9, at, payload, world.now)
    player.play("copy")
    world.run()
    target = named("rtmp://far/live/copy", "demo")
    push = world.relays.push(
        live, target, world.dial, world.now, lambda link, now: changes.append(str(link.state))
    )
    world.run()
    live.write(9, 80, FRAME, world.now)
    world.run()
    assert [body for _, _, body in player.media()] == [VIDEO_HEADER, KEY, FRAME, FRAME]
    world.relays.end_push(push, world.now)
    world.run()
    assert changes == ["connecting", "running", "idle"] and world.states() == ["running"]
    world.relays.push(live, target, world.dial, world.now, lambda link, now: None)
    live.end(world.now)
    world.run()
    assert world.states() == [] and not world.wires


def test_a_second_publication_without_an_end():
    """The gateway may begin anew on a stream: the pushes go on."""
    world = RelayWorld(push=PULL)
    live = world.registry.open("live", "demo")
    live.begin(0.0)
    live.begin(0.0)
    world.run()
    assert world.states() == ["running"]
    world.relays.stop(world.now)
    world.run()
    assert world.states() == [] and not world.wires
    live.end(0.0)
    live.begin(0.0)
    assert world.states() == []


class Anything(RuleBasedStateMachine):
    """Publishers and players come and go on both sides while the network does what it likes."""

    def __init__(self):
        super().__init__()
        self.world = RelayWorld(
            push=["live/out=rtmp://far/live/out"], pull=["live/in=rtmp://far/live/in"]
        )
        self.publishers, self.players, self.time = {}, [], 0

    @rule(side=st.sampled_from(["home", "far"]), name=st.sampled_from(["in", "out"]))
    def publish(self, side, name):
        if (side, name) not in self.publishers:
            client = getattr(self.world, side).client()
            self.publishers[side, name] = client, client.publish(name)

    @rule(data=st.data())
    def unpublish(self, data):
        if self.publishers:
            key = data.draw(st.sampled_from(sorted(self.publishers)))
            self.publishers.pop(key)[0].server.transport.connection_lost(self.world.now)

    @rule(name=st.sampled_from(["in", "out"]))
    def play(self, name):
        client = self.world.home.client()
        client.play(name)
        self.players.append((name, client))

    @rule(data=st.data())
    def leave(self, data):
        if self.players:
            at = data.draw(st.integers(0, len(self.players) - 1))
            self.players.pop(at)[1].server.transport.connection_lost(self.world.now)

    @rule(data=st.data())
    def media(self, data):
        if self.publishers:
            self.time += 1
            client, stream = self.publishers[data.draw(st.sampled_from(sorted(self.publishers)))]
            client.write(9, self.time, stream, KEY)

    @rule(up=st.booleans(), deaf=st.booleans())
    def weather(self, up, deaf):
        self.world.up, self.world.deaf = up, deaf

    @rule()
    def cut(self):
        self.world.cut()

    @rule(seconds=st.floats(0, 20))
    def wait(self, seconds):
        self.world.wait(seconds)

    @invariant()
    def links_are_what_they_should_be(self):
        world = self.world
        world.run()
        for link in world.relays.links:
            event(str(link.state))
            assert (link.deadline is not None) == (link.state in (State.CONNECTING, State.WAITING))
            assert link.deadline is None or link.deadline <= world.now + 10
        assert len(world.wires) <= len(world.relays.links) <= 2
        out, watched = world.registry.get("live", "out"), world.registry.get("live", "in")
        pushing = any(link.target.stream == "out" for link in world.relays.links)
        assert pushing == bool(out and out.publishing)
        pulling = any(link.target.stream == "in" for link in world.relays.links)
        assert not pulling or watched.players

    def teardown(self):
        """With a network that works everything comes to rest where it belongs."""
        world = self.world
        world.up, world.deaf = True, False
        world.cut()
        world.wait(60.0)
        for link in world.relays.links:
            # Who published there first, we or somebody else, has the name.
            may_be_taken = link.target.stream == "out" and ("far", "out") in self.publishers
            expected = {State.RUNNING, State.WAITING if may_be_taken else State.IDLE}
            assert link.state in expected, (link.state, link.reason)
        for _, client in self.players:
            client.server.transport.connection_lost(world.now)
        for client, _ in self.publishers.values():
            client.server.transport.connection_lost(world.now)
        world.run()
        assert not world.relays.links and not list(world.registry)
        assert world.relays.deadline is None


TestAnything = Anything.TestCase


def test_who_has_another_way_in_may_ask_what_could_be_pulled():
    """What joins it is a player like any other: see `Registry.fetchers`."""
    world = RelayWorld(pull=["live/d*=rtmp://far/live/{name}"])
    can = [world.registry.can_fetch(world.registry.open(*key)) for key in KEYS]
    assert can == [True, False, False]
    world.relays.stop(world.now)
    assert not world.registry.can_fetch(world.registry.open("live", "demo"))


KEYS = (("live", "demo"), ("live", "other"), ("vod", "demo"))


def test_what_is_pulled_is_paid_as_what_is_published():
    """Own design: another server is a peer; its link comes back when there is room."""
    world = RelayWorld(pull=PULL)
    source, player = world.far.client(), world.home.client()
    stream = source.publish("demo")
    player.play("demo")
    world.run()
    before = world.registry.budget.used
    source.write(9, 0, stream, b"\x17\x00\0\0\0" + bytes(100_000))
    world.run()
    assert world.registry.budget.used >= before + 100_000
    world.registry.budget.total = world.registry.budget.used
    source.write(8, 0, stream, b"\xaf\x00" + bytes(1000))
    world.run()
    assert world.states() == ["waiting"] and world.registry.budget.used <= before
