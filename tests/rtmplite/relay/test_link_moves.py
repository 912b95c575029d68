"""Links that are redirected, and links that are asked to move, in virtual time."""

import pytest
from support.rtmp.relay_world import FRAME, KEY, METADATA, SOUND, VIDEO_HEADER, RelayWorld

from rtmplite.relay.link import AGAIN, HOPS, OVERLAP
from rtmplite.relay.session import redirected
from rtmplite.relay.switchover import AHEAD, PlayedPosition, StandbyBuffer
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Target
from rtmplite.rtmp.wire.message import MessageType

PUSH, PULL = ["live/*=rtmp://far/live/{name}"], ["live/*=rtmp://far/live/{name}"]
AUDIO, VIDEO, DATA = MessageType.AUDIO, MessageType.VIDEO, MessageType.DATA


class Sending(LiveApplication):
    """`live` that sends all clients to `url`: who connects, publishes or plays."""

    def __init__(self, url, event):
        self.url, self.event = url, event

    def on_connect(self, connection, now):
        if self.event == "connect":
            connection.redirect(self.url, now)
        else:
            super().on_connect(connection, now)

    def on_publish(self, connection, stream, name, now):
        stream.redirect(self.url, "", now)

    def on_play(self, connection, stream, name, now):
        stream.redirect(self.url, "", now)


def live_at(server, name="demo"):
    """The stream there, if it is published."""
    found = server.registry.get("live", name)
    return found if found is not None and found.publishing else None


@pytest.mark.parametrize("event", ["connect", "publish"])
@pytest.mark.parametrize("url", ["rtmp://other/live", "rtmp://other/live/demo"])
def test_a_push_goes_where_it_is_sent(event, url):
    """Covers Field §"Redirects": at once, whether the URL names the stream or not."""
    world = RelayWorld(push=PUSH, others=["other"])
    world.far.application = Sending(url, event)
    world.registry.open("live", "demo").begin(0.0)
    world.run()
    (link,) = world.relays.links
    assert link.state == "running" and link.where.host == "other" and link.failures == 0
    assert live_at(world.others["other"]) and not live_at(world.far) and world.now == 0.0


@pytest.mark.parametrize("event", ["connect", "play"])
def test_a_pull_goes_where_it_is_sent(event):
    """Covers Field §"Redirects"."""
    world = RelayWorld(pull=PULL, others=["other"])
    world.far.application = Sending("rtmp://other/live", event)
    source = world.others["other"].client()
    stream = source.publish("demo")
    viewer = world.home.client()
    viewer.play("demo")
    world.run()
    source.write(VIDEO, 20, stream, KEY)
    world.run()
    assert [body for _, _, body in viewer.media()] == [KEY]


def test_nobody_is_sent_about_for_ever():
    """Covers Field §"Redirects": after some hops it is a failure, and begins where it should."""
    world = RelayWorld(push=PUSH, others=["other"])
    world.far.application = Sending("rtmp://other/live", "connect")
    world.others["other"].application = Sending("rtmp://far/live", "connect")
    world.registry.open("live", "demo").begin(0.0)
    world.run()
    (link,) = world.relays.links
    assert len(world.dials) == HOPS + 1 and link.state == "waiting"
    assert "Rejected: Ask rtmp://" in link.reason and link.where.host == "far"
    world.wait(1.0)
    assert len(world.dials) == 2 * (HOPS + 1)


@pytest.mark.parametrize(
    ("target", "url", "where", "stream"),
    [
        ("rtmp://a/live/demo", "rtmp://b/live", "rtmp://b/live", "demo"),
        ("rtmp://a/live/demo", "rtmp://b:1/live/demo", "rtmp://b:1/live", "demo"),
        ("rtmp://a/live/demo", "rtmp://b/live/room", "rtmp://b/live/room", "demo"),
        ("rtmp://a/live/demo?k=1", "rtmp://b/live", "rtmp://b/live", "demo?k=1"),
        ("rtmp://a/live/demo?k=1", "rtmp://b/live/demo?k=2", "rtmp://b/live?k=2", "demo?k=2"),
        ("rtmp://a/live/demo", "rtmps://b/live", "rtmps://b/live", "demo"),
        ("rtmps://a/live/demo", "rtmp://b/live", None, None),
        ("rtmp://a/live/demo", "http://b/live", None, None),
        ("rtmp://a/live/demo", "rtmfp://b/live", "rtmfp://b/live", "demo"),
        ("rtmps://a/live/demo", "rtmfp://b/live", None, None),
        ("rtmp://a/live/demo", "", None, None),
    ],
)
def test_where_an_address_leads(target, url, where, stream):
    """Covers Field §"Redirects": to the same stream, and never out of TLS."""
    found = redirected(Target.parse(target), url)
    assert (found and (found.tc_url, found.stream)) == (where and (where, stream))


