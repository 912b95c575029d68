"""Clients of RTMFP that are slow, paused, or somewhere else than before, and what they cost."""

from support.rtmfp.flash_world import FlashWorld
from support.rtmp.theatre import KEY

from rtmplite.live.slow_consumer import SlowConsumerPolicy
from rtmplite.live.streams import Registry
from rtmplite.rtmp.message_transport import ConnectionLimits
from rtmplite.rtmp.wire.message import MessageType

DATA = MessageType.DATA
NOTE = b"\x02\x00\x01x"


class Counted:
    """A sink that counts what it is given."""

    def __init__(self):
        self.messages, self.ended = 0, False

    def write(self, type_id, timestamp, payload, now):
        self.messages += 1

    def end(self, now):
        self.ended = True


def test_pausing_stops_the_sender():
    """An application that reads nothing costs no memory beyond the receive window."""
    world = FlashWorld()
    publisher, sink = world.client(), Counted()
    stream = publisher.publish("demo")
    world.registry.open("live", "demo").tap(sink)
    publisher.server.pause_reading()
    for time in range(0, 4000, 10):
        publisher.client.send_media(DATA, time, stream, NOTE + bytes(10_000))
    publisher.client.send("deleteStream", float(stream))
    world.run(5)
    assert sink.messages == 0
    assert publisher.server_session.buffered < 2 << 20 and publisher.client.queued > 1 << 20
    publisher.server.resume_reading()
    world.run(60)
    assert (sink.messages, sink.ended, publisher.client.queued) == (400, True, 0)


def test_a_player_that_does_not_read_is_cut_off():
    """Limits.unread holds here as well: what nobody takes is not kept for ever."""
    world = FlashWorld(limits=ConnectionLimits(unread=200_000))
    player, publisher = world.client(), world.client()
    player.play("demo")
    stream = publisher.publish("demo")
    player.client.pause_reading()
    for time in range(0, 2000, 10):
        publisher.client.send_media(DATA, time, stream, NOTE + bytes(10_000))
    world.run(5)
    assert player.server.transport.aborted and "does not read" in player.server.reason


def test_a_client_that_plays_again_is_not_given_all_again():
    """Own design: the pictures kept for late players count as what waits already."""
    world = FlashWorld(registry=Registry(SlowConsumerPolicy(limit=40_000)))
    live = world.registry.open("live", "demo")
    live.write(MessageType.VIDEO, 0, KEY + bytes(15_000), 0.0)
    transport = world.client().server.transport
    players = [transport.join(live, 1, None, 0.0) for _ in range(9)]
    assert [player.waiting for player in players] == [False] * 2 + [True] * 7
    assert transport.queued < 40_000


def test_a_client_that_moves_is_known_where_it_is():
    """Covers RFC 7425 §5.3.3 [nat-if-unlisted], by the address that is in use."""
    world = FlashWorld()
    peer = world.client()
    former = peer.server_session.address
    peer.server_session.address = ("203.0.113.9", 5)
    peer.server.transport.incoming.on_address_change(peer.server_session, former, world.now)
    assert peer.server.peer_address == ("203.0.113.9", 5)
