"""How a connection over RTMFP ends: in good order, all of a sudden, or after waiting in vain."""

from support.rtmfp.flash_world import SERVER, FlashWorld

from rtmplite.amf import amf0
from rtmplite.rtmfp.netconnection.connection import LINGER, PUBLISHER_LINGER
from rtmplite.rtmfp.netconnection.media_flows import RELIABLE
from rtmplite.rtmfp.session.session import SILENT
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.netconnection import State
from rtmplite.rtmp.wire.message import MessageType

AUDIO, SOUND = MessageType.AUDIO, b"\xb6sound"


def test_a_client_that_goes_is_noticed():
    """Covers RFC 7425 §5.3.6 [complete-answered] [orderly]."""
    world = FlashWorld()
    peer = world.client()
    stream = peer.publish("demo")
    peer.client.send_media(AUDIO, 0, stream, SOUND)
    peer.client.close(world.now)
    world.run()
    assert peer.server.closed and not peer.server.transport.aborted
    assert peer.server.reason == "closed by the peer"
    assert peer.client.transport.is_over and peer.server.transport.is_over
    assert world.registry.get("live", "demo") is None


def test_last_words_about_a_stream_arrive_before_the_end():
    """Covers RFC 7425 §5.3.6 [orderly]: even if they are the first in their flow."""

    class Undecided(LiveApplication):
        def on_publish(self, connection, stream, name, now):
            self.asked = stream

    application = Undecided()
    world = FlashWorld(application)
    peer = world.client()
    peer.publish("demo")
    peer.server.call("hello")
    application.asked.reject_publish("NetStream.Publish.Rejected", "480 Not there", world.now)
    peer.server.close(world.now)
    world.run()
    assert peer.codes() == ["NetStream.Publish.Rejected"]
    assert peer.client.transport.is_over and peer.server.transport.is_over


def test_a_client_that_goes_in_silence_is_noticed():
    """Covers RFC 7425 §5.3.6 [complete-answered] [orderly]: nothing is on its way then."""
    world = FlashWorld()
    peer = world.client()
    peer.client.close(world.now)
    world.run()
    assert peer.server.closed and not peer.server.transport.aborted
    assert peer.client.transport.is_over and peer.server.transport.is_over


def test_a_session_that_is_closed_is_the_end():
    """Covers RFC 7425 §5.3.6 [abrupt]."""
    world = FlashWorld()
    peer = world.client()
    peer.client_session.close(world.now)
    world.run()
    assert peer.server.state is State.CLOSED and peer.server.transport.is_over
    assert peer.client.closed


def test_who_rejects_the_control_flow_ends_the_connection():
    """Covers RFC 7425 §5.3 [exception-ends], §5.3.6 [abrupt]."""
    world = FlashWorld()
    peer = world.client()
    next(iter(peer.client_session.recv_flows.values())).reject(0, world.now)
    peer.server.call("hello")
    world.run()
    assert peer.server.state is State.CLOSED


def test_last_words_are_not_waited_for_for_ever():
    """A client that acknowledges nothing is given up after a while."""
    silent = {"on": False}
    world = FlashWorld(weather=lambda *packet: () if silent["on"] else (0.02,))
    peer = world.client()
    silent["on"] = True
    peer.server.call("good-bye")
    peer.server.close(world.now)
    world.run(LINGER / 2)
    assert not peer.server.transport.is_over and peer.server.deadline is not None
    world.run(LINGER)
    assert peer.server.transport.is_over and peer.server.deadline is None


def test_who_has_said_the_last_word_hears_nothing_new():
    """RFC 7016 §3.6.2.1: no flow can answer one that has ended, which is no failure of ours."""
    world = FlashWorld()
    peer = world.client()
    stream = peer.publish("demo")
    peer.client.send_media(AUDIO, 0, stream, SOUND)
    world.run()
    next(iter(peer.client_session.send_flows.values())).close(world.now)
    world.run(LINGER / 5)
    flows = len(peer.server_session.send_flows)
    peer.server.send_media(AUDIO, 0, stream, SOUND)
    peer.server.send_media(AUDIO, 20, stream, SOUND)
    world.run(LINGER / 5)
    assert not peer.server.closed and len(peer.server_session.send_flows) == flows
    world.run(LINGER)
    assert peer.server.reason == "closed by the peer" and not peer.server.transport.aborted


RATE = 60_000  # bytes a second of a slow link


class Slow:
    """A link that is slow towards the server; what does not fit its buffer of 64 kB is lost."""

    def __init__(self):
        self.world, self.free, self.is_dead = None, 0.0, False

    def __call__(self, data, source, destination):
        if self.is_dead:
            return ()
        if destination[0] != SERVER[0] or self.world is None:
            return (0.02,)
        begins = max(self.free, self.world.now)
        if begins - self.world.now > 64_000 / RATE:
            return ()
        self.free = begins + len(data) / RATE
        return (self.free - self.world.now + 0.02,)


