"""A relay begins with what a new player would get, also where it moves to another server."""

from support.rtmp.relay_world import FRAME, KEY, VIDEO_HEADER, RelayWorld

from rtmplite.rtmp.client import Target
from rtmplite.rtmp.wire.message import MessageType

VIDEO = MessageType.VIDEO
PUSH = PULL = ["live/*=rtmp://far/live/{name}"]


def test_a_push_moves_at_once_with_what_a_new_player_gets():
    """Covers E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
    [leave-at-boundary]: the pictures since the last key frame are there.
    """
    world = RelayWorld(push=PUSH, others=["other"])
    viewer = world.others["other"].client()
    viewer.play("demo")
    live = world.registry.open("live", "demo")
    live.write(VIDEO, 0, VIDEO_HEADER, now=0.0)
    world.run()
    live.write(VIDEO, 20, KEY, now=0.0)
    live.write(VIDEO, 40, FRAME, now=0.0)
    for wire in list(world.wires):
        wire.far.request_reconnect("rtmp://other/live")
    world.run()
    (link,) = world.relays.links
    assert link.where.host == "other" and link.players == live.players == 1
    live.write(VIDEO, 60, FRAME, now=0.0)
    world.run()
    assert [(at, body) for _, at, body in viewer.media()] == [
        (20, VIDEO_HEADER),
        (20, KEY),
        (40, FRAME),
        (60, FRAME),
    ]


def test_a_pull_that_had_to_leave_early_passes_nothing_twice():
    """Covers E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
    [leave-at-boundary]: the old server ends before the new one has answered, which then plays the
    pictures since the last key frame.
    """
    world = RelayWorld(pull=PULL, others=["other"])
    world.others["other"].registry.keeps_groups = True
    viewer, sources = world.home.client(), []
    for server in (world.far, world.others["other"]):
        source = server.client()
        sources.append((source, source.publish("demo")))
        source.write(VIDEO, 0, sources[-1][1], VIDEO_HEADER)
    viewer.play("demo")
    world.run()
    for source, stream in sources:
        source.write(VIDEO, 20, stream, KEY)
        source.write(VIDEO, 40, stream, FRAME)
    world.run()
    (link,) = world.relays.links
    (old,) = world.wires
    link.on_asked_to_move(link._session, Target.parse("rtmp://other/live/demo"), 0.0)
    old.near.transport.connection_lost(0.0, "cut")
    assert link.state == "connecting" and link.is_publishing
    world.run()
    source.write(VIDEO, 60, stream, FRAME)
    world.run()
    assert link.state == "running" and link.where.host == "other"
    pictures = [(at, body) for _, at, body in viewer.media() if body != VIDEO_HEADER]
    assert pictures == [(20, KEY), (40, FRAME), (60, FRAME)]
