"""The server's NetConnection over RTMFP: the same as over RTMP, and what only RTMFP has."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations
from support.rtmfp.flash_world import FlashWorld
from support.rtmp.rtmp_world import World

from rtmplite.rtmfp.netconnection import messages as flash
from rtmplite.rtmfp.netconnection.messages import FlowMetadata
from rtmplite.rtmfp.netconnection.server import BEHIND_NAT, IN_THE_OPEN
from rtmplite.rtmfp.session.limits import SessionLimits
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Called, Ended
from rtmplite.rtmp.message_transport import ConnectionLimits
from rtmplite.rtmp.netconnection import State
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import MessageType
from rtmplite.strategies import flash as strategies

AUDIO, VIDEO, DATA = MessageType.AUDIO, MessageType.VIDEO, MessageType.DATA
HEADER, KEY = b"\x17\x00\x00\x00\x00avcC", b"\x17\x01\x00\x00\x00key"
INTER, SOUND = b"\x27\x01\x00\x00\x00inter", b"\xb6sound"
NOTE = b"\x02\x00\x01x"


class Slow(LiveApplication):
    """Decides about connections later."""

    def on_connect(self, connection, now):
        pass


def test_connect():
    """Covers RFC 7425 §5.3.2 [server-returns]: the answer is in a flow that returns to ours."""
    peer = FlashWorld().client()
    assert peer.server.state is State.CONNECTED
    assert peer.reply(1.0)[1]["code"] == "NetConnection.Connect.Success"
    assert (peer.server.app, peer.server.tc_url) == ("live", "rtmfp://host/live")
    assert peer.server.peer_address == ("198.51.100.1", 40000)
    (flow,) = peer.client_session.recv_flows.values()
    assert FlowMetadata.parse(flow.metadata) == FlowMetadata(0)
    assert flow.associated.metadata == bytes(FlowMetadata(0))
    assert flow.associated is peer.client_session.send_flows[1]


def test_nothing_is_looked_at_before_the_verdict():
    """The control flow waits, as chunks would: Application.on_connect."""
    world = FlashWorld(Slow())
    peer = world.client()
    peer.client.call("createStream")
    world.run()
    assert peer.server.state is State.ASKING and peer.server.streams == {}
    peer.server.accept(world.now)
    world.run()
    assert [each.transaction_id for each in peer.events[:2]] == [1.0, 2.0]


def test_who_is_refused_hears_why():
    """Covers RFC 7425 §5.3.6 [orderly]: the session is closed when the last word has arrived."""
    peer = FlashWorld().client("rtmfp://host/nothing")
    assert [each.succeeded for each in peer.events] == [False]
    assert peer.events[0].values[-1]["code"] == "NetConnection.Connect.InvalidApp"
    assert peer.server.transport.is_over and peer.client.transport.is_over


def test_a_client_tells_where_it_is():
    """Covers RFC 7425 §5.3.3 [after-connect] [nat-if-unlisted]."""
    world = FlashWorld()
    own = ("198.51.100.1", 40000)
    peer = world.client(addresses=lambda: [own, ("10.0.0.1", 7), ("127.0.0.1", 7)])
    assert peer.server.listed == (own, ("10.0.0.1", 7)) and not peer.server.is_behind_nat
    other = world.client(addresses=lambda: [("10.0.0.1", 7)])
    assert other.server.is_behind_nat
    nobody = world.client()
    assert nobody.server.listed == () and nobody.server.is_behind_nat


def test_keep_alive_periods_are_advised():
    """Covers RFC 7425 §5.3.4 [server-chooses] [client-obeys] [more-than-once]."""
    world = FlashWorld()
    peer = world.client()
    assert peer.client_session.keepalive.interval == BEHIND_NAT.server_period / 1000
    peer.client.send("setPeerInfo", "198.51.100.1:40000")
    world.run()
    assert peer.client_session.keepalive.interval == IN_THE_OPEN.server_period / 1000
    assert peer.client.transport.peer_keepalive == IN_THE_OPEN.peer_period / 1000


def test_publish_and_play():
    """Covers RFC 7425 §5.1.1 [many-flows] [one-stream], §5.3.5 [associated], §5.3.5.2 [as-many].

    Media go from client to client, each medium in a flow of its own: §5.1.2 [stream-from-flow].
    """
    world = FlashWorld()
    player, publisher = world.client(), world.client()
    play = player.play("demo")
    stream = publisher.publish("demo")
    sent = [(VIDEO, 0, HEADER), (VIDEO, 0, KEY), (AUDIO, 5, SOUND), (VIDEO, 40, INTER)]
    for type_id, time, payload in sent:
        publisher.write(type_id, time, stream, payload)
    world.run()
    assert sorted(player.media()) == sorted(sent)
    assert publisher.codes() == ["NetStream.Publish.Start"]
    assert player.codes()[:2] == ["NetStream.Play.Reset", "NetStream.Play.Start"]
    flows = player.client_session.recv_flows.values()
    by_stream = [FlowMetadata.parse(flow.metadata).stream_id for flow in flows]
    assert sorted(by_stream) == [0, play, play, play]
    assert {flow.associated for flow in flows} == {player.client_session.send_flows[1]}
    control_flow = publisher.server_session.send_flows[1]
    returned = list(publisher.server_session.recv_flows.values())[1:]
    assert len(returned) == 3 and {flow.associated for flow in returned} == {control_flow}


def test_both_kinds_of_clients_meet(monkeypatch):
    """A stream is one, whatever its players speak, and its bytes are made once for each kind."""
    world = FlashWorld()
    old = World(registry=world.registry)
    first, second, third = world.client(), world.client(), old.client()
    for each in (first, second, third):
        each.play("demo")
    put = []
    for each in (first, second):
        outlet = each.server.transport._output.outlets[1]
        monkeypatch.setattr(outlet, "put", put.append)
    publisher = old.client()
    stream = publisher.publish("demo")
    publisher.write(AUDIO, 0, stream, SOUND)
    world.run()
    assert third.media() == [(AUDIO, 0, SOUND)]
    assert len(put) == 2 and put[0] is put[1]


@pytest.mark.parametrize("question", [False, True])
def test_the_end_comes_last(question):
    """Covers RFC 7425 §5.2 [eof-after-media] [only-when-needed] [count-at-least-2] [suspends].

    A network that loses every second packet of the video flow does not let the end overtake it.
    """
    lossy = {"on": False, "count": 0}

    def weather(data, source, destination):
        lossy["count"] += 1
        return () if lossy["on"] and lossy["count"] % 2 and len(data) > 200 else (0.02,)

    world = FlashWorld(weather=weather)
    player, publisher = world.client(), world.client()
    player.play("demo")
    stream = publisher.publish("demo")
    lossy["on"] = True
    sent = [(VIDEO, 0, HEADER), (VIDEO, 0, KEY + bytes(5000)), (AUDIO, 5, SOUND)]
    for type_id, time, payload in sent:
        publisher.client.send_media(type_id, time, stream, payload)
    if question:  # as relays do: servers may answer
        publisher.client.call("FCUnpublish", "demo")
    else:
        publisher.client.send("deleteStream", float(stream))
    world.run(10)
    assert sorted(player.media()) == sorted(sent)
    kinds = [type(each) for each in player.events]
    assert kinds[-1] is Ended and isinstance(player.events[-2], Called)
    assert player.codes()[-1] == "NetStream.Play.UnpublishNotify"


def test_the_end_of_a_recording_comes_last():
    """Covers RFC 7425 §5.2 [eof-after-media]: whatever is lost on the way to the player."""
    lossy = {"on": False, "count": 0}

    def weather(data, source, destination):
        lossy["count"] += lossy["on"]
        return () if lossy["count"] % 2 and len(data) > 200 else (0.02,)

    world = FlashWorld(weather=weather)
    player, publisher = world.client(), world.client()
    stream_id = player.play("demo")
    stream = publisher.publish("demo")
    lossy["on"] = True
    publisher.client.send_media(VIDEO, 0, stream, HEADER)
    publisher.client.send_media(VIDEO, 0, stream, KEY + bytes(5000))
    publisher.client.send_media(AUDIO, 5, stream, SOUND)
    while not player.server.transport._output.orders and player.server.queued < 5000:
        world.run(0.01)
    player.server.streams[stream_id].complete()
    world.run(10)
    assert sorted(kind for kind, *_ in player.media()[:-1]) == [AUDIO, VIDEO, VIDEO]
    assert b"NetStream.Play.Complete" in player.media()[-1][2]
    assert player.codes()[-1] == "NetStream.Play.Stop"
    assert isinstance(player.events[-1], Ended)


def test_a_stream_that_is_deleted_gives_its_flows_back():
    """Covers RFC 7425 §5.3.5.3 [closing-says-nothing]."""
    world = FlashWorld()
    peer = world.client()
    stream = peer.play("demo")
    assert len([f for f in peer.server_session.send_flows.values() if f.state == "F_OPEN"]) == 2
    peer.send("deleteStream", float(stream))
    world.run()
    assert len([f for f in peer.server_session.send_flows.values() if f.state == "F_OPEN"]) == 1
    assert peer.server.state is State.CONNECTED
    again = peer.play("demo")
    publisher = world.client()
    publisher.write(AUDIO, 0, publisher.publish("demo"), SOUND)
    world.run()
    assert again == stream and peer.media() == [(AUDIO, 0, SOUND)]


def test_more_flows_for_the_connection_itself():
    """Covers RFC 7425 §5.3.2 [more-control-flows], §5.3.5.1 [as-many]."""
    world = FlashWorld()
    peer = world.client()
    canonical = next(iter(peer.client_session.recv_flows.values()))
    more = peer.client_session.open_flow(bytes(FlowMetadata(0)), world.now, associated=canonical)
    message = Command("createStream", 9.0).message()
    more.send(flash.encode_message(message.type_id, 0, message.payload), world.now)
    world.run()
    assert peer.reply(9.0)[1] == 1.0


@pytest.mark.parametrize("metadata", [b"GC\x04\x00", b"TC\x00", b"", b"TC\x04\x01"])
def test_flows_that_are_not_for_us_are_rejected(metadata):
    """Covers RFC 7425 §5.1.1 [rejects-unknown] [rejects-without-stream], §5.3.5.3 [code-zero].

    The last one is for a stream of a connection that is not there yet.
    """
    world = FlashWorld()
    peer = world.client()
    if metadata == b"TC\x04\x01":
        peer.server.transport.incoming.far_control = None
    flow = peer.client_session.open_flow(metadata, world.now)
    codes = []
    flow.sender.on_exception = lambda flow, code, now: codes.append(code)
    flow.send(b"hello", world.now)
    world.run()
    assert codes == [0]
    assert peer.server.state is State.CONNECTED


def test_what_is_about_chunks_means_nothing():
    """Covers RFC 7425 §5.1 [ignores-chunk-control] [no-chunk-control]."""
    world = FlashWorld()
    peer = world.client()
    flow = peer.client_session.send_flows[1]
    for message in (control.SetChunkSize(1), control.Abort(3), control.Acknowledgement(5)):
        raw = message.message()
        flow.send(flash.encode_message(raw.type_id, 0, raw.payload), world.now)
    for type_id in (1, 2, 3, 5, 6):  # broken, and ignored all the same
        flow.send(flash.encode_message(type_id, 0, b""), world.now)
    world.run()
    assert peer.call("createStream")[1] == 1.0
    sent = []
    peer.server.transport._output.flows.clear()
    peer.server.transport.enqueue = lambda order, size=0: sent.append(order)
    for message in (
        control.SetChunkSize(1),
        control.Abort(3),
        control.Acknowledgement(5),
        control.WindowAcknowledgementSize(5),
        control.SetPeerBandwidth(5, control.LimitType.SOFT),
    ):
        peer.server.transport.send_control(message)
    assert sent == []


def test_a_ping_is_answered():
    """As over chunks: RTMP 1.0 §7.1.7 [ping-response]."""
    world = FlashWorld()
    peer = world.client()
    heard = []
    peer.client.transport._on_control = lambda message, now: heard.append(message)
    peer.client.transport.send_control(control.PingRequest(77))
    world.run()
    assert control.PingResponse(77) in heard


def test_who_breaks_the_rules_is_closed():
    """A message that cannot be read ends the connection: RTMP Errata §2."""
    world = FlashWorld()
    peer = world.client()
    peer.client_session.send_flows[1].send(b"\x14\x00\x00\x00\x00\x05", world.now)
    world.run()
    assert peer.server.transport.aborted and "name" in peer.server.reason
    assert peer.client.closed


def test_a_rejected_stream_flow_is_not_replaced():
    """Covers RFC 7425 §5.3.5.3 [no-replacement] [may-reject]."""
    world = FlashWorld()
    player, publisher = world.client(), world.client()
    player.play("demo")
    stream = publisher.publish("demo")
    publisher.write(AUDIO, 0, stream, SOUND)
    world.run()
    flow = list(player.client_session.recv_flows.values())[-1]
    flow.reject(0, world.now)
    publisher.write(AUDIO, 20, stream, SOUND)
    world.run()
    before = len(player.client_session.recv_flows)
    publisher.write(AUDIO, 40, stream, SOUND)
    publisher.write(VIDEO, 40, stream, HEADER)
    world.run()
    assert len(player.client_session.recv_flows) == before + 1  # that of the pictures
    assert player.media()[-1] == (VIDEO, 40, HEADER)
    assert player.server.state is State.CONNECTED


def test_one_flow_that_breaks_the_limits_takes_its_stream_with_it():
    """Covers RFC 7425 §5.3.5.3 [reject-all] [code-zero]: a barrier may have been in it."""
    world = FlashWorld(session_limits=SessionLimits(message_bytes=10_000))
    peer = world.client()
    stream, other = peer.publish("demo"), peer.publish("other")
    peer.write(AUDIO, 0, stream, SOUND)
    peer.write(VIDEO, 0, stream, KEY + bytes(20_000))
    world.run()
    flows = peer.server_session.recv_flows.values()
    rejected = [
        FlowMetadata.parse(flow.metadata).stream_id for flow in flows if flow.state != "RF_OPEN"
    ]
    assert rejected == [stream] * 3
    assert {flow.exception_code for flow in flows} == {0}
    peer.write(AUDIO, 0, other, SOUND)
    assert peer.server.state is State.CONNECTED and other in peer.server.streams


def test_a_control_flow_that_breaks_the_limits_ends_the_connection():
    """Covers RFC 7425 §5.3.6 [abrupt]: nothing can be said any more."""
    world = FlashWorld(session_limits=SessionLimits(message_bytes=10_000))
    peer = world.client()
    peer.client.call("long", "x" * 20_000)
    world.run()
    assert peer.server.transport.aborted and peer.client.closed


def test_who_does_not_ask_is_closed():
    """Limits.setup holds here as well."""
    world = FlashWorld(limits=ConnectionLimits(setup=5.0))
    peer = world.client()
    stranger = world.client("rtmfp://host/live")
    stranger.server.transport._settled = False
    world.run(6)
    assert peer.server.state is State.CONNECTED
    assert stranger.server.reason == "nothing asked in time"


@given(st.lists(mutations(strategies.flow_messages()), min_size=1, max_size=5))
def test_no_message_is_too_bad(messages):
    """Whatever a client sends, it is served or closed; nothing is raised."""
    world = FlashWorld()
    peer = world.client()
    flow, session = peer.client_session.send_flows[1], peer.client_session
    for message in messages:
        if session.state == "S_OPEN" and flow.state == "F_OPEN":
            flow.send(message, world.now)
    world.run()
    event("closed" if peer.server.closed else "served")
    assert peer.server.closed == peer.client.closed