def slow_publisher(size=250_000):
    """A client whose file is under way, and what the server has of it."""
    weather, heard = Slow(), []
    weather.world = world = FlashWorld(weather=weather)
    peer = world.client()
    stream = peer.publish("demo")
    world.registry.get("live", "demo").tap(Heard(heard))
    peer.client.transport.lifetimes = RELIABLE
    for number in range(size // 5000):
        peer.client.send_media(MessageType.VIDEO, number * 40, stream, b"\x27" + bytes(4999))
    peer.client.send("deleteStream", float(stream))
    return world, peer, weather, heard


class Heard:
    """A sink that keeps the times of what it hears, in a list that outlives it."""

    def __init__(self, times):
        self.times = times

    def write(self, type_id, timestamp, payload, now):
        self.times.append(timestamp)

    def end(self, now):
        self.times.append("end")


def test_who_publishes_stays_until_all_has_arrived():
    """RFC 7425 §5.3.6: however long that takes, as long as it gets on."""
    world, peer, _, heard = slow_publisher()
    peer.client.close(world.now)
    world.run(LINGER / 2)
    assert not peer.client.transport.is_over and peer.client.transport.holds_media
    world.run(10.0)
    assert heard == [*range(0, 2000, 40), "end"]
    assert peer.client.transport.is_over and peer.server.transport.is_over
    assert peer.client.transport.cut_short == ""


def test_a_server_that_is_gone_is_told_of():
    """RFC 7425 §5.3.6: it is given up when nothing gets on, and what was lost with it is known."""
    world, peer, weather, heard = slow_publisher()
    peer.client.close(world.now)
    world.run(1.0)
    weather.is_dead = True
    world.run(PUBLISHER_LINGER - 2)
    assert not peer.client.transport.is_over
    world.run(5.0)
    assert peer.client.transport.is_over and "end" not in heard
    assert "nothing was acknowledged" in peer.client.transport.cut_short


def test_a_server_that_ends_in_the_meantime_is_told_of():
    """RFC 7425 §5.3.6: it still acknowledges what it looks at no more."""
    world, peer, _, heard = slow_publisher()
    peer.client.close(world.now)
    world.run(1.0)
    peer.server.close(world.now, "server stopped")
    world.run(20.0)
    assert peer.client.transport.is_over and len(heard) < 50
    assert peer.client.transport.cut_short == "closed by the peer"


def test_data_alone_is_a_stream_as_well():
    """Of messages without a time nothing is given up, and all is waited for."""
    weather = Slow()
    weather.world = world = FlashWorld(weather=weather)
    peer = world.client()
    stream = peer.publish("demo")
    weather.is_dead = True
    peer.client.send_media(MessageType.DATA, 0, stream, amf0.encode("said", "x"))
    peer.client.close(world.now)
    world.run(1.0)
    assert peer.client.transport.holds_media
    world.run(PUBLISHER_LINGER + 5)
    assert peer.client.transport.is_over and peer.client.transport.cut_short


def test_a_server_that_is_gone_before_the_end_is_told_of_as_well():
    """RFC 7016 §3.5.4.1: by the silence of its session."""
    world, peer, weather, _ = slow_publisher()
    world.run(1.0)
    weather.is_dead = True
    world.run(130.0)
    assert peer.client.closed and peer.client.transport.cut_short == SILENT


def test_what_was_given_up_in_silence_has_not_arrived():
    """RFC 7425 §5.1.1: of a live stream all is too late when nobody has been there for long."""
    weather = Slow()
    weather.world = world = FlashWorld(weather=weather)
    peer = world.client()
    stream = peer.publish("demo")
    weather.is_dead = True
    peer.client.send_media(AUDIO, 0, stream, SOUND)
    peer.client.close(world.now)
    world.run(PUBLISHER_LINGER + 5)
    assert peer.client.transport.is_over and peer.client.transport.cut_short


def test_who_plays_has_nothing_to_lose():
    """A server that is gone is no failure of who wanted no more of it."""
    weather = Slow()
    weather.world = world = FlashWorld(weather=weather)
    publisher, player = world.client(), world.client()
    stream = publisher.publish("demo")
    player.play("demo")
    publisher.client.send_media(AUDIO, 0, stream, SOUND)
    world.run()
    weather.is_dead = True
    player.client.send("pause", True, 0.0, stream_id=1)
    player.client.close(world.now)
    world.run(0.1)
    assert not player.client.transport.is_over and not player.client.transport.holds_media
    world.run(PUBLISHER_LINGER + 5)
    assert player.client.transport.is_over and player.client.transport.cut_short == ""


def test_a_server_that_rejects_what_is_published_is_told_of():
    """RFC 7425 §5.3.5.3: what was on its way in that flow has not arrived."""
    world, peer, _, _ = slow_publisher()
    world.run(1.0)
    pictures = max(peer.server_session.recv_flows.values(), key=lambda flow: flow.seen.csn)
    pictures.reject(0, world.now)
    peer.client.close(world.now)
    world.run(20.0)
    assert (
        peer.client.transport.is_over
        and peer.client.transport.cut_short == "the server takes no more of it"
    )


def test_a_publisher_whose_control_flow_ends_first_is_heard_to_the_end():
    """RFC 7425 §5.3.6: other implementations close all flows at once."""
    world, peer, _, heard = slow_publisher(600_000)
    world.run(0.5)
    for flow in list(peer.client_session.send_flows.values()):
        flow.close(world.now)
    world.run(2 * LINGER + 2)
    assert heard == [*range(0, 4800, 40), "end"]
    world.run(LINGER + 2)
    assert peer.server.transport.is_over
