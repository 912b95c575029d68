"""The client's NetConnection over RTMFP."""

from support.rtmfp.flash_world import FlashWorld

from rtmplite.rtmfp.netconnection import messages
from rtmplite.rtmfp.netconnection.messages import FlowMetadata, SetKeepaliveTimers
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Called, Reply, Target
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import MessageType


class Written(LiveApplication):
    """Writes down every command, as it came."""

    def __init__(self):
        self.heard = []

    def on_connect(self, connection, now):
        received = connection.transport._on_message

        def listen(message, moment):
            if message.type_id in (MessageType.COMMAND, MessageType.COMMAND_AMF3):
                self.heard.append((message.type_id, message.payload, Command.parse(message)))
            received(message, moment)

        connection.transport._on_message = listen
        connection.accept(now)


def test_the_control_flow_comes_first():
    """Covers RFC 7425 §5.3.1 [control-flow-first] [connect-on-control]."""
    world = FlashWorld()
    peer = world.client("rtmfp://host/live/room", properties={"x": 1.0}, args=("a",))
    (flow,) = peer.server_session.recv_flows.values()
    assert flow.metadata == bytes(FlowMetadata(0)) == b"TC\x04\x00"
    assert flow.associated is None and flow.flow_id == 1
    assert peer.server.properties["tcUrl"] == "rtmfp://host/live/room"
    assert peer.server.properties["x"] == 1.0 and peer.server.connect_args == ("a",)


def test_peer_info_is_sent_when_connected():
    """Covers RFC 7425 §5.3.3 [after-connect] [type-by-encoding] [layout] [may-be-empty]."""
    application = Written()
    FlashWorld(application).client()
    assert [(kind, command) for kind, _, command in application.heard] == [
        (MessageType.COMMAND, Command("setPeerInfo", 0.0, None, ()))
    ]


def test_peer_info_in_amf3():
    """Covers RFC 7425 §5.3.3 [type-by-encoding] [format-zero]."""
    application = Written()
    world = FlashWorld(application)
    peer = world.client(
        properties={"objectEncoding": 3.0}, addresses=lambda: [("192.0.2.9", 5), ("::1", 6)]
    )
    ((kind, payload, command),) = application.heard
    assert kind == MessageType.COMMAND_AMF3 and payload[0] == 0
    assert command.args == ("192.0.2.9:5",)
    assert peer.server.listed == (("192.0.2.9", 5),)


def test_who_is_refused_tells_nothing():
    """Only a connection that is up wants addresses."""
    asked = []
    peer = FlashWorld().client("rtmfp://host/nothing", addresses=lambda: asked.append(1) or [])
    assert asked == [] and peer.client.closed


def test_the_first_return_flow_is_the_one_to_answer():
    """Covers RFC 7425 §5.3.2 [canonical-is-first], §5.3.5 [associated]."""
    world = FlashWorld()
    peer = world.client()
    canonical = peer.client.transport.far_control
    more = peer.server_session.open_flow(
        bytes(FlowMetadata(0)), world.now, associated=peer.server.transport.far_control
    )
    message = Command("hello").message()
    more.send(messages.encode_message(message.type_id, 0, message.payload), world.now)
    peer.publish("demo")
    assert Called(0, Command("hello")) in peer.events
    assert peer.client.transport.far_control is canonical
    associated = [flow.associated for flow in peer.server_session.recv_flows.values()]
    assert associated == [None, peer.server_session.send_flows[1]]


def test_flows_out_of_nowhere_are_rejected():
    """Covers RFC 7425 §5.3.5.3 [may-reject] [code-zero], §5.3.2 [canonical-is-first].

    What answers nothing is no answer.
    """
    world = FlashWorld()
    peer = world.client()
    flow = peer.server_session.open_flow(bytes(FlowMetadata(0)), world.now)
    codes = []
    flow.sender.on_exception = lambda flow, code, now: codes.append(code)
    flow.send(b"\x14\0\0\0\0", world.now)
    world.run()
    assert codes == [0] and not peer.client.closed


def test_the_periods_have_limits():
    """Covers RFC 7425 §5.3.4 [client-minimum] [client-maximum] [client-obeys]."""
    world = FlashWorld()
    peer = world.client()
    peer.server.transport.send_control(SetKeepaliveTimers(1, 0xFFFFFFFF))
    world.run()
    assert peer.client_session.keepalive.interval == messages.MIN_KEEPALIVE
    assert peer.client.transport.peer_keepalive == messages.MAX_KEEPALIVE


def test_calls_both_ways():
    """As over RTMP."""
    world = FlashWorld()
    peer = world.client()
    peer.server.call("news", 5.0)
    peer.client.call("nonsense")
    world.run()
    assert ("news", 5.0) in peer.calls()
    reply = next(each for each in peer.events if isinstance(each, Reply) and not each.succeeded)
    assert "nonsense" in reply.values[-1]["description"]


def test_shared_objects():
    """As over RTMP."""
    from rtmplite.shared_objects.replica import Mirror

    world = FlashWorld()
    peer = world.client()
    mirror = Mirror("users", False)
    peer.client.send_shared(mirror.use().message())
    world.run()
    assert [type(each).__name__ for each in peer.events][-1] == "SharedObject"


def test_a_server_that_is_gone():
    """Covers RFC 7425 §5.3.6 [abrupt]: calls that were on their way are lost with it."""
    world = FlashWorld()
    peer = world.client()
    peer.server.abort("enough", world.now)
    world.run()
    assert peer.client.closed and peer.client.transport.is_over and peer.server.transport.is_over


def test_where_an_rtmfp_url_leads():
    """Covers RFC 7425 §6.1 [uri-syntax] [default-port]."""
    target = Target.parse("rtmfp://host/app/stream")
    assert (target.host, target.port, target.app, target.stream) == ("host", 1935, "app", "stream")
    assert target.tc_url == "rtmfp://host/app" and target.by_datagrams and not target.secure
    assert Target.parse("rtmfp://[2001:db8::1]:7/app/s").port == 7
    assert not Target.parse("rtmp://host/app/stream").by_datagrams
