"""Clients that play again and again, and what waits for them: bounded within one turn."""

from support.rtmp.rtmp_world import World
from support.rtmp.theatre import AVC, KEY

from rtmplite.live.slow_consumer import SlowConsumerPolicy
from rtmplite.live.streams import Registry
from rtmplite.rtmp.connection import ConnectionLimits


def play_often(world, times=50):
    """A client that asks to play "demo" so often in one turn; the server's end."""
    peer = world.client()
    stream = peer.stream()
    for _ in range(times):
        peer.client.send("play", "demo", stream_id=stream)
    asked = b"".join(peer.client.transport.take_output())
    peer.server.transport.receive(asked, world.now)
    return peer.server


def test_a_burst_of_plays_is_given_no_more_than_a_player_may_be_behind():
    """Own design: each would get all since the last key frame again."""
    world = World(registry=Registry(SlowConsumerPolicy(limit=40_000)))
    live = world.registry.open("live", "demo")
    live.write(9, 0, KEY + bytes(15_000), 0.0)
    server = play_often(world)
    waiting = sum(map(len, server.transport.output))
    assert 30_000 < waiting < 40_000 + 50 * 1000 and not server.closed


def test_what_a_burst_of_commands_asks_for_is_counted_at_once():
    """Own design: headers are repeated for each play, and nothing has been sent so far."""
    world = World(limits=ConnectionLimits(unread=100_000))
    world.registry.open("live", "demo").write(9, 0, AVC + bytes(15_000), 0.0)
    server = play_often(world, times=5)
    assert not server.closed and server.queued == sum(map(len, server.transport.output))
    server = play_often(world)
    assert server.transport.aborted and "does not read" in server.reason


def test_the_duration_counts_from_the_key_frame_that_is_waited_for():
    """Covers RTMP 1.0 §7.2.2.1: also where an earlier one is kept and was not sent."""
    world = World(registry=Registry(SlowConsumerPolicy(limit=40_000)))
    live, peer = world.registry.open("live", "demo"), world.client()
    live.write(9, 0, KEY, 0.0)
    stream = peer.stream()
    peer.server.transport.output_size = 40_000
    peer.send("play", "demo", -1000.0, 100.0, stream_id=stream)
    peer.server.transport.output_size = 0
    for at, is_over in ((1000, False), (1050, False), (1101, True)):
        live.write(9, at, KEY, 0.0)
        assert peer.server.streams[stream].is_over is is_over
