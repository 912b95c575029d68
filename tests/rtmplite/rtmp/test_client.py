"""The client's NetConnection, and what an rtmp URL means."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak
from support.rtmp.rtmp_world import World, counting

from rtmplite.errors import LocalError
from rtmplite.rtmp.client import Called, ClientConnection, Ended, Reply, Target, redirection
from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.digest import PACKET_SIZE
from rtmplite.rtmp.wire.message import Message, MessageType


@pytest.mark.parametrize(
    ("url", "app", "stream", "tc_url"),
    [
        ("rtmp://h/live/cam", "live", "cam", "rtmp://h/live"),
        ("rtmp://h/live", "live", "", "rtmp://h/live"),
        ("rtmp://h:1935/live/room/cam", "live/room", "cam", "rtmp://h:1935/live/room"),
        ("rtmp://h/live?k=1#room/cam", "live?k=1", "room/cam", "rtmp://h/live?k=1"),
        ("rtmp://h/live/cam?k=1", "live?k=1", "cam?k=1", "rtmp://h/live?k=1"),
        ("rtmp://h/live?k=1/cam", "live?k=1", "cam", "rtmp://h/live?k=1"),
        ("rtmp://h/live?k=1", "live?k=1", "", "rtmp://h/live?k=1"),
        ("rtmp://h/live/?k=1", "live?k=1", "", "rtmp://h/live?k=1"),
        ("rtmp://me:secret@h/live/cam", "live", "cam", "rtmp://h/live"),
        ("rtmp://h/call/bob@example.com", "call", "bob@example.com", "rtmp://h/call"),
    ],
)
def test_a_url_names_an_application_and_a_stream(url, app, stream, tc_url):
    """Covers RTMP Errata §8.1.2 [stripped], RTMP Errata §10 [stripped].

    And RTMP Errata §8.1.3 [app-is-the-path].
    """
    target = Target.parse(url)
    assert (target.app, target.stream, target.tc_url) == (app, stream, tc_url)
    assert (target.host, target.port) == ("h", 1935)


def test_a_whole_path_can_be_the_application():
    """Covers RTMP Errata §8.1.3: the `sip` application's identity is in it."""
    target = Target.parse("rtmp://[::1]:5/sip/alice@127.0.0.1:5060", stream=False)
    assert (target.host, target.port) == ("::1", 5)
    assert (target.app, target.stream) == ("sip/alice@127.0.0.1:5060", "")


@pytest.mark.parametrize("url", ["http://h/live/x", "rtmp:///live/x", "live/x", "rtmp://h:x/live"])
def test_other_urls_are_our_callers_mistake(url):
    """RTMP over other transports is not this client's."""
    with pytest.raises(LocalError):
        Target.parse(url)


def test_connect_says_where_to_in_the_type_that_every_server_reads():
    """Covers RTMP Errata §8.1.1 [connect-is-20], RTMP Errata §8.1.2 [tc-url-required].

    And RTMP Errata §8.1.3 [app-required].
    """
    world, said = World(), b""
    target = Target.parse("rtmp://host/live?k=1", stream=False)
    client, server = ClientConnection(target, world.random, world.now), world.server()
    while sent := b"".join(client.transport.take_output()):
        said += sent
        server.transport.receive(sent, world.now)
        client.transport.receive(b"".join(server.transport.take_output()), world.now)
    messages = ChunkReader().feed(said[1 + 2 * PACKET_SIZE :])
    connect = next(each for each in messages if each.type_id > MessageType.VIDEO)
    assert connect.type_id == MessageType.COMMAND
    command = Command.parse(connect)
    assert (command.name, command.transaction_id) == ("connect", 1.0)
    assert command.object["app"] == "live?k=1"
    assert command.object["tcUrl"] == "rtmp://host/live?k=1"


@pytest.mark.parametrize("digest", [False, True])
def test_connect_carries_arguments_and_properties(digest):
    """Covers RTMP 1.0 §7.2.1.1, RTMP Errata §8.1.4 [codecs-said]."""
    peer = World().client(args=("a", None), properties={"pageUrl": "x"}, digest=digest)
    assert peer.server.connect_args == ("a", None)
    assert peer.server.properties["pageUrl"] == "x"
    assert peer.server.properties["audioCodecs"] == 0x0FFF
    assert peer.server.properties["videoCodecs"] == 0x00FF
    assert peer.reply(1.0)[1]["code"] == "NetConnection.Connect.Success"


