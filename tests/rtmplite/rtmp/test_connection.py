"""What both ends do below the commands: control messages, back-pressure, silence, the end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rtmp.rtmp_world import World, counting

from rtmplite.live.streams import Registry
from rtmplite.rtmp.client import ClientConnection, Target
from rtmplite.rtmp.connection import AT_ONCE, ConnectionLimits
from rtmplite.rtmp.server import ServerConnection
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.chunk_writer import CHUNK_SIZE, CONTROL_CHUNKS, ChunkWriter
from rtmplite.rtmp.wire.message import Message, MessageType


def controls(connection):
    """The control messages among what a connection would send, read as its client does."""
    found = []
    for message in connection.data.feed(b"".join(connection.transport.take_output())):
        parsed = control.parse_control(message)
        if parsed is not None:
            found.append(parsed)
    return found


def connected(**limits):
    """A server's end whose client speaks only when told to, and a writer for its words."""
    world = World(limits=ConnectionLimits(**limits))
    peer = world.client()
    world.peers.clear()
    peer.server.data = peer.client.transport._reader
    return world, peer.server, peer.client.transport._writer


def test_a_ping_is_answered_with_its_own_time():
    """Covers RTMP 1.0 §7.1.7 [ping-response], RTMP 1.0 §6.2 [at-once]."""
    world, server, writer = connected()
    server.transport.receive(writer.write(control.PingRequest(4711).message(), 2), world.now)
    assert controls(server) == [control.PingResponse(4711)]


@given(st.lists(st.integers(1, 900), min_size=1, max_size=30), st.integers(1, 3000))
def test_acknowledgements_follow_the_window(sizes, window):
    """Covers RTMP 1.0 §5.4.3 [ack-every-window] and RTMP 1.0 §5.4.4 [ack-since-last]."""
    _, server, writer = connected()
    server.transport.receive(
        writer.write(control.WindowAcknowledgementSize(window).message(), 2), 0.0
    )
    last = server.transport._reader.bytes_received if controls(server) else 0
    for size in sizes:
        server.transport.receive(writer.write(Message(8, 0, 9, bytes(size)), 4), 0.0)
        received = server.transport._reader.bytes_received
        if received - last >= window:
            assert controls(server) == [control.Acknowledgement(received)]
            last = received
        else:
            assert controls(server) == []


def test_no_window_no_acknowledgement():
    """Covers RTMP 1.0 §5.4.4: nobody asked."""
    _, server, writer = connected()
    server.transport._ack_every = 0
    server.transport.receive(writer.write(Message(8, 0, 9, bytes(9_000_000)), 4), 0.0)
    assert controls(server) == []


def test_a_new_peer_bandwidth_is_answered_with_a_window():
    """Covers RTMP 1.0 §5.4.5 [answer-with-window]; one we have told already is not."""
    world, server, writer = connected()
    for size, answer in ((5000, [5000]), (5000, []), (6000, [6000])):
        order = control.SetPeerBandwidth(size, control.LimitType.HARD)
        server.transport.receive(writer.write(order.message(), 2), world.now)
        assert controls(server) == [control.WindowAcknowledgementSize(each) for each in answer]


def test_a_silent_peer_is_pinged_then_given_up():
    """Covers RTMP 1.0 §7.1.7, with the seconds of our own."""
    _, server, _ = connected(ping_after=60.0, ping_timeout=30.0)
    assert server.deadline == 60.0
    server.tick(59.9)
    assert not server.transport.output
    server.tick(60.0)
    assert controls(server) == [control.PingRequest(60000)]
    assert server.deadline == 90.0
    server.tick(90.0)
    assert server.closed and server.transport.aborted and server.reason == "silent"
    assert server.deadline is None


def test_whoever_answers_pings_stays():
    """Covers RTMP 1.0 §7.1.7."""
    world = World()
    peer = world.client()
    world.wait(3600.0)
    assert not peer.server.closed and not peer.client.closed


def test_a_peer_we_do_not_read_is_not_called_silent():
    """Back-pressure is our doing, not the peer's."""
    _, server, _ = connected()
    server.pause_reading()
    for now in (60.0, 120.0, 500.0):
        server.tick(now)
    assert not server.closed and not server.transport.output
    server.resume_reading()
    assert server.deadline == 560.0


@pytest.mark.parametrize("data", [b"", b"\x03", b"\x03" + bytes(1535), b"\x03" + bytes(1536)])
def test_who_does_not_get_to_the_point_is_hung_up_on(data):
    """A truncated handshake keeps no socket for long: RTMP 1.0 §5.2 knows no time-out."""
    server = World(limits=ConnectionLimits(setup=10.0)).server()
    server.transport.receive(data, 1.0)
    server.tick(9.9)
    assert not server.closed
    server.tick(10.0)
    assert server.transport.aborted


def test_paused_input_waits_in_order_and_within_bounds():
    """Own design: nothing is lost by a pause, and nobody can fill our memory during one."""
    _, server, writer = connected(held=1000)
    asked = []
    server.transport.on_reading = lambda transport: asked.append(transport.reading)
    server.pause_reading()
    server.transport.receive(writer.write(control.PingRequest(1).message(), 2), 0.0)
    server.transport.receive(writer.write(control.PingRequest(2).message(), 2), 0.0)
    assert controls(server) == []
    server.resume_reading()
    server.transport.receive(b"", 0.0)
    assert controls(server) == [control.PingResponse(1), control.PingResponse(2)]
    assert asked == [False, True]
    server.pause_reading()
    server.transport.receive(bytes(1001), 0.0)
    assert server.transport.aborted


