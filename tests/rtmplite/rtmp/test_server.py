"""The server's NetConnection: connect and its verdicts, calls, what clients really send."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak
from support.rtmp.rtmp_world import World, counting

from rtmplite.errors import LocalError, RemoteError
from rtmplite.live.streams import Registry
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import ClientConnection, Reply, Target
from rtmplite.rtmp.connection import ConnectionLimits
from rtmplite.rtmp.message_transport import HOLD_ON_PING
from rtmplite.rtmp.netconnection import State
from rtmplite.rtmp.server import ServerConnection
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message


class Slow(LiveApplication):
    """Decides later, and writes down what it saw."""

    def __init__(self):
        self.log = []

    def on_connect(self, connection, now):
        self.log.append("connect")

    def on_command(self, connection, command, now):
        self.log.append((command.name, *command.args))
        connection.result(command.transaction_id, "an answer")

    def on_disconnect(self, connection, now):
        self.log.append("disconnect")


def test_connect_is_answered_in_order():
    """Covers RTMP 1.0 §7.2.1.1 [window-first] [then-bandwidth] [then-begin] [then-result]."""
    world = World(Slow())
    peer = world.client()
    assert peer.events == [] and peer.server.state is State.ASKING
    peer.server.accept(world.now, "Welcome", extra=1.0)
    messages = ChunkReader().feed(b"".join(peer.server.transport.take_output()))
    order = [control.parse_control(message) or Command.parse(message) for message in messages]
    assert [type(each) for each in order] == [
        control.WindowAcknowledgementSize,
        control.SetPeerBandwidth,
        control.SetChunkSize,
        control.StreamBegin,
        Command,
    ]
    assert order[3] == control.StreamBegin(0)
    assert order[-1].name == "_result" and order[-1].transaction_id == 1.0
    information = order[-1].args[0]
    assert information["code"] == "NetConnection.Connect.Success"
    assert (information["description"], information["extra"]) == ("Welcome", 1.0)


@pytest.mark.parametrize(("number", "answered"), [(7.0, 7.0), (0.0, 1.0)])
def test_connect_is_answered_even_if_its_number_wants_no_answer(number, answered):
    """Covers RTMP 1.0 §7.2.1.1: a client that numbers it 0 waits for the result as well."""
    said, server = [], World().server()
    server.send_command = said.append
    server.on_command(Command("connect", number, {"app": "live"}), 0, 0.0)
    assert [(each.name, each.transaction_id) for each in said] == [("_result", answered)]


@pytest.mark.parametrize(("asked", "given"), [(None, 0.0), (0.0, 0.0), (3.0, 3.0), ("3", 0.0)])
def test_object_encoding_is_never_more_than_asked_for(asked, given):
    """Covers RTMP Errata §8.1.1 [never-more-than-asked] [server-says].

    Covers E-RTMP v2 §"Important AMF3-encoded Historical Specification Clarification"
    [object-encoding].
    """
    properties = {} if asked is None else {"objectEncoding": asked}
    peer = World().client(properties=properties)
    assert peer.reply(1.0)[1]["objectEncoding"] == given


def test_nothing_is_looked_at_before_the_verdict():
    """Clients that do not wait for the result of connect lose nothing: Application.on_connect."""
    world = World(app := Slow())
    peer = world.client()
    peer.client.call("first")
    peer.client.call("second", 1.0)
    world.run()
    assert app.log == ["connect"]
    peer.server.accept(world.now)
    world.run()
    assert app.log == ["connect", ("first",), ("second", 1.0)]
    assert [each.transaction_id for each in peer.events if isinstance(each, Reply)] == [1, 2, 3]


def test_a_rejection_says_why_and_ends_the_connection():
    """Covers RTMP 1.0 §7.2.1.1."""
    world = World(app := Slow())
    peer = world.client()
    peer.server.reject("403 Forbidden", world.now)
    assert peer.server.closed and not peer.server.transport.aborted
    assert app.log == ["connect", "disconnect"]
    world.run()
    with pytest.raises(RemoteError, match="403 Forbidden") as caught:
        peer.reply(1.0)
    assert caught.value.code == "NetConnection.Connect.Rejected"
    peer.server.accept(world.now)  # too late
    peer.server.reject("again", world.now)
    assert peer.server.transport.output == []


def test_an_unknown_application_is_refused():
    """Covers RTMP 1.0 §7.2.1.1."""
    peer = World().client("rtmp://host/nothing/here")
    with pytest.raises(RemoteError) as caught:
        peer.reply(1.0)
    assert caught.value.code == "NetConnection.Connect.InvalidApp"
    with pytest.raises(LocalError):
        _ = peer.server.application


@pytest.mark.parametrize(
    ("url", "app", "instance"),
    [
        ("rtmp://h/live", "live", ""),
        ("rtmp://h:1/live/room/", "live/room", "room"),
        ("rtmp://h/live?key=1", "live", ""),
        ("rtmp://h/sip/alice@127.0.0.1:5060", "sip/alice@127.0.0.1:5060", "alice@127.0.0.1:5060"),
    ],
)
def test_what_the_client_said_is_kept(url, app, instance):
    """Covers RTMP Errata §8.1.2, §8.1.3 and §8.1.5 [more-arguments]."""
    peer = World().client(url, args=("login", None, 5.0), properties={"flashVer": "test"})
    assert (peer.server.app, peer.server.instance) == (app, instance)
    assert peer.server.tc_url == url.rstrip("/")
    assert peer.server.connect_args == ("login", None, 5.0)
    assert peer.server.properties["flashVer"] == "test"


def test_the_first_command_must_be_connect():
    """Covers RTMP 1.0 §7.2.1."""
    world = World()
    server = world.server()
    client = ClientConnection(Target.parse("rtmp://h/live", stream=False), world.random, 0.0)
    client.transport._handshaken = lambda now: client.call("createStream")
    for _ in range(3):
        server.transport.receive(b"".join(client.transport.take_output()), 0.0)
        client.transport.receive(b"".join(server.transport.take_output()), 0.0)
    assert server.transport.aborted and "connect" in server.reason


def test_streams_are_numbered_from_one_and_numbers_come_back():
    """Covers RTMP 1.0 §7.2.1.3 [gives-the-stream], RTMP 1.0 §7.2.2.3 [no-answer].

    And RTMP Errata §4.2 [stream-id-limit]: numbers stay small.
    """
    peer = World(limits=ConnectionLimits(streams=3)).client()
    assert [peer.stream() for _ in range(3)] == [1, 2, 3]
    with pytest.raises(RemoteError):
        peer.stream()
    peer.send("deleteStream", 2.0)
    assert peer.stream() == 2
    for nonsense in ((), (77.0,), (2.5,), ("2",), (None,), (float("nan"),), (float("inf"),)):
        peer.send("deleteStream", *nonsense)
    assert not peer.server.closed and sorted(peer.server.streams) == [1, 2, 3]


@pytest.mark.parametrize(
    "name",
    ["releaseStream", "FCPublish", "FCUnpublish", "FCSubscribe", "FCUnsubscribe", "_checkbw"],
)
def test_courtesies_of_ffmpeg_and_flash_get_their_null(name):
    """They are answered, and without a number they are not."""
    peer = World().client()
    assert peer.call(name, "demo") == (None, None)
    before = [each for each in peer.events if isinstance(each, Reply)]
    peer.send(name, "demo")
    assert [each for each in peer.events if isinstance(each, Reply)] == before


def test_the_length_of_a_live_stream_is_zero():
    """ffmpeg asks for it before it plays."""
    assert World().client().call("getStreamLength", "demo") == (None, 0.0)


def test_encoder_hears_of_its_fc_publish():
    """Flash Media Live Encoder waits for these calls; the name is in the description."""
    peer = World().client()
    for name in ("FCPublish", "FCUnpublish", "FCSubscribe"):
        peer.send(name, "demo")
    assert [name for name, _ in peer.calls()] == ["onFCPublish", "onFCUnpublish", "onFCSubscribe"]
    assert all(information["description"] == "demo" for _, information in peer.calls())


def test_fc_unpublish_ends_what_has_that_name():
    """librtmp says FCUnpublish, then deleteStream."""
    world = World()
    peer = world.client()
    peer.publish("demo?key=1")
    peer.send("FCUnpublish", "other")
    assert world.registry.get("live", "demo").publishing
    peer.send("FCUnpublish", "demo?key=1")
    assert world.registry.get("live", "demo") is None
    assert peer.codes() == ["NetStream.Publish.Start", "NetStream.Unpublish.Success"]


def test_other_calls_are_the_applications():
    """Covers RTMP 1.0 §7.2.1.2: an answer has the number of its call."""
    world = World(app := Slow())
    peer = world.client()
    peer.server.accept(world.now)
    world.run()
    assert peer.call("invite", "bob@example.com", "wideband") == (None, "an answer")
    assert app.log[-1] == ("invite", "bob@example.com", "wideband")
    with pytest.raises(RemoteError, match="No such call"):
        World().client().call("invite")


def test_calls_to_the_client_count_from_two_and_want_no_answer():
    """Covers RTMP 1.0 §7.2.1.2; answers that come nevertheless disturb nobody."""
    world = World(app := Slow())
    peer = world.client()
    peer.server.accept(world.now)
    peer.server.call("invited", "alice", "bob")
    peer.server.call("byed")
    world.run()
    assert peer.calls() == [("invited", "alice", "bob"), ("byed",)]
    numbers = [each.command.transaction_id for each in peer.events if hasattr(each, "command")]
    assert numbers == [2.0, 3.0]
    assert all(each.command.object is None for each in peer.events if hasattr(each, "command"))
    peer.client.send_command(Command("_result", 2.0, None, ()))
    world.run()
    assert app.log == ["connect"]


def test_a_close_with_a_code_is_the_last_thing_said():
    """Covers RTMP 1.0 §7.2.2: NetConnection.Connect.Closed."""
    world = World(app := Slow())
    peer = world.client()
    peer.server.accept(world.now)
    peer.server.close(world.now, "bye", "NetConnection.Connect.Closed")
    peer.server.close(world.now, "bye", "NetConnection.Connect.Closed")
    world.run()
    assert peer.codes() == ["NetConnection.Connect.Closed"]
    assert app.log == ["connect", "disconnect"] and peer.server.state is State.CLOSED


def test_a_lost_connection_ends_its_streams_before_it():
    """Covers Field §"Names in use" [freed-with-its-connection]."""
    world = World()
    peer, other = world.client(), world.client()
    other.play("demo")
    peer.publish("demo")
    peer.server.transport.connection_lost(world.now)
    world.run()
    assert other.codes()[-1] == "NetStream.Play.UnpublishNotify"
    assert not world.registry.get("live", "demo").publishing


def test_who_waits_for_a_verdict_hears_that_we_live():
    """Covers RTMP 1.0 §7.1.7: GStreamer gives up after five seconds of silence."""
    world = World()
    peer = world.client()
    before = peer.server.transport.limits
    peer.server.transport.hold_on()
    peer.server.transport.hold_on()
    assert peer.server.deadline == world.now + HOLD_ON_PING < world.now + 5.0
    world.wait(60.0)
    assert not peer.server.closed
    peer.server.transport.held_on()
    peer.server.transport.held_on()
    assert peer.server.transport.limits == before


def test_every_connection_has_a_name_to_find_it_by():
    """Own design: short, and different for each."""
    world = World()
    names = {world.server().id for _ in range(20)}
    assert len(names) == 20 and all(len(name) == 8 for name in names)


conversation = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("connect", "createStream", "publish", "play", "deleteStream", "closeStream"),
                *("pause", "receiveVideo", "seek", "FCUnpublish", "getStreamLength"),
                *("_result", "invite"),
            ]
        ),
        st.integers(0, 3),
        st.lists(st.one_of(st.none(), st.booleans(), st.floats(0, 5), st.just("x")), max_size=4),
    ),
    max_size=8,
)


@st.composite
def client_bytes(draw):
    """What some client might send after its handshake, sense or not."""
    client = ClientConnection(Target.parse("rtmp://h/live", stream=False), bytes, 0.0)
    client.transport.take_output()
    client.transport._handshaken(0.0)
    for name, stream_id, args in draw(conversation):
        client.send_command(
            Command(name, draw(st.integers(0, 5)) * 1.0, None, tuple(args)), stream_id
        )
        client.send_media(draw(st.sampled_from([8, 9, 18])), 5, stream_id, b"\x17\x01...")
    return b"".join(client.transport.take_output())


@given(mutations(client_bytes()))
def test_no_bytes_raise_anything(data):
    """Sense, nonsense and half a chunk: the connection lives or closes, and no stream stays."""
    registry = Registry()
    server = ServerConnection(lambda name: LiveApplication(), registry, counting(), 0.0)
    server.transport.receive(b"\x03" + bytes(2 * 1536), 0.0)
    assert peak(lambda: server.transport.receive(data, 1.0)) <= 32 * len(data) + 65536
    event(f"{server.state}, {'closed' if server.closed else 'open'}")
    server.transport.take_output()
    server.transport.connection_lost(2.0)
    assert registry.streams == 0 and server.closed


@given(st.binary(max_size=5000))
def test_no_garbage_raises_anything(data):
    """Random bytes from the first on."""
    server = World().server()
    assert peak(lambda: server.transport.receive(data, 0.0)) <= 32 * len(data) + 65536
    event("closed" if server.closed else "waiting")


def test_type_17_commands_count_as_commands():
    """Covers RTMP Errata §7.2."""
    world = World()
    peer = world.client(properties={"objectEncoding": 3.0})
    command = Command("createStream", 9.0).message(type_id=17)
    peer.client.transport.put(peer.client.transport._writer.write(command, 3))
    world.run()
    assert peer.reply(9.0) == (None, 1.0)
    assert isinstance(command, Message)


def test_who_asks_nothing_for_long_is_closed_if_so_configured():
    """Own design: players and publishers at work stay, and pings alone are no work."""
    world = World(limits=ConnectionLimits(idle=30.0, ping_after=10.0))
    idle, player, source = world.client(), world.client(), world.client()
    player.play("demo")
    number = source.publish("demo")
    for time in range(20):
        source.write(8, time, number, b"\xb2sound")
        world.wait(5.0)
    assert idle.server.closed and idle.server.reason == "idle for 30 s"
    assert idle.codes() == ["NetConnection.Connect.IdleTimeout"]
    assert not player.server.closed and not source.server.closed
    world.wait(40.0)
    assert source.server.closed and "NetStream.Play.UnpublishNotify" in player.codes()


def test_who_is_not_listened_to_is_not_called_idle():
    """Own design: it may want to ask."""
    world = World(limits=ConnectionLimits(idle=30.0))
    peer = world.client()
    peer.server.pause_reading()
    world.wait(100.0)
    assert not peer.server.closed


def test_who_asks_much_and_reads_nothing_is_cut_off():
    """Own design: the answers would fill our memory; a player's limit is another."""
    world = World(limits=ConnectionLimits(unread=10_000))
    peer = world.client()
    peer.deaf = True
    for _ in range(600):
        peer.client.call("getStreamLength", "demo")
        world.run()
    assert peer.server.transport.aborted and "does not read" in peer.server.reason
    assert peer.server.output_size < 11_000


@pytest.mark.parametrize("encoding", [0.0, 3.0])
def test_commands_are_those_that_everybody_reads(encoding):
    """Covers RTMP Errata §8.1.1 [no-extended-without] [connect-is-20]."""
    world = World(Slow())
    peer = world.client(properties={"objectEncoding": encoding})
    peer.server.accept(world.now)
    peer.server.call("anything", {"a": 1.0})
    messages = ChunkReader().feed(b"".join(peer.server.transport.take_output()))
    assert {each.type_id for each in messages} & {15, 16, 17} == set()
    assert [each.type_id for each in messages][-2:] == [20, 20]


def test_number_zero_is_not_answered():
    """Covers RTMP 1.0 §7.2.1.2 [zero-wants-none]: neither by a result nor by an error."""
    peer = World().client()
    before = len(peer.events)
    peer.send("getStreamLength", "demo")
    peer.send("nothing of the kind")
    assert len(peer.events) == before