def test_a_bad_address_is_a_refusal():
    """Covers Field §"Redirects"."""
    world = RelayWorld(push=PUSH)
    world.far.application = Sending("http://other/live", "connect")
    world.registry.open("live", "demo").begin(0.0)
    world.run()
    assert world.states() == ["waiting"] and len(world.dials) == 1


def asked(world, url=None):
    """The other server asks everybody to leave."""
    for wire in list(world.wires):
        wire.far.request_reconnect(url)
    world.run()


def test_a_push_moves_at_a_key_frame():
    """Covers E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
    [careful-overlap] [leave-at-boundary].
    """
    world = RelayWorld(push=PUSH, others=["other"], groups=False)
    viewers = [server.client() for server in (world.far, world.others["other"])]
    for viewer in viewers:
        viewer.play("demo")
    live = world.registry.open("live", "demo")
    for message in [(DATA, 0, METADATA), (VIDEO, 0, VIDEO_HEADER)]:
        live.write(*message, now=0.0)
    world.run()
    live.write(VIDEO, 20, KEY, now=0.0)
    asked(world, "rtmp://other/live")
    (link,) = world.relays.links
    assert link.where.host == "far" and link.players == live.players == 2
    live.write(VIDEO, 40, FRAME, now=0.0)
    live.write(AUDIO, 41, SOUND, now=0.0)
    live.write(DATA, 42, METADATA, now=0.0)
    world.run()
    assert link.where.host == "far" and live_at(world.far)
    live.write(VIDEO, 60, KEY, now=0.0)
    live.write(VIDEO, 80, FRAME, now=0.0)
    world.run()
    assert link.where.host == "other" and link.players == live.players == 1
    assert live_at(world.others["other"]) and not live_at(world.far)
    here, there = [
        [(at, body) for kind, at, body in viewer.media() if kind != DATA] for viewer in viewers
    ]
    assert here[:4] == [(0, VIDEO_HEADER), (20, KEY), (40, FRAME), (41, SOUND)]
    assert there == [(there[0][0], VIDEO_HEADER), (60, KEY), (80, FRAME)]
    assert len(here) <= 5  # the key frame may have been on its way already
    assert world.changes[-1][1] == "running" and link.deadline is None
    live.end(0.0)
    world.run()
    assert world.states() == [] and not world.wires


def test_a_push_of_sound_moves_at_once():
    """Covers E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
    [leave-at-boundary]: every message is a beginning.
    """
    world = RelayWorld(push=PUSH, others=["other"])
    live = world.registry.open("live", "demo")
    live.write(AUDIO, 0, SOUND, now=0.0)
    world.run()
    asked(world, "//other/live")
    live.write(AUDIO, 20, SOUND, now=0.0)
    world.run()
    assert live_at(world.others["other"]) and not live_at(world.far)


def test_a_push_without_a_key_frame_moves_in_the_end():
    """Own design: a camera that is silent is no reason to stay for ever."""
    world = RelayWorld(push=PUSH, others=["other"])
    live = world.registry.open("live", "demo")
    live.write(VIDEO, 0, KEY, now=0.0)
    world.run()
    asked(world, "rtmp://other/live")
    live.write(VIDEO, 20, FRAME, now=0.0)
    world.wait(OVERLAP + 0.1)
    assert live_at(world.others["other"]) and not live_at(world.far) and live.players == 1


def test_who_is_not_there_is_tried_again():
    """Covers E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
    [without-tc-url]: the name is taken over there, by ourselves, until the old server lets go.
    """
    world = RelayWorld(push=PUSH)
    live = world.registry.open("live", "demo")
    live.write(VIDEO, 0, KEY, now=0.0)
    world.run()
    asked(world)
    (link,) = world.relays.links
    assert link.state == "running" and "BadName" in link.reason and len(world.dials) == 2
    world.wait(AGAIN + 0.1)
    assert len(world.dials) == 3 and link.state == "running"
    world.wires[0].far.close(world.now, "drained")
    world.run()
    world.wait(2.0)
    assert link.state == "running" and live_at(world.far)