def test_where_others_wait_few_messages_are_used_at_once():
    """Own design: the rest is used at the next call, in order, unless reading has been paused."""
    _, server, writer = connected()
    transport, behind = server.transport, []
    transport.on_behind = lambda: behind.append(transport.is_behind)
    pings = [control.PingRequest(number).message() for number in range(2 * AT_ONCE + 1)]
    data = b"".join(writer.write(each, CONTROL_CHUNKS) for each in pings)
    answered = []
    for _ in range(3):
        transport.receive(data, 1.0)
        data = b""
        answered.append([each.timestamp for each in controls(server)])
    every = list(range(2 * AT_ONCE + 1))
    assert answered == [every[:AT_ONCE], every[AT_ONCE : 2 * AT_ONCE], every[2 * AT_ONCE :]]
    assert behind == [True, True] and not transport.is_behind
    transport.receive(b"".join(writer.write(each, CONTROL_CHUNKS) for each in pings), 1.0)
    transport.pause_reading()
    assert not transport.is_behind
    controls(server)
    transport.receive(b"", 1.0)
    assert controls(server) == []


def test_output_is_announced_once_and_counted_while_the_socket_is_busy():
    """Own design: the edge's list of who has something to say needs each only once."""
    _, server, _ = connected()
    said = []
    server.transport.on_output = said.append
    server.transport.put(b"abc")
    server.transport.put(b"de")
    assert said == [server.transport] and server.output_size == 0
    assert server.transport.take_output() == [b"abc", b"de"]
    assert server.transport.take_output() == []
    server.transport.output_size = 100  # the edge: the socket did not take all
    server.transport.put(b"fgh")
    assert server.output_size == 103 and said == [server.transport] * 2


def test_the_end_comes_once_and_is_announced():
    """Own design: `close` lets the queue drain, `abort` drops it."""
    for end, left in (("close", [b"last words"]), ("abort", [])):
        _, server, _ = connected()
        said = []
        server.transport.put(b"last words")
        server.transport.on_output = lambda connection, said=said: said.append(connection.closed)
        server.close(5.0, "enough") if end == "close" else server.abort("enough", 5.0)
        server.close(6.0, "again")
        server.abort("again", 7.0)
        server.transport.put(b"too late")
        assert server.transport.take_output() == left and said == [True]
        assert server.reason == "enough" and server.transport.aborted == (end == "abort")


class _Recorder(ServerConnection):
    """Tells what it was given."""

    def __init__(self):
        super().__init__({}.get, Registry(), counting(), 0.0)
        self.heard = []

    def on_media(self, message, now):
        self.heard.append((message.type_id, message.timestamp, message.payload))

    def on_command(self, command, stream_id, now):
        self.heard.append((command.name, *command.args))


@given(st.lists(st.integers(1, 700), max_size=20), st.booleans())
def test_the_cut_of_the_bytes_does_not_matter(cuts, digest):
    """From the first byte of the handshake on, byte by byte or all at once: RTMP 1.0 §5.2."""
    target = Target.parse("rtmp://host/live", stream=False)
    client, server = ClientConnection(target, counting(), 0.0, digest=digest), _Recorder()
    while output := b"".join(client.transport.take_output()):
        for cut in cuts:
            piece, output = output[:cut], output[cut:]
            server.transport.receive(piece, 0.0)
        server.transport.receive(output, 0.0)
        client.transport.receive(b"".join(server.transport.take_output()), 0.0)
    assert [each[0] for each in server.heard] == ["connect"]
    client.send_media(9, 2**32 - 1, 1, bytes(10_000))
    for byte in b"".join(client.transport.take_output()):
        server.transport.receive(bytes([byte]), 0.0)
    assert server.heard[1:] == [(9, 2**32 - 1, bytes(10_000))]


def test_aggregates_reach_the_application_as_single_messages():
    """Covers RTMP 1.0 §7.1.6."""
    peer = World().client()
    recorder = _Recorder()
    recorder.transport._handshake = None
    part = bytes.fromhex("08 000003 000014 00 000000") + b"abc" + bytes.fromhex("0000000e")
    other = bytes.fromhex("14 000003 000014 00 000000") + b"abc" + bytes.fromhex("0000000e")
    aggregate = Message(22, 1000, 1, part + other + part)
    recorder.transport.receive(ChunkWriter().write(aggregate, 4), 0.0)
    assert recorder.heard == [(8, 1000, b"abc"), (8, 1000, b"abc")]
    assert not peer.server.closed


def test_unknown_types_are_ignored():
    """Own design: nobody is hurt by them."""
    world, server, writer = connected()
    server.transport.receive(writer.write(Message(99, 0, 0, b"whatever"), 8), world.now)
    assert not server.closed and not server.transport.output


def test_a_broken_shared_object_ends_it():
    """Covers RTMP 1.0 §7.1.3, RTMP Errata §2 [errors-abort]."""
    for type_id in (MessageType.SHARED_OBJECT, MessageType.SHARED_OBJECT_AMF3):
        world, server, writer = connected()
        server.transport.receive(writer.write(Message(type_id, 0, 0, b"whatever"), 8), world.now)
        assert server.transport.aborted


def test_control_messages_fit_into_a_chunk():
    """Covers RTMP 1.0 §6.2 [fits-a-chunk], §5.4.1 [size-at-least-128]."""
    _, server, writer = connected()
    server.transport.send_control(control.SetBufferLength(1, 1000))
    ((raw,),) = [server.transport.take_output()]
    assert len(raw) == 12 + 10  # one header
    assert server.transport._writer.chunk_size == writer.chunk_size == CHUNK_SIZE >= 128
