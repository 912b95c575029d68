"""Players over RTMFP that are too slow, and what they are given."""

import random
from types import SimpleNamespace

from support.rtmfp.flash_world import FlashWorld
from support.rtmfp.link import storm

from rtmplite.live.slow_consumer import SlowConsumerPolicy
from rtmplite.live.streams import Registry
from rtmplite.rtmfp.netconnection.media_flows import LIVE
from rtmplite.rtmfp.netconnection.output import ROOM, FlowOutlet
from rtmplite.rtmp.wire.message import MessageType

AUDIO, VIDEO, DATA = MessageType.AUDIO, MessageType.VIDEO, MessageType.DATA
HEADER, KEY = b"\x17\x00\x00\x00\x00avcC", b"\x17\x01\x00\x00\x00key"
INTER, SOUND = b"\x27\x01\x00\x00\x00inter", b"\xb6sound"


def test_what_is_behind_is_counted_beyond_some_room():
    """What a socket would take without a word is no slowness; beyond it each message counts."""
    queued = []
    owner = SimpleNamespace(enqueue=lambda order, size: queued.append(size), lifetimes=LIVE)
    outlet = FlowOutlet(owner, 1)
    outlet.recount(ROOM)
    outlet.put(bytes(50))
    assert outlet.output_size == 0
    outlet.recount(ROOM + 1)
    outlet.put(bytes(50))
    assert outlet.output_size == 51 and queued == [50, 50]
    outlet.recount(0)
    assert outlet.output_size == 0


def test_a_late_player_begins_with_the_last_key_frame():
    """All since, each at its own time, as over RTMP."""
    world = FlashWorld()
    publisher = world.client()
    stream = publisher.publish("demo")
    times = {VIDEO: (0, 1000, 1040, 1080), AUDIO: (1010, 1060)}
    publisher.write(VIDEO, 0, stream, HEADER)
    for at in times[VIDEO]:
        publisher.write(VIDEO, at, stream, INTER if at % 1000 else KEY)
    for at in times[AUDIO]:
        publisher.write(AUDIO, at, stream, SOUND)
    world.run()
    player = world.client()
    player.play("demo")
    publisher.write(VIDEO, 1120, stream, INTER)
    world.run()
    seen = [(at, body) for type_id, at, body in player.media() if type_id == VIDEO]
    assert seen == [(1000, HEADER), (1000, KEY), *((at, INTER) for at in (1040, 1080, 1120))]
    assert [at for type_id, at, _ in player.media() if type_id == AUDIO] == [1010, 1060]


def test_a_slow_player_is_skipped_to_a_key_frame():
    """Patience holds here as well: what does not fit is left out, message by message."""
    world = FlashWorld(registry=Registry(SlowConsumerPolicy(skip=300_000, seconds=60)))
    player, publisher = world.client(), world.client()
    player.play("demo")
    stream = publisher.publish("demo")
    player.client.pause_reading()
    publisher.write(VIDEO, 0, stream, HEADER)
    for at in range(100):
        publisher.write(VIDEO, 40 * at, stream, (INTER if at % 10 else KEY) + bytes(20_000))
    outlet = player.server.transport._output.outlets[1]
    assert outlet.output_size > 0 and player.server.queued > ROOM
    player.client.resume_reading()
    world.run(20)
    assert outlet.output_size == 0
    publisher.write(VIDEO, 5000, stream, INTER)
    publisher.write(VIDEO, 5040, stream, KEY)
    publisher.write(VIDEO, 5080, stream, INTER)
    world.run(5)
    times = [time for _, time, _ in player.media()]
    assert times[-2:] == [5040, 5080] and len(times) < 103


def test_a_player_that_is_far_behind_is_closed():
    """Outlet.abort is the end of the connection."""
    world = FlashWorld(registry=Registry(SlowConsumerPolicy(skip=100_000, limit=400_000)))
    player, publisher = world.client(), world.client()
    player.play("demo")
    stream = publisher.publish("demo")
    player.client.pause_reading()
    for at in range(150):
        publisher.client.send_media(DATA, at, stream, b"\x02\x00\x0aonMetaData" + bytes(20_000))
        world.run(0.2)
    assert player.server.transport.aborted and "too slow" in player.server.reason


def test_a_network_that_loses_much():
    """Covers RFC 7425 §5.1.1 [abandons], §5.2 [eof-after-media].

    Commands, data and headers arrive all the same, in order, and before the end; of the rest what
    is late may be missing.
    """
    weather = storm(random.Random(3), loss=0.2, duplicates=0.1, delay=0.02, spread=0.03)
    world = FlashWorld(weather=weather)
    player, publisher = world.client(), world.client()
    world.run(10)
    player.play("demo")
    stream = publisher.publish("demo")
    world.run(10)
    publisher.client.send_media(VIDEO, 0, stream, HEADER)
    for at in range(0, 5000, 20):
        publisher.client.send_media(AUDIO, at, stream, SOUND)
        if at % 40 == 0:
            picture = (KEY if at % 1000 == 0 else INTER) + bytes(2000)
            publisher.client.send_media(VIDEO, at, stream, picture)
        if at % 500 == 0:
            publisher.client.send_media(DATA, at, stream, b"\x02\x00\x01x")
        world.run(0.02)
    publisher.client.send("deleteStream", float(stream))
    world.run(30)
    heard = player.media()
    assert [time for kind, time, _ in heard if kind == DATA] == list(range(0, 5000, 500))
    for kind, most in ((AUDIO, 250), (VIDEO, 126)):
        times = [time for each, time, _ in heard if each == kind]
        assert times == sorted(times) and 0.8 * most < len(times) <= most
    assert next(payload for kind, _, payload in heard if kind == VIDEO) == HEADER
    assert player.codes()[-1] == "NetStream.Play.UnpublishNotify"
    assert type(player.events[-1]).__name__ == "Ended"