def test_what_arrives_is_sorted():
    """Replies by number, calls by stream, the end, and media: RTMP 1.0 §7.2.1.2, §7.1.7."""
    world = World()
    peer, publisher = world.client(), world.client()
    playing, publishing = peer.play("demo"), publisher.publish("demo")
    publisher.write(8, 1, publishing, b"sound")
    publisher.send("deleteStream", float(publishing))
    kinds = {type(each).__name__ for each in peer.events}
    assert kinds == {"Reply", "Called", "Message", "Ended"}
    assert peer.events[-1] == Ended(playing) and isinstance(peer.events[0], Reply)
    assert all(each.stream_id == playing for each in peer.events if isinstance(each, Called))
    assert peer.client.events() == []


def test_messages_of_many_tracks_are_played_as_they_are():
    """Covers E-RTMP v2 §"Conventions" [plays-multitrack]."""
    world = World()
    peer, publisher = world.client(), world.client()
    playing, publishing = peer.play("demo"), publisher.publish("demo")
    assert publisher.server.properties["capsEx"] == peer.reply(1.0)[1]["capsEx"] == 15.0
    tracks = b"\x96\x20av01\0\0\0\1a" + b"vp09\1\0\0\1b", b"\x95\x10Opus\3\0\0\1c"
    for type_id, payload in zip((9, 8), tracks, strict=True):
        publisher.write(type_id, 0, publishing, payload)
    found = [each for each in peer.events if isinstance(each, Message) and each.type_id in (8, 9)]
    assert [each.payload for each in found] == [*tracks] and found[0].stream_id == playing


def test_how_long_to_wait_for_connect_is_not_its_business():
    """A gateway's connect takes as long as a registrar; a ping keeps the line."""
    client = ClientConnection(Target.parse("rtmp://h/live"), counting(), 0.0)
    assert client.deadline == client.transport.limits.setup  # the handshake is
    server = World().server()
    server.transport.receive(b"".join(client.transport.take_output()), 0.0)
    client.transport.receive(b"".join(server.transport.take_output()), 1.0)
    assert client.deadline == 1.0 + client.transport.limits.ping_after


@given(mutations(st.just(b"")), mutations(st.binary(max_size=300)))
def test_no_bytes_raise_anything(shake, data):
    """A server that says anything: the connection lives or closes."""
    client = ClientConnection(Target.parse("rtmp://h/live"), counting(), 0.0)
    client.transport.receive(shake, 0.0)
    if not client.closed and not shake:
        client.transport.receive(b"\x03" + bytes(2 * 1536), 0.0)
    assert peak(lambda: client.transport.receive(data, 0.0)) <= 32 * len(data) + 65536
    event("closed" if client.closed else "open")
    client.events()


@pytest.mark.parametrize(
    ("url", "port", "secure"),
    [
        ("rtmp://host/live/x", 1935, False),
        ("rtmps://host/live/x", 443, True),
        ("rtmps://host:444/live/x", 444, True),
        ("rtmpt://host/live/x", 80, False),
    ],
)
def test_tls_is_told_by_the_scheme(url, port, secure):
    """And the server is told by tcUrl."""
    target = Target.parse(url)
    assert (target.port, target.secure) == (port, secure)
    assert target.tc_url.startswith(url.partition("host")[0])
    assert target.by_http is url.startswith("rtmpt:")


@pytest.mark.parametrize("scheme", ["rtmpe", "rtmpte"])
def test_encrypted_rtmp_is_refused_with_its_name(scheme):
    """Rather than as a URL that is none."""
    with pytest.raises(LocalError, match="RTMPE is not spoken here"):
        Target.parse(f"{scheme}://host/live/x")


@pytest.mark.parametrize(
    "information",
    [None, {}, {"ex": None}, {"ex": {"code": 301.0, "redirect": "x"}}, {"ex": {"code": 302.0}}],
)
def test_most_refusals_send_nobody_elsewhere(information):
    """Covers Field §"Redirects"."""
    assert redirection(information) is None
