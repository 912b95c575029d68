"""So much of a live stream and no more."""

import pytest
from support.rtmp.rtmp_world import World

from rtmplite.amf import amf0
from rtmplite.rtmp.client import Ended
from rtmplite.rtmp.wire.chunk_writer import ChunkFraming

HEADER, KEY, INTER = b"\x17\x00\0\0\0avcC", b"\x17\x01\0\0\0key", b"\x27\x01\0\0\0inter"
SOUND, METADATA = b"\xb2sound", amf0.encode("onMetaData", {"width": 320.0})


def watching(*args, begun=True):
    """A publisher, its stream, and a player who joined when something had been published."""
    world = World()
    source, player = world.client(), world.client()
    stream = source.publish("demo")
    if begun:
        source.write(18, 0, stream, METADATA)
        source.write(9, 0, stream, HEADER)
        source.write(9, 960, stream, INTER)
    player.play("demo", *args)
    return world, source, stream, player


def times(player):
    """Of sound and pictures but headers; what the server says of playing is none."""
    return [at for kind, at, body in player.media() if kind != 18 and body != HEADER]


@pytest.mark.parametrize("start", [-2000.0, -1.0, 0.0])
def test_a_duration_ends_it(start):
    """Covers RTMP 1.0 §7.2.2.1: the time is the stream's, from the first frame that was played."""
    world, source, stream, player = watching(start, 100.0)
    for at in range(980, 1300, 20):
        source.write(9, at, stream, KEY if at in (1000, 1200) else INTER)
        source.write(8, at + 5, stream, SOUND)
    assert times(player)[0] == 1000 and times(player)[-1] == 1100
    world.wait(1.0)
    assert player.codes()[-1] == "NetStream.Play.Stop"
    assert any(isinstance(event, Ended) for event in player.events)
    assert any(b"NetStream.Play.Complete" in body for _, _, body in player.media())
    assert world.registry.get("live", "demo").players == 0
    player.play("demo", -1000.0)
    source.write(9, 2000, stream, KEY)
    assert times(player)[-1] == 2000


def test_a_duration_of_0_is_one_moment():
    """Covers RTMP 1.0 §7.2.2.1: a single frame, and the sound that belongs to it."""
    world, source, stream, player = watching(-1000.0, 0.0)
    for body, at in ((KEY, 1000), (INTER, 1040), (KEY, 1080)):
        source.write(9, at, stream, body)
        source.write(8, at, stream, SOUND)
    world.wait(1.0)
    assert [body for kind, _, body in player.media() if kind != 18] == [HEADER, KEY, SOUND]
    assert player.codes()[-1] == "NetStream.Play.Stop"


def test_others_notice_nothing():
    """Own design: nor does who asks for everything pay for those who do not."""
    _, source, stream, player = watching(-1000.0, -1000.0)
    other = player.world.client()
    other.play("demo", -1000.0, 20.0)
    live = player.world.registry.get("live", "demo")
    for at in (1000, 1040, 1080):
        source.write(9, at, stream, KEY)
    assert times(player) == [1000, 1040, 1080] and times(other) == [1000]
    assert isinstance(live._players[0].framing, ChunkFraming)


def test_a_clock_that_wraps_and_one_that_steps_back():
    """Covers RTMP 1.0 §7.2.2.1 where 32 bits end: RTMP 1.0 §4."""
    _, source, stream, player = watching(-1.0, 100.0, begun=False)
    for at in (2**32 - 40, 2**32 - 80, 0, 40, 80):
        source.write(8, at, stream, SOUND)
    assert times(player) == [2**32 - 40, 2**32 - 80, 0, 40]


def test_who_leaves_before_the_end():
    """Own design: nothing is left, and nothing more is said."""
    world, source, stream, player = watching(-1.0, 20.0)
    source.write(9, 1000, stream, KEY)
    source.write(9, 1040, stream, KEY)
    player.send("deleteStream", 1.0)
    world.wait(1.0)
    assert "NetStream.Play.Stop" not in player.codes()
    assert world.registry.get("live", "demo").players == 0
