"""A push begins with what a new player would get, also where it moves to another server."""

from support.rtmp.relay_world import FRAME, KEY, VIDEO_HEADER, RelayWorld

from rtmplite.rtmp.wire.message import MessageType

VIDEO = MessageType.VIDEO
PUSH = ["live/*=rtmp://far/live/{name}"]


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
