"""How a connection over RTMFP ends: in good order, all of a sudden, or after waiting in vain."""

from flash_world import FlashWorld

from rtmplite.rtmfp.flow_connection import LINGER
from rtmplite.rtmp.live import LiveApplication
from rtmplite.rtmp.message import MessageType
from rtmplite.rtmp.netconnection import State

AUDIO, SOUND = MessageType.AUDIO, b"\xb6sound"


def test_a_client_that_goes_is_noticed():
    """Covers RFC 7425 §5.3.6 [complete-answered] [orderly]."""
    world = FlashWorld()
    peer = world.client()
    stream = peer.publish("demo")
    peer.client.send_media(AUDIO, 0, stream, SOUND)
    peer.client.close(world.now)
    world.run()
    assert peer.server.closed and not peer.server.aborted
    assert peer.server.reason == "closed by the peer"
    assert peer.client.is_over and peer.server.is_over
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
    assert peer.client.is_over and peer.server.is_over


def test_a_client_that_goes_in_silence_is_noticed():
    """Covers RFC 7425 §5.3.6 [complete-answered] [orderly]: nothing is on its way then."""
    world = FlashWorld()
    peer = world.client()
    peer.client.close(world.now)
    world.run()
    assert peer.server.closed and not peer.server.aborted
    assert peer.client.is_over and peer.server.is_over


def test_a_session_that_is_closed_is_the_end():
    """Covers RFC 7425 §5.3.6 [abrupt]."""
    world = FlashWorld()
    peer = world.client()
    peer.client_session.close(world.now)
    world.run()
    assert peer.server.state is State.CLOSED and peer.server.is_over
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
    assert not peer.server.is_over and peer.server.deadline is not None
    world.run(LINGER)
    assert peer.server.is_over and peer.server.deadline is None


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
    assert peer.server.reason == "closed by the peer" and not peer.server.aborted