def test_the_old_server_goes_before_the_new_one_has_answered():
    """Own design: then there is nothing to wait for."""
    world = RelayWorld(push=PUSH, others=["other"])
    live = world.registry.open("live", "demo")
    live.write(VIDEO, 0, KEY, now=0.0)
    world.run()
    (link,) = world.relays.links
    (old,) = world.wires
    link.on_asked_to_move(link._session, Target.parse("rtmp://other/live/demo"), 0.0)
    old.near.transport.connection_lost(0.0, "cut")
    assert link.state == "connecting" and link.where.host == "other"
    world.run()
    assert link.state == "running" and live_at(world.others["other"]) and len(world.dials) == 2


def test_it_is_looked_for_where_it_said_it_would_be():
    """Own design: after it has gone; then again where the rule says."""
    world = RelayWorld(push=PUSH, others=["other"])
    del world.others["other"]
    live = world.registry.open("live", "demo")
    live.write(VIDEO, 0, KEY, now=0.0)
    world.run()
    world.now = 6.0  # it has run for long enough
    asked(world, "rtmp://other/live")
    (link,) = world.relays.links
    assert link.state == "running"
    world.up = False
    world.cut()
    assert link.state == "waiting" and link.where.host == "far"
    world.up = True
    world.wait(1.0)
    assert link.state == "running" and link.where.host == "far"


def test_a_server_that_asks_and_goes_at_once_is_not_hammered():
    """Own design: who has not served us for a while has to wait."""
    world = RelayWorld(push=PUSH)
    world.registry.open("live", "demo").begin(0.0)
    for _ in range(60):
        world.wait(0.5)
        asked(world)
        world.cut()
    assert len(world.dials) < 80


def pulling(world, at=0.0):
    """Publishers of the same at all servers, and a viewer at home who has seen a key frame."""
    servers = [world.far, *world.others.values()]
    sources = [(source := server.client(), source.publish("demo")) for server in servers]
    for source, stream in sources:
        source.write(DATA, 0, stream, METADATA)
        source.write(VIDEO, 0, stream, VIDEO_HEADER)
    viewer = world.home.client()
    viewer.play("demo")
    world.run()
    return sources, viewer


def say(world, source, *messages):
    """Publish and carry."""
    for type_id, timestamp, payload in messages:
        source[0].write(type_id, timestamp, source[1], payload)
        world.run()


@pytest.mark.parametrize("first", [0, 1])
def test_a_pull_moves_where_the_new_server_begins(first):
    """Covers E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
    [leave-at-boundary] [careful-overlap]: nothing twice, nothing left out, whoever is ahead.
    """
    world = RelayWorld(pull=PULL, others=["other"])
    sources, viewer = pulling(world)
    for source in sources:
        say(world, source, (VIDEO, 20, KEY))
    asked(world, "rtmp://other/live")
    (link,) = world.relays.links
    both = [sources[first], sources[1 - first]]
    for message in [(VIDEO, 40, FRAME), (VIDEO, 60, KEY), (AUDIO, 61, SOUND), (VIDEO, 80, FRAME),
                    (VIDEO, 100, KEY), (VIDEO, 120, FRAME)]:  # fmt: skip
        for source in both:
            say(world, source, message)
    say(world, sources[1], (VIDEO, 140, FRAME))
    assert link.where.host == "other" and world.far.registry.get("live", "demo").players == 0
    got = [(at, body) for kind, at, body in viewer.media() if kind != DATA]
    frames = [each for each in got if each[1] != VIDEO_HEADER]
    times = [20, 40, 60, 61, 80, 100, 120, 140]
    assert [at for at, _ in frames] == times
    assert [body for _, body in frames] == [KEY, FRAME, KEY, SOUND, FRAME, KEY, FRAME, FRAME]
    assert viewer.codes().count("NetStream.Play.PublishNotify") == 1


def test_a_pull_outlives_the_publication_it_moves_away_from():
    """Own design: the publisher was asked to move as well; for the viewers nothing ends."""
    world = RelayWorld(pull=PULL, others=["other"])
    sources, viewer = pulling(world)
    say(world, sources[0], (VIDEO, 20, KEY))
    asked(world, "rtmp://other/live")
    sources[0][0].send("deleteStream", float(sources[0][1]))
    world.run()
    say(world, sources[1], (VIDEO, 40, KEY))
    assert viewer.media()[-1] == (VIDEO, 40, KEY)
    assert "NetStream.Play.UnpublishNotify" not in viewer.codes()
    sources[1][0].send("deleteStream", float(sources[1][1]))
    world.run()
    assert viewer.codes()[-1] == "NetStream.Play.UnpublishNotify"


