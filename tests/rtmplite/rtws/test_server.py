"""NetConnections over RTWebSocket: the same as over RTMFP, and together with all others."""

from support.rtmfp.flash_world import FlashWorld
from support.rtmp.rtmp_world import World
from support.rtws import RtwsWorld

from rtmplite.rtmp.netconnection import State
from rtmplite.rtmp.wire.message import MessageType

AUDIO, VIDEO = MessageType.AUDIO, MessageType.VIDEO
HEADER, KEY = b"\x17\x00\x00\x00\x00avcC", b"\x17\x01\x00\x00\x00key"
INTER, SOUND = b"\x27\x01\x00\x00\x00inter", b"\xb6sound"


def test_connect():
    """Covers Field §"RTWebSocket flows" [as-rtmfp]."""
    peer = RtwsWorld().client()
    assert peer.server.state is State.CONNECTED
    assert peer.reply(1.0)[1]["code"] == "NetConnection.Connect.Success"
    assert (peer.server.app, peer.server.tc_url) == ("live", "rtmp://host/live")


def test_who_is_refused_hears_why_and_is_closed():
    peer = RtwsWorld().client("rtmp://host/nothing")
    assert [each.succeeded for each in peer.events] == [False]
    assert peer.events[0].values[-1]["code"] == "NetConnection.Connect.InvalidApp"
    assert peer.server.transport.is_over and not peer.session.is_open


def test_publish_and_play():
    """Covers Field §"RTWebSocket flows" [as-rtmfp]: from client to client, and the end is told."""
    world = RtwsWorld()
    player, publisher = world.client(), world.client()
    player.play("demo")
    stream = publisher.publish("demo")
    sent = [(VIDEO, 0, HEADER), (VIDEO, 0, KEY + bytes(30_000)), (AUDIO, 5, SOUND)]
    for type_id, time, payload in [*sent, (VIDEO, 40, INTER)]:
        publisher.write(type_id, time, stream, payload)
    publisher.client.send("deleteStream", float(stream))
    world.run()
    assert sorted(player.media()) == sorted([*sent, (VIDEO, 40, INTER)])
    assert publisher.codes() == ["NetStream.Publish.Start"]
    assert player.codes()[:2] == ["NetStream.Play.Reset", "NetStream.Play.Start"]
    assert player.codes()[-1] == "NetStream.Play.UnpublishNotify"


def test_all_kinds_of_clients_meet():
    """By RTMP, RTMFP and RTWebSocket."""
    world = RtwsWorld()
    flash, old = FlashWorld(registry=world.registry), World(registry=world.registry)
    players = [world.client(), flash.client(), old.client()]
    for each in players:
        each.play("demo")
    publisher = world.client()
    stream = publisher.publish("demo")
    publisher.write(AUDIO, 0, stream, SOUND)
    world.run()
    flash.run()
    old.run()
    assert [each.media() for each in players] == [[(AUDIO, 0, SOUND)]] * 3
    sender = old.client()
    sender.write(AUDIO, 0, sender.publish("other"), SOUND)
    late = world.client()
    late.play("other")
    sender.write(AUDIO, 20, 1, SOUND)
    world.run()
    assert late.media()[-1][0::2] == (AUDIO, SOUND)


def test_a_client_that_has_gone_is_forgotten():
    world = RtwsWorld()
    peer = world.client()
    peer.publish("demo")
    assert world.registry.streams == 1
    peer.session.close(world.now, "closed by the peer")
    assert peer.server.transport.is_over and world.registry.streams == 0