@pytest.mark.parametrize("last", [KEY, FRAME])
def test_a_pull_leaves_nothing_out_if_the_old_server_has_played_the_key_frame_too(last):
    """Covers E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
    [leave-at-boundary]: the publisher was asked as well, and went before the next one came.
    """
    world = RelayWorld(pull=PULL, others=["other"])
    sources, viewer = pulling(world)
    say(world, sources[0], (VIDEO, 20, KEY), (AUDIO, 39, SOUND))
    asked(world, "rtmp://other/live")
    played = [(VIDEO, 40, KEY), (AUDIO, 45, SOUND), (VIDEO, 60, FRAME)]
    kept = played if last is FRAME else played[:1]
    say(world, sources[0], *kept)
    sources[0][0].send("deleteStream", float(sources[0][1]))
    world.run()
    say(world, sources[1], *played, (AUDIO, 61, SOUND), (VIDEO, 80, FRAME), (VIDEO, 100, FRAME))
    got = [at for kind, at, body in viewer.media() if kind != DATA and body != VIDEO_HEADER]
    assert got == [20, 39, 40, 45, 60, 61, 80, 100]


def test_another_key_frame_is_no_reason_to_go_on_behind_it():
    """Own design: of the same time, but another encoder's: a decoder needs the next one."""
    world = RelayWorld(pull=PULL, others=["other"])
    sources, viewer = pulling(world)
    say(world, sources[0], (VIDEO, 20, KEY), (VIDEO, 40, FRAME))
    asked(world, "rtmp://other/live")
    sources[0][0].send("deleteStream", float(sources[0][1]))
    world.run()
    say(world, sources[1], (VIDEO, 20, KEY + b"!"), (VIDEO, 60, FRAME), (VIDEO, 80, KEY))
    got = [at for kind, at, body in viewer.media() if kind != DATA and body != VIDEO_HEADER]
    assert got == [20, 40, 80]


def test_times_that_do_not_meet():
    """Own design: after a while the next key frame will do, whatever its time."""
    world = RelayWorld(pull=PULL, others=["other"])
    sources, viewer = pulling(world)
    say(world, sources[0], (VIDEO, 5000, KEY))
    asked(world, "rtmp://other/live")
    say(world, sources[1], (VIDEO, 20, FRAME), (VIDEO, 40, KEY), (VIDEO, 60, FRAME))
    say(world, sources[0], (VIDEO, 5040, FRAME))
    world.wait(OVERLAP + 0.1)
    (link,) = world.relays.links
    assert link.where.host == "far"
    say(world, sources[1], (VIDEO, 80, FRAME), (VIDEO, 100, KEY), (VIDEO, 120, FRAME))
    assert link.where.host == "other"
    assert [at for _, at, _ in viewer.media()][-3:] == [100, 100, 120]  # header, key frame, frame


def test_a_time_line_of_its_own():
    """Own design: what is far before cannot be late, and is taken where the old server is left."""
    world = RelayWorld(pull=PULL, others=["other"])
    sources, viewer = pulling(world)
    say(world, sources[0], (VIDEO, 100_000, KEY))
    asked(world, "rtmp://other/live")
    say(world, sources[1], (VIDEO, 20, KEY), (VIDEO, 40, FRAME))
    say(world, sources[0], (VIDEO, 100_040, FRAME))
    assert [at for _, at, _ in viewer.media()][-3:] == [20, 20, 40]


def test_what_is_ahead_has_a_limit():
    """Own design: an old server that is far behind is left."""
    ahead, passed = StandbyBuffer(), PlayedPosition()
    ahead.take(VIDEO, 0, VIDEO_HEADER, passed, 0.0)
    ahead.take(AUDIO, 0, SOUND, passed, 0.0)
    assert ahead.begin is None  # there will be pictures
    ahead.take(VIDEO, 20, KEY, passed, 0.0)
    assert ahead.begin == (VIDEO, 20) and not ahead.is_due
    ahead.take(VIDEO, 40, FRAME + bytes(AHEAD), passed, 0.0)
    assert ahead.is_due and len(ahead.messages) == 3


@pytest.mark.parametrize("kind", ["push", "pull"])
def test_a_link_can_be_stopped_while_it_moves(kind):
    """Own design: both connections end, and nothing is left."""
    world = RelayWorld(**{kind: PUSH}, others=["other"], groups=False)
    if kind == "pull":
        pulling(world)
    live = world.registry.open("live", "demo")
    if kind == "push":
        live.write(VIDEO, 0, KEY, now=0.0)
        world.run()
    asked(world, "rtmp://other/live")
    (link,) = world.relays.links
    assert link._next is not None
    link.stop(0.0)
    world.run()
    assert link.deadline is None and not world.wires and link.state == "idle"
